"""The sine of 16 million floats, against torch's own."""

from __future__ import annotations

import torch

from benchmarks.contenders import Progress, compare, compiled, peer
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

COUNT = 1 << 24


def cases(progress: Progress, *, rounds: int = 15) -> list[Case]:
    """Return the sine into a given tensor, and the allocating one."""
    x = torch.randn(COUNT)
    out = torch.empty_like(x)
    given: dict[str, Call] = {
        "brickwork": lambda: ops.sin(x, out=out),
        "torch.sin": lambda: torch.sin(x, out=out),
        "copy_": lambda: out.copy_(x),
    }
    for system in ("numba", "taichi", "quadrants"):
        module = peer(system)
        if module is not None:
            given[system] = module.sin(x, out)
    allocating: dict[str, Call] = {"brickwork": lambda: ops.sin(x), "torch.sin": lambda: torch.sin(x)}
    fast = compiled(torch.sin)
    if fast is not None:
        allocating["torch.compile"] = lambda: fast(x)
    return [
        compare(title, contenders, reference="torch.sin", target="torch.sin", progress=progress, rounds=rounds)
        for title, contenders in (("sin 16M, into a given tensor", given), ("sin 16M, allocating", allocating))
    ]
