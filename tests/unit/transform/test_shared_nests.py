"""Which loops the threads of a block share out as one range: perfect nests of what may run at the same time."""

# pyright: basic
from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import For, Launch, Load, Role, Symbol, Tensor, TensorType
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.schedule.grid import GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.planner import has_fixed_bounds
from support.shared import define, lower, schedule_program
from support.tensors import argument_type

GPU = cuda_target((9, 0))


def lowered(function, *arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    return lower(define(function), signature)


def ways(function, *arguments):
    """Return how loops run in the kernels of a function, as sets of pairs of a name and a role."""
    pieces, _ = schedule_program(lowered(function, *arguments), GPU)
    kernels = [node.kernel for node in walk(pieces) if isinstance(node, Launch)]
    return [{(node.index.name, node.role) for node in walk(each.body) if isinstance(node, For)} for each in kernels]


def planner_of(function, *arguments):
    """Return a planner for the only kernel of a function, and its loops by name."""
    kernel = next(node.kernel for node in walk(lowered(function, *arguments)) if isinstance(node, Launch))
    loops = {node.index.name: node for node in statements(kernel.body) if isinstance(node, For)}
    return GridPlanner(analyse(kernel), GPU, lengths_in(kernel.body)), loops


def nest(function, *arguments):
    planner, loops = planner_of(function, *arguments)
    return [node.index.name for node in planner.nest_to(loops["z"], loops["c"])]


def channels(x: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        s = 0.0
        for n in range(x.shape[0]):
            for y in range(x.shape[2]):
                for z in range(x.shape[3]):
                    s += x[n, c, y, z]
        for n in range(x.shape[0]):
            for y in range(x.shape[2]):
                for z in range(x.shape[3]):
                    out[n, c, y, z] = x[n, c, y, z] - s


def groups(x: torch.Tensor, out: torch.Tensor, g: int) -> None:
    width = x.shape[3] // g
    for n in range(x.shape[0]):
        for c in range(g):
            s = 0.0
            for y in range(x.shape[1]):
                for w in range(x.shape[2]):
                    for z in range(width):
                        s += x[n, y, w, c * width + z]
            for y in range(x.shape[1]):
                for w in range(x.shape[2]):
                    for z in range(width):
                        out[n, y, w, c * width + z] = x[n, y, w, c * width + z] - s


def test_a_size_that_the_host_computes_is_as_long_as_an_axis():
    x = torch.zeros(4, 8, 8, 12)
    shared = {("c", Role.BLOCK), *((name, Role.THREAD) for name in "ywz")}
    assert any(shared <= found for found in ways(groups, x, x.clone(), 3))
    assert not any(("z", Role.SEQUENTIAL) in found and ("c", Role.BLOCK) in found for found in ways(groups, x, x, 3))


def test_sums_and_stores_over_several_loops_are_for_all_threads():
    x = torch.zeros(4, 3, 8, 8)
    found = ways(channels, x, x.clone())
    shared = {("c", Role.BLOCK), *((name, Role.THREAD) for name in "nyz")}
    alone = {("c", Role.PARALLEL), *((name, Role.SEQUENTIAL) for name in "nyz")}
    assert shared in found
    assert alone in found


def turns(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        for n in range(x.shape[1]):
            for z in range(x.shape[2]):
                y[c, z] = y[c, z] * 0.5 + x[c, n, z]


def triangle(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        s = 0.0
        for n in range(x.shape[1]):
            for z in range(n + 1):
                s += x[c, n, z]
        y[c, 0] = s


def rest(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        s = 0.0
        for n in range(x.shape[1]):
            for z in range(n, x.shape[2]):
                s += x[c, n, z]
        y[c, 0] = s


def slanted(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        s = 0.0
        for n in range(x.shape[1]):
            for m in range(x.shape[2]):
                for z in range(n + 1):
                    s += x[c, m, z]
        y[c, 0] = s


def between(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        s = 0.0
        for n in range(x.shape[1]):
            y[c, n] = 1.0
            for z in range(x.shape[2]):
                s += x[c, n, z]
        y[c, 0] = s


def farthest(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        best = -math.inf
        for n in range(x.shape[1]):
            for z in range(x.shape[2]):
                if x[c, n, z] > best:
                    best = x[c, n, z]
        y[c, 0] = best


@pytest.mark.parametrize(
    ("function", "loops"),
    [
        (turns, ["z"]),
        (triangle, ["z"]),
        (rest, ["z"]),
        (slanted, ["m", "z"]),
        (between, ["z"]),
        (farthest, ["n", "z"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_loops_that_are_one_range(function, loops):
    assert nest(function, torch.zeros(4, 5, 6), torch.zeros(4, 6)) == loops


def changed(planner, loop, **verdict):
    analysis = planner.analysis
    loops = {**analysis.loops, loop.index: replace(analysis.loops[loop.index], **verdict)}
    return replace(planner, analysis=replace(analysis, loops=loops))


def test_all_levels_accumulate_the_same():
    planner, loops = planner_of(farthest, torch.zeros(4, 5, 6), torch.zeros(4, 6))
    assert len(planner.nest_to(loops["z"], loops["c"])) == 2
    others = changed(planner, loops["n"], reductions=())
    assert others.nest_to(loops["z"], loops["c"]) == [loops["z"]]


def test_a_search_for_a_place_is_shared_out_loop_by_loop():
    planner, loops = planner_of(farthest, torch.zeros(4, 5, 6), torch.zeros(4, 6))
    found = planner.analysis.loops[loops["n"].index].reductions
    along = tuple(replace(item, along=item.symbol) for item in found)
    search = changed(changed(planner, loops["n"], reductions=along), loops["z"], reductions=along)
    assert search.nest_to(loops["z"], loops["c"]) == [loops["z"]]


def idle(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        for z in range(x.shape[1]):
            pass
        for z in range(x.shape[1]):
            y[c, z] = x[c, z, 0]


def test_loops_may_have_nothing_in_them():
    assert ways(idle, torch.zeros(4, 5, 6), torch.zeros(4, 6))


def test_elements_and_draws_fix_no_bounds():
    ends = Tensor("ends", 1, TensorType(INT64, 1, contiguous=True, unit_axis=0))
    stop = Load(tensor=ends, indices=(build.integer(0),), access=1, dtype=INT64)
    loop = For(index=Symbol("z", 1, INT64), start=build.integer(0), stop=stop, body=())
    assert not has_fixed_bounds(loop, ())
    assert has_fixed_bounds(replace(loop, stop=build.size(ends, 0)), ())
