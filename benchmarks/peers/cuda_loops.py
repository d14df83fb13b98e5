"""The ready operators in CUDA C++ by hand, compiled through NVRTC by torch; the sources lie in `cuda_sources/`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from brickwork.bench.timers import Call

_SOURCES = Path(__file__).parent / "cuda_sources"
_BLOCK = 256


@functools.cache
def kernel(file: str, name: str) -> Callable[..., None]:
    """Return a kernel of a source, compiled for the current device."""
    compile_kernel: Any = torch.cuda._compile_kernel  # noqa: SLF001  # torch's door to NVRTC has no public name yet
    return compile_kernel((_SOURCES / f"{file}.cu").read_text(encoding="utf-8"), name)


def brick_pad(
    tile: Tensor, height: int, width: int, origin: list[int], shift_x: list[int], shift_y: list[int], *, pixels: int
) -> Call:
    """Return a call that fills an image, with one or four pixels a thread."""
    chosen = kernel("brick_pad", "one_pixel" if pixels == 1 else "four_pixels")
    image = torch.empty(height, width, device=tile.device)
    grid = ((width // pixels + _BLOCK - 1) // _BLOCK, height, 1)
    arguments = [tile, image, height, width, shift_y[1], shift_x[0], *origin, shift_y[0]]

    def call() -> Tensor:
        chosen(grid=grid, block=(_BLOCK, 1, 1), args=arguments)
        return image

    return call


def timex(w: Tensor, k: Tensor, eps: float) -> Call:
    """Return a call that convolves, with one output a thread."""
    chosen = kernel("timex", "timex")
    batch, channels, length = k.shape
    out = torch.empty_like(k)
    grid = ((length + _BLOCK - 1) // _BLOCK, channels, batch)
    arguments = [w, k, out, eps, channels, length, batch * channels]

    def call() -> Tensor:
        chosen(grid=grid, block=(_BLOCK, 1, 1), args=arguments)
        return out

    return call


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> Call:
    """Return a call that computes both gradients of `timex`, with one element of a gradient a thread."""
    for_k, for_w = kernel("timex", "timex_gradient_k"), kernel("timex", "timex_gradient_w")
    batch, channels, length = k.shape
    to_w, to_k = torch.empty_like(w), torch.empty_like(k)
    blocks = (length + _BLOCK - 1) // _BLOCK

    def call() -> Tensor:
        sizes = [channels, length, batch * channels]
        for_k(grid=(blocks, channels, batch), block=(_BLOCK, 1, 1), args=[w, gradient, to_k, *sizes])
        for_w(grid=(blocks, channels, 1), block=(_BLOCK, 1, 1), args=[k, gradient, to_w, channels, length, batch])
        return torch.cat([to_w.flatten()[:1024], to_k.flatten()[:1024]])

    return call


def sample_normal(mu: Tensor, sigma: Tensor, n: int, *, precise: bool) -> Call:
    """Return a call that draws samples, four a thread."""
    chosen = kernel("sample_normal", "precise" if precise else "fast")
    out = torch.empty(mu.shape[0], n, device=mu.device)
    grid = ((out.numel() // 4 + _BLOCK - 1) // _BLOCK, 1, 1)
    arguments = [mu, sigma, out, n, mu.shape[0], 1]

    def call() -> Tensor:
        chosen(grid=grid, block=(_BLOCK, 1, 1), args=arguments)
        return out

    return call


def sin(x: Tensor) -> Call:
    """Return a call that computes the sine into a tensor of its own."""
    chosen = kernel("sin", "sine")
    out = torch.empty_like(x)
    grid = ((x.numel() // 4 + _BLOCK - 1) // _BLOCK, 1, 1)
    arguments = [x, out, x.numel()]

    def call() -> Tensor:
        chosen(grid=grid, block=(_BLOCK, 1, 1), args=arguments)
        return out

    return call
