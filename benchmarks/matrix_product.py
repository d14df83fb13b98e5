"""The product of two matrices of float32, 1024 by 1024, in three plain loops of each order, against torch's."""

from __future__ import annotations

import torch

from benchmarks.contenders import Progress, compare
from benchmarks.loop_programs import compiled
from benchmarks.programs import PROGRAMS
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

SIZE = 1024
TIMES = 5
"""How many times as long as torch's product each may take."""


def cases(progress: Progress, *, rounds: int = 7) -> list[Case]:
    """Return one case: the six orders and torch's matrix product."""
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    contenders: dict[str, Call] = {}
    for program in PROGRAMS:
        if program.family == "matrix product":
            operator = compiled(program, "products")
            torch.testing.assert_close(operator(a, b), a @ b, rtol=1e-3, atol=1e-3)
            order = program.name.removeprefix("matmul_")
            contenders[f"brickwork, {order}"] = lambda operator=operator: operator(a, b)
    contenders["torch"] = lambda: a @ b
    title = f"matrix product {SIZE}x{SIZE}x{SIZE}, float32"
    target = f"{TIMES} times torch's time in any order"
    return [compare(title, contenders, reference="torch", progress=progress, target=target, rounds=rounds)]
