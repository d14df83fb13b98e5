"""Which values are computed whether or not they are chosen: of integers and truth values, where nothing can fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.definitions import LARGEST
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, UINT64
from brickwork.ir.nodes import Apply, Assign, Cast, Expression, If, Load, Select, Symbol, TensorType
from brickwork.ir.nodes import Tensor as Elements
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import walk
from brickwork.transform.canonical.choices import is_cheap, is_simple, negated
from brickwork.transform.canonical.form import canonical
from support.lowering import memory, program_of
from support.scheduling import same

N, M = (build.read(Symbol(name, place, INT64)) for place, name in enumerate("nm"))
TEST, FLOAT, UNSIGNED = (
    build.read(Symbol("x", place, dtype)) for place, dtype in enumerate((BOOL, FLOAT64, UINT64), 2)
)
ROW = Elements("t", 1, TensorType(INT64, 1, contiguous=True, unit_axis=0))
TWO = build.integer(2)
Tensor = torch.Tensor


def applied(name: str, *operands: Expression) -> Apply:
    dtype = BOOL if name in {"lt", "eq"} else operands[0].dtype
    return Apply(operator=OPERATORS[name], operands=operands, dtype=dtype)


@pytest.mark.parametrize(
    "value",
    [
        applied("floordiv", N, TWO),
        applied("mod", N, TWO),
        applied("minimum", N, build.add(N, M)),
        applied("logical_and", TEST, applied("lt", N, M)),
        Cast(operand=TEST, dtype=INT64),
        Select(condition=TEST, then=N, otherwise=TWO),
        build.size(ROW, 0),
    ],
)
def test_integers_that_cannot_fail_are_simple(value: Expression) -> None:
    assert is_simple(value)


@pytest.mark.parametrize(
    "value",
    [
        *(
            applied(name, N, divisor)
            for name in ("floordiv", "mod")
            for divisor in (M, build.integer(0), build.integer(-2))
        ),
        applied("pow", N, TWO),
        applied("shift_right", N, TWO),
        applied("floordiv", UNSIGNED, build.constant(2, UINT64)),
        applied("add", FLOAT, FLOAT),
        applied("lt", FLOAT, FLOAT),
        Cast(operand=FLOAT, dtype=INT64),
        Cast(operand=N, dtype=FLOAT64),
        Select(condition=TEST, then=FLOAT, otherwise=FLOAT),
        build.constant(1.0, FLOAT64),
        Load(tensor=ROW, indices=(N,), access=0, dtype=INT64),
    ],
)
def test_what_may_fail_is_read_or_is_no_integer_is_not_simple(value: Expression) -> None:
    assert not is_simple(value)


def test_values_of_many_steps_are_not_cheap() -> None:
    value: Expression = N
    while len(steps(value)) < LARGEST - 1:
        value = build.add(value, M)
    assert is_cheap(value)
    assert not is_cheap(build.add(value, M))


def steps(value: Expression) -> list[Expression]:
    inner = [item for operand in value.operands for item in steps(operand)] if isinstance(value, Apply) else []
    return [value, *inner]


def a_flag_is_asked(x: Tensor, y: Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        if i == n:
            on = False
        else:
            on = True
        if on:
            y[i] = x[i]


def a_flag_is_asked_twice(x: Tensor, y: Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        on = i == n
        if on:
            y[i] = x[i]
        if on:
            y[0] = x[i]


def something_is_between(x: Tensor, y: Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        on = i == n
        n = 2
        if on:
            y[i] = x[i]


@pytest.mark.parametrize("function", [a_flag_is_asked, a_flag_is_asked_twice, something_is_between])
def test_what_one_branch_asks_stands_in_it(function: Callable[..., None]) -> None:
    given = memory([1.0, 2.0, 3.0]), memory([0.0, 0.0, 0.0]), 1
    program = canonical(program_of(function, *given))
    flags = [node for node in walk(program) if isinstance(node, Assign) and node.symbol.name == "on"]
    assert bool(flags) == (function is not a_flag_is_asked)
    same(function, *given)


def test_the_opposite_falls_into_parts() -> None:
    one, other = build.apply("lt", N, M), build.apply("eq", N, TWO)
    opposite = build.apply("logical_and", build.apply("ge", N, M), build.apply("ne", N, TWO))
    assert negated(build.apply("logical_or", one, other)) == opposite
    assert negated(build.apply("logical_not", TEST)) == TEST
    assert negated(applied("lt", FLOAT, FLOAT)) == build.apply("logical_not", applied("lt", FLOAT, FLOAT))


def greatest_of_some(x: Tensor, y: Tensor, n: int) -> None:
    best, at = -10.0, 0
    for i in range(x.shape[0]):
        if y[i] < n and x[i] > best:
            best, at = x[i], i
    y[at] = best


def greatest_of_fewer(x: Tensor, y: Tensor, n: int) -> None:
    best, at = -10.0, 0
    for i in range(x.shape[0]):
        if y[i] < n and x[i] > 0 and x[i] > best:
            best, at = x[i], i
    y[at] = best


def asked_once_more(x: Tensor, y: Tensor, n: int) -> None:
    found = False
    for i in range(x.shape[0]):
        found = y[i] < n and x[i] > 1.5
        if found:
            y[i] = 2.0
    if found:
        y[0] = 7.0


def otherwise_something(x: Tensor, y: Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        if y[i] < n and x[i] > 1.5:
            y[i] = 2.0
        else:
            y[i] = 3.0


def either(x: Tensor, y: Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        if y[i] > n or x[i] > 1.5:
            y[i] = 2.0


def other_flag(x: Tensor, y: Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        if y[i] < n:
            more = x[i] > 1.5
        else:
            more = x[i] < 1.5
        if more:
            y[i] = 2.0


def two_flags(x: Tensor, y: Tensor, n: int) -> None:
    less = False
    for i in range(x.shape[0]):
        if y[i] < n:
            more = x[i] > 1.5
        else:
            less = x[i] > 2.5
            more = False
        if less:
            y[i] = 2.0
        if more:
            y[i] = 3.0


@pytest.mark.parametrize(
    ("function", "nested"),
    [
        (greatest_of_some, True),
        (greatest_of_fewer, True),
        (asked_once_more, False),
        (otherwise_something, False),
        (either, False),
        (other_flag, False),
        (two_flags, False),
    ],
)
def test_a_branch_that_asks_for_two_conditions_is_two(function: Callable[..., None], *, nested: bool) -> None:
    for values in ([1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 2.0, -1.0]):
        given = memory(values), memory([0.5, 0.0, 2.0]), 1
        same(function, *given)
    program = canonical(program_of(function, *given))
    branches = [node for node in walk(program) if isinstance(node, If)]
    assert nested == any(isinstance(item, If) for branch in branches for item in branch.then)
    chosen = [node for node in walk(program) if isinstance(node, Assign) and node.symbol.name == "choice"]
    assert not (nested and chosen)
