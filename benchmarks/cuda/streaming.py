"""Operators that are limited by memory, on a GPU, against copying and against torch's own kernels."""

from __future__ import annotations

import functools
import math

import torch

import brickwork as bw
from benchmarks.cuda.compare import Progress, compare, gathered, triton
from brickwork.bench.device_timers import measure
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

COUNT = 1 << 26
ROWS, COLUMNS = 1 << 16, 1024
SIDE = 8192
GATHERED = 1 << 24
SUMMED = 1 << 24
TALL, NARROW = 1 << 20, 64
LONG = 1 << 22
BINS = 256


@bw.op("brickwork_benchmarks::add")
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return x + y."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


@bw.op("brickwork_benchmarks::saxpy")
def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return a x + y."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = a * x[i] + y[i]
    return out


@bw.op("brickwork_benchmarks::transpose")
def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose in memory of its own."""
    rows, columns = x.shape
    out = x.new_empty((columns, rows))
    for i in range(columns):
        for j in range(rows):
            out[i, j] = x[j, i]
    return out


@bw.op("brickwork_benchmarks::gather")
def gather(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return elements by index."""
    out = x.new_empty(index.shape[0])
    for i in range(index.shape[0]):
        out[i] = x[index[i]]
    return out


@bw.op("brickwork_benchmarks::row_sum")
def row_sum(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of each row."""
    out = x.new_empty(x.shape[0])
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        out[i] = s
    return out


@bw.op("brickwork_benchmarks::softmax")
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        largest = -math.inf
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - largest) / total
    return out


@bw.op("brickwork_benchmarks::full_sum")
def full_sum(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of all elements."""
    out = x.new_empty(1)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    out[0] = s
    return out


@bw.op("brickwork_benchmarks::layer_norm")
def layer_norm(x: torch.Tensor) -> torch.Tensor:
    """Return the rows with mean 0 and variance 1."""
    out = torch.empty_like(x)
    n = x.shape[1]
    for i in range(x.shape[0]):
        mean = 0.0
        for j in range(n):
            mean += x[i, j]
        mean = mean / n
        variance = 0.0
        for j in range(n):
            variance += (x[i, j] - mean) * (x[i, j] - mean)
        scale = 1.0 / math.sqrt(variance / n + 1e-5)
        for j in range(n):
            out[i, j] = (x[i, j] - mean) * scale
    return out


@bw.op("brickwork_benchmarks::column_sum")
def column_sum(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of each column."""
    out = x.new_empty(x.shape[1])
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        out[j] = s
    return out


@bw.op("brickwork_benchmarks::histogram")
def histogram(x: torch.Tensor, bins: int) -> torch.Tensor:
    """Return how often each number is there."""
    out = torch.zeros(bins, dtype=torch.int64, device=x.device)
    for i in range(x.shape[0]):
        out[x[i]] += 1
    return out


def cases(progress: Progress) -> list[Case]:
    """Return the ceilings, the streaming operators, and those that torch has kernels of its own for."""
    progress("copying")
    x, y = torch.randn(COUNT, device="cuda"), torch.randn(COUNT, device="cuda")
    ceilings: dict[str, Call] = {"copy_": lambda: y.copy_(x), "fill_": lambda: y.fill_(1.0)}
    timings = measure(ceilings).timings
    rate = 8 * COUNT / timings["copy_"].median
    ceiling = Case(title="copying 256 MiB", timings=timings, reference="copy_", device="cuda")
    for name, moved in (("copy_", 8 * COUNT), ("fill_", 4 * COUNT)):
        ceiling.notes[name] = f"{moved / timings[name].median / 1e12:.2f} TB/s"
    makers = (_add, _saxpy, _transpose, _gather, _row_sum, _softmax)
    makers = (*makers, _layer_norm, _full_sum, _long_rows, _column_sum, _histogram)
    return [
        ceiling,
        *gathered({make.__name__[1:]: functools.partial(make, progress, rate) for make in makers}),
    ]


def _streaming(title: str, contenders: dict[str, Call], moved: int, rate: float, progress: Progress) -> Case:
    limit = moved / (0.9 * rate)
    target = "90 % of the bandwidth of copying"
    return compare(title, contenders, reference="torch", progress=progress, target=target, at_most=limit, moved=moved)


def _like_torch(title: str, contenders: dict[str, Call], moved: int, progress: Progress) -> Case:
    target = "torch's own kernel"
    return compare(
        title, contenders, reference="torch", progress=progress, target=target, as_fast_as="torch", moved=moved
    )


def _add(progress: Progress, rate: float) -> Case:
    x, y = torch.randn(COUNT, device="cuda"), torch.randn(COUNT, device="cuda")
    contenders: dict[str, Call] = {"brickwork": lambda: add(x, y), "torch": lambda: torch.add(x, y)}
    return _streaming("add, 64M floats", contenders, 12 * COUNT, rate, progress)


def _saxpy(progress: Progress, rate: float) -> Case:
    x, y = torch.randn(COUNT, device="cuda"), torch.randn(COUNT, device="cuda")
    contenders: dict[str, Call] = {
        "brickwork": lambda: saxpy(2.5, x, y),
        "torch": lambda: torch.add(y, x, alpha=2.5),
    }
    return _streaming("saxpy, 64M floats", contenders, 12 * COUNT, rate, progress)


def _transpose(progress: Progress, _rate: float) -> Case:
    x = torch.randn(SIDE, SIDE, device="cuda")
    compiled = torch.compile(lambda x: x.T.contiguous(), dynamic=False)
    contenders: dict[str, Call] = {
        "brickwork": lambda: transpose(x),
        "torch": x.T.contiguous,
        "torch.compile": lambda: compiled(x),
    }
    return _like_torch(f"transpose {SIDE}x{SIDE}", contenders, 8 * x.numel(), progress)


def _gather(progress: Progress, _rate: float) -> Case:
    x = torch.randn(GATHERED, device="cuda")
    index = torch.randint(0, GATHERED, (GATHERED,), device="cuda")
    compiled = torch.compile(lambda x, index: x[index], dynamic=False)
    contenders: dict[str, Call] = {
        "brickwork": lambda: gather(x, index),
        "torch": lambda: torch.index_select(x, 0, index),
        "torch, x[index]": lambda: x[index],
        "torch.compile": lambda: compiled(x, index),
    }
    return _like_torch("gather 16M floats by random index", contenders, 16 * GATHERED, progress)


def _row_sum(progress: Progress, _rate: float) -> Case:
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    contenders: dict[str, Call] = {"brickwork": lambda: row_sum(x), "torch": lambda: x.sum(1)}
    return _like_torch(f"row sums of {ROWS}x{COLUMNS}", contenders, 4 * x.numel(), progress)


def _softmax(progress: Progress, _rate: float) -> Case:
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    compiled = torch.compile(lambda x: torch.softmax(x, 1), dynamic=False)
    contenders: dict[str, Call] = {
        "brickwork": lambda: softmax(x),
        "torch": lambda: torch.softmax(x, 1),
        "torch.compile": lambda: compiled(x),
    }
    peer = triton()
    if peer is not None:
        contenders["triton"] = peer.softmax(x)
    return _like_torch(f"softmax of {ROWS}x{COLUMNS}", contenders, 8 * x.numel(), progress)


def _layer_norm(progress: Progress, _rate: float) -> Case:
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    contenders: dict[str, Call] = {
        "brickwork": lambda: layer_norm(x),
        "torch": lambda: torch.nn.functional.layer_norm(x, (COLUMNS,)),
    }
    return _like_torch(f"layer norm of {ROWS}x{COLUMNS}", contenders, 8 * x.numel(), progress)


def _full_sum(progress: Progress, _rate: float) -> Case:
    x = torch.rand(SUMMED, device="cuda")
    contenders: dict[str, Call] = {"brickwork": lambda: full_sum(x), "torch": lambda: x.sum(0, keepdim=True)}
    return _like_torch("sum of 16M floats", contenders, 4 * x.numel(), progress)


def _long_rows(progress: Progress, _rate: float) -> Case:
    x = torch.rand(8, LONG, device="cuda")
    contenders: dict[str, Call] = {"brickwork": lambda: row_sum(x), "torch": lambda: x.sum(1)}
    return _like_torch(f"row sums of 8x{LONG}", contenders, 4 * x.numel(), progress)


def _column_sum(progress: Progress, _rate: float) -> Case:
    x = torch.rand(TALL, NARROW, device="cuda")
    contenders: dict[str, Call] = {"brickwork": lambda: column_sum(x), "torch": lambda: x.sum(0)}
    return _like_torch(f"column sums of {TALL}x{NARROW}", contenders, 4 * x.numel(), progress)


def _histogram(progress: Progress, _rate: float) -> Case:
    x = torch.randint(0, BINS, (SUMMED,), device="cuda", dtype=torch.int32)
    contenders: dict[str, Call] = {
        "brickwork": lambda: histogram(x, BINS),
        "torch": lambda: torch.bincount(x, minlength=BINS),
    }
    return _like_torch(f"histogram of 16M integers, {BINS} bins", contenders, 4 * x.numel(), progress)
