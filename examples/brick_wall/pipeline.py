"""The input pipeline: noisy pictures of a wall, padded in the workers of a data loader."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from examples.brick_wall.wall import Bond


@dataclass(frozen=True, slots=True)
class Pictures(Dataset[tuple[Tensor, Tensor]]):
    """Parts of a wall (size, size, 3) at random places, with noise, and where the tile's origin is: int64 (2,).

    An item depends on its number alone, whichever worker makes it.
    """

    tile: Tensor
    bond: Bond
    count: int
    size: int = 120
    noise: float = 0.3
    seed: int = 1

    def __len__(self) -> int:
        """Return how many pictures there are."""
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Lay a wall, and take its picture."""
        generator = torch.Generator().manual_seed(self.seed * self.count + index)
        h, w = self.tile.shape[:2]
        x, y = (int(torch.randint(most, (), generator=generator)) for most in (w, h))
        clean = self.bond.wall(self.tile, self.size, self.size, (x, y))
        return clean + self.noise * torch.randn(clean.shape, generator=generator), torch.tensor([x, y])


def batches(pictures: Pictures, size: int, workers: int) -> DataLoader[tuple[Tensor, Tensor]]:
    """Return the pictures in batches of `size`, which `workers` processes make; 0: this one."""
    return DataLoader(pictures, batch_size=size, num_workers=workers)
