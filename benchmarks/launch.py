"""What a call costs: 16 floats, with one tensor argument and with fourteen, against torch.square."""

from __future__ import annotations

import torch

import brickwork as bw
from benchmarks.contenders import Progress, compare
from brickwork.bench.record import Case
from brickwork.bench.timers import Call


@bw.op("brickwork_benchmarks::square")
def square(x: torch.Tensor) -> torch.Tensor:
    """Return x * x; x: (n,)."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i]
    return out


@bw.op("brickwork_benchmarks::sum_of_fourteen")
def sum_of_fourteen(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    d: torch.Tensor,
    e: torch.Tensor,
    f: torch.Tensor,
    g: torch.Tensor,
    h: torch.Tensor,
    p: torch.Tensor,
    q: torch.Tensor,
    r: torch.Tensor,
    s: torch.Tensor,
    t: torch.Tensor,
    u: torch.Tensor,
) -> torch.Tensor:
    """Return the sum of fourteen vectors."""
    out = torch.empty_like(a)
    for i in range(a.shape[0]):
        out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i] + p[i] + q[i] + r[i] + s[i] + t[i] + u[i]
    return out


def cases(progress: Progress, *, rounds: int = 15) -> list[Case]:
    """Return the cost of calls with one and with fourteen tensors."""
    x = torch.randn(16)
    many = [torch.randn(16) for _ in range(14)]
    packed, packed_many = torch.ops.brickwork_benchmarks.square, torch.ops.brickwork_benchmarks.sum_of_fourteen
    contenders: dict[str, Call] = {
        "brickwork, decorated name": lambda: square(x),
        "brickwork, torch.ops": lambda: packed(x),
        "brickwork, 14 tensors, decorated name": lambda: sum_of_fourteen(*many),
        "brickwork, 14 tensors, torch.ops": lambda: packed_many(*many),
        "torch.square": lambda: torch.square(x),
        "torch.sin": lambda: torch.sin(x),
    }
    target = "1.6 x torch.square; with 14 tensors 3.2 x"
    title = "a call with 16 floats"
    return [compare(title, contenders, reference="torch.square", target=target, progress=progress, rounds=rounds)]
