"""What all benchmarks share: contenders that may be absent, and the measured comparison as a case."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import torch

from brickwork.bench.record import Case
from brickwork.bench.timers import Call, measure

Progress = Callable[[str], None]
ROUNDS = 15


def compiled(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor] | None:
    """Return a function under torch.compile, or None where the machine has no C++ compiler, which it needs."""
    if not any(shutil.which(name) for name in ("g++", "c++", "clang++")):
        return None
    return torch.compile(function, dynamic=False)


def compare(
    title: str,
    contenders: dict[str, Call],
    *,
    reference: str,
    progress: Progress,
    target: str = "",
    rounds: int = ROUNDS,
    notes: dict[str, str] | None = None,
) -> Case:
    """Time the contenders turn by turn and return the case."""
    timings = measure(contenders, rounds=rounds, progress=lambda text: progress(f"{title}: {text}"))
    return Case(title=title, timings=timings, reference=reference, target=target, notes=notes or {})
