"""What a call of an overridden operator costs: `torch.sin` of 16 floats, as it is and with callables in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import brickwork as bw
from benchmarks.contenders import Progress, compare
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

CALLS = 1000


def _with(function: Callable[..., Any], call: Call) -> Call:
    """Return many calls under an override, which is entered once."""

    def run() -> None:
        with bw.override("aten::sin", function, device="cpu"):
            for _ in range(CALLS):
                call()

    return run


def cases(progress: Progress, *, rounds: int = 15) -> list[Case]:
    """Return the cost of a thousand calls, with that of entering and leaving the override."""
    x = torch.randn(16)
    out = torch.empty_like(x)

    def plain() -> None:
        for _ in range(CALLS):
            torch.sin(x)

    def python(x: torch.Tensor) -> torch.Tensor:
        return ops.sin(x)

    contenders: dict[str, Call] = {
        "torch.sin": plain,
        "replaced by an operator": _with(ops.sin, lambda: torch.sin(x)),
        "replaced by Python": _with(python, lambda: torch.sin(x)),
        "replaced by an operator, out=": _with(ops.sin, lambda: torch.sin(x, out=out)),
    }
    title = f"{CALLS} calls of an overridden operator"
    target = "1.6 x torch.sin; an override entered and left besides"
    return [compare(title, contenders, reference="torch.sin", target=target, progress=progress, rounds=rounds)]
