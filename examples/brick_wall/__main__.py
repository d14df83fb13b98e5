"""Lays walls of a colour gradient and of a photograph, and learns a brick from noisy pictures of a wall."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console
from torch import Tensor

from brickwork.bench.report import duration
from examples.brick_wall import tiles
from examples.brick_wall.pipeline import Pictures, batches
from examples.brick_wall.wall import Bond, learned
from examples.sheet import sheet

OUTPUT = Path("demo-output")
HEIGHT, WIDTH, ORIGIN = 240, 360, (13, 7)


def main() -> None:
    """Lay and learn; the pictures go to `demo-output/`."""
    chosen = arguments()
    console = Console(highlight=False, soft_wrap=True)
    laid: dict[str, Tensor] = {}
    for name, tile, skew in (("gradient", tiles.gradient(), 24), ("photograph", tiles.photograph(96), 48)):
        laid[f"a {name}"] = tile
        laid[f"a wall, skewed by {skew}"] = Bond(skew).wall(tile, HEIGHT, WIDTH, ORIGIN)
    brick = tiles.brick()
    bond = Bond(skew=brick.shape[1] // 2)
    pictures = Pictures(brick, bond, count=chosen.updates * chosen.batch)

    def told(number: int, loss: float) -> None:
        if number % 30 == 0:
            console.print(f"update {number:4}: mean square {loss:.4f}")

    start = time.perf_counter()
    found = learned(batches(pictures, chosen.batch, chosen.workers), bond, (brick.shape[0], brick.shape[1]), told)
    took = duration(time.perf_counter() - start)
    apart = (found - brick).abs().mean().item()
    console.print(f"{chosen.updates} updates in {took}; the brick is found to within {apart:.4f}")
    laid |= {"one of the pictures of a wall": pictures[0][0], "its brick": brick, "the brick, learned": found}
    laid["a wall of what was learned"] = bond.wall(found, HEIGHT, WIDTH, ORIGIN)
    console.print(f"{sheet(laid, OUTPUT / 'brick-wall.jpg', columns=4)}")


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m examples.brick_wall", description=__doc__)
    for name, value in {"updates": 150, "batch": 4, "workers": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


if __name__ == "__main__":
    main()
