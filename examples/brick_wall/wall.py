"""Walls of a tile, and the tile that explains pictures of a wall."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from brickwork.ops import brick_pad


@dataclass(frozen=True, slots=True)
class Bond:
    """How tiles are laid: each course is moved by `skew` columns against the one below."""

    skew: int

    def wall(self, tile: Tensor, height: int, width: int, origin: tuple[int, int]) -> Tensor:
        """Return a wall (height, width, 3) of a tile (h, w, 3), the lower left of one copy at `origin`."""
        h, w = tile.shape[:2]
        return brick_pad(tile, height, width, [*origin], [w, 0], [self.skew, h])


def learned(
    batches: Iterable[tuple[Tensor, Tensor]],
    bond: Bond,
    shape: tuple[int, int],
    told: Callable[[int, float], None],
    rate: float = 0.05,
) -> Tensor:
    """Return the tile (h, w, 3) that gradient descent finds from grey.

    A batch is an update: pictures (n, height, width, 3), and for each where the tile's origin is, int64 (n, 2). The
    gradient goes through the wall back to the tile. `told` hears of each update and its loss.
    """
    tile = torch.full((*shape, 3), 0.5, requires_grad=True)
    optimizer = torch.optim.Adam([tile], lr=rate)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)
    for number, (pictures, origins) in enumerate(batches):
        height, width = pictures.shape[1:3]
        walls = torch.stack([bond.wall(tile, height, width, (x, y)) for x, y in origins.tolist()])
        loss = (walls - pictures).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        told(number, loss.item())
    return tile.detach()
