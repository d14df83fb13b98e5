"""Rows that data begin and end: short ones in order, long ones in lanes, with their checks tested before both."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import torch

import brickwork as bw
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Apply, Check, Constant, Expression, For, If, Launch, Size
from brickwork.ir.walk import walk
from support.lowering import memory, program_of
from support.scheduling import agree, scheduled


def rows(first: torch.Tensor, at: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Sum what each row refers to, in two tensors of one size."""
    z = torch.zeros_like(x)
    out = torch.zeros(len(first) - 1, dtype=torch.float64)
    for i in range(len(first) - 1):
        s = 0.0
        for e in range(first[i], first[i + 1]):
            s += x[at[e]] * z[at[e]]
        out[i] = s
    return out


def segments(first: torch.Tensor, x: torch.Tensor):
    """Sum what lies between two places."""
    out = torch.zeros(len(first) - 1, dtype=torch.float64)
    for i in range(len(first) - 1):
        s = 0.0
        for e in range(first[i], first[i + 1]):
            s += x[e]
        out[i] = s
    return out


FIRST = memory([0, 3, 3, 45], INT64)
AT = memory([(7 * e) % 5 - 1 for e in range(45)], INT64)
X = memory([float(i) for i in range(5)], FLOAT64)
LONG = memory([float(i) for i in range(45)], FLOAT64)


def loops(function: Callable[..., object], *arguments: object) -> list[tuple[Expression, For]]:
    """Return the loops over `e` with what is tested before them."""
    (kernel,) = [
        node.kernel for node in walk(scheduled(program_of(function, *arguments)).body) if isinstance(node, Launch)
    ]
    tests = [node for node in walk(kernel.body) if isinstance(node, If)]
    return [(node.condition, loop) for node in tests if isinstance(loop := node.then[0], For)]


def limits(function: Callable[..., object], *arguments: object) -> set[object]:
    """Return the lengths below which a loop over `e` runs in order."""
    (kernel,) = [
        node.kernel for node in walk(scheduled(program_of(function, *arguments)).body) if isinstance(node, Launch)
    ]
    tests = [node.condition for node in walk(kernel.body) if isinstance(node, If)]
    calls = [test for test in tests if isinstance(test, Apply) and test.operator.name == "lt"]
    return {item.value for test in calls for item in test.operands if isinstance(item, Constant)}


def test_rows_that_refer_elsewhere_are_in_lanes_where_they_are_long():
    agree(rows, FIRST, AT, X, X)
    agree(segments, FIRST, LONG)
    assert limits(rows, FIRST, AT, X, X) == {32}
    assert limits(segments, FIRST, LONG) == {8}


def test_few_iterations_need_two_comparisons_for_their_checks():
    short = [condition for condition, loop in loops(segments, FIRST, LONG) if loop.width == 1]
    (condition,) = short
    assert isinstance(condition, Apply)
    assert [item.operator.name for item in condition.operands if isinstance(item, Apply)] == ["ge", "lt"]


def test_sizes_that_are_equal_are_one():
    (loop,) = [loop for _, loop in loops(rows, FIRST, AT, X, X) if loop.width == 8]
    checks = [item.condition for item in walk(loop.body) if isinstance(item, Check)]
    sizes = {node for condition in checks for node in walk(condition) if isinstance(node, Size)}
    assert len(checks) == 2
    assert len(sizes) == 1


def cells(start: torch.Tensor, x: torch.Tensor, n: int):
    """Sum up what the cell of each element, and the one after it, hold."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        c = int(x[i]) * n
        for o in range(2):
            cell = c + o
            for j in range(start[cell], start[cell + 1]):
                out[i] += abs(x[i] - x[j])
    return out


def other_ends(start: torch.Tensor, x: torch.Tensor, n: int):
    """Sum up what two cells hold, that are not neighbours."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        c = int(x[i]) * n
        for j in range(start[c], start[c + 2]):
            out[i] += abs(x[i] - x[j])
    return out


def test_rows_that_elements_find_are_as_long_as_their_ends_say():
    x = torch.empty(4096, device="meta")

    def conditions(function: Callable[..., object], count: int) -> str:
        start = torch.empty(count, dtype=torch.int64, device="meta")
        return bw.op(function).explain(start, x, 1, device="sm_90")

    text = "x.shape[0] <= (start.shape[0] - 1) * 4"
    assert text in conditions(cells, 1025)
    assert "out.shape[0] <=" not in conditions(cells, 1025)
    assert "4096 blocks" not in conditions(cells, 1025)
    assert text not in conditions(other_ends, 1025)
