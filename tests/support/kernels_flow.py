"""Kernels of the suite with control flow, helpers, stores into arguments and random draws."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportUnknownVariableType=false

from __future__ import annotations

import torch

from brickwork.language.loops import prange
from brickwork.language.random import rand, randint, randn
from support.suite import SUITE, case, floats, integers

__all__ = ["SUITE"]


# ---------------------------------------------------------------- control flow


@case(lambda n: (integers(1, 40, n),), exact=True)
def collatz(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v = x[i]
        steps = 0
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        out[i] = steps
    return out


@case(lambda n: (floats(n, 6),), exact=True)
def first_positive(x: torch.Tensor) -> torch.Tensor:
    out = torch.full((x.shape[0],), -1, dtype=torch.int64)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] <= 0:
                continue
            out[i] = j
            break
    return out


@case(lambda n: (floats(n),))
def mandelbrot(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        a, b, count = 0.0, 0.0, 0
        while a * a + b * b < 4 and count < 20:
            a, b = a * a - b * b + x[i], 2 * a * b + 0.3
            count += 1
        out[i] = count
    return out


def smooth(t: float, low: float = 0.0, high: float = 1.0) -> float:
    if t < low:
        return low
    if t > high:
        return high
    return t * t * (3 - 2 * t)


def pair(t: float, n: int) -> tuple[float, int]:
    return t * 2, n + 1


OFFSET = 3


@case(lambda n: (floats(n),))
def helpers(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v, k = pair(smooth(x[i]), i)
        out[i] = v + smooth(x[i], high=0.5) * k + OFFSET
    return out


@case(lambda n: (integers(0, 9, n),), exact=True)
def asserted(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        assert x[i] < 10, f"element {i} is {x[i]}"
        out[i] = 10 // (x[i] + 1)
    return out


@case(lambda n: (floats(n),), exact=True)
def claimed(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in prange(x.shape[0]):
        out[i] = x[i] * 2
    return out


@case(lambda n: (floats(n, 4),), exact=True)
def time_steps(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for t in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[t, j] = x[t, j] if t == 0 else out[t - 1, j] * 0.5
    return out


# ---------------------------------------------------------------- stores into arguments, several pieces


@case(lambda n: (floats(n), 2), exact=True)
def scale_in_place(x: torch.Tensor, factor: int) -> None:
    for i in range(x.shape[0]):
        x[i] *= factor


@case(lambda n: (floats(n),), exact=True)
def swap_ends(x: torch.Tensor) -> None:
    for i in range(x.shape[0] // 2):
        x[i], x[-1 - i] = x[-1 - i], x[i]


@case(lambda n: (floats(n), floats(n)), exact=True)
def element_is_a_value(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = x[i]
        s += y[i]
        out[i] = s - x[i]
    return out


@case(lambda n: (floats(n),))
def normalise(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    mean = 0.0
    for i in range(x.shape[0]):
        mean += x[i] / x.shape[0]
    for i in range(x.shape[0]):
        out[i] = x[i] - mean
    return out


@case(lambda n: (floats(n, n),), exact=True, least=1)
def host_part(x: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    assert rows == columns, "x is square"
    half = rows // 2 + 1
    out = torch.zeros(half, columns)
    if half > 2:
        half = 2
    for i in range(half):
        for j in range(columns):
            out[i, j] = x[i, j]
    return out


# ---------------------------------------------------------------- random draws


@case(lambda n: (n, 3), draws=True)
def uniform_draws(n: int, m: int) -> torch.Tensor:
    out = torch.empty(n, m)
    for i in range(n):
        for j in range(m):
            out[i, j] = rand()
    return out


@case(lambda n: (floats(n), floats(n)), draws=True)
def normal_draws(mu: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    out = mu.new_empty(mu.shape[0], 5)
    for i in range(mu.shape[0]):
        for j in range(5):
            out[i, j] = mu[i] + sigma[i] * randn()
    return out


@case(lambda n: (n,), exact=True, draws=True)
def integer_draws(n: int) -> torch.Tensor:
    out = torch.full((n, 3), -1, dtype=torch.int64)
    for i in range(n):
        out[i, 0] = randint(-5, 5)
        out[i, 1] = randint(0, 2**40)
        for _ in range(i):
            out[i, 2] = randint(0, 100)
    return out


@case(lambda n: (n,), draws=True)
def rejection(n: int) -> torch.Tensor:
    out = torch.empty(n)
    for i in range(n):
        v = rand()
        while v > 0.3:
            v = rand()
        out[i] = v
    return out


# ---------------------------------------------------------------- nests under conditions that elements decide


@case(lambda n: (floats(n, n), floats(n), 6))
def ends_early(a: torch.Tensor, b: torch.Tensor, most: int) -> torch.Tensor:
    x = torch.zeros(len(b))
    last = torch.zeros(2)
    for t in range(most):
        total = 0.0
        for i in range(len(b)):
            total += x[i]
        last[0] = t
        last[1] = total
        if total > 3:
            break
        if t % 3 == 1:
            continue
        for i in range(len(b)):
            x[i] += abs(b[i])
    for i in range(len(b)):
        a[i, i] = x[i]
    return last


@case(lambda n: (floats(n, n), integers(-2, 3, n)), exact=True)
def chosen_rows(a: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    counts = torch.zeros(3)
    for r in range(len(kind)):
        if kind[r] < 0:
            continue
        first = r + 1
        if kind[r] == 0:
            scale = 2.0
            for j in range(first, a.shape[1]):
                a[r, j] = scale * a[0, j]
            counts[0] += 1
        else:
            for t in range(kind.shape[0] // 2):
                if a[r, t] > 0.5:
                    for j in range(a.shape[1]):
                        a[r, j] = a[r, j] - 0.25
                    if kind[r] == 2:
                        break
                counts[1] += t
        counts[2] += a[r, r]
    return counts
