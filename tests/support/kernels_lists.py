"""Kernels of the suite with lists, with values that have parts, and with rows of tensors."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import dataclass

import torch

from support.kernels_exchange import SUITE
from support.suite import case, floats, integers

__all__ = ["SUITE"]


@case(lambda n: (floats(n),), exact=True)
def median_of_five(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.shape[0]
    for i in range(n):
        w = [x[min(max(i + k, 0), n - 1)] for k in range(-2, 3)]
        for p in range(1, 5):
            v = w[p]
            q = p - 1
            while q >= 0 and w[q] > v:
                w[q + 1] = w[q]
                q -= 1
            w[q + 1] = v
        out[i] = w[2]
    return out


@case(lambda n: (integers(0, 8, n, 9),), exact=True)
def counts(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 8, dtype=torch.int64)
    for i in range(x.shape[0]):
        h = [0] * 8
        for j in range(x.shape[1]):
            h[x[i, j]] += 1
        for k, count in enumerate(h):
            out[i, k] = count
    return out


@case(lambda n: (floats(n, 2, 2), floats(n, 2)))
def solve_pairs(a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(y)
    for b in range(a.shape[0]):
        m = [[a[b, i, 0], a[b, i, 1], y[b, i]] for i in range(2)]
        if abs(m[1][0]) > abs(m[0][0]):
            m[0], m[1] = m[1], m[0]
        f = m[1][0] / m[0][0]
        for k in range(3):
            m[1][k] -= f * m[0][k]
        out[b, 1] = m[1][2] / m[1][1]
        out[b, 0] = (m[0][2] - m[0][1] * out[b, 1]) / m[0][0]
    return out


@case(lambda n: (integers(0, 3, n), integers(0, 3, n + 2)), exact=True)
def changes(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n, m = a.shape[0], b.shape[0]
    before = [j for j in range(m + 1)]
    for i in range(n):
        row = [i + 1] + [0] * m
        for j in range(m):
            row[j + 1] = min(before[j + 1] + 1, row[j] + 1, before[j] + (a[i] != b[j]))
        before = row
    return before[m]


@case(lambda n: (floats(n), 3))
def weighted_steps(x: torch.Tensor, steps: int) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for t in range(steps):
        weights = [1.0 / (k + t + 1) for k in range(4)]
        weights[t % 4] = 0.5
        for i in range(x.shape[0]):
            out[i] += x[i] * weights[i % 4]
    return out


@case(lambda n: (floats(n, 70),))
def weighted_rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        weights = [1.0, 2.0, 3.0]
        weights[i % 3] = x[i, 0]
        for j in range(x.shape[1]):
            out[i] += x[i, j] * weights[j % 3]
    return out


@case(lambda n: (floats(n, 72),))
def rows_of_a_nested_list(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        table = [[1.0] * 72 for _ in range(2)]
        table[i % 2][3] = x[i, 0]
        for j in range(72):
            out[i] += x[i, j] * table[0][j] - table[1][j]
    return out


@dataclass(frozen=True)
class Complex:
    """A complex number."""

    re: float
    im: float

    def __mul__(self, other: Complex) -> Complex:
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    @property
    def squared(self) -> float:
        return self.re * self.re + self.im * self.im


@case(lambda n: (floats(n), floats(6)))
def escapes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], y.shape[0], dtype=x.dtype)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            c = Complex(x[i], y[j])
            z = c
            for k in range(8):
                if z.squared > 4.0:
                    z = Complex(k, z.im)
                    break
                z = z * z + c
            out[i, j] = z.re
    return out


@case(lambda n: (floats(n, 6), floats(6)))
def rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * w
        out[i, 1:] += 2 * x[i, :-1]
        out[i, 0] = x[i, i % 3 :].sum()
    return out
