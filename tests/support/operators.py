"""Operators of every shape that the contract with PyTorch has to hold for, with arguments for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import brickwork as bw
from brickwork.op import Op
from support import causal

timex = bw.op("bwtest::timex")(causal.timex)


@bw.op("bwtest::square")
def square(x: torch.Tensor) -> torch.Tensor:
    """Square of each element of a vector."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i]
    return out


@bw.op("bwtest::total")
def total(x: torch.Tensor) -> torch.Tensor:
    """Sum of a vector, as a 0-dimensional tensor."""
    s = 0
    for i in range(x.shape[0]):
        s += x[i]
    return s  # pyright: ignore[reportReturnType]  # the language returns a scalar as a tensor


@bw.op("bwtest::scale_")
def scale_(x: torch.Tensor, by: float = 2.0) -> None:
    """Scale a vector in place."""
    for i in range(x.shape[0]):
        x[i] = x[i] * by


@bw.op("bwtest::copy_scaled")
def copy_scaled(x: torch.Tensor, into: torch.Tensor, *, by: float = 1.0, shift: int = 0, flip: bool = False) -> None:
    """Store a scaled and shifted copy of one vector into another."""
    n = x.shape[0]
    assert into.shape[0] == n, "sizes differ"
    for i in range(n):
        if flip:
            into[i] = x[n - 1 - i] * by + shift
        else:
            into[i] = x[i] * by + shift


@bw.op("bwtest::halves")
def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The even and the odd elements of a vector."""
    n = x.shape[0]
    even = x.new_empty((n + 1) // 2)
    odd = x.new_empty(n // 2)
    for i in range(n):
        if i % 2 == 0:
            even[i // 2] = x[i]
        else:
            odd[i // 2] = x[i]
    return even, odd


@bw.op("bwtest::transposed")
def transposed(x: torch.Tensor) -> torch.Tensor:
    """The transpose of a matrix, in memory of its own."""
    m, n = x.shape
    out = x.new_empty(n, m)
    for i, j in bw.ndrange(m, n):
        out[j, i] = x[i, j]
    return out


@bw.op("bwtest::weighted")
def weighted(x: torch.Tensor, weights: list[float], offsets: list[int]) -> torch.Tensor:
    """A sum of shifted and weighted copies of a vector."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        n = x.shape[0]
        out[i] = weights[0] * x[(i + offsets[0]) % n] + weights[1] * x[(i + offsets[1]) % n]
    return out


@bw.op("bwtest::noise")
def noise(x: torch.Tensor, scale: float) -> torch.Tensor:
    """A vector with normal noise added."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + scale * bw.randn()
    return out


@bw.op("bwtest::ramp")
def ramp(n: int, step: float = 1.0) -> torch.Tensor:
    """Multiples of a step; no argument is a tensor."""
    out = torch.empty(n)
    for i in range(n):
        out[i] = i * step
    return out


@dataclass(frozen=True)
class Case:
    """An operator, a maker of arguments, and what it computes in torch's words (None: it draws random numbers)."""

    op: Op
    arguments: Callable[[], tuple[Any, ...]]
    expected: Callable[..., Any] | None = None
    named: tuple[tuple[str, Any], ...] = ()


def torch_timex(w: torch.Tensor, k: torch.Tensor, eps: float) -> torch.Tensor:
    """Return what `timex` computes."""
    T = k.shape[-1]
    out = torch.full_like(k, eps)
    for t in range(T):
        for u in range(t + 1):
            out[:, :, t] += w[:, T - 1 - t + u] * k[:, :, u]
    return out


def torch_weighted(x: torch.Tensor, weights: list[float], offsets: list[int]) -> torch.Tensor:
    """Return what `weighted` computes."""
    return sum((weight * x.roll(-offset) for weight, offset in zip(weights, offsets, strict=True)), torch.zeros_like(x))


def torch_halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what `halves` computes."""
    return x[::2], x[1::2]


def torch_ramp(n: int, step: float) -> torch.Tensor:
    """Return what `ramp` computes."""
    return torch.arange(n) * step


CASES = {
    "timex": Case(timex, lambda: (torch.randn(4, 16), torch.randn(2, 4, 16), 0.1), torch_timex),
    "square": Case(square, lambda: (torch.randn(33),), torch.square),
    "total": Case(total, lambda: (torch.randn(100),), torch.sum),
    "scale_": Case(scale_, lambda: (torch.randn(33), 0.5)),
    "copy_scaled": Case(copy_scaled, lambda: (torch.randn(9), torch.empty(9)), None, (("by", 2.0), ("flip", True))),
    "halves": Case(halves, lambda: (torch.randn(11),), torch_halves),
    "transposed": Case(transposed, lambda: (torch.randn(5, 7),), torch.t),
    "weighted": Case(weighted, lambda: (torch.randn(12), [0.5, 2.0], [1, -2]), torch_weighted),
    "ramp": Case(ramp, lambda: (7, 0.5), torch_ramp),
    "noise": Case(noise, lambda: (torch.zeros(50), 1.0)),
}
"""Every operator by name."""
FUNCTIONAL = [name for name, case in CASES.items() if case.expected is not None]
"""Those whose results are a function of their arguments."""
