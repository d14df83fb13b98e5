"""Kernels of the suite in which tensors change places between the turns of a loop."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportUnknownVariableType=false

from __future__ import annotations

import torch

from support.kernels_models import SUITE
from support.suite import case, floats

__all__ = ["SUITE"]


@case(lambda n: (floats(n), 3))
def diffused(x: torch.Tensor, steps: int) -> torch.Tensor:
    u = torch.empty_like(x)
    v = torch.empty_like(x)
    n = x.shape[0]
    for i in range(n):
        u[i] = x[i]
        v[i] = x[i]
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u, v = v, u
    return u


@case(lambda n: (floats(n, 5), 4))
def relaxed(u: torch.Tensor, steps: int) -> None:
    v = torch.zeros(u.shape[0], u.shape[1])
    for t in range(steps):
        for i in range(u.shape[0]):
            for j in range(u.shape[1]):
                v[i, j] = 0.5 * u[i, j] + t
        before = u
        u = v
        v = before
        if t == 1:
            u, v = v, u


@case(lambda n: (floats(n), floats(n + 1), floats(n + 2), 5))
def rotated(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    n = a.shape[0]
    p, q, r = torch.zeros(n), torch.ones(n), torch.ones(n)
    out = torch.empty(n)
    t = 0
    while t < steps:
        t += 1
        if t == 3:
            continue
        for i in range(n):
            p[i] += q[i] * a[i] + b[i] - c[i]
        p, q, r = q, r, p
        if t == 4:
            break
    for i in range(n):
        out[i] = p[i] + 10 * q[i] + 100 * r[i]
    return out, r
