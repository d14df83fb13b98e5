"""The sine of 4096 x N floats on a GPU, for small and large N."""

from __future__ import annotations

import functools

import torch

from benchmarks.cuda.compare import Progress, compare, gathered
from benchmarks.peers import registry
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

WIDTHS = (256, 512, 1024, 2048, 4096, 8192, 12672)


def cases(progress: Progress) -> list[Case]:
    """Return the sine for each width."""
    return gathered({f"sin 4096x{width}": functools.partial(_case, width, progress) for width in WIDTHS})


def _case(width: int, progress: Progress) -> Case:
    x = torch.randn(4096, width, device="cuda")
    compiled = torch.compile(torch.sin, dynamic=False)
    contenders: dict[str, Call] = {
        "brickwork": lambda: ops.sin(x),
        "torch.sin": lambda: torch.sin(x),
        "torch.compile": lambda: compiled(x),
        **registry.contenders("sin", x, torch.empty_like(x), peers=frozenset({"cuda", "triton"})),
    }
    return compare(
        f"sin 4096x{width}",
        contenders,
        reference="torch.sin",
        progress=progress,
        target="torch.sin",
        as_fast_as="torch.sin",
        moved=8 * x.numel(),
    )
