"""The kernels in CUDA C++ by hand, through `bw.cuda_op`; the sources lie in `cuda_sources/`.

The plain ones give a thread an element of the result. The tuned ones are what an expert makes of them; what they do
stands in the sources, and how they are launched here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import brickwork as bw
from benchmarks.peers.written import names
from brickwork.bench.timers import Call

_SOURCES = Path(__file__).parent / "cuda_sources"
_BLOCK = 256
_PLAIN, _TUNED, _FAST = "CUDA C++", "CUDA C++, tuned", "CUDA C++, tuned, fast math"


def _blocks(count: int, block: int = _BLOCK) -> int:
    return -(-count // block)


# ---------------------------------------------------------------- padding


def _pad_plain(tile: Tensor, image: Tensor, origin_x: int, origin_y: int, skew: int) -> bw.Launch:
    (height, width), (tile_height, tile_width) = image.shape, tile.shape
    arguments = (tile, image, height, width, tile_height, tile_width, origin_x, origin_y, skew)
    return bw.Launch((_blocks(width), height), _BLOCK, args=arguments)


pad_plain = bw.cuda_op(
    "peers_cuda::pad_plain(Tensor tile, Tensor(a!) image, int origin_x, int origin_y, int skew) -> ()",
    source=_SOURCES / "pad.cu",
    entry="plain",
    launch=_pad_plain,
)


def _pad_tuned(tile: Tensor, image: Tensor, origin_x: int, origin_y: int, skew: int) -> bw.Launch:
    (height, width), (tile_height, tile_width) = image.shape, tile.shape
    arguments = (tile, image, height, width, tile_height, tile_width, origin_x, origin_y, skew)
    return bw.Launch(height, _BLOCK, shared=4 * (tile_width + 4), args=arguments)


pad_tuned = bw.cuda_op(
    "peers_cuda::pad_tuned(Tensor tile, Tensor(a!) image, int origin_x, int origin_y, int skew) -> ()",
    source=_SOURCES / "pad.cu",
    entry="tuned",
    launch=_pad_tuned,
)


def pad(tile: Tensor, image: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]) -> dict[str, Call]:
    """Fill the image, a thread a pixel, and a block a row."""
    assert (shift_x, shift_y[1]) == ([tile.shape[1], 0], tile.shape[0])
    arguments = (tile, image, *origin, shift_y[0])

    def plain() -> Tensor:
        pad_plain(*arguments)
        return image

    def tuned() -> Tensor:
        pad_tuned(*arguments)
        return image

    return {_PLAIN: plain, _TUNED: tuned}


# ---------------------------------------------------------------- the convolution and its gradients


def _timex_plain(w: Tensor, k: Tensor, eps: float, out: Tensor) -> bw.Launch:
    batch, channels, length = k.shape
    return bw.Launch((_blocks(length), channels, batch), _BLOCK, args=(w, k, out, eps, channels, length))


timex_plain = bw.cuda_op(
    "peers_cuda::timex_plain(Tensor w, Tensor k, float eps) -> Tensor",
    source=_SOURCES / "timex_plain.cu",
    entry="timex",
    launch=_timex_plain,
    out=lambda k: k.new_empty(k.shape),
)


def _to_k_plain(w: Tensor, gradient: Tensor, out: Tensor) -> bw.Launch:
    batch, channels, length = gradient.shape
    return bw.Launch((_blocks(length), channels, batch), _BLOCK, args=(w, gradient, out, channels, length))


to_k_plain = bw.cuda_op(
    "peers_cuda::to_k_plain(Tensor w, Tensor gradient) -> Tensor",
    source=_SOURCES / "timex_plain.cu",
    entry="gradient_of_k",
    launch=_to_k_plain,
    out=lambda gradient: gradient.new_empty(gradient.shape),
)


def _to_w_plain(k: Tensor, gradient: Tensor, out: Tensor) -> bw.Launch:
    batch, channels, length = k.shape
    return bw.Launch((_blocks(length), channels), _BLOCK, args=(k, gradient, out, channels, length, batch))


to_w_plain = bw.cuda_op(
    "peers_cuda::to_w_plain(Tensor k, Tensor gradient) -> Tensor",
    source=_SOURCES / "timex_plain.cu",
    entry="gradient_of_w",
    launch=_to_w_plain,
    out=lambda k: k.new_empty(k.shape[1:]),
)


_TILE = 64
_SHARED_BYTES = 227 << 10
"""What a block can have of shared memory on GPUs of the Hopper kind."""


def _padded(length: int) -> int:
    return _blocks(length, _TILE) * _TILE


def _warps(length: int) -> int:
    """Return the warps of a block: one for two tiles, eight at most."""
    return min(8, _blocks(_padded(length) // _TILE, 2))


def _convolve_bytes(length: int, rows: int) -> int:
    """Return the shared memory of a block: its rows, and the weights of a channel."""
    return 4 * (rows * (_padded(length) + 4) + _padded(length) + _TILE)


def _convolving(batches: int, *, reversed_: bool) -> bw.CudaOp:
    rows = 8 * batches

    def geometry(w: Tensor, k: Tensor, eps: float, out: Tensor) -> bw.Launch:
        batch, channels, length = k.shape
        return bw.Launch(
            (channels, _blocks(batch, rows)),
            32 * _warps(length),
            shared=_convolve_bytes(length, rows),
            args=(w, k, out, eps, batch, channels, length),
        )

    return bw.cuda_op(
        f"peers_cuda::{'to_k' if reversed_ else 'timex'}_tuned_{rows}(Tensor w, Tensor k, float eps) -> Tensor",
        source=_SOURCES / "timex_tuned.cu",
        entry=f"convolve<{batches}, {str(reversed_).lower()}>",
        launch=geometry,
        out=lambda k: k.new_empty(k.shape),
    )


timex_tuned = {8 * batches: _convolving(batches, reversed_=False) for batches in (2, 1)}
to_k_tuned = {8 * batches: _convolving(batches, reversed_=True) for batches in (2, 1)}


def _to_w_bytes(length: int, rows: int) -> int:
    """Return the shared memory of a block: rows of both signals, and the sums over batches."""
    return 4 * (rows * (2 * _padded(length) + _TILE + 8) + _padded(length))


def _to_w_tuned(rows: int) -> bw.CudaOp:
    def geometry(k: Tensor, gradient: Tensor, out: Tensor) -> bw.Launch:
        batch, channels, length = k.shape
        return bw.Launch(
            channels,
            32 * _warps(length),
            shared=_to_w_bytes(length, rows),
            args=(k, gradient, out, batch, channels, length),
        )

    return bw.cuda_op(
        f"peers_cuda::to_w_tuned_{rows}(Tensor k, Tensor gradient) -> Tensor",
        source=_SOURCES / "timex_tuned.cu",
        entry=f"gradient_of_w<{rows}>",
        launch=geometry,
        out=lambda k: k.new_empty(k.shape[1:]),
    )


to_w_tuned = {rows: _to_w_tuned(rows) for rows in (8, 4)}


def _fitting(operators: dict[int, bw.CudaOp], k: Tensor, size: Callable[[int, int], int]) -> bw.CudaOp | None:
    """Return the operator with the most batches a block that are there and fit into shared memory, or None."""
    batch, _, length = k.shape
    fitting = [rows for rows in operators if size(length, rows) <= _SHARED_BYTES]
    return operators[next((rows for rows in fitting if rows < 2 * batch), fitting[-1])] if fitting else None


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Convolve; what is tuned has its rows in shared memory, so they have a greatest length."""
    found: dict[str, Call] = {_PLAIN: lambda: timex_plain(w, k, eps)}
    tuned = _fitting(timex_tuned, k, _convolve_bytes)
    if tuned is not None:
        found[_TUNED] = lambda: tuned(w, k, eps)
    return found


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> dict[str, Call]:
    """Compute both gradients, by a kernel each."""
    found: dict[str, Call] = {_PLAIN: lambda: (to_w_plain(k, gradient), to_k_plain(w, gradient))}
    of_w, of_k = _fitting(to_w_tuned, k, _to_w_bytes), _fitting(to_k_tuned, k, _convolve_bytes)
    if of_w is not None and of_k is not None:
        found[_TUNED] = lambda: (of_w(k, gradient), of_k(w, gradient, 0.0))
    return found


# ---------------------------------------------------------------- element by element

sin_plain = bw.cuda_op(
    "peers_cuda::sin_plain(Tensor x, Tensor(a!) out) -> ()",
    source=_SOURCES / "sin.cu",
    entry="plain",
    launch=lambda x, out: bw.Launch(_blocks(x.numel()), _BLOCK, args=(x, out, x.numel())),
)
sin_tuned = bw.cuda_op(
    "peers_cuda::sin_tuned(Tensor x, Tensor(a!) out) -> ()",
    source=_SOURCES / "sin.cu",
    entry="tuned",
    launch=lambda x, out: bw.Launch(_blocks(x.numel(), 4 * _BLOCK), _BLOCK, args=(x, out, x.numel())),
)


def sin(x: Tensor, out: Tensor) -> dict[str, Call]:
    """Compute the sine of one element a thread, and of four."""

    def plain() -> Tensor:
        sin_plain(x, out)
        return out

    def tuned() -> Tensor:
        sin_tuned(x, out)
        return out

    return {_PLAIN: plain, _TUNED: tuned}


def _rows(mu: Tensor, out: Tensor) -> tuple[int, int]:
    """Return the rows of a grid and its blocks along a row, a thread taking four elements."""
    return len(mu), _blocks(out.shape[1], 4 * _BLOCK)


def _sampling(entry: str) -> bw.CudaOp:
    def geometry(mu: Tensor, sigma: Tensor, n: int, seed: int, out: Tensor) -> bw.Launch:
        return bw.Launch(_rows(mu, out), _BLOCK, args=(mu, sigma, out, n, seed))

    return bw.cuda_op(
        f"peers_cuda::sample_{entry}(Tensor mu, Tensor sigma, int n, int seed) -> Tensor",
        source=_SOURCES / "sample.cu",
        entry=entry,
        launch=geometry,
        out=lambda mu, n: mu.new_empty(len(mu), n),
    )


sample_plain, sample_tuned, sample_fast = map(_sampling, ("plain", "tuned", "fast"))


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Draw one number of each block of Philox, and all four of it; each call has a seed of its own."""
    seeds = itertools.count(1)
    return {
        label: lambda draw=draw: draw(mu, sigma, n, next(seeds))
        for label, draw in ((_PLAIN, sample_plain), (_TUNED, sample_tuned), (_FAST, sample_fast))
    }


def _shared(entry: str) -> bw.CudaOp:
    def geometry(mu: Tensor, sigma: Tensor, z: Tensor, out: Tensor) -> bw.Launch:
        return bw.Launch(_rows(mu, out), _BLOCK, args=(mu, sigma, z, out, len(z)))

    return bw.cuda_op(
        f"peers_cuda::shared_{entry}(Tensor mu, Tensor sigma, Tensor z) -> Tensor",
        source=_SOURCES / "sample_shared.cu",
        entry=entry,
        launch=geometry,
        out=lambda mu, z: mu.new_empty(len(mu), len(z)),
    )


shared_plain, shared_tuned = map(_shared, ("plain", "tuned"))


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Scale and shift the given deviates, one a thread, and four."""
    return {_PLAIN: lambda: shared_plain(mu, sigma, z), _TUNED: lambda: shared_tuned(mu, sigma, z)}


# ---------------------------------------------------------------- a call


def launch(tensors: list[Tensor]) -> dict[str, Call]:
    """Add vectors in one kernel of as many pointers."""
    add = _sum_of(len(tensors))
    return {_PLAIN: lambda: add(*tensors)}


@functools.cache
def _sum_of(count: int) -> bw.CudaOp:
    given = names(count)
    pointers = ", ".join(f"const float* {name}" for name in given)
    source = f"""
    extern "C" __global__ void add({pointers}, float* out, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i] = {" + ".join(f"{name}[i]" for name in given)};
    }}
    """

    def geometry(*tensors: Tensor) -> bw.Launch:
        return bw.Launch(_blocks(len(tensors[0])), _BLOCK, args=(*tensors, len(tensors[0])))

    return bw.cuda_op(
        f"peers_cuda::sum_of_{count}({', '.join(f'Tensor {name}' for name in given)}) -> Tensor",
        source=source,
        entry="add",
        launch=geometry,
        out=torch.empty_like,
    )
