"""The kernels in Triton: as its tutorials write them, and the convolution by Toeplitz tiles on tensor cores.

A tile of the weights of a channel, W[u, t] = w[T - 1 - t + u], is the same for all batches: with it the convolution is
a product of matrices, and so are its gradients. Three products of the halves of numbers (`tf32x3`) keep nearly all
digits of float32. Sizes of tiles are chosen by Triton's autotuner at the first call.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from benchmarks.peers.written import names, written
from brickwork.bench.timers import Call


def pad(tile: Tensor, image: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]) -> dict[str, Call]:
    """Fill the image, a program a part of a row."""
    assert (shift_x, shift_y[1]) == ([tile.shape[1], 0], tile.shape[0])
    (height, width), block = image.shape, 2048

    def call() -> Tensor:
        sizes = (height, width, *tile.shape, *origin, shift_y[0])
        _pad[(height, triton.cdiv(width, block))](tile, image, *sizes, block)
        return image

    return {"triton": call}


@triton.jit
def _pad(tile, image, height, width, tile_height, tile_width, origin_x, origin_y, skew, block: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1) * block + tl.arange(0, block)
    y = height - 1 - i - origin_y
    row = (y % tile_height + tile_height) % tile_height  # the remainder has the sign of y
    x = -origin_x - (y - row) // tile_height * skew
    start = (x % tile_width + tile_width) % tile_width
    found = tl.load(tile + (tile_height - 1 - row) * tile_width + (start + j) % tile_width)
    tl.store(image + i.to(tl.int64) * width + j, found, mask=j < width)


def _tilings() -> list[triton.Config]:
    """Return the tiles that are tried; where Triton interprets, there is nothing to measure."""
    tried = ((64, 32, 4, 2), (64, 32, 4, 3), (64, 32, 8, 3), (64, 64, 8, 3), (128, 32, 8, 3), (32, 32, 2, 3))
    every = [
        triton.Config({"TILE": tile, "STEP": step}, num_warps=warps, num_stages=stages)
        for tile, step, warps, stages in tried
    ]
    return every[:1] if triton.knobs.runtime.interpret else every


def _of_batches(k: Tensor) -> int:
    """Return how many batches a product has: 16 at least, 64 at most."""
    return min(64, max(16, triton.next_power_of_2(k.shape[0])))


def _tiles(k: Tensor, rows: int) -> Callable[[dict[str, int]], tuple[int, ...]]:
    """Return the grid of programs for the tiles that are chosen."""
    batch, channels, length = k.shape
    return lambda chosen: (channels, triton.cdiv(length, chosen["TILE"]), triton.cdiv(batch, rows))


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Convolve on tensor cores."""
    batch, channels, length = k.shape
    rows = _of_batches(k)

    def call() -> Tensor:
        out = torch.empty_like(k)
        _timex[_tiles(k, rows)](w, k, out, eps, batch, channels, length, rows)
        return out

    return {"triton, tf32x3": call}


@triton.autotune(configs=_tilings(), key=["ROWS", "length"])
@triton.jit
def _timex(w, k, out, eps, batch, channels, length, ROWS: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr):
    c = tl.program_id(0)
    last = tl.num_programs(1) - 1 - tl.program_id(1)  # the longest sums begin first
    b = (tl.program_id(2) * ROWS + tl.arange(0, ROWS))[:, None]
    t = (last * TILE + tl.arange(0, TILE))[None, :]
    row = (b.to(tl.int64) * channels + c) * length
    total = tl.zeros([ROWS, TILE], tl.float32) + eps
    for start in range(0, (last + 1) * TILE, STEP):
        across = start + tl.arange(0, STEP)[None, :]
        down = start + tl.arange(0, STEP)[:, None]
        given = tl.load(k + row + across, mask=(b < batch) & (across < length), other=0.0)
        weights = tl.load(w + c * length + length - 1 - t + down, mask=(down <= t) & (t < length), other=0.0)
        total = tl.dot(given, weights, total, input_precision="tf32x3")
    tl.store(out + row + t, total, mask=(b < batch) & (t < length))


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> dict[str, Call]:
    """Compute both gradients on tensor cores."""
    batch, channels, length = k.shape
    rows, tile = _of_batches(k), 64

    def call() -> tuple[Tensor, Tensor]:
        to_k, parts = torch.empty_like(k), k.new_empty(2, channels, length)
        _gradient_of_k[_tiles(k, rows)](w, gradient, to_k, batch, channels, length, rows)
        _gradient_of_w[(channels, triton.cdiv(length, tile) + 1)](
            k, gradient, parts, batch, channels, length, rows, tile
        )
        return parts[0] + parts[1], to_k

    return {"triton, tf32x3": call}


@triton.autotune(configs=_tilings(), key=["ROWS", "length"])
@triton.jit
def _gradient_of_k(
    w, gradient, out, batch, channels, length, ROWS: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr
):
    c = tl.program_id(0)
    b = (tl.program_id(2) * ROWS + tl.arange(0, ROWS))[:, None]
    first = tl.program_id(1) * TILE
    u = (first + tl.arange(0, TILE))[None, :]
    row = (b.to(tl.int64) * channels + c) * length
    total = tl.zeros([ROWS, TILE], tl.float32)
    for start in range(first, length, STEP):
        across = start + tl.arange(0, STEP)[None, :]
        down = start + tl.arange(0, STEP)[:, None]
        given = tl.load(gradient + row + across, mask=(b < batch) & (across < length), other=0.0)
        weights = tl.load(w + c * length + length - 1 - down + u, mask=(down >= u) & (down < length), other=0.0)
        total = tl.dot(given, weights, total, input_precision="tf32x3")
    tl.store(out + row + u, total, mask=(b < batch) & (u < length))


@triton.jit
def _gradient_of_w(k, gradient, parts, batch, channels, length, ROWS: tl.constexpr, TILE: tl.constexpr):
    """Sum, over batches, products of tiles of k with tiles of the gradient that stand `apart` tiles to the right.

    On a diagonal of the sum the lag is the same. Diagonals to the right of the main one belong to one tile of lags,
    those to the left to the tile before, so each program has a half of two tiles.
    """
    c = tl.program_id(0)
    apart = tl.program_id(1)
    r = tl.arange(0, TILE)[:, None]
    m = tl.arange(0, TILE)[None, :]
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, length - apart * TILE, TILE):
        for first in range(0, batch, ROWS):
            across = (first + tl.arange(0, ROWS))[None, :]
            down = (first + tl.arange(0, ROWS))[:, None]
            s, t = start + r, start + apart * TILE + m
            left = tl.load(
                k + (across.to(tl.int64) * channels + c) * length + s, mask=(across < batch) & (s < length), other=0.0
            )
            right = tl.load(
                gradient + (down.to(tl.int64) * channels + c) * length + t,
                mask=(down < batch) & (t < length),
                other=0.0,
            )
            total = tl.dot(left, right, total, input_precision="tf32x3")
    turned = tl.gather(total, (r + m) % TILE, 1)
    lag = apart * TILE + tl.arange(0, TILE)
    place = c * length + length - 1 - lag
    tl.store(parts + place, tl.sum(tl.where(r + m < TILE, turned, 0.0), 0), mask=lag < length)
    before = (lag >= TILE) & (lag - TILE < length)
    others = tl.sum(tl.where(r + m >= TILE, turned, 0.0), 0)
    tl.store(parts + channels * length + place + TILE, others, mask=before)


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
    """Draw samples: one of each Philox call, as the tutorials do, or all four."""
    d, block = len(mu), 1024
    seeds = itertools.count(1)

    def one() -> Tensor:
        out = torch.empty(d, n, device=mu.device)
        _normal[(triton.cdiv(out.numel(), block),)](mu, sigma, out, n, out.numel(), next(seeds), block)
        return out

    def four() -> Tensor:
        out = torch.empty(d, n, device=mu.device)
        _normal4[(d, triton.cdiv(n, block))](mu, sigma, out, n, next(seeds), block)
        return out

    return {"triton, tl.randn": one, "triton, tl.randn4x": four}


@triton.jit
def _normal(mu, sigma, out, n, count, seed, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    row = at // n
    z = tl.randn(seed, at)
    tl.store(out + at, tl.load(mu + row, mask=inside) + tl.load(sigma + row, mask=inside) * z, mask=inside)


@triton.jit
def _normal4(mu, sigma, out, n, seed, block: tl.constexpr):
    quarter: tl.constexpr = block // 4
    row = tl.program_id(0)
    m, s = tl.load(mu + row), tl.load(sigma + row)
    at = tl.arange(0, quarter)
    counters = (row * tl.num_programs(1) + tl.program_id(1)) * quarter + at
    first, second, third, fourth = tl.randn4x(seed, counters)
    start = tl.program_id(1) * block + at
    to = out + row.to(tl.int64) * n + start
    tl.store(to, m + s * first, mask=start < n)
    tl.store(to + quarter, m + s * second, mask=start + quarter < n)
    tl.store(to + 2 * quarter, m + s * third, mask=start + 2 * quarter < n)
    tl.store(to + 3 * quarter, m + s * fourth, mask=start + 3 * quarter < n)


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
