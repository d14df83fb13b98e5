"""Pictures of a wall, each a noisy part of it, and the tile that explains them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from brickwork.ops import brick_pad


@dataclass(frozen=True, slots=True)
class Bond:
    """How bricks are laid: each course is moved by `skew` columns against the one below."""

    skew: int

    def wall(self, tile: Tensor, height: int, width: int, origin: tuple[int, int]) -> Tensor:
        """Return a wall (height, width, 3) of a tile (h, w, 3), the lower left of one copy at `origin`."""
        h, w = tile.shape[:2]
        return brick_pad(tile, height, width, [*origin], [w, 0], [self.skew, h])


def pictures(
    tile: Tensor, bond: Bond, size: int, noise: float, generator: torch.Generator
) -> Iterator[tuple[Tensor, tuple[int, int]]]:
    """Yield parts of the wall (size, size, 3) at random places, with noise, and where the tile's origin is."""
    h, w = tile.shape[:2]
    while True:
        origin = (int(torch.randint(w, (), generator=generator)), int(torch.randint(h, (), generator=generator)))
        clean = bond.wall(tile, size, size, origin)
        yield clean + noise * torch.randn(clean.shape, generator=generator), origin


def learned(
    seen: Iterator[tuple[Tensor, tuple[int, int]]],
    bond: Bond,
    shape: tuple[int, int],
    updates: int,
    told: Callable[[int, float], None],
) -> Tensor:
    """Return the tile (h, w, 3) that gradient descent finds from grey; `told` hears of each update and its loss."""
    tile = torch.full((*shape, 3), 0.5, requires_grad=True)
    optimizer = torch.optim.Adam([tile], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    for number, (picture, origin) in zip(range(updates), seen, strict=False):
        loss = (bond.wall(tile, *picture.shape[:2], origin) - picture).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        told(number, loss.item())
    return tile.detach()
