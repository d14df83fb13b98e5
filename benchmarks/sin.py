"""The sine of 4096 x N floats, which memory limits, against torch's own."""

from __future__ import annotations

import torch

from benchmarks.contenders import Progress, compare, compiled
from benchmarks.peers import registry
from brickwork import bench, ops
from brickwork.bench.question import Parts, Run
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

COUNT = 1 << 24
ROWS = 4096
WIDTHS = (256, 512, 1024, 2048, 4096, 8192, 12672)


def tables(run: Run) -> Parts:
    """Return the question's tables."""
    return {"rate": lambda: rate(run)}


def rate(run: Run) -> bench.Table:
    """Measure the bytes a second that the sine reads and writes, over the width."""
    rows = run.pick(ROWS, 16)

    def contenders(width: int) -> dict[str, Call]:
        x = torch.randn(rows, width, device=run.device)
        calls: dict[str, Call] = {"torch.sin": lambda: torch.sin(x), "brickwork": lambda: ops.sin(x)}
        fast = compiled(torch.sin) if run.wants("torch.compile") else None
        if fast is not None:
            calls["torch.compile"] = lambda: fast(x)
        return calls

    return bench.compare(
        contenders,
        run.pick(WIDTHS, (16, 32)),
        "GB/s",
        x_name="N",
        title=f"sin of {rows} x N floats",
        moved=f"8 * {rows} * N",
        x_log=True,
        **run.how,
    )


def cases(progress: Progress, *, rounds: int = 15) -> list[Case]:
    """Return the sine into a given tensor, and the allocating one."""
    x = torch.randn(COUNT)
    out = torch.empty_like(x)
    given: dict[str, Call] = {
        "brickwork": lambda: ops.sin(x, out=out),
        "torch.sin": lambda: torch.sin(x, out=out),
        "copy_": lambda: out.copy_(x),
    }
    given |= registry.contenders("sin", x, out, peers=frozenset({"numba", "taichi", "quadrants"}))
    allocating: dict[str, Call] = {"brickwork": lambda: ops.sin(x), "torch.sin": lambda: torch.sin(x)}
    fast = compiled(torch.sin)
    if fast is not None:
        allocating["torch.compile"] = lambda: fast(x)
    return [
        compare(title, contenders, reference="torch.sin", target="torch.sin", progress=progress, rounds=rounds)
        for title, contenders in (("sin 16M, into a given tensor", given), ("sin 16M, allocating", allocating))
    ]
