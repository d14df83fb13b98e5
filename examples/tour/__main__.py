"""Runs every station of the tour, and says what was checked there."""

from __future__ import annotations

import time

from rich.console import Console

from brickwork.bench.report import duration
from examples.tour import (
    bodies,
    counting,
    life,
    mandelbrot,
    neighbours,
    normalising,
    resampling,
    sparse,
    wave,
)

STATIONS = (mandelbrot, bodies, life, wave, counting, neighbours, resampling, sparse, normalising)


def main() -> None:
    """Run all of them; pictures go to `demo-output/tour/`."""
    console = Console(highlight=False, soft_wrap=True)
    for station in STATIONS:
        start = time.perf_counter()
        said = station.main()
        name = station.__name__.rpartition(".")[2]
        console.print(f"{name:12} {duration(time.perf_counter() - start):>8}  {said}")


if __name__ == "__main__":
    main()
