"""Who takes part in a comparison, and how long each is measured: the same for all questions.

A run's `seconds` are for one contender at one value of x. A question of many contenders and values takes a part of
them, so that all questions together, with every peer, take about eight minutes on two cores and four on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Unpack

import torch

from benchmarks.peers import registry
from brickwork.bench import Options
from brickwork.bench.question import Run
from brickwork.bench.timers import Call

PART = {"cpu": 0.3, "cuda": 0.1}
"""The part of a run's seconds that a contender gets, by device."""


def lineup(run: Run, kernel: str, *arguments: object, ours: Mapping[str, Call]) -> dict[str, Call]:
    """Return brickwork's calls, and after them those of the peers that the run asks for."""
    _forget(run)
    return {**ours, **registry.contenders(kernel, *arguments, peers=run.peers)}


def paced(run: Run, **how: Unpack[Options]) -> Options:
    """Return how a run measures, with its part of the seconds and without counts of kernels and memory, and `how`."""
    measured = Options(details=False, seconds=run.seconds * PART[run.device])
    return {**run.how, **measured, **how}


def compiled(run: Run, function: Callable[..., object]) -> Callable[..., object] | None:
    """Return a function under torch.compile, for the very shapes of a call; None where the run has it not."""
    _forget(run)
    return torch.compile(function, dynamic=False, fullgraph=True) if _compiles(run) else None


def _forget(run: Run) -> None:
    """Let torch.compile forget what it compiled for other values of x: after eight variants it stops compiling."""
    if _compiles(run):
        torch.compiler.reset()


def reference(run: Run) -> str:
    """Return the contender that speed-ups refer to: torch.compile where it takes part, else the first one."""
    return "torch.compile" if _compiles(run) else ""


def _compiles(run: Run) -> bool:
    return run.wants("torch.compile") and "torch.compile" not in registry.absent(run.device)


@contextmanager
def float32_convolutions() -> Generator[None]:
    """Let cuDNN compute in float32, as all others do, and not with fewer digits on tensor cores."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before
