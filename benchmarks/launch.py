"""What a call costs the host: sums of k short vectors, by the number of tensors, and single calls beside torch's.

There are so few floats that the work takes no time. On a GPU the device's time of a call in a graph stands apart.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

import brickwork as bw
from benchmarks.lineup import lineup, paced
from benchmarks.peers import torch_formulations
from benchmarks.peers.written import names, written
from benchmarks.targets import Target, reaching
from brickwork import bench, ops
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call

FLOATS = {"cpu": 16, "cuda": 1024}
COUNTS = (1, 2, 4, 8, 16)
MANY = 14
"""The number of tensors that a target is for."""


@bw.op("brickwork_benchmarks::square")
def square(x: Tensor) -> Tensor:
    """Return x * x; x: (n,)."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i]
    return out


@functools.cache
def sum_of(count: int) -> bw.Op:
    """Return the operator that adds `count` vectors, as one would write it for them."""
    given = names(count)
    parameters = ", ".join(f"{name}: torch.Tensor" for name in given)
    text = f'''
import torch


def sum_of_{count}({parameters}) -> torch.Tensor:
    """Return the sum of vectors of one length."""
    out = torch.empty_like({given[0]})
    for i in range({given[0]}.shape[0]):
        out[i] = {" + ".join(f"{name}[i]" for name in given)}
    return out
'''
    return bw.op(f"brickwork_benchmarks::sum_of_{count}")(written(f"sum_of_{count}", text))


@torch.library.custom_op("brickwork_benchmarks_peers::sum_in_python", mutates_args=())
def sum_in_python(tensors: list[Tensor]) -> Tensor:
    """Add vectors in an operator that is made of Python, as `torch.library` makes them."""
    return torch_formulations.sum_of(tensors)


def tables(run: Run) -> Parts:
    """Return the host's time by the number of tensors and of single calls, and on a GPU the device's in a graph."""
    parts: Parts = {"tensors": lambda: tensors(run), "calls": lambda: calls(run)}
    return {**parts, "graph": lambda: graph(run)} if run.device == "cuda" else parts


def tensors(run: Run) -> bench.Table:
    """Measure the host's time of a call over the number of its tensors."""

    def contenders(count: int) -> dict[str, Call]:
        vectors = _vectors(run, count)
        named = sum_of(count)
        packed = getattr(torch.ops.brickwork_benchmarks, f"sum_of_{count}")
        ours: dict[str, Call] = {"brickwork": lambda: named(*vectors), "brickwork, torch.ops": lambda: packed(*vectors)}
        found = lineup(run, "launch", vectors, ours=ours)
        return {**found, "torch.library.custom_op": lambda: sum_in_python(vectors)}

    return bench.compare(
        contenders,
        run.pick(COUNTS, (2,)),
        "host us",
        x_name="tensors",
        title=f"a call that adds vectors of {FLOATS[run.device]} floats",
        y_log=True,
        **paced(run, roofline=False),
    )


def calls(run: Run) -> bench.Table:
    """Measure the host's time of single calls beside one call of torch's."""
    (x,), many = _vectors(run, 1), _vectors(run, MANY)
    total = sum_of(MANY)
    rows: dict[str, dict[str, Call]] = {
        "square": {"brickwork": lambda: square(x), "torch": lambda: torch.square(x)},
        f"sum of {MANY}, beside square": {"brickwork": lambda: total(*many), "torch": lambda: torch.square(x)},
        "sin": {"brickwork": lambda: ops.sin(x), "torch": lambda: torch.sin(x)},
    }
    table = bench.compare(
        rows.__getitem__,
        tuple(rows),
        "host us",
        x_name="call",
        title=f"a call with {FLOATS[run.device]} floats",
        **paced(run, roofline=False, check=False),
    )
    if run.device == "cuda":
        return reaching(table, Target(1, "torch"), at=("sin",))
    square_alone, sum_of_many, _ = rows
    return reaching(reaching(table, Target(1.6, "torch"), at=(square_alone,)), Target(3.2, "torch"), at=(sum_of_many,))


def graph(run: Run) -> bench.Table:
    """Measure the device's time of a call that is replayed from a graph with nineteen like it."""
    (x,) = _vectors(run, 1)
    return bench.compare(
        {"brickwork": ops.sin, "torch": torch.sin},
        {x.numel(): x},
        "us",
        x_name="N",
        title="sin of N floats in a replayed graph",
        moved="8 * N",
        **paced(run, graph=True, cache="warm", roofline=False),
    )


def _vectors(run: Run, count: int) -> list[Tensor]:
    return [torch.randn(FLOATS[run.device], device=run.device) for _ in range(count)]
