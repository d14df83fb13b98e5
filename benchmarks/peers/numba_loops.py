"""The kernels in Numba, on NumPy's views of the tensors: the plain loops, and the loops as one writes them for speed.

The plain sums stay scalar, since strict arithmetic fixes the order of a sum. The tuned ones add multiples of one row to
another, four lags at a time, which vector instructions do in any arithmetic.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import torch
from torch import Tensor

from benchmarks.peers.written import names, written
from brickwork.bench.timers import Call

_compiled = numba.njit(parallel=True)


def pad(tile: Tensor, image: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]) -> dict[str, Call]:
    """Fill the image pixel by pixel, and copy of a tile by copy."""
    arguments = (tile.numpy(), image.numpy(), *origin, shift_x[0], shift_y[0], shift_y[1])

    def pixels() -> Tensor:
        _pad(*arguments)
        return image

    def copies() -> Tensor:
        _pad_by_copies(*arguments)
        return image

    return {"numba": pixels, "numba, tuned": copies}


@_compiled
def _pad(tile, image, origin_x, origin_y, width_shift, skew, height_shift):
    height, width = image.shape
    tile_height, tile_width = tile.shape
    for i in numba.prange(height):
        y = height - 1 - i - origin_y
        v = y // tile_height
        for j in range(width):
            x = j - origin_x - v * skew
            u = x // tile_width
            image[i, j] = tile[tile_height - 1 - (y - v * height_shift), x - u * width_shift]


@_compiled
def _pad_by_copies(tile, image, origin_x, origin_y, width_shift, skew, height_shift):
    height, width = image.shape
    tile_height, tile_width = tile.shape
    for i in numba.prange(height):
        y = height - 1 - i - origin_y
        v = y // tile_height
        row = tile[tile_height - 1 - (y - v * height_shift)]
        first = (-origin_x - v * skew) % width_shift
        j = 0
        while j < width:
            count = min(tile_width - first, width - j)
            for column in range(count):
                image[i, j + column] = row[first + column]
            j += count
            first = 0


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Convolve, one output after the other, and row by row."""
    weights, signal, start = w.numpy(), k.numpy(), np.float32(eps)
    return {
        "numba": lambda: torch.from_numpy(_timex(weights, signal, start)),
        "numba, tuned": lambda: torch.from_numpy(_timex_by_rows(weights, signal, start)),
    }


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


@_compiled
def _timex_by_rows(w, k, eps):
    B, C, _ = k.shape
    out = np.full_like(k, eps)
    for row in numba.prange(B * C):
        _add_lags(out[row // C, row % C], k[row // C, row % C], w[row % C])
    return out


@numba.njit
def _add_lags(out, x, w):
    """Add to each out[t] the sum over lags of w[T - 1 - lag] * x[t - lag]."""
    T = len(x)
    lag = 0
    while lag + 3 < T:
        a, b, c, d = w[T - 1 - lag], w[T - 2 - lag], w[T - 3 - lag], w[T - 4 - lag]
        out[lag] += a * x[0]
        out[lag + 1] += a * x[1] + b * x[0]
        out[lag + 2] += a * x[2] + b * x[1] + c * x[0]
        for u in range(3, T - lag):
            out[lag + u] += a * x[u] + b * x[u - 1] + c * x[u - 2] + d * x[u - 3]
        lag += 4
    while lag < T:
        for u in range(T - lag):
            out[lag + u] += w[T - 1 - lag] * x[u]
        lag += 1


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> dict[str, Call]:
    """Compute both gradients, element by element, and row by row."""
    arrays = w.numpy(), k.numpy(), gradient.numpy()

    def called(function) -> Call:
        return lambda: [torch.from_numpy(array) for array in function(*arrays)]

    return {"numba": called(_timex_backward), "numba, tuned": called(_timex_backward_by_rows)}


@_compiled
def _timex_backward(w, k, gradient):
    B, C, T = k.shape
    to_w, to_k = np.empty_like(w), np.empty_like(k)
    for row in numba.prange(B * C):
        b, c = row // C, row % C
        for u in range(T):
            s = np.float32(0)
            for t in range(u, T):
                s += w[c, T - 1 - t + u] * gradient[b, c, t]
            to_k[b, c, u] = s
    for c in numba.prange(C):
        for place in range(T):
            lag = T - 1 - place
            s = np.float32(0)
            for b in range(B):
                for t in range(lag, T):
                    s += gradient[b, c, t] * k[b, c, t - lag]
            to_w[c, place] = s
    return to_w, to_k


@_compiled
def _timex_backward_by_rows(w, k, gradient):
    """Turned around in time, both gradients are causal convolutions with the gradient of the result."""
    B, C, T = k.shape
    to_w, to_k = np.zeros_like(w), np.zeros_like(k)
    for c in numba.prange(C):
        turned, found = np.empty(T, dtype=np.float32), np.zeros(T, dtype=np.float32)
        for b in range(B):
            for t in range(T):
                turned[t] = gradient[b, c, T - 1 - t]
            _add_lags(to_w[c], turned, k[b, c][::-1])
            found[:] = 0
            _add_lags(found, turned, w[c])
            for t in range(T):
                to_k[b, c, t] = found[T - 1 - t]
    return to_w, to_k


def sin(x: Tensor, out: Tensor) -> dict[str, Call]:
    """Compute the sine of every element."""
    source, target = x.view(-1).numpy(), out.view(-1).numpy()

    def call() -> Tensor:
        _sin(source, target)
        return out

    return {"numba": call}


@_compiled
def _sin(x, out):
    for i in numba.prange(x.shape[0]):
        out[i] = math.sin(x[i])


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Draw with the generator that each thread has."""
    means, deviations = mu.numpy(), sigma.numpy()
    return {"numba": lambda: torch.from_numpy(_sample(means, deviations, n))}


@_compiled
def _sample(mu, sigma, n):
    out = np.empty((len(mu), n), dtype=np.float32)
    for i in numba.prange(len(mu)):
        for j in range(n):
            out[i, j] = np.random.normal(mu[i], sigma[i])  # noqa: NPY002  # the generator that Numba compiles in parallel
    return out


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Scale and shift the given deviates."""
    arrays = mu.numpy(), sigma.numpy(), z.numpy()
    return {"numba": lambda: torch.from_numpy(_sample_shared(*arrays))}


@_compiled
def _sample_shared(mu, sigma, z):
    out = np.empty((len(mu), len(z)), dtype=np.float32)
    for i in numba.prange(len(mu)):
        for j in range(len(z)):
            out[i, j] = mu[i] + sigma[i] * z[j]
    return out


def launch(tensors: list[Tensor]) -> dict[str, Call]:
    """Add vectors in one function of as many arguments, which are views of tensors that each call takes anew."""
    given = names(len(tensors))
    total = " + ".join(f"{name}[i]" for name in given)
    add = numba.njit(
        written(
            "add",
            f"def add(out, {', '.join(given)}):\n    for i in range(len(out)):\n        out[i] = {total}\n",
        )
    )

    def call() -> Tensor:
        out = torch.empty_like(tensors[0])
        add(out.numpy(), *[tensor.numpy() for tensor in tensors])
        return out

    return {"numba": call}
