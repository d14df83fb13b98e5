"""The ready operators in Quadrants: the same plain loops; its kernels take torch tensors."""

import quadrants as qd
import torch

from brickwork.bench.timers import Call

qd.init(arch=qd.cpu, cpu_max_num_threads=torch.get_num_threads(), log_level=qd.ERROR, offline_cache=False)


def brick_pad(
    tile: torch.Tensor, image: torch.Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]
) -> Call:
    """Return a call that fills the image."""
    numbers = (*origin, shift_x[0], shift_y[0], shift_y[1])
    return lambda: _brick_pad(tile, image, *numbers)


@qd.kernel
def _brick_pad(
    tile: qd.types.ndarray(dtype=qd.f32, ndim=2),
    image: qd.types.ndarray(dtype=qd.f32, ndim=2),
    origin_x: qd.i32,
    origin_y: qd.i32,
    width_shift: qd.i32,
    skew: qd.i32,
    height_shift: qd.i32,
):
    for i, j in image:
        y = image.shape[0] - 1 - i - origin_y
        v = y // tile.shape[0]
        x = j - origin_x - v * skew
        u = x // tile.shape[1]
        image[i, j] = tile[tile.shape[0] - 1 - (y - v * height_shift), x - u * width_shift]


def timex(w: torch.Tensor, k: torch.Tensor, eps: float) -> Call:
    """Return a call that allocates and computes the convolution."""

    def call() -> torch.Tensor:
        out = torch.empty_like(k)
        _timex(w, k, out, eps)
        return out

    return call


@qd.kernel
def _timex(
    w: qd.types.ndarray(dtype=qd.f32, ndim=2),
    k: qd.types.ndarray(dtype=qd.f32, ndim=3),
    out: qd.types.ndarray(dtype=qd.f32, ndim=3),
    eps: qd.f32,
):
    for b, c, t in out:
        s = eps
        for u in range(t + 1):
            s += w[c, k.shape[2] - 1 - t + u] * k[b, c, u]
        out[b, c, t] = s


def sin(x: torch.Tensor, out: torch.Tensor) -> Call:
    """Return a call that computes the sine into a given tensor."""
    return lambda: _sin(x, out)


@qd.kernel
def _sin(x: qd.types.ndarray(dtype=qd.f32, ndim=1), out: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        out[i] = qd.sin(x[i])
