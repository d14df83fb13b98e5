"""The kernels in Triton, as its tutorials write them: one program a block of elements, or a row."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from benchmarks.peers.written import names, written
from brickwork.bench.timers import Call


def sin(x: Tensor, out: Tensor) -> dict[str, Call]:
    """Compute the sine in blocks of two sizes."""

    def of(block: int) -> Call:
        def call() -> Tensor:
            _sin[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), block)
            return out

        return call

    return {f"triton, blocks of {block}": of(block) for block in (256, 1024)}


@triton.jit
def _sin(x, out, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    tl.store(out + at, tl.sin(tl.load(x + at, mask=inside)), mask=inside)


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Draw samples: one of each Philox call, or all four."""
    d, block = len(mu), 1024
    numbers = itertools.count(1)

    def of(chosen: Any) -> Call:
        def call() -> Tensor:
            out = torch.empty(d, n, device=mu.device)
            chosen[(triton.cdiv(out.numel(), block),)](mu, sigma, out, n, out.numel(), next(numbers), block)
            return out

        return call

    return {"triton, tl.randn": of(_normal), "triton, tl.randn4x": of(_normal4)}


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


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Scale and shift the given deviates."""
    d, n, block = len(mu), len(z), 1024

    def call() -> Tensor:
        out = torch.empty(d, n, device=mu.device)
        _shared[(d, triton.cdiv(n, block))](mu, sigma, z, out, n, block)
        return out

    return {"triton": call}


@triton.jit
def _shared(mu, sigma, z, out, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    inside = at < n
    value = tl.load(mu + row) + tl.load(sigma + row) * tl.load(z + at, mask=inside)
    tl.store(out + row * n + at, value, mask=inside)


def launch(tensors: list[Tensor]) -> dict[str, Call]:
    """Add vectors in one kernel of as many pointers."""
    add, block = _sum_of(len(tensors)), 1024

    def call() -> Tensor:
        out = torch.empty_like(tensors[0])
        add[(triton.cdiv(len(out), block),)](out, *tensors, len(out), block)
        return out

    return {"triton": call}


@functools.cache
def _sum_of(count: int) -> Any:
    given = names(count)
    total = " + ".join(f"tl.load({name} + at, mask=inside)" for name in given)
    return written(
        "add",
        f"""import triton
import triton.language as tl


@triton.jit
def add(out, {", ".join(given)}, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    tl.store(out + at, {total}, mask=inside)
""",
    )


def softmax(x: Tensor) -> Call:
    """Return a call that computes the softmax of rows, a program each."""

    def call() -> Tensor:
        out = torch.empty_like(x)
        _softmax[(x.shape[0],)](x, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return out

    return call


@triton.jit
def _softmax(x, out, n, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    values = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * n + at, weights / tl.sum(weights, axis=0), mask=at < n)
