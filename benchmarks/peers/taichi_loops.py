"""The kernels in Taichi: the same plain loops; its kernels take torch tensors, and read annotations themselves.

What is tuned for GPUs stands in `taichi_tiles.py`.
"""

import functools

import taichi as ti
import torch
from torch import Tensor

from benchmarks.peers import taichi_tiles
from benchmarks.peers.written import names, written
from brickwork.bench.timers import Call

Vector = ti.types.ndarray(dtype=ti.f32, ndim=1)
Matrix = ti.types.ndarray(dtype=ti.f32, ndim=2)
Cube = ti.types.ndarray(dtype=ti.f32, ndim=3)


@functools.lru_cache(maxsize=1)
def _start(device: str) -> None:
    """Make Taichi compile for a device from now on, unless it does; it has one device at a time."""
    wanted = ti.cuda if device == "cuda" else ti.cpu
    threads = torch.get_num_threads()
    ti.init(arch=wanted, cpu_max_num_threads=threads, log_level=ti.ERROR, offline_cache=False, random_seed=1)
    if ti.cfg.arch != wanted:
        raise RuntimeError(f"taichi finds no {device} here")


def pad(tile: Tensor, image: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]) -> dict[str, Call]:
    """Fill the image, one pixel after the other."""
    _start(image.device.type)
    numbers = (*origin, shift_x[0], shift_y[0], shift_y[1])

    def call() -> Tensor:
        _pad(tile, image, *numbers)
        return image

    return {"taichi": call}


@ti.kernel
def _pad(
    tile: Matrix,
    image: Matrix,
    origin_x: ti.i32,
    origin_y: ti.i32,
    width_shift: ti.i32,
    skew: ti.i32,
    height_shift: ti.i32,
):
    for i, j in image:
        y = image.shape[0] - 1 - i - origin_y
        v = y // tile.shape[0]
        x = j - origin_x - v * skew
        u = x // tile.shape[1]
        image[i, j] = tile[tile.shape[0] - 1 - (y - v * height_shift), x - u * width_shift]


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Convolve, one output after the other."""
    _start(k.device.type)

    def call() -> Tensor:
        out = torch.empty_like(k)
        _timex(w, k, out, eps)
        return out

    found: dict[str, Call] = {"taichi": call}
    if k.is_cuda and taichi_tiles.fits(k):
        found["taichi, tuned"] = lambda: taichi_tiles.timex(w, k, eps)
    return found


@ti.kernel
def _timex(w: Matrix, k: Cube, out: Cube, eps: ti.f32):
    for b, c, t in out:
        s = eps
        for u in range(t + 1):
            s += w[c, k.shape[2] - 1 - t + u] * k[b, c, u]
        out[b, c, t] = s


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> dict[str, Call]:
    """Compute both gradients, element by element."""
    _start(k.device.type)

    def call() -> tuple[Tensor, Tensor]:
        to_w, to_k = torch.empty_like(w), torch.empty_like(k)
        _timex_backward(w, k, gradient, to_w, to_k)
        return to_w, to_k

    found: dict[str, Call] = {"taichi": call}
    if k.is_cuda and taichi_tiles.fits(k):
        found["taichi, tuned"] = lambda: taichi_tiles.timex_backward(w, k, gradient)
    return found


@ti.kernel
def _timex_backward(w: Matrix, k: Cube, gradient: Cube, to_w: Matrix, to_k: Cube):
    for b, c, u in to_k:
        s = 0.0
        for t in range(u, k.shape[2]):
            s += w[c, k.shape[2] - 1 - t + u] * gradient[b, c, t]
        to_k[b, c, u] = s
    for c, place in to_w:
        lag = k.shape[2] - 1 - place
        s = 0.0
        for b in range(k.shape[0]):
            for t in range(lag, k.shape[2]):
                s += gradient[b, c, t] * k[b, c, t - lag]
        to_w[c, place] = s


def sin(x: Tensor, out: Tensor) -> dict[str, Call]:
    """Compute the sine of every element."""
    _start(x.device.type)
    source, target = x.view(-1), out.view(-1)

    def call() -> Tensor:
        _sin(source, target)
        return out

    return {"taichi": call}


@ti.kernel
def _sin(x: Vector, out: Vector):
    for i in x:
        out[i] = ti.sin(x[i])


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Draw with Taichi's generator."""
    _start(mu.device.type)

    def call() -> Tensor:
        out = torch.empty(len(mu), n, device=mu.device)
        _sample(mu, sigma, out)
        return out

    return {"taichi": call}


@ti.kernel
def _sample(mu: Vector, sigma: Vector, out: Matrix):
    for i, j in out:
        out[i, j] = mu[i] + sigma[i] * ti.randn(ti.f32)


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Scale and shift the given deviates."""
    _start(mu.device.type)

    def call() -> Tensor:
        out = torch.empty(len(mu), len(z), device=mu.device)
        _sample_shared(mu, sigma, z, out)
        return out

    return {"taichi": call}


@ti.kernel
def _sample_shared(mu: Vector, sigma: Vector, z: Vector, out: Matrix):
    for i, j in out:
        out[i, j] = mu[i] + sigma[i] * z[j]


def launch(tensors: list[Tensor]) -> dict[str, Call]:
    """Add vectors in one kernel of as many arguments."""
    _start(tensors[0].device.type)
    given = names(len(tensors))
    parameters = ", ".join(f"{name}: ti.types.ndarray(dtype=ti.f32, ndim=1)" for name in ("out", *given))
    total = " + ".join(f"{name}[i]" for name in given)
    add = written(
        "add",
        f"""import taichi as ti


@ti.kernel
def add({parameters}):
    for i in out:
        out[i] = {total}
""",
    )

    def call() -> Tensor:
        out = torch.empty_like(tensors[0])
        add(out, *tensors)
        return out

    return {"taichi": call}
