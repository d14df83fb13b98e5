"""The product of two matrices of float32 in three plain loops, in each of their orders, against torch's."""

from __future__ import annotations

import torch

import brickwork as bw
from benchmarks.lineup import paced
from benchmarks.programs import PROGRAMS
from benchmarks.targets import Target, reaching
from brickwork import bench
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call

SIZES = {"cpu": 1024, "cuda": 2048}
TIMES = 5
"""How many times as long as torch's product each may take on the CPU."""
FAMILY, PREFIX = "matrix product", "matmul_"


def tables(run: Run) -> Parts:
    """Return the six orders of the loops."""
    return {"orders": lambda: orders(run)}


def orders(run: Run) -> bench.Table:
    """Measure each order of the loops; the loops are those of `programs/matrix_product.py`."""
    size = run.pick(SIZES[run.device], 8)
    loops = {
        program.name.removeprefix(PREFIX): bw.op(f"products::{program.name}")(program.function)
        for program in PROGRAMS
        if program.family == FAMILY
    }

    def contenders(order: str) -> dict[str, Call]:
        a, b = torch.randn(size, size, device=run.device), torch.randn(size, size, device=run.device)
        return {"brickwork": lambda: loops[order](a, b), "torch": lambda: a @ b}

    table = bench.compare(
        contenders,
        run.pick(tuple(loops), ("ijk",)),
        "ms",
        x_name="order",
        title=f"matrix product {size}x{size}x{size} in float32, three loops in any order",
        moved=f"12 * {size} ** 2",
        flops=f"2 * {size} ** 3",
        **paced(run),
    )
    return reaching(table, Target(TIMES, "torch")) if run.device == "cpu" else table
