"""The staggered-brick padding: a tile of 48x32 into an image, which is written once.

How many kernels a call launches is counted on a GPU; the formulation in tensor operations launches one for each of
them. On two cores it takes near a second for the largest image, which is why the padding is measured at four sizes.
"""

from __future__ import annotations

import functools

import torch

from benchmarks.lineup import compiled, lineup, paced
from benchmarks.peers import torch_formulations
from benchmarks.targets import Target, reaching
from brickwork import bench, ops
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call

HEIGHTS = (518, 1036, 2072, 4144)
LARGEST = HEIGHTS[-1]
LATTICE = ([4096, 2048], [32, 0], [10, 48])
WIDTH = "H * 514 / 259"
"""An image is 8224 pixels wide where it is 4144 high, and in the same ratio else."""


def tables(run: Run) -> Parts:
    """Return the padding into a given image, the launches of it, the allocating padding, and a picture in colour."""
    into = functools.cache(lambda: into_a_given_image(run))
    parts: Parts = {"given": into, "allocating": lambda: allocating(run), "colour": lambda: colour(run)}
    if run.device == "cuda":
        return {**parts, "launches": lambda: into().measured_in("kernels")}
    return parts


def width(height: int) -> int:
    """Return how wide an image of this height is."""
    return height * 514 // 259


def into_a_given_image(run: Run) -> bench.Table:
    """Measure the padding into an image that is there, beside filling it with one number."""

    def contenders(height: int) -> dict[str, Call]:
        tile = torch.rand(48, 32, device=run.device)
        image = torch.empty(height, width(height), device=run.device)
        ours: dict[str, Call] = {
            "brickwork": lambda: ops.brick_pad(tile, *image.shape, *LATTICE, out=image),
            "fill_": lambda: image.fill_(1.0),
        }
        return lineup(run, "pad", tile, image, *LATTICE, ours=ours)

    table = bench.compare(
        contenders,
        _heights(run),
        "ms",
        x_name="H",
        title="staggered-brick padding of a given image, H x 1.98 H",
        moved=f"4 * H * {WIDTH}",
        x_log=True,
        y_log=True,
        **paced(run, unchecked=("fill_",), details=run.device == "cuda"),
    )
    targets = {"cpu": Target(2, "fill_"), "cuda": Target(40e-6)}
    return reaching(table, targets[run.device], at=(LARGEST,))


def allocating(run: Run) -> bench.Table:
    """Measure the padding that allocates its image, beside allocating one that is filled with one number."""

    def contenders(height: int) -> dict[str, Call]:
        tile = torch.rand(48, 32, device=run.device)
        shape = (height, width(height))
        fast = compiled(run, torch_formulations.brick_pad)
        calls: dict[str, Call] = {
            "brickwork": lambda: ops.brick_pad(tile, *shape, *LATTICE),
            "torch.full": lambda: torch.full(shape, 1.0, device=run.device),
        }
        return calls if fast is None else {**calls, "torch.compile": lambda: fast(tile, *shape, *LATTICE)}

    table = bench.compare(
        contenders,
        _heights(run),
        "ms",
        x_name="H",
        title="staggered-brick padding of a new image, H x 1.98 H",
        moved=f"4 * H * {WIDTH}",
        x_log=True,
        y_log=True,
        **paced(run, unchecked=("torch.full",)),
    )
    return reaching(table, Target(2, "torch.full"), at=(LARGEST,)) if run.device == "cpu" else table


def colour(run: Run) -> bench.Table:
    """Measure the padding of a picture whose pixels have three numbers each."""

    def contenders(height: int) -> dict[str, Call]:
        tile = torch.rand(48, 32, 3, device=run.device)
        picture = torch.empty(height, width(height), 3, device=run.device)
        return {
            "brickwork": lambda: ops.brick_pad(tile, *picture.shape[:2], *LATTICE, out=picture),
            "fill_": lambda: picture.fill_(1.0),
        }

    return bench.compare(
        contenders,
        run.pick((518, 2072), (26,)),
        "ms",
        x_name="H",
        title="staggered-brick padding of a given picture in colour, H x 1.98 H x 3",
        moved=f"12 * H * {WIDTH}",
        x_log=True,
        y_log=True,
        **paced(run, unchecked=("fill_",)),
    )


def _heights(run: Run) -> tuple[int, ...]:
    return run.pick(HEIGHTS, (26, 52))
