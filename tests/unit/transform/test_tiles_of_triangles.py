"""Tiles of a contraction without an element whose conditions hold are not computed; all others are."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest

from brickwork.ir import build
from brickwork.ir.build import apply
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Constant, Expression, For, Symbol
from brickwork.ir.walk import substitute
from brickwork.transform.schedule.contract_loops import _in_some_elements  # pyright: ignore[reportPrivateUsage]

I, J, OTHER = (Symbol(name, number, INT64) for number, name in enumerate(("i", "j", "other")))
AT = build.read(I), build.read(J)

CONDITIONS = {
    "lower": apply("lt", AT[1], build.add(AT[0], build.integer(1))),
    "upper": apply("ge", AT[1], AT[0]),
    "rising": apply("le", build.mul(AT[0], build.integer(2)), AT[1]),
    "greater": apply("gt", AT[0], build.add(AT[1], build.integer(3))),
    "one side": apply("lt", AT[0], build.integer(3)),
    "other side": apply("ge", build.integer(2), AT[1]),
}
STAYING = {
    "equal": apply("eq", AT[0], AT[1]),
    "back and forth": apply("lt", apply("mod", AT[0], build.integer(3)), AT[1]),
    "both in one": apply("lt", build.sub(AT[0], AT[1]), build.integer(2)),
    "of an element": apply("lt", build.read(OTHER), AT[1]),
}


OPERATORS: dict[str, Callable[[int, int], int]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "minimum": min,
    "maximum": max,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


def worth(expression: Expression) -> int:
    """Return what an expression of constants is worth."""
    match expression:
        case Constant(value=value):
            return int(value)
        case Apply(operator=applied, operands=(left, right)):
            return OPERATORS[applied.name](worth(left), worth(right))
        case _:
            raise TypeError(expression)


def holds(condition: Expression, row: int, column: int) -> bool:
    """Whether a condition holds at a place."""
    return bool(worth(substitute(condition, {I: build.integer(row), J: build.integer(column)})))


def tile(row: int, column: int) -> tuple[For, For]:
    """Return the loops of a tile of two rows and three columns."""
    loops = [(I, row, row + 2), (J, column, column + 3)]
    first, second = (For(index=n, start=build.integer(a), stop=build.integer(b), body=()) for n, a, b in loops)
    return first, second


@pytest.mark.parametrize("name", CONDITIONS)
def test_tiles_are_computed_that_have_an_element(name: str) -> None:
    for row in range(0, 9, 2):
        for column in range(0, 9, 3):
            (asked,) = _in_some_elements(iter([CONDITIONS[name]]), tile(row, column), frozenset({I, J, OTHER}))
            places = [(i, j) for i in range(row, row + 2) for j in range(column, column + 3)]
            assert bool(worth(asked)) == any(holds(CONDITIONS[name], *place) for place in places)


@pytest.mark.parametrize("name", STAYING)
def test_nothing_is_asked_of_a_tile_that_its_corners_do_not_say(name: str) -> None:
    assert not [*_in_some_elements(iter([STAYING[name]]), tile(0, 0), frozenset({I, J, OTHER}))]


def test_what_is_the_same_for_all_elements_may_be_read() -> None:
    condition = apply("lt", AT[1], build.add(AT[0], build.read(OTHER)))
    assert [*_in_some_elements(iter([condition]), tile(0, 0), frozenset({I, J}))]
