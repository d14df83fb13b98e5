"""Rows that elements begin and end: independent where the elements ascend, which is tested; else in order."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.interpret import run_kernel, run_program
from brickwork.ir.nodes import Ascending, Kernel, Launch, Size, TensorType
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform import derive
from brickwork.transform.derivation import Backward, Derived
from brickwork.transform.explain import explain
from brickwork.transform.warn import warnings_of
from support.lowering import argument_type, memory, nested
from support.scheduling import AVX2, GPU, same
from support.shared import define, lower, schedule_program

Function = Callable[..., object]


def softmax(p: torch.Tensor, x: torch.Tensor):
    """Divide each row of a sparse matrix by its sum."""
    out = torch.zeros_like(x)
    for i in range(len(p) - 1):
        for h in range(x.shape[1]):
            s = 0.0
            for e in range(p[i], p[i + 1]):
                s += x[e, h]
            for e in range(p[i], p[i + 1]):
                out[e, h] = x[e, h] / (s + i)
    return out


def in_place(p: torch.Tensor, x: torch.Tensor):
    """Change each row by what the rows before it left."""
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            x[e] = x[e] * 2 + i


def backwards(p: torch.Tensor, x: torch.Tensor):
    """Go through each row from the end."""
    for i in range(len(p) - 1):
        for u in range(p[i], p[i + 1]):
            e = p[i] + p[i + 1] - 1 - u
            x[e] = x[e] * 2 + i


def planes(p: torch.Tensor, x: torch.Tensor):
    """Rows of several matrices."""
    for b in range(p.shape[0]):
        for i in range(p.shape[1] - 1):
            for e in range(p[b, i], p[b, i + 1]):
                x[e] = x[e] * 2 + i + 10 * b


def every_second(p: torch.Tensor, x: torch.Tensor):
    """Leave every second row."""
    for i in range(len(p) // 2):
        for e in range(p[2 * i], p[2 * i + 1]):
            x[e] = x[e] * 2 + i


def two_rows(p: torch.Tensor, x: torch.Tensor):
    """Take two rows at a time, which overlap."""
    for i in range(len(p) - 2):
        for e in range(p[i], p[i + 2]):
            x[e] = x[e] * 2 + i


def one_row(p: torch.Tensor, x: torch.Tensor):
    """Take the same row each time."""
    for i in range(len(p) - 1):
        for e in range(p[0], p[1]):
            x[e] = x[e] * 2 + i


def diagonals(p: torch.Tensor, x: torch.Tensor):
    """Take a row in several iterations of both loops."""
    for i in range(len(p) // 2):
        for j in range(len(p) // 2):
            for e in range(p[i + j], p[i + j + 1]):
                x[e] = x[e] * 2 + i


def columns(p: torch.Tensor, x: torch.Tensor):
    """Rows of several matrices, those of each of them inside."""
    for i in range(p.shape[1] - 1):
        for b in range(p.shape[0]):
            for e in range(p[b, i], p[b, i + 1]):
                x[e] = x[e] * 2 + i + 10 * b


def from_the_start(p: torch.Tensor, x: torch.Tensor):
    """Take all rows before the one."""
    for i in range(len(p) - 1):
        for e in range(p[i + 1]):
            x[e] = x[e] * 2 + i


def to_the_end(p: torch.Tensor, x: torch.Tensor):
    """Take all rows from one on."""
    for i in range(len(p) - 1):
        for e in range(p[i], len(x)):
            x[e] = x[e] * 2 + i


def next_element(p: torch.Tensor, x: torch.Tensor):
    """Read what the next row begins with."""
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            if e + 1 < len(x):
                x[e] = x[e + 1] * 2 + i


def other_rows(p: torch.Tensor, q: torch.Tensor, x: torch.Tensor):
    """Read along other rows than are written."""
    for i in range(min(len(p), len(q)) - 1):
        s = 0.0
        for e in range(q[i], q[i + 1]):
            s += x[e]
        for e in range(p[i], p[i + 1]):
            x[e] = s


def rows_of_both(p: torch.Tensor, q: torch.Tensor, x: torch.Tensor):
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            x[e] = x[e] * 2
    for j in range(len(q) - 1):
        for e in range(q[j], q[j + 1]):
            x[e] = x[e] + 1


def other_ends(p: torch.Tensor, q: torch.Tensor, x: torch.Tensor):
    """Begin rows by one tensor, and end them by another."""
    for i in range(min(len(p), len(q)) - 1):
        for e in range(p[i], q[i + 1]):
            x[e] = x[e] * 2 + i


def cut_twice(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Store twice along rows, in loops that can be cut."""
    for i in range(len(p) - 1):
        for h in range(2):
            for e in range(p[i], p[i + 1]):
                y[p[i] + p[i + 1] - 1 - e, h] = x[e] + i
            for e in range(p[len(p) - 2 - i], p[len(p) - 1 - i]):
                y[e, h] = x[e] - i
                x[e] = x[e + 1 - len(x)] + i
            for e in range(p[i], p[i + 1]):
                y[e, h] += i


def moved_ends(p: torch.Tensor, x: torch.Tensor):
    """Change what rows end by."""
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            x[e] = x[e] * 2 + i
        p[i] = 0


def sums(p: torch.Tensor, x: torch.Tensor):
    """Add up rows."""
    out = torch.zeros(len(p) - 1, dtype=x.dtype)
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            out[i] += x[e]
    return out


def spread(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Add a number to each row."""
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            x[e] += y[i]


def emptied(p: torch.Tensor, q: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Move each row to elements that others say."""
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            y[q[e]] += x[e]
            x[e] = 0.0


def counted(p: torch.Tensor, q: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Add to each row, and to elements that others say."""
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            x[e] += 1.0
            y[q[e]] += 2.0


def carried(p: torch.Tensor, x: torch.Tensor):
    """Store what rows before it leave in a variable."""
    s = 1.0
    for i in range(len(p) - 1):
        for e in range(p[i], p[i + 1]):
            s = s * 0.5 + x[e]
            x[e] = s


def kernel_of(function: Function, *arguments: object) -> Kernel:
    program = lower(define(function), Signature(tuple(map(argument_type, arguments))))
    (kernel,) = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return kernel


def independent(function: Function, *arguments: object, ascends: str = "pq") -> str:
    """Return the outer loops that are independent where tensors of these names ascend."""
    kernel = kernel_of(function, *arguments)
    tensors = {tensor.name: tensor for tensor in kernel.tensors}
    known = [Ascending(tensors[name], (Size(tensor=tensors["x"], axis=0),)) for name in ascends if name in tensors]
    analysis = analyse(replace(kernel, ascending=tuple(known)))
    loops = {index.name: verdict.independent for index, verdict in analysis.loops.items()}
    return "".join(name for name in "ibj" if loops.get(name))


def kernels_of(function: Function, *arguments: object, target=AVX2) -> list[str]:
    """Return the kernels that a function is run as."""
    grid = {"device": "cuda", "narrow": True, "aligned": True} if target is GPU else {}
    program = lower(define(function), Signature(tuple(map(argument_type, arguments)), **grid))
    return [item.kernel.name for item in schedule_program(program, target)[1]]


ENDS = memory([0, 2, 2, 5, 6], INT64)
NO_ENDS = memory([0, 4, 1, 5, 6], INT64)
TABLE = memory([[0, 2, 2], [3, 4, 6]], INT64)
X = memory([float(i) for i in range(7)], FLOAT64)
MATRIX = memory([[float(i + 7 * h) for h in range(3)] for i in range(7)], FLOAT64)


CASES = [
    (softmax, (ENDS, MATRIX), "i"),
    (in_place, (ENDS, X), "i"),
    (backwards, (ENDS, X), "i"),
    (planes, (TABLE, X), "i"),
    (every_second, (ENDS, X), "i"),
    (two_rows, (ENDS, X), ""),
    (one_row, (ENDS, X), ""),
    (diagonals, (ENDS, X), "j"),
    (columns, (TABLE, X), ""),
    (from_the_start, (ENDS, X), ""),
    (to_the_end, (ENDS, X), ""),
    (next_element, (ENDS, X), ""),
    (other_rows, (ENDS, ENDS, X), ""),
    (other_ends, (ENDS, ENDS, X), ""),
]


@pytest.mark.parametrize(("function", "arguments", "loops"), CASES)
def test_loops_over_rows_are_independent_where_their_ends_ascend(function, arguments, loops) -> None:
    assert independent(function, *arguments) == loops
    assert independent(function, *arguments, ascends="") == ""


@pytest.mark.parametrize(("function", "arguments"), [case[:2] for case in CASES])
def test_loops_over_rows_are_the_same_however_they_are_run(function, arguments) -> None:
    same(function, *arguments)


@pytest.mark.parametrize(("ascends", "loops"), [("p", "i"), ("q", "j"), ("pq", "ij"), ("", "")])
def test_rows_of_a_tensor_are_apart_where_it_ascends_itself(ascends: str, loops: str) -> None:
    assert independent(rows_of_both, ENDS, ENDS, X, ascends=ascends) == loops


def test_what_ascends_is_asked_of_both_ends() -> None:
    assert independent(other_ends, ENDS, ENDS, X, ascends="p") == ""
    assert independent(other_rows, ENDS, ENDS, X, ascends="p") == ""


@pytest.mark.parametrize("function", [softmax, in_place, backwards])
@pytest.mark.parametrize(
    "ends",
    [
        [0, 2, 2, 5, 6],
        [0, 4, 1, 5, 6],
        [2, 4, 4, 6, 7],
        [-7, -4, -4, -2, 0],
        [5, 3, 2, 1, 0],
        [0, 0, 7, 7, 7],
        [3],
        [0, 7],
    ],
)
def test_rows_are_the_same_whether_their_ends_ascend_or_not(function, ends) -> None:
    same(function, memory(ends, INT64), MATRIX if function is softmax else X)


@pytest.mark.parametrize(
    ("ends", "answer"), [([0, 2, 7], 0), ([0, 2, 8], 1), ([3, 2, 7], 1), ([-1, 2, 7], 1), ([], 0), ([8], 1)]
)
def test_elements_that_do_not_ascend_or_end_too_late_are_found(ends, answer) -> None:
    program = lower(define(in_place), Signature((argument_type(ENDS), argument_type(X))))
    test = schedule_program(program, AVX2)[1][0].kernel
    given = {"p": memory(ends, INT64), "x": X, "in_place_broken": memory([5], INT64)}
    run_kernel(test, [given[tensor.name] for tensor in test.tensors])
    assert given["in_place_broken"].data == [answer]


@pytest.mark.parametrize("target", [AVX2, GPU])
@pytest.mark.parametrize("ends", [[0, 2, 2, 5, 6], [0, 4, 1, 5, 6], [2, 5, 7]])
def test_gradients_of_rows_are_the_same_whether_their_ends_ascend_or_not(ends, target) -> None:
    grid = {"device": "cuda", "narrow": True, "aligned": True} if target is GPU else {}
    given = (ends, nested(MATRIX), [[float(i % 3 + h) for h in range(3)] for i in range(7)])
    memories = [memory(each, INT64 if each is ends else FLOAT64) for each in given]
    made = Derived(define(softmax), Backward((False, True)), (True,), (0, 1), (True, True))
    program = derive.program_of(made, Signature(tuple(map(argument_type, memories)), **grid))
    ways, kernels = schedule_program(program, target)
    assert [item.kernel.name for item in kernels] == ["softmax_rows", "softmax", "softmax_in_order"]
    results = [[nested(item) for item in run_program(each, memories, check=each is ways)] for each in (program, ways)]
    assert results[0] == results[1]


def test_parts_of_loops_are_cut_again() -> None:
    same(cut_twice, ENDS, X, MATRIX)


def test_rows_beyond_the_end_fail_as_they_would() -> None:
    for ends in ([0, 2, 8], [0, 8, 3], [-9, 0, 2]):
        same(in_place, memory(ends, INT64), X)


def test_rows_of_matrices_are_tested_apart() -> None:
    assert kernels_of(planes, TABLE, X) == ["planes_rows", "planes", "planes_in_order"]
    for table in ([[3, 4, 6], [0, 2, 2]], [[0, 2, 2], [3, 6, 4]], [[0, 2], [1, 3]]):
        same(planes, memory(table, INT64), X)


@pytest.mark.parametrize("target", [AVX2, GPU])
def test_only_kernels_with_more_that_is_independent_are_taken_apart(target) -> None:
    assert kernels_of(softmax, ENDS, MATRIX, target=target) == ["softmax_rows", "softmax", "softmax_in_order"]
    assert kernels_of(moved_ends, ENDS, X, target=target) == ["moved_ends"]
    assert kernels_of(sums, ENDS, X, target=target) == ["sums"]


@pytest.mark.parametrize("launch", [0, GPU.launch_ns])
@pytest.mark.parametrize("ends", [[0, 2, 2, 5, 6], [0, 4, 1, 5, 6], [2, 5, 5, 5, 7]])
def test_updates_of_many_elements_are_single_steps_only_where_rows_may_meet(ends, launch) -> None:
    target = replace(GPU, launch_ns=launch)
    numbers = [3.0, 5.0, 7.0, 11.0]
    results = []
    for way in (AVX2, target):
        grid = {"device": "cuda", "narrow": True, "aligned": True} if way.grid else {}
        given = [memory(ends, INT64), memory(nested(X), FLOAT64), memory(numbers, FLOAT64)]
        program = lower(define(spread), Signature(tuple(map(argument_type, given)), **grid))
        pieces, kernels = schedule_program(program, way)
        few = ["spread_few"] * (way.grid)
        assert [item.kernel.name for item in kernels] == ["spread_rows", "spread", "spread_in_order", *few]
        run_program(pieces, given, check=True)
        results.append(nested(given[1]))
    assert results[0] == results[1]


@pytest.mark.parametrize("ends", [[0, 2, 2, 5, 6], [0, 4, 1, 5, 6]])
def test_rows_are_tested_where_updates_in_one_step_are_then_all_that_meets(ends) -> None:
    places = memory([2, 0, 1, 1, 2, 0, 1], INT64)
    given = (memory(ends, INT64), places, X, memory([0.0] * 3, FLOAT64))
    names = ["emptied_rows", "emptied", "emptied_in_order"]
    assert kernels_of(emptied, *given, target=GPU) == names
    same(emptied, *given)
    assert kernels_of(counted, *given, target=GPU) == ["counted"]
    assert kernels_of(carried, given[0], X, target=GPU) == ["carried"]


def test_what_is_tested_is_said_and_the_other_kernel_is_not_warned_of() -> None:
    types = (TensorType(INT64, 1, contiguous=True, unit_axis=0), TensorType(FLOAT64, 2, contiguous=True, unit_axis=1))
    program = lower(define(softmax), Signature(types, device="cuda", narrow=True, aligned=True))
    _, (_, rows, order) = schedule_program(program, GPU)
    assert "  where 'p' ascends from 0 on to no more than x.shape[0], out.shape[0]" in explain(rows).text()
    assert "  where that does not hold" in explain(order).text()


def test_nobody_is_warned_of_the_kernel_for_other_elements() -> None:
    types = (TensorType(INT64, 1, contiguous=True, unit_axis=0), TensorType(FLOAT64, 1, contiguous=True, unit_axis=0))
    program = lower(define(in_place), Signature(types, device="cuda", narrow=True, aligned=True))
    _, (_, _, order) = schedule_program(program, GPU)
    assert not [*warnings_of(order)]
    assert [*warnings_of(replace(order, remark=""))]
