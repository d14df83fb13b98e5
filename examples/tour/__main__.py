"""Runs every station of the tour, and says what was checked there."""

from __future__ import annotations

import argparse
import time

import torch
from matplotlib import image
from rich.console import Console

from brickwork.bench.report import duration
from examples.sheet import sheet
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
from examples.tour.places import OUTPUT, picture_of

DRAWN = {
    "mandelbrot": "the Mandelbrot set",
    "bodies": "trails of 400 bodies",
    "life": "Game of Life, generation 200",
    "wave": "rings on a membrane",
    "neighbours": "cells around 40 points",
    "resampling": "a picture, shifted, and found",
}
STATIONS = (mandelbrot, bodies, life, wave, counting, neighbours, resampling, sparse, normalising)


def main() -> None:
    """Run all of them; pictures go to `demo-output/tour/`."""
    console = Console(highlight=False, soft_wrap=True)
    for station in STATIONS:
        start = time.perf_counter()
        said = station.main()
        name = station.__name__.rpartition(".")[2]
        console.print(f"{name:12} {duration(time.perf_counter() - start):>8}  {said}")
    pictures = {title: torch.from_numpy(image.imread(picture_of(name))) for name, title in DRAWN.items()}
    console.print(f"{sheet(pictures, OUTPUT / 'tour.png', 3)}")


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m examples.tour", description=__doc__).parse_args()
    main()
