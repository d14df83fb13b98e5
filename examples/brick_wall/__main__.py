"""Learns a brick from noisy pictures of a wall, and draws the pictures, the brick and a wall of it."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from rich.console import Console

from brickwork.bench import plots
from brickwork.bench.report import duration
from examples.brick_wall.wall import Bond, learned, pictures
from examples.demo import tiles

OUTPUT = Path("demo-output")
UPDATES = 150


def main() -> None:
    """Learn the brick; pictures go to `demo-output/`."""
    console = Console(highlight=False, soft_wrap=True)
    OUTPUT.mkdir(exist_ok=True)
    brick = tiles.brick()
    bond = Bond(skew=brick.shape[1] // 2)
    seen = pictures(brick, bond, 240, 0.3, torch.Generator().manual_seed(1))
    plots.picture(next(seen)[0].clamp(0, 1), OUTPUT / "wall-seen.png")

    def told(number: int, loss: float) -> None:
        if number % 30 == 0:
            console.print(f"update {number:4}: mean square {loss:.4f}")

    start = time.perf_counter()
    found = learned(seen, bond, (brick.shape[0], brick.shape[1]), UPDATES, told)
    apart = (found - brick).abs().mean().item()
    console.print(
        f"{UPDATES} updates in {duration(time.perf_counter() - start)}; the brick is found to within {apart:.4f}"
    )
    plots.picture(found.clamp(0, 1), OUTPUT / "brick-learned.png")
    plots.picture(bond.wall(found.clamp(0, 1), 480, 720, (13, 7)), OUTPUT / "wall-learned.png")
    console.print(f"{OUTPUT}/wall-seen.png, brick-learned.png, wall-learned.png")


if __name__ == "__main__":
    main()
