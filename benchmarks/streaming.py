"""Loops that memory limits, beside copying and beside torch's own kernels: a row for each, with bytes that it moves."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

import brickwork as bw
from benchmarks.lineup import compiled, paced
from benchmarks.targets import Target, reaching
from brickwork import bench
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much each loop gets."""

    count: int
    """Elements of a vector that is added."""
    few: int
    """Elements of a vector that is gathered, summed, counted."""
    rows: int
    columns: int
    side: int
    tall: int
    long: int


SIZES = {
    "cpu": Sizes(count=1 << 24, few=1 << 22, rows=1 << 12, columns=1024, side=2048, tall=1 << 16, long=1 << 19),
    "cuda": Sizes(count=1 << 26, few=1 << 24, rows=1 << 16, columns=1024, side=8192, tall=1 << 20, long=1 << 22),
}
SMALL = Sizes(count=64, few=64, rows=4, columns=8, side=8, tall=16, long=16)
NARROW = 64
BINS = 256
STREAMS = ("add", "saxpy")
"""Loops that are to reach 90 % of the bandwidth of copying; the others are to be as fast as torch's own kernels."""


@bw.op("brickwork_benchmarks::add")
def add(x: Tensor, y: Tensor) -> Tensor:
    """Return x + y."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


@bw.op("brickwork_benchmarks::saxpy")
def saxpy(a: float, x: Tensor, y: Tensor) -> Tensor:
    """Return a x + y."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = a * x[i] + y[i]
    return out


@bw.op("brickwork_benchmarks::transpose")
def transpose(x: Tensor) -> Tensor:
    """Return the transpose in memory of its own."""
    rows, columns = x.shape
    out = x.new_empty((columns, rows))
    for i in range(columns):
        for j in range(rows):
            out[i, j] = x[j, i]
    return out


@bw.op("brickwork_benchmarks::gather")
def gather(x: Tensor, index: Tensor) -> Tensor:
    """Return elements by index."""
    out = x.new_empty(index.shape[0])
    for i in range(index.shape[0]):
        out[i] = x[index[i]]
    return out


@bw.op("brickwork_benchmarks::row_sum")
def row_sum(x: Tensor) -> Tensor:
    """Return the sum of each row."""
    out = x.new_empty(x.shape[0])
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        out[i] = s
    return out


@bw.op("brickwork_benchmarks::softmax")
def softmax(x: Tensor) -> Tensor:
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
def full_sum(x: Tensor) -> Tensor:
    """Return the sum of all elements."""
    out = x.new_empty(1)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    out[0] = s
    return out


@bw.op("brickwork_benchmarks::layer_norm")
def layer_norm(x: Tensor) -> Tensor:
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
def column_sum(x: Tensor) -> Tensor:
    """Return the sum of each column."""
    out = x.new_empty(x.shape[1])
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        out[j] = s
    return out


@bw.op("brickwork_benchmarks::histogram")
def histogram(x: Tensor, bins: int) -> Tensor:
    """Return how often each number is there."""
    out = torch.zeros(bins, dtype=torch.int64, device=x.device)
    for i in range(x.shape[0]):
        out[x[i]] += 1
    return out


def tables(run: Run) -> Parts:
    """Return the one table."""
    return {"loops": lambda: loops(run)}


def loops(run: Run) -> bench.Table:
    """Measure each of the loops."""
    rows = _rows(run, run.pick(SIZES[run.device], SMALL))
    names = run.pick(tuple(rows), ("transpose", "histogram"))
    moved = {name: row.moved for name, row in rows.items()}

    def bytes_of_the_loop(name: str) -> int:
        return moved[name]

    table = bench.compare(
        lambda name: rows[name].contenders(),
        names,
        "GB/s",
        x_name="loop",
        title="loops that memory limits",
        moved=bytes_of_the_loop,
        baseline="torch",
        **paced(run),
    )
    if run.device == "cpu":
        return table
    copied = table.peaks.get("copy", 0.0)
    if copied:
        table = functools.reduce(
            lambda found, name: reaching(found, Target(moved[name] / (0.9 * copied)), at=(name,)), STREAMS, table
        )
    return reaching(table, Target(1, "torch"), at=tuple(name for name in rows if name not in STREAMS))


# ---------------------------------------------------------------- the rows


@dataclass(frozen=True, slots=True)
class Row:
    """What makes the contenders of one loop, and the bytes that it reads and writes."""

    contenders: Callable[[], Mapping[str, Call]]
    moved: int


def _rows(run: Run, sizes: Sizes) -> dict[str, Row]:
    matrix = sizes.rows * sizes.columns
    return {
        "add": Row(lambda: _add(run, sizes), 12 * sizes.count),
        "saxpy": Row(lambda: _saxpy(run, sizes), 12 * sizes.count),
        "transpose": Row(lambda: _transpose(run, sizes), 8 * sizes.side**2),
        "gather by random index": Row(lambda: _gather(run, sizes), 16 * sizes.few),
        "row sums": Row(lambda: _sums(run, (sizes.rows, sizes.columns), row_sum, 1), 4 * matrix),
        "softmax of rows": Row(lambda: _softmax(run, sizes), 8 * matrix),
        "layer norm of rows": Row(lambda: _layer_norm(run, sizes), 8 * matrix),
        "sum of a vector": Row(lambda: _full_sum(run, sizes), 4 * sizes.few),
        "sums of 8 long rows": Row(lambda: _sums(run, (8, sizes.long), row_sum, 1), 32 * sizes.long),
        "column sums": Row(lambda: _sums(run, (sizes.tall, NARROW), column_sum, 0), 4 * sizes.tall * NARROW),
        "histogram": Row(lambda: _histogram(run, sizes), 4 * sizes.few),
    }


def _with_compiled(
    run: Run, calls: dict[str, Call], function: Callable[..., object], *arguments: Tensor
) -> dict[str, Call]:
    """Return calls with that of a function under torch.compile, where the run has it."""
    fast = compiled(run, function)
    return calls if fast is None else {**calls, "torch.compile": functools.partial(fast, *arguments)}


def _add(run: Run, sizes: Sizes) -> dict[str, Call]:
    x, y = torch.randn(sizes.count, device=run.device), torch.randn(sizes.count, device=run.device)
    return {"brickwork": lambda: add(x, y), "torch": lambda: torch.add(x, y)}


def _saxpy(run: Run, sizes: Sizes) -> dict[str, Call]:
    x, y = torch.randn(sizes.count, device=run.device), torch.randn(sizes.count, device=run.device)
    return {"brickwork": lambda: saxpy(2.5, x, y), "torch": lambda: torch.add(y, x, alpha=2.5)}


def _transpose(run: Run, sizes: Sizes) -> dict[str, Call]:
    x = torch.randn(sizes.side, sizes.side, device=run.device)
    calls: dict[str, Call] = {"brickwork": lambda: transpose(x), "torch": x.T.contiguous}
    return _with_compiled(run, calls, lambda x: x.T.contiguous(), x)


def _gather(run: Run, sizes: Sizes) -> dict[str, Call]:
    x = torch.randn(sizes.few, device=run.device)
    index = torch.randint(0, sizes.few, (sizes.few,), device=run.device)
    calls: dict[str, Call] = {"brickwork": lambda: gather(x, index), "torch": lambda: torch.index_select(x, 0, index)}
    return _with_compiled(run, calls, lambda x, index: x[index], x, index)


def _sums(run: Run, shape: tuple[int, int], ours: Callable[[Tensor], Tensor], dimension: int) -> dict[str, Call]:
    x = torch.rand(shape, device=run.device)
    return {"brickwork": lambda: ours(x), "torch": lambda: x.sum(dimension)}


def _softmax(run: Run, sizes: Sizes) -> dict[str, Call]:
    x = torch.randn(sizes.rows, sizes.columns, device=run.device)
    calls: dict[str, Call] = {"brickwork": lambda: softmax(x), "torch": lambda: torch.softmax(x, 1)}
    return _with_compiled(run, calls, lambda x: torch.softmax(x, 1), x)


def _layer_norm(run: Run, sizes: Sizes) -> dict[str, Call]:
    x = torch.randn(sizes.rows, sizes.columns, device=run.device)
    shape = (sizes.columns,)
    return {"brickwork": lambda: layer_norm(x), "torch": lambda: torch.nn.functional.layer_norm(x, shape)}


def _full_sum(run: Run, sizes: Sizes) -> dict[str, Call]:
    x = torch.rand(sizes.few, device=run.device)
    return {"brickwork": lambda: full_sum(x), "torch": lambda: x.sum(0, keepdim=True)}


def _histogram(run: Run, sizes: Sizes) -> dict[str, Call]:
    x = torch.randint(0, BINS, (sizes.few,), device=run.device, dtype=torch.int32)
    return {"brickwork": lambda: histogram(x, BINS), "torch": lambda: torch.bincount(x, minlength=BINS)}
