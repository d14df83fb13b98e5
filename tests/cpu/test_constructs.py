"""Smaller constructs: walrus, stars, del, tuples as locals, `in`, and helpers of every kind."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from support.fourfold import agree, failure

pytestmark = pytest.mark.usefixtures("quick")

TABLE = ((1.0, 2.0), (3.0, 4.0))
NAMES, MODE = ("mean", "sum"), "sum"
WEIGHTS = (("mean", 2.0), ("sum", 3.0))


def walrus(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        n = 0
        while (n := n + 1) < 5 and x[i] * n < 2:
            pass
        out[i] = n + (v := x[i] * 2) + v
    return out


def stars(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        a, *b, c = (x[i], 1, 2, 3)
        d = (*b, c)
        out[i] = a + sum(d) + max(*d)
        del a
    return out


def unit(v: Any) -> Any:
    length = sum(a * a for a in v) ** 0.5 + 1
    return tuple(a / length for a in v)


def generators(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    shape = tuple(size + 2 for size in x.shape)
    for i in range(x.shape[0]):
        a = tuple(x[i] * k for k in range(1, 4))
        b = list(a[k] - k for k in range(3))
        b[1] += i
        p, q, r = unit(tuple(v * w for v, w in zip(a, b)))
        rows = [tuple(a[k] * c for c in b) for k in range(3)]
        long = list(x[j] for j in range(x.shape[0]))
        out[i] = p + 2 * q + 3 * r + rows[i % 3][1] + long[i] + shape[0] + len(tuple(j for j in range(0)))
    return out


def ordered(a: Any, b: Any) -> tuple[Any, Any]:
    if a > b:
        return b, a
    return a, b


def tuples(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    best = (0, 0.0)
    for i in range(x.shape[0]):
        p = (x[i], 1.0)
        if x[i] > 0:
            p = (0.5, x[i])
        lo, hi = ordered(*p)
        lo, hi = hi, lo
        q = ordered(lo, hi)
        out[i] = q[0] - q[1] if q == (hi, lo) else 100
        if x[i] > best[1]:
            best = (i, x[i])
        out[i] += best[0]
    return out


def membership(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        v: Any = x[i]
        out[i] = (1 if (v, i) < (0.5, 2) else 2) + (i in (2, 4)) + (i not in (1, 2)) + (-1 < v <= 1)
    return out


def equal_shapes(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    n = x.shape[0]
    assert x.shape == out.shape == (n,), "lengths differ"
    for i in range(n):
        pair = (x[i], i)
        out[i] = (pair == (x[i], i) == pair) + 2 * ((0, 1) <= (i, n) < (3, 0) != (3, 1))
        out[i] += 4 * (x.dtype == torch.float64 != torch.int32) if i == 0 else 8 * (x[i] == x[i - 1] == x[0])
    return out


def texts(x: torch.Tensor) -> torch.Tensor:
    assert len(NAMES) < len(x)
    assert MODE in NAMES
    assert "none" not in NAMES
    out = torch.zeros_like(x)
    for i in range(len(NAMES)):
        out[i] = x[i]
    for i, (name, weight) in enumerate(WEIGHTS):
        out[3] += weight * x[i] if name == MODE else i
    return out


def first_above(x: Any, v: Any) -> int:
    for j in range(len(x)):
        for k in (0, 1):
            if x[j] > v + k:
                return j
            if j > 100:
                break
    return -1


def settled(x: Any) -> tuple[Any, int]:
    n = 0
    while True:
        x = x / 2
        n += 1
        if abs(x) < 0.01:
            return x, n


def returns_in_loops(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        half, n = settled(x[i])
        out[i] = first_above(x, x[i]) + half * n
    return out


class Kernel:
    offset = 3

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def apply(self, v: Any, scale: float = 1.0) -> Any:
        return self.alpha * v * scale + self.offset + self.square(v)

    @staticmethod
    def square(v: Any) -> Any:
        return v * v

    @classmethod
    def shifted(cls, v: Any) -> Any:
        return v + cls.offset


kernel, other = Kernel(2.0), Kernel(5.0)


def multiply(a: Any, b: Any, c: float = 1.0) -> Any:
    return a * b + c


twice = functools.partial(multiply, 2.0, c=5.0)
doubled: Callable[[Any], Any] = lambda v: v + v  # noqa: E731 - lambdas are compiled, too


def made(factor: float) -> Callable[[Any], Any]:
    def scaled(v: Any) -> Any:
        return factor * v

    return scaled


triple, quadruple = made(3.0), made(4.0)


def dot(r: Any, s: Any) -> Any:
    return sum(r[j] * s[j] for j in range(len(r)))


def helpers(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = kernel.apply(x[i]) + other.apply(x[i], scale=0.5) + kernel.alpha + Kernel.square(x[i])
        out[i] += Kernel.shifted(x[i]) + Kernel.offset + twice(x[i]) + doubled(x[i])
        out[i] += triple(x[i]) - quadruple(x[i]) + dot(x, x) + dot(TABLE[i % 2], (1, 2))
    return out


X = torch.randn(9, dtype=torch.float64)


def literals(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], 6, dtype=torch.int64)
    least = -9223372036854775808
    for i in range(x.shape[0]):
        out[i, 0] = max(least, i - 4)
        out[i, 1] = -9223372036854775808 + i
        out[i, 2] = (0xCBF29CE484222325 - (1 << 64)) ^ i
        out[i, 3] = ((1 << 70) - 1 & 255) + ~(i + 2)
        out[i, 4] = (1 << 64) - 2**63 - 1 - i
        out[i, 5] = 3 * -4 | 1
    return out


@pytest.mark.parametrize(
    "function",
    [walrus, stars, generators, tuples, membership, equal_shapes, texts, returns_in_loops, helpers, literals],
)
def test_it_means_what_python_means(function: Callable[..., Any]) -> None:
    agree(function, X, plain=function is not walrus)


def together(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
    assert x.shape == y.shape == (n, 2), "not together"
    out = torch.zeros_like(x)
    for i in range(n):
        out[i, 1] = x[i, 0] + y[i, 0]
    return out


@pytest.mark.parametrize(("rows", "columns", "n"), [(2, 2, 3), (3, 2, 2), (2, 3, 2)])
def test_a_chain_of_shapes_fails_at_any_link(rows: int, columns: int, n: int) -> None:
    agree(together, torch.ones(2, 2), torch.ones(2, 2), 2)
    assert failure(together, torch.ones(2, 2), torch.ones(rows, columns), n)[0] is AssertionError


def test_a_text_that_is_rebound_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = agree(texts, X)
    monkeypatch.setitem(texts.__globals__, "NAMES", ("sum", "mean"))
    with pytest.warns(bw.BrickworkWarning, match="NAMES"):
        operator(X)
