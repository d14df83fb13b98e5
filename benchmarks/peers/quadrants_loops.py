"""The kernels in Quadrants: the same plain loops; its kernels take torch tensors, and read annotations themselves.

What is tuned for GPUs stands in `quadrants_tiles.py`.
"""

import functools

import quadrants as qd
import torch
from torch import Tensor

from benchmarks.peers import quadrants_tiles
from benchmarks.peers.written import names, written
from brickwork.bench.timers import Call

Vector = qd.types.ndarray(dtype=qd.f32, ndim=1)
Matrix = qd.types.ndarray(dtype=qd.f32, ndim=2)
Cube = qd.types.ndarray(dtype=qd.f32, ndim=3)


@functools.lru_cache(maxsize=1)
def _start(device: str) -> None:
    """Make Quadrants compile for a device from now on, unless it does; it has one device at a time."""
    wanted = qd.cuda if device == "cuda" else qd.cpu
    threads = torch.get_num_threads()
    qd.init(arch=wanted, cpu_max_num_threads=threads, log_level=qd.ERROR, offline_cache=False, random_seed=1)
    if qd.cfg.arch != wanted:
        raise RuntimeError(f"quadrants finds no {device} here")


def pad(tile: Tensor, image: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]) -> dict[str, Call]:
    """Fill the image, one pixel after the other."""
    _start(image.device.type)
    numbers = (*origin, shift_x[0], shift_y[0], shift_y[1])

    def call() -> Tensor:
        _pad(tile, image, *numbers)
        return image

    return {"quadrants": call}


@qd.kernel
def _pad(
    tile: Matrix,
    image: Matrix,
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


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Convolve, one output after the other."""
    _start(k.device.type)

    def call() -> Tensor:
        out = torch.empty_like(k)
        _timex(w, k, out, eps)
        return out

    found: dict[str, Call] = {"quadrants": call}
    if k.is_cuda and quadrants_tiles.fits(k):
        found["quadrants, tuned"] = lambda: quadrants_tiles.timex(w, k, eps)
    return found


@qd.kernel
def _timex(w: Matrix, k: Cube, out: Cube, eps: qd.f32):
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

    found: dict[str, Call] = {"quadrants": call}
    if k.is_cuda and quadrants_tiles.fits(k):
        found["quadrants, tuned"] = lambda: quadrants_tiles.timex_backward(w, k, gradient)
    return found


@qd.kernel
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

    return {"quadrants": call}


@qd.kernel
def _sin(x: Vector, out: Vector):
    for i in x:
        out[i] = qd.sin(x[i])


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Draw with Quadrants's generator."""
    _start(mu.device.type)

    def call() -> Tensor:
        out = torch.empty(len(mu), n, device=mu.device)
        _sample(mu, sigma, out)
        return out

    return {"quadrants": call}


@qd.kernel
def _sample(mu: Vector, sigma: Vector, out: Matrix):
    for i, j in out:
        out[i, j] = mu[i] + sigma[i] * qd.randn(qd.f32)


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Scale and shift the given deviates."""
    _start(mu.device.type)

    def call() -> Tensor:
        out = torch.empty(len(mu), len(z), device=mu.device)
        _sample_shared(mu, sigma, z, out)
        return out

    return {"quadrants": call}


@qd.kernel
def _sample_shared(mu: Vector, sigma: Vector, z: Vector, out: Matrix):
    for i, j in out:
        out[i, j] = mu[i] + sigma[i] * z[j]


def launch(tensors: list[Tensor]) -> dict[str, Call]:
    """Add vectors in one kernel of as many arguments."""
    _start(tensors[0].device.type)
    given = names(len(tensors))
    parameters = ", ".join(f"{name}: qd.types.ndarray(dtype=qd.f32, ndim=1)" for name in ("out", *given))
    total = " + ".join(f"{name}[i]" for name in given)
    add = written(
        "add",
        f"""import quadrants as qd


@qd.kernel
def add({parameters}):
    for i in out:
        out[i] = {total}
""",
    )

    def call() -> Tensor:
        out = torch.empty_like(tensors[0])
        add(out, *tensors)
        return out

    return {"quadrants": call}
