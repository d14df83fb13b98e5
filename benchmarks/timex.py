"""The causal depthwise convolution of RWKV: forward and backward, over its length T and over the batch B.

Operations are those of the sum as it is written; through the Fourier transform, contenders make fewer. The backward
pass computes both gradients, from a forward that has run. Peers take part with the plain loops and with what their
experts would write. Other lengths than these would take too long: operations grow with the square of T.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from benchmarks.lineup import float32_convolutions, lineup, paced
from benchmarks.peers import torch_formulations
from benchmarks.peers.torch_loops import gradients_of
from benchmarks.targets import Target, reaching
from brickwork import bench, ops
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call

EPS = 0.1
OPERATIONS = "B * C * T * (T + 1)"
"""Of the forward pass: a multiplication and an addition for each term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """B, C and T of the case that targets are for, and the other values of T and of B."""

    B: int
    C: int
    T: int
    lengths: tuple[int, ...]
    batches: tuple[int, ...]


SHAPES = {
    "cpu": Shapes(B=8, C=64, T=512, lengths=(64, 128, 256, 512, 1024), batches=(1, 2, 4, 8, 16)),
    "cuda": Shapes(B=32, C=768, T=768, lengths=(128, 256, 512, 768, 1024), batches=(1, 4, 16, 32, 64)),
}
SMALL = Shapes(B=2, C=2, T=8, lengths=(8,), batches=(2,))
FORWARD: dict[str, tuple[Target, ...]] = {
    "cpu": (Target(1.2, "torch FFT"), Target(1 / 4, "taichi"), Target(1 / 8, "numba")),
    "cuda": (Target(1, "CUDA C++"),),
}
BACKWARD: dict[str, tuple[Target, ...]] = {"cpu": (), "cuda": (Target(1, "CUDA C++"),)}


def tables(run: Run) -> Parts:
    """Return forward and backward over T and over B, and the forward of a signal that was padded before."""
    return {
        "forward-T": partial(forward, run, "T"),
        "forward-B": partial(forward, run, "B"),
        "backward-T": partial(backward, run, "T"),
        "backward-B": partial(backward, run, "B"),
        "padded": partial(padded, run),
    }


def forward(run: Run, across: Literal["T", "B"]) -> bench.Table:
    """Measure the convolution over T or over B."""
    shapes = _shapes(run)

    def contenders(x: int) -> dict[str, Call]:
        w, k = _arguments(run, shapes, across, x)
        return lineup(run, "timex", w, k, EPS, ours={"brickwork": lambda: ops.timex(w, k, EPS)})

    return _measured(run, contenders, across, "timex", moved="2 * B * C * T + C * T", flops=OPERATIONS, targets=FORWARD)


def backward(run: Run, across: Literal["T", "B"]) -> bench.Table:
    """Measure both gradients over T or over B."""
    shapes = _shapes(run)

    def contenders(x: int) -> dict[str, Call]:
        w, k = _arguments(run, shapes, across, x)
        gradient = torch.randn_like(k)
        ours = {"brickwork": gradients_of(ops.timex, w, k, gradient)}
        return lineup(run, "timex_backward", w, k, gradient, ours=ours)

    moved = "3 * B * C * T + 2 * C * T"
    return _measured(
        run,
        contenders,
        across,
        "timex backward, both gradients",
        moved=moved,
        flops=f"2 * {OPERATIONS}",
        targets=BACKWARD,
    )


def padded(run: Run) -> bench.Table:
    """Measure the convolution of a signal that has its past before it, as torch's own takes it."""
    shapes = _shapes(run)

    def contenders(length: int) -> dict[str, Call]:
        w = torch.randn(shapes.C, 1, length, device=run.device)
        k = torch.nn.functional.pad(torch.randn(shapes.B, shapes.C, length, device=run.device), (length - 1, 0))
        return {
            "brickwork": lambda: ops.timex_padded(w, k, EPS),
            "torch conv1d": lambda: torch_formulations.timex_padded(w, k, EPS),
        }

    with float32_convolutions():
        return bench.compare(
            contenders,
            (shapes.T,),
            "ms",
            x_name="T",
            title=f"timex with padded k, B={shapes.B} C={shapes.C}",
            flops=f"2 * {shapes.B} * {shapes.C} * T * T",
            **paced(run),
        )


def _measured(
    run: Run,
    contenders: Callable[[int], dict[str, Call]],
    across: Literal["T", "B"],
    title: str,
    *,
    moved: str,
    flops: str,
    targets: dict[str, tuple[Target, ...]],
) -> bench.Table:
    """Measure over T or over B; `moved` counts floats."""
    shapes = _shapes(run)
    fixed = {"B": shapes.B, "C": shapes.C, "T": shapes.T}
    del fixed[across]
    with float32_convolutions():
        table = bench.compare(
            contenders,
            shapes.lengths if across == "T" else shapes.batches,
            "ms",
            x_name=across,
            title=f"{title}, {' '.join(f'{name}={value}' for name, value in fixed.items())}",
            moved=_filled(f"4 * ({moved})", fixed),
            flops=_filled(flops, fixed),
            x_log=True,
            y_log=True,
            **paced(run, details=run.device == "cuda"),
        )
    at = shapes.T if across == "T" else shapes.B
    return reaching(table, *targets[run.device], at=(at,)) if targets[run.device] else table


def _filled(formula: str, fixed: dict[str, int]) -> str:
    """Return a formula with numbers in the place of the names that do not change."""
    return re.sub("[BCT]", lambda found: str(fixed.get(found[0], found[0])), formula)


def _shapes(run: Run) -> Shapes:
    return run.pick(SHAPES[run.device], SMALL)


def _arguments(run: Run, shapes: Shapes, across: Literal["T", "B"], x: int) -> tuple[Tensor, Tensor]:
    """Return w and k for one value of x."""
    B, T = (shapes.B, x) if across == "T" else (x, shapes.T)
    return torch.randn(shapes.C, T, device=run.device), torch.randn(B, shapes.C, T, device=run.device)
