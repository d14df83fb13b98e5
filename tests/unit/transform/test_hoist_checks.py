"""Checks of a loop's indices are tested once, before it, and only where that test covers all of them."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Block, Check, FailureKind, For, If, Launch, Role
from brickwork.ir.walk import walk
from support.lowering import memory, program_of
from support.scheduling import scheduled


def window(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        first = at[i]
        for c in range(len(out)):
            out[c] = max(out[c], x[first - 2 * c])


def turned(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        n = at[i]
        if n != 0:
            for c in range(len(out)):
                place = (c + 3) % n
                out[c] += x[place + 1]


def carried(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        j = at[i]
        for c in range(len(out)):
            out[c] += x[j]
            j = c + 1


def gathered(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        for c in range(len(out)):
            out[c] += x[at[c] + i]


def checked(block: Block) -> int:
    """Return how many checks of indices stand in the loops over `c`."""
    loops = [node for node in walk(block) if isinstance(node, For) and node.index.name == "c"]
    return sum(
        isinstance(node, Check) and node.failure.kind is FailureKind.INDEX for loop in loops for node in walk(loop)
    )


def choices(function: Callable[..., object]) -> list[tuple[int, int]]:
    """Return how many checks are left in each loop that is tested before, and how many in the one it stands for."""
    program = program_of(function, memory([0.0], FLOAT64), memory([0], INT64), memory([0.0], FLOAT64))
    kernel = next(node.kernel for node in walk(scheduled(program).body) if isinstance(node, Launch))
    found = [node for node in walk(kernel.body) if isinstance(node, If) and isinstance(node.then[0], For)]
    short = [node for node in found if (node.then[0].role, node.then[0].width) == (Role.VECTOR, 1)]
    tested = [node for node in found if node.then[0].index.name == "c" and node not in short]
    return [(checked(node.then), checked(node.otherwise)) for node in tested]


@pytest.mark.parametrize(
    ("function", "expected"), [(window, [(0, 1)]), (turned, [(0, 1)]), (carried, []), (gathered, [])]
)
def test_checks_are_tested_before_loops(function: Callable[..., object], expected: list[tuple[int, int]]):
    assert choices(function) == expected


HUGE = 2**62
CASES = [(4,), (7, 6), (9, 2, 3), (6, 10), (HUGE,), (-HUGE,), (2**63 - 1,), (-(2**63),), (5, -3), (-1,), (8, 0, -2)]


@pytest.mark.parametrize("function", [window, turned, carried, gathered])
def test_hoisted_checks_fail_where_each_check_would(function: Callable[..., object]):
    operator = bw.op(function)
    for places in CASES:
        x, at = torch.arange(10, dtype=torch.float64), torch.tensor(places)
        results: list[object] = []
        for call in (operator, operator.python):
            out = torch.zeros(3, dtype=torch.float64)
            try:
                call(x, at, out)
            except IndexError:
                results.append("IndexError")
            else:
                results.append(out.tolist())
        assert results[0] == results[1], places
