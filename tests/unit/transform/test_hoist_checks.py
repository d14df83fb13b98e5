"""Checks of a loop's indices are tested once, before it, and only where that test covers all of them."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import (
    Apply,
    Block,
    Check,
    Expression,
    Failure,
    FailureKind,
    For,
    If,
    Launch,
    Load,
    Read,
    Role,
    Select,
    Store,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.hoist_checks import hoist_checks
from brickwork.transform.sums import SMALL
from support.lowering import memory, program_of
from support.scheduling import scheduled
from support.written import extent, let, load, loop, op, symbol, whole


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


def sums(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        first = at[i]
        for c in range(len(out)):
            out[c] += x[first + c]


def strided(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        first = at[i]
        for c in range(len(out)):
            x[c * 2 + first] = x[first] + out[c]


def negated(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        first = at[i]
        for c in range(len(out)):
            out[c] += x[-c + first]


def mixed(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        first = at[i]
        for c in range(len(out)):
            out[c] += x[first + c] * x[at[c]]


def halved(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        n = at[i]
        for c in range(len(out)):
            out[c] += x[n // 2 + c]


def asserted(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at)):
        for c in range(len(out)):
            out[c] += x[at[i] - c]
            assert 1 <= c < len(x)


def checked(block: Block) -> int:
    """Return how many checks of indices stand in the loops over `c`."""
    loops = [node for node in walk(block) if isinstance(node, For) and node.index.name == "c"]
    return sum(
        isinstance(node, Check) and node.failure.kind is FailureKind.INDEX for loop in loops for node in walk(loop)
    )


def choices(function: Callable[..., object]) -> list[If]:
    """Return the choices between a loop over `c` whose checks were tested before it and the one as it was."""
    program = program_of(function, memory([0.0], FLOAT64), memory([0], INT64), memory([0.0], FLOAT64))
    kernel = next(node.kernel for node in walk(scheduled(program).body) if isinstance(node, Launch))
    found = [
        node
        for node in walk(kernel.body)
        if isinstance(node, If) and isinstance(node.then[0], For) and not node.version
    ]
    short = [node for node in found if (node.then[0].role, node.then[0].width) == (Role.VECTOR, 1)]
    return [node for node in found if node.then[0].index.name == "c" and node not in short]


FUNCTIONS = {
    window: [(0, 1)],
    turned: [(0, 1)],
    carried: [],
    gathered: [],
    sums: [(0, 1)],
    strided: [(0, 2)],
    negated: [(0, 1)],
    mixed: [(1, 2)],
    halved: [(0, 1)],
    asserted: [],
}
"""How many checks are left in each loop that is tested before, and how many are in the one it stands for."""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_checks_are_tested_before_loops(function: Callable[..., object]):
    assert [(checked(node.then), checked(node.otherwise)) for node in choices(function)] == FUNCTIONS[function]


def rows(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at) - 1):
        s = 0.0
        for c in range(at[i], at[i + 1]):
            s += x[c]
        out[i] = s


def taken(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor):
    for i in range(len(at) - 1):
        s = 0.0
        for c in range(at[i], at[i + 1]):
            s += x[at[c]]
        out[i] = s


@pytest.mark.parametrize(("function", "found"), [(rows, [0, 1]), (taken, [2])])
def test_grids_test_before_loops_that_check_nothing_else(function: Callable[..., object], found: list[int]):
    program = program_of(function, memory([0.0], FLOAT64), memory([0], INT64), memory([0.0], FLOAT64))
    (kernel,) = (node.kernel for node in walk(scheduled(program, cuda_target((9, 0)))) if isinstance(node, Launch))
    loops = [node for node in walk(kernel.body) if isinstance(node, For) and node.index.name == "c"]
    assert sorted({checked((loop,)) for loop in loops}) == found


def test_indices_that_are_tested_count_from_the_start():
    (choice,) = choices(strided)
    assert not any(isinstance(node, Select) for node in walk(choice.then))
    resolved = {type(node) for node in walk(choice.otherwise) if isinstance(node, Load | Store) and resolves(node)}
    assert resolved == {Load, Store}
    (choice,) = choices(mixed)
    assert sum(isinstance(node, Select) for node in walk(choice.then)) == 1


def resolves(node: Load | Store) -> bool:
    return any(isinstance(index, Select) for index in node.indices)


X, AT, N, C = Tensor("x", 0, TensorType(FLOAT64, 1)), Tensor("at", 1, TensorType(INT64, 1)), symbol("n"), symbol("c")
LENGTH = symbol("length")


@pytest.mark.parametrize(
    "index",
    [
        whole(C),
        whole(N),
        op("add", N, C),
        op("sub", N, C),
        op("mul", 3, C),
        op("mul", C, -3),
        op("add", op("neg", C), N),
        op("mod", C, N),
        op("add", op("floordiv", N, 2), C),
        op("add", op("mod", N, 2), C),
        op("add", op("mul", N, N), C),
        op("mul", op("mul", C, 2**13), 2),
    ],
)
def test_indices_whose_range_is_known(index: Expression):
    assert is_tested(index)


@pytest.mark.parametrize(
    "index",
    [
        op("add", load(AT, C), N),
        op("add", N, load(AT, C)),
        op("add", load(AT, N), C),
        op("add", op("floordiv", 8, N), C),
        op("add", op("mod", 8, N), C),
        op("add", op("floordiv", N, 0), C),
        load(AT, N),
        op("floordiv", 8, N),
        op("floordiv", C, N),
        op("mod", N, op("add", C, 1)),
        op("mod", C, load(AT, C)),
        op("mul", C, 2**62),
        op("mul", load(AT, C), 2),
        op("add", op("mul", C, 2**14), op("mul", C, 2**14)),
        op("minimum", N, C),
    ],
)
def test_indices_that_wrap_or_fail_or_depend_on_elements(index: Expression):
    assert not is_tested(index)


def test_ends_of_loops_are_small_where_they_are_multiplied():
    for start, stop, ends in ((N, LENGTH, {N, LENGTH}), (0, N, {N})):
        check = Check(condition=within(op("mul", C, 2)), failure=Failure(FailureKind.INDEX, ""))
        (found,) = hoist_checks((loop(C, start, stop, check),))
        assert isinstance(found, If)
        small = {
            node.operands[0].symbol
            for node in walk(found.condition)
            if isinstance(node, Apply)
            and isinstance(node.operands[0], Read)
            and node.operands[1] == build.integer(SMALL)
        }
        assert small == ends


@pytest.mark.parametrize(
    ("size", "after", "tested"),
    [
        (whole(LENGTH), (), True),
        (whole(LENGTH), (let(LENGTH, op("add", LENGTH, 1)),), False),
        (op("add", C, 9), (), False),
        (load(AT, N), (), False),
    ],
    ids=["a length", "a length that changes", "one for each iteration", "an element"],
)
def test_sizes_are_known_before_the_loop(size: Expression, after: Block, tested: bool):
    assert is_tested(whole(C), size, after) is tested


def within(index: Expression, size: Expression | None = None) -> Expression:
    size = size or extent(X)
    return op("logical_and", op("ge", index, op("neg", size)), op("lt", index, size))


def is_tested(index: Expression, size: Expression | None = None, after: Block = ()) -> bool:
    check = Check(condition=within(index, size), failure=Failure(FailureKind.INDEX, ""))
    (found,) = hoist_checks((loop(C, 0, N, check, *after),))
    return isinstance(found, If)


HUGE = 2**62
CASES = [(4,), (7, 6), (9, 2, 3), (6, 10), (HUGE,), (-HUGE,), (2**63 - 1,), (-(2**63),), (5, -3), (-1,), (8, 0, -2)]


@pytest.mark.parametrize("function", [window, turned, carried, gathered, sums, asserted])
def test_hoisted_checks_fail_where_each_check_would(function: Callable[..., object]):
    operator = bw.op(function)
    for places in CASES:
        x, at = torch.arange(10, dtype=torch.float64), torch.tensor(places)
        results: list[object] = []
        for call in (operator, operator.python):
            out = torch.zeros(3, dtype=torch.float64)
            try:
                call(x, at, out)
            except (IndexError, AssertionError) as error:
                results.append(type(error))
            else:
                results.append(out.tolist())
        assert results[0] == results[1], places
