"""The kernels in Warp: a thread an element of the result, and tuned: several in registers, moved 16 bytes at once.

Warp runs a kernel on one thread of a CPU, and on torch's current stream of a GPU. Its arrays are views of the tensors;
where a call is what counts, in `launch`, each call makes them anew. Warp reads annotations itself.
"""

import functools
import itertools

import torch
import warp as wp
from torch import Tensor

from benchmarks.peers.written import names, written
from brickwork.bench.timers import Call

wp.config.quiet = True
wp.init()
wp.set_module_options({"enable_backward": False})

Four = wp.types.vector(length=4, dtype=wp.float32)
Eight = wp.types.vector(length=8, dtype=wp.float32)
Vector, Matrix, Cube = wp.array(dtype=wp.float32), wp.array2d(dtype=wp.float32), wp.array3d(dtype=wp.float32)
Fours, RowsOfFours = wp.array(dtype=Four), wp.array2d(dtype=Four)


def _launched(kernel, extents, *arguments) -> None:
    """Launch on torch's stream."""
    tensor = next(each for each in arguments if isinstance(each, wp.array))
    stream = wp.stream_from_torch(torch.cuda.current_stream()) if tensor.device.is_cuda else None
    wp.launch(kernel, extents, inputs=arguments, device=tensor.device, stream=stream)


def _in_fours(tensor: Tensor) -> wp.array:
    """Return a view of a tensor whose elements are four numbers along the last axis."""
    return wp.from_torch(tensor.view(*tensor.shape[:-1], -1, 4), dtype=Four)


# ---------------------------------------------------------------- padding


def pad(tile: Tensor, image: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]) -> dict[str, Call]:
    """Fill the image, a pixel a thread, and four where rows are whole fours."""
    assert (shift_x, shift_y[1]) == ([tile.shape[1], 0], tile.shape[0])
    height, width = image.shape
    source, target = wp.from_torch(tile), wp.from_torch(image)

    def plain() -> Tensor:
        _launched(_pad, (height, width), source, target, *origin, shift_y[0])
        return image

    def tuned() -> Tensor:
        _launched(_pad_tuned, (height, width // 4), source, fours, *origin, shift_y[0])
        return image

    if width % 4:
        return {"warp": plain}
    fours = _in_fours(image)
    return {"warp": plain, "warp, tuned": tuned}


@wp.kernel
def _pad(tile: Matrix, image: Matrix, origin_x: int, origin_y: int, skew: int):
    i, j = wp.tid()
    y = image.shape[0] - 1 - i - origin_y
    v = y // tile.shape[0]
    x = j - origin_x - v * skew
    u = x // tile.shape[1]
    image[i, j] = tile[tile.shape[0] - 1 - (y - v * tile.shape[0]), x - u * tile.shape[1]]


@wp.kernel
def _pad_tuned(tile: Matrix, image: RowsOfFours, origin_x: int, origin_y: int, skew: int):
    i, j = wp.tid()
    y = image.shape[0] - 1 - i - origin_y
    v = y // tile.shape[0]
    x = 4 * j - origin_x - v * skew
    row = tile.shape[0] - 1 - (y - v * tile.shape[0])
    column = x - x // tile.shape[1] * tile.shape[1]
    found = Four()
    for at in range(4):
        found[at] = tile[row, column]
        column += 1
        if column == tile.shape[1]:
            column = 0
    image[i, j] = found


# ---------------------------------------------------------------- the convolution and its gradients


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Convolve, an output a thread, and eight outputs of four batches."""
    batch, channels, length = k.shape
    weights, signal = wp.from_torch(w), wp.from_torch(k)

    def plain() -> Tensor:
        out = torch.empty_like(k)
        _launched(_timex, k.shape, weights, signal, wp.from_torch(out), eps)
        return out

    def tuned() -> Tensor:
        out = torch.empty_like(k)
        extents = (-(-batch // 4), channels, -(-length // 8))
        _launched(_convolve, extents, weights, signal, wp.from_torch(out), eps, 0, 1)
        return out

    return {"warp": plain, "warp, tuned": tuned}


@wp.kernel
def _timex(w: Matrix, k: Cube, out: Cube, eps: float):
    b, c, t = wp.tid()
    s = eps
    for u in range(t + 1):
        s += w[c, k.shape[2] - 1 - t + u] * k[b, c, u]
    out[b, c, t] = s


@wp.kernel
def _convolve(w: Matrix, k: Cube, out: Cube, eps: float, begin: int, step: int):
    """Keep eight weights in registers, which move on by one with each element of a row, from its beginning or end."""
    group, c, part = wp.tid()
    B, T = k.shape[0], k.shape[2]
    t = 8 * part
    b = 4 * group
    second, third, fourth = wp.min(b + 1, B - 1), wp.min(b + 2, B - 1), wp.min(b + 3, B - 1)
    around = Eight()
    for i in range(8):
        if t + i + 2 <= T:
            around[i] = w[c, T - 2 - t - i]
    sum0, sum1, sum2, sum3 = Eight(eps), Eight(eps), Eight(eps), Eight(eps)
    for u in range(wp.min(t + 8, T)):
        for i in range(7):
            around[7 - i] = around[6 - i]
        weight = wp.float32(0.0)
        if u <= t:
            weight = w[c, T - 1 - t + u]
        around[0] = weight
        at = begin + step * u
        sum0 += around * k[b, c, at]
        sum1 += around * k[second, c, at]
        sum2 += around * k[third, c, at]
        sum3 += around * k[fourth, c, at]
    for i in range(8):
        if t + i < T:
            at = begin + step * (t + i)
            out[b, c, at] = sum0[i]
            if b + 1 < B:
                out[b + 1, c, at] = sum1[i]
            if b + 2 < B:
                out[b + 2, c, at] = sum2[i]
            if b + 3 < B:
                out[b + 3, c, at] = sum3[i]


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> dict[str, Call]:
    """Compute both gradients, an element a thread, and eight; that of k is the convolution from the end."""
    batch, channels, length = k.shape
    weights, signal, given = wp.from_torch(w), wp.from_torch(k), wp.from_torch(gradient)

    def plain() -> tuple[Tensor, Tensor]:
        to_w, to_k = torch.empty_like(w), torch.empty_like(k)
        _launched(_gradient_of_k, k.shape, weights, given, wp.from_torch(to_k))
        _launched(_gradient_of_w, w.shape, signal, given, wp.from_torch(to_w))
        return to_w, to_k

    def tuned() -> tuple[Tensor, Tensor]:
        to_w, to_k = torch.empty_like(w), torch.empty_like(k)
        parts = -(-length // 8)
        extents = (-(-batch // 4), channels, parts)
        _launched(_convolve, extents, weights, given, wp.from_torch(to_k), 0.0, length - 1, -1)
        _launched(_gradient_of_w_tuned, (channels, parts), signal, given, wp.from_torch(to_w))
        return to_w, to_k

    return {"warp": plain, "warp, tuned": tuned}


@wp.kernel
def _gradient_of_k(w: Matrix, gradient: Cube, out: Cube):
    b, c, u = wp.tid()
    s = wp.float32(0.0)
    for t in range(u, out.shape[2]):
        s += w[c, out.shape[2] - 1 - t + u] * gradient[b, c, t]
    out[b, c, u] = s


@wp.kernel
def _gradient_of_w(k: Cube, gradient: Cube, out: Matrix):
    c, place = wp.tid()
    lag = k.shape[2] - 1 - place
    s = wp.float32(0.0)
    for b in range(k.shape[0]):
        for t in range(lag, k.shape[2]):
            s += gradient[b, c, t] * k[b, c, t - lag]
    out[c, place] = s


@wp.kernel
def _gradient_of_w_tuned(k: Cube, gradient: Cube, out: Matrix):
    c, part = wp.tid()
    T = k.shape[2]
    lag = 8 * part
    found = Eight()
    for b in range(k.shape[0]):
        around = Eight()
        for i in range(7):
            if lag + i < T:
                around[i + 1] = gradient[b, c, lag + i]
        for s in range(T - lag):
            for i in range(7):
                around[i] = around[i + 1]
            coming = wp.float32(0.0)
            if s + lag + 7 < T:
                coming = gradient[b, c, s + lag + 7]
            around[7] = coming
            found += around * k[b, c, s]
    for i in range(8):
        if lag + i < T:
            out[c, T - 1 - lag - i] = found[i]


# ---------------------------------------------------------------- element by element


def sin(x: Tensor, out: Tensor) -> dict[str, Call]:
    """Compute the sine of an element a thread, and of four."""
    source, target = wp.from_torch(x.view(-1)), wp.from_torch(out.view(-1))

    def plain() -> Tensor:
        _launched(_sin, x.numel(), source, target)
        return out

    def tuned() -> Tensor:
        _launched(_sin_tuned, x.numel() // 4, from_fours, to_fours)
        return out

    if x.numel() % 4:
        return {"warp": plain}
    from_fours, to_fours = _in_fours(x.view(-1)), _in_fours(out.view(-1))
    return {"warp": plain, "warp, tuned": tuned}


@wp.kernel
def _sin(x: Vector, out: Vector):
    i = wp.tid()
    out[i] = wp.sin(x[i])


@wp.kernel
def _sin_tuned(x: Fours, out: Fours):
    i = wp.tid()
    four = x[i]
    out[i] = Four(wp.sin(four[0]), wp.sin(four[1]), wp.sin(four[2]), wp.sin(four[3]))


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Draw with Warp's generator, whose states begin anew in each thread; one number a thread, and four."""
    d, means, deviations, seeds = len(mu), wp.from_torch(mu), wp.from_torch(sigma), itertools.count(1)

    def plain() -> Tensor:
        out = torch.empty(d, n, device=mu.device)
        _launched(_sample, (d, n), means, deviations, wp.from_torch(out), next(seeds))
        return out

    def tuned() -> Tensor:
        out = torch.empty(d, n, device=mu.device)
        _launched(_sample_tuned, (d, n // 4), means, deviations, _in_fours(out), next(seeds))
        return out

    return {"warp": plain} if n % 4 else {"warp": plain, "warp, tuned": tuned}


@wp.kernel
def _sample(mu: Vector, sigma: Vector, out: Matrix, seed: int):
    i, j = wp.tid()
    state = wp.rand_init(seed, i * out.shape[1] + j)
    out[i, j] = mu[i] + sigma[i] * wp.randn(state)


@wp.kernel
def _sample_tuned(mu: Vector, sigma: Vector, out: RowsOfFours, seed: int):
    i, j = wp.tid()
    state = wp.rand_init(seed, i * out.shape[1] + j)
    found = Four()
    for at in range(4):
        found[at] = mu[i] + sigma[i] * wp.randn(state)
    out[i, j] = found


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Scale and shift the given deviates, one a thread, and four."""
    d, n = len(mu), len(z)
    means, deviations, given = wp.from_torch(mu), wp.from_torch(sigma), wp.from_torch(z)

    def plain() -> Tensor:
        out = torch.empty(d, n, device=mu.device)
        _launched(_sample_shared, (d, n), means, deviations, given, wp.from_torch(out))
        return out

    def tuned() -> Tensor:
        out = torch.empty(d, n, device=mu.device)
        _launched(_sample_shared_tuned, (d, n // 4), means, deviations, fours, _in_fours(out))
        return out

    if n % 4:
        return {"warp": plain}
    fours = _in_fours(z)
    return {"warp": plain, "warp, tuned": tuned}


@wp.kernel
def _sample_shared(mu: Vector, sigma: Vector, z: Vector, out: Matrix):
    i, j = wp.tid()
    out[i, j] = mu[i] + sigma[i] * z[j]


@wp.kernel
def _sample_shared_tuned(mu: Vector, sigma: Vector, z: Fours, out: RowsOfFours):
    i, j = wp.tid()
    m = mu[i]
    out[i, j] = Four(m, m, m, m) + sigma[i] * z[j]


# ---------------------------------------------------------------- a call


def launch(tensors: list[Tensor]) -> dict[str, Call]:
    """Add vectors in one kernel of as many arrays: views made by each call, and views made before."""
    add = _sum_of(len(tensors))
    prepared = [wp.from_torch(tensor) for tensor in tensors]
    device = prepared[0].device

    def call(arrays) -> Tensor:
        out = torch.empty_like(tensors[0])
        stream = wp.stream_from_torch(torch.cuda.current_stream()) if device.is_cuda else None
        views = [*arrays(), wp.from_torch(out, return_ctype=True)]
        wp.launch(add, len(out), inputs=views, device=device, stream=stream)
        return out

    def made() -> list[object]:
        return [wp.from_torch(tensor, return_ctype=True) for tensor in tensors]

    return {
        "warp": functools.partial(call, made),
        "warp, prepared arrays": functools.partial(call, lambda: prepared),
    }


@functools.cache
def _sum_of(count: int) -> wp.Kernel:
    given = names(count)
    parameters = ", ".join(f"{name}: wp.array(dtype=wp.float32)" for name in (*given, "out"))
    total = " + ".join(f"{name}[i]" for name in given)
    return written(
        "add",
        f"""import warp as wp


@wp.kernel(enable_backward=False)
def add({parameters}):
    i = wp.tid()
    out[i] = {total}
""",
    )
