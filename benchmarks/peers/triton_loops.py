"""Operators in Triton, as its tutorials write them: one program a block of elements, or a row."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from brickwork.bench.timers import Call


def sin(x: Tensor, *, block: int) -> Call:
    """Return a call that computes the sine into a new tensor."""

    def call() -> Tensor:
        out = torch.empty_like(x)
        _sin[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), block)
        return out

    return call


def sample_normal(mu: Tensor, sigma: Tensor, n: int, *, four: bool, block: int = 1024) -> Call:
    """Return a call that draws samples: one of each Philox call, or all four."""
    d = mu.shape[0]
    chosen: Any = _normal4 if four else _normal
    numbers = iter(range(1 << 30))

    def call() -> Tensor:
        out = torch.empty(d, n, device=mu.device)
        chosen[(triton.cdiv(out.numel(), block),)](mu, sigma, out, n, out.numel(), next(numbers), block)
        return out

    return call


def softmax(x: Tensor) -> Call:
    """Return a call that computes the softmax of rows, a program each."""

    def call() -> Tensor:
        out = torch.empty_like(x)
        _softmax[(x.shape[0],)](x, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return out

    return call


@triton.jit
def _sin(x, out, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    tl.store(out + at, tl.sin(tl.load(x + at, mask=inside)), mask=inside)


@triton.jit
def _normal(mu, sigma, out, n, count, seed, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    row = at // n
    z = tl.randn(seed, at)
    tl.store(out + at, tl.load(mu + row, mask=inside) + tl.load(sigma + row, mask=inside) * z, mask=inside)


@triton.jit
def _normal4(mu, sigma, out, n, count, seed, block: tl.constexpr):
    quarter: tl.constexpr = block // 4
    at = tl.program_id(0) * quarter + tl.arange(0, quarter)
    first, second, third, fourth = tl.randn4x(seed, at)
    start = tl.program_id(0) * block + tl.arange(0, quarter)
    for part in tl.static_range(4):
        place = start + part * quarter
        z = first if part == 0 else second if part == 1 else third if part == 2 else fourth
        inside = place < count
        row = place // n
        value = tl.load(mu + row, mask=inside) + tl.load(sigma + row, mask=inside) * z
        tl.store(out + place, value, mask=inside)


@triton.jit
def _softmax(x, out, n, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    values = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * n + at, weights / tl.sum(weights, axis=0), mask=at < n)
