"""Operators of torch as plain loops, beside torch's own kernels: a row for each.

They are written as a person writes a reference who has read torch's documentation: none is adapted to brickwork.
"""

from __future__ import annotations

import functools

from benchmarks.aten import layers, losses, moving, resampling, rows
from benchmarks.aten.pair import Pair, Scale
from benchmarks.lineup import paced
from brickwork import bench
from brickwork.bench.question import Parts, Run

__all__ = ["PAIRS", "Pair", "tables"]

PAIRS = {pair.name: pair for group in (resampling, moving, rows, losses, layers) for pair in group.PAIRS}
FEW = ("glu", "cumsum_rows")
"""What tests run."""


def tables(run: Run) -> Parts:
    """Return the forward passes, and the backward passes of those that have gradients."""
    return {"forward": functools.partial(forward, run), "backward": functools.partial(backward, run)}


def forward(run: Run) -> bench.Table:
    """Measure each operator."""
    return bench.compare(
        lambda name: PAIRS[name].forward(run.device, _scale(run)),
        run.pick(tuple(PAIRS), FEW),
        "ms",
        x_name="operator",
        title="operators of torch as plain loops",
        baseline="torch",
        **paced(run, roofline=False),
    )


def backward(run: Run) -> bench.Table:
    """Measure each operator's backward pass alone."""
    return bench.compare(
        lambda name: PAIRS[name].backward(run.device, _scale(run)),
        run.pick(tuple(name for name, pair in PAIRS.items() if pair.gradient), FEW),
        "ms",
        x_name="operator",
        title="backward passes of operators of torch as plain loops",
        baseline="torch",
        **paced(run, roofline=False),
    )


def _scale(run: Run) -> Scale:
    return run.pick(run.device, "tiny")
