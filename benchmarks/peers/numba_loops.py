"""The ready operators in Numba: the same plain loops, parallel over the outer ones, on NumPy's view of the tensors."""

from __future__ import annotations

import math

import numba
import numpy as np
import torch

from brickwork.bench.timers import Call

_compiled = numba.njit(parallel=True, fastmath=False)


def brick_pad(
    tile: torch.Tensor, image: torch.Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]
) -> Call:
    """Return a call that fills the image."""
    arguments = (tile.numpy(), image.numpy(), *origin, shift_x[0], shift_y[0], shift_y[1])
    return lambda: _brick_pad(*arguments)


@_compiled
def _brick_pad(tile, image, origin_x, origin_y, width_shift, skew, height_shift):
    height, width = image.shape
    tile_height, tile_width = tile.shape
    for i in numba.prange(height):
        y = height - 1 - i - origin_y
        v = y // tile_height
        for j in range(width):
            x = j - origin_x - v * skew
            u = x // tile_width
            image[i, j] = tile[tile_height - 1 - (y - v * height_shift), x - u * width_shift]


def timex(w: torch.Tensor, k: torch.Tensor, eps: float) -> Call:
    """Return a call that allocates and computes the convolution."""
    weights, signal, start = w.numpy(), k.numpy(), np.float32(eps)
    return lambda: _timex(weights, signal, start)


@_compiled
def _timex(w, k, eps):
    B, C, T = k.shape
    out = np.empty_like(k)
    for row in numba.prange(B * C):
        b, c = row // C, row % C
        for t in range(T):
            s = eps
            for u in range(t + 1):
                s += w[c, T - 1 - t + u] * k[b, c, u]
            out[b, c, t] = s
    return out


def sin(x: torch.Tensor, out: torch.Tensor) -> Call:
    """Return a call that computes the sine into a given tensor."""
    source, target = x.numpy(), out.numpy()
    return lambda: _sin(source, target)


@_compiled
def _sin(x, out):
    for i in numba.prange(x.shape[0]):
        out[i] = math.sin(x[i])
