"""Nests that run along memory in one loop for some tensors and in another for the rest, on processors."""

from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT8, INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, Launch, Node, Role
from brickwork.ir.walk import rewrite, walk
from brickwork.transform.explain import explain
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.schedule.schedule import Reorder, Schedule, Split, chunk_of
from brickwork.transform.schedule.text import Names
from brickwork.transform.verbs.apply import apply_schedule
from support.layouts import columns, last_axis_first, transpose, transpose_and_add
from support.lowering import memory, nested, program_of
from support.scheduling import AVX2, agree


def numbers(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).tolist()


def inside_by_two(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(1, x.shape[1] - 1):
        for j in range(2, x.shape[0]):
            out[i, j] = x[j, i] - x[j, i + 1]


def copy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + y[i, 0]
    return out


def first_column(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[j, 0]
    return out


def small(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[0], 8, x.shape[1]))
    for k in range(x.shape[0]):
        for i in range(8):
            for j in range(x.shape[1]):
                out[k, i, j] = x[k, j, i]
    return out


def checked(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[1], x.shape[0]))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            assert x[j, i] >= 0
            out[i, j] = x[j, i]
    return out


def from_places(x: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[1], row.shape[0]))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[row[j], i]
    return out


def triangle(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(i):
            out[i, j] = x[j, i]


def products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[1], y.shape[1]))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(x.shape[0]):
                s += x[k, i] * y[k, j]
            out[i, j] = s
    return out


def kernel_of(function, *arguments):
    (launch,) = [node for node in walk(program_of(function, *arguments)) if isinstance(node, Launch)]
    return launch.kernel


def tile_of(function, *arguments, target=AVX2):
    schedule = schedule_kernel(kernel_of(function, *arguments), target).schedule
    return next((item for item in schedule.verbs if isinstance(item, Reorder)), None)


@pytest.mark.parametrize("shape", [(4, 4), (40, 3), (3, 40), (1, 9), (5, 260), (33, 18)])
def test_transposes(shape):
    x = memory(numbers(*shape))
    assert agree(transpose, x) == torch.tensor(numbers(*shape)).T.tolist()
    agree(transpose_and_add, x, memory(torch.tensor(numbers(*shape)).T.contiguous().tolist()))


@pytest.mark.parametrize("shape", [(2, 4, 4), (3, 19, 6), (1, 1, 1), (2, 8, 33)])
def test_permutes_of_three_axes(shape):
    assert agree(last_axis_first, memory(numbers(*shape))) == torch.tensor(numbers(*shape)).permute(2, 0, 1).tolist()


def test_loops_that_begin_elsewhere_than_at_0():
    out = memory(torch.zeros(38, 37).tolist())
    agree(inside_by_two, memory(numbers(37, 38)), out)


def test_rows_come_from_data():
    x, row = memory(numbers(5, 34)), memory([4, 0, 2], INT64)
    assert agree(from_places, x, row) == torch.tensor(numbers(5, 34))[[4, 0, 2]].T.tolist()


def test_tiles_run_in_parallel_with_lanes_inside():
    kernel = kernel_of(last_axis_first, memory(numbers(2, 4, 4)))
    scheduled = schedule_kernel(kernel, AVX2)
    assert "split(i, 16, j)\nsplit(j, 256)\nreorder(k, j_chunk, i_chunk, j, i)" in str(scheduled.schedule)
    around = [node for node in walk(scheduled.kernel.body) if isinstance(node, For)]
    assert [(node.index.name, node.role, node.width) for node in around] == [
        ("k", Role.PARALLEL, 1),
        ("j_chunk", Role.PARALLEL, 1),
        ("i_chunk", Role.PARALLEL, 1),
        ("j", Role.SEQUENTIAL, 1),
        ("i", Role.VECTOR, 8),
    ]
    names = Names(scheduled.source)
    assert names.read(names.text(scheduled.schedule)) == scheduled.schedule
    told = explain(scheduled).text()
    assert "in parallel, in tiles of 256" in told
    assert "in parallel, in tiles of 16, vectorised by 8" in told


@pytest.mark.parametrize(("dtype", "breadth"), [(FLOAT64, 8), (FLOAT32, 16), (BFLOAT16, 32), (INT8, 64)])
def test_a_tile_is_as_broad_as_a_line_of_the_narrowest_element(dtype, breadth):
    schedule = schedule_kernel(kernel_of(transpose, memory(numbers(2, 2), dtype)), AVX2).schedule
    assert breadth in [item.size for item in schedule.verbs if isinstance(item, Split)]


@pytest.mark.parametrize(
    ("function", "more"),
    [
        (columns, (1,)),
        (copy, (memory(numbers(2, 2)),)),
        (first_column, ()),
        (triangle, (memory(numbers(2, 2)),)),
        (products, (memory(numbers(2, 2)),)),
    ],
)
def test_what_gains_nothing_is_not_cut(function, more):
    assert tile_of(function, memory(numbers(2, 2)), *more) is None


def test_loops_that_are_known_to_be_short_are_not_cut():
    assert tile_of(small, memory(numbers(2, 2, 8))) is None
    assert tile_of(last_axis_first, memory(numbers(2, 2, 8))) is not None


def test_nests_that_could_fail_keep_their_order():
    assert tile_of(checked, memory(numbers(2, 2))) is None
    agree(checked, memory(numbers(5, 6)))


@pytest.mark.parametrize(("length", "breadth"), [(1, 1), (1, 5), (2, 3), (3, 2), (4, 4), (6, 5), (6, 1)])
@pytest.mark.parametrize(("rows", "columns"), [(0, 7), (5, 0), (9, 20), (4, 13)])
def test_every_iteration_is_in_one_tile(rows, columns, length, breadth):
    x = memory(numbers(columns + 1, rows + 2))
    out = memory(numbers(rows + 2, columns + 1))
    program = program_of(inside_by_two, x, out)

    def visit(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        (outer,) = node.kernel.body
        (inner,) = outer.body
        loops = outer.index, inner.index
        order = Reorder((*map(chunk_of, loops), *loops))
        schedule = Schedule((Split(inner.index, breadth, outer.index), Split(outer.index, length), order))
        return Launch(
            kernel=replace(node.kernel, body=apply_schedule(node.kernel.body, schedule, analyse(node.kernel)))
        )

    results = []
    for each in (program, rewrite(program, visit)):
        given_out = memory(nested(out))
        run_program(each, (x, given_out), check=True)
        results.append(nested(given_out))
    assert results[0] == results[1]
