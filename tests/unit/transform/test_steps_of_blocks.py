"""Loops in order around parallel ones, in few independent iterations: a block of threads for each, and how many."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import Apply, Constant, For, If, Role, Size
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform.schedule.lengths import lengths_in, shortest_axis
from support.lowering import Nested, argument_type, memory
from support.scheduling import GPU, kernel_of, loops_of, same, way


def diagonals(p: torch.Tensor, ends: torch.Tensor) -> None:
    """A table of each sample, as large as elements say."""
    for b in range(p.shape[0]):
        for s in range(ends[b, 0] + 1):
            for t in range(ends[b, 1] + 1):
                v = 1.0
                if s > 0:
                    v += p[b, s - 1, t]
                if t > 0:
                    v = max(v, p[b, s, t - 1])
                p[b, s, t] = v


def channels(y: torch.Tensor, x: torch.Tensor) -> None:
    """Neighbouring samples are beside one another; neighbouring iterations of a step are not."""
    for c in range(x.shape[2]):
        for t in range(1, x.shape[0]):
            for s in range(x.shape[1]):
                y[t, s, c] = y[t - 1, x.shape[1] - 1 - s, c] + x[t, s, c]


def ends(*rows: tuple[int, int]) -> Memory:
    return memory([list(row) for row in rows], INT64)


def table(*sizes: int) -> Nested:
    if not sizes:
        return 0.0
    return [table(*sizes[1:]) for _ in range(sizes[0])]


@pytest.mark.parametrize(
    ("sizes", "last"), [((2, 4, 5), ((3, 4), (0, 2))), ((1, 1, 1), ((0, 0),)), ((2, 3, 40), ((2, 39), (1, 7)))]
)
def test_diagonals_as_long_as_elements_say_are_for_a_block_each(
    sizes: tuple[int, int, int], last: tuple[tuple[int, int], ...]
) -> None:
    p, at = memory(table(*sizes), FLOAT32), ends(*last)
    same(diagonals, p, at)
    types = tuple(map(argument_type, (p, at)))
    pieces = way(diagonals, Signature(types, device="cuda", narrow=True, aligned=True), GPU)
    blocks = [node for node in walk(pieces) if isinstance(node, For) and node.role is Role.BLOCK]
    assert any(isinstance(inner, For) and inner.role is Role.THREAD for node in blocks for inner in walk(node.body))


def test_samples_are_for_a_thread_each_where_these_read_neighbours_and_are_enough() -> None:
    y, x = memory(table(3, 4, 6), FLOAT32), memory(table(3, 4, 6), FLOAT32)
    same(channels, y, x)
    types = tuple(map(argument_type, (y, x)))
    pieces = way(channels, Signature(types, device="cuda", narrow=True, aligned=True), GPU)
    roles = {node.role for node in walk(pieces) if isinstance(node, For)}
    assert {Role.BLOCK, Role.THREAD, Role.PARALLEL} <= roles
    tests = (choice.condition for choice in walk(pieces) if isinstance(choice, If))
    asked = [node for test in tests for node in walk(test) if isinstance(node, Apply) and node.operator.name == "ge"]
    numbers = [node.operands[1].value for node in asked if isinstance(node.operands[1], Constant)]
    limits = [int(number) for number in numbers if number > 1000]
    assert limits
    assert all(limit < GPU.threads // 2 for limit in limits)


def test_a_loop_whose_end_is_out_of_reach_is_as_long_as_axes_say() -> None:
    kernel = kernel_of(diagonals, memory(table(2, 4, 5), FLOAT32), ends((3, 4), (0, 2)))
    (loop,) = [node for node in statements(kernel.body) if isinstance(node, For) and node.index.name == "t"]
    far = For(index=loop.index, start=build.integer(0), stop=build.integer(2**58), body=loop.body)
    assert lengths_in((far,)).most(far) is None
    near = For(index=loop.index, start=build.integer(0), stop=build.integer(7), body=loop.body)
    found = lengths_in((near,)).most(near)
    assert isinstance(found, Constant)
    assert found.value == 7
    shortest = shortest_axis(far)
    assert isinstance(shortest, Size)
    assert (shortest.tensor.name, shortest.axis) == ("p", 2)
    assert shortest_axis(loops_of(kernel)["b"]) is not None
