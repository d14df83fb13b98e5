"""Operators of torch as plain loops, beside torch's own kernels: a row for each.

They are written as a person writes a reference who has read torch's documentation: none is adapted to brickwork.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from benchmarks.aten import layers, losses, moving, resampling, rows
from benchmarks.aten.pair import Pair, Scale
from benchmarks.lineup import float32_convolutions, paced
from brickwork import bench
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call

__all__ = ["PAIRS", "Pair", "tables"]

PAIRS = {pair.name: pair for group in (resampling, moving, rows, losses, layers) for pair in group.PAIRS}
CLOSE = 1e-2
"""By how much answers may differ, as a part of them: numbers of 16 bits, logarithms of sums of exponentials."""
FEW = ("glu", "cumsum_rows")
"""What tests run."""


def tables(run: Run) -> Parts:
    """Return the forward passes, and the backward passes of those that have gradients."""
    return {"forward": functools.partial(forward, run), "backward": functools.partial(backward, run)}


def forward(run: Run) -> bench.Table:
    """Measure each operator."""
    return _measured(run, Pair.forward, run.pick((*PAIRS,), FEW), "operators of torch as plain loops")


def backward(run: Run) -> bench.Table:
    """Measure each operator's backward pass alone."""
    names = (*(name for name, pair in PAIRS.items() if pair.gradient),)
    return _measured(run, Pair.backward, run.pick(names, FEW), "backward passes of operators of torch as plain loops")


def _measured(
    run: Run, calls: Callable[[Pair, str, Scale], dict[str, Call]], names: tuple[str, ...], title: str
) -> bench.Table:
    how = paced(run, roofline=False, tolerance=CLOSE)
    with float32_convolutions():
        return bench.compare(
            lambda name: calls(PAIRS[name], run.device, _scale(run)),
            names,
            "ms",
            x_name="operator",
            title=title,
            y_log=True,
            baseline="torch",
            **how,
        )


def _scale(run: Run) -> Scale:
    return run.pick(run.device, "tiny")
