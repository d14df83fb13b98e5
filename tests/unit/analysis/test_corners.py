"""What takes the place of a goal with quotients is at least 0 only where the goal is."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from brickwork.analysis.corners import lower_corner, without_floors, without_index_floors
from brickwork.analysis.formula import Comparison
from brickwork.analysis.polyhedral_model import Choice, Floor, Loop, Model
from brickwork.analysis.polynomial import (
    Atom,
    IndexAtom,
    Polynomial,
    ScalarAtom,
    SizeAtom,
    UnknownAtom,
    number,
    of_atom,
)
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Symbol, Tensor, TensorType
from support.written import loop

I = IndexAtom(Symbol("i", 0, INT64), 0, 1)
S = ScalarAtom(Symbol("s", 1, INT64))
ATOMS = I, S
J = IndexAtom(Symbol("j", 2, INT64), 1, 2)
SIZE = SizeAtom(Tensor("x", 0, TensorType(FLOAT32, 1)), 0)
ONE, OTHER = UnknownAtom(0, 1), UnknownAtom(1, 1)
INDEX, SCALAR = of_atom(I), of_atom(S)


def quotient(dividend: Polynomial, divisor: Polynomial | int) -> Floor:
    return Floor(dividend, divisor if isinstance(divisor, Polynomial) else number(divisor), remainder=False)


def remainder(dividend: Polynomial, divisor: int) -> Floor:
    return Floor(dividend, number(divisor), remainder=True)


def worth(polynomial: Polynomial, values: dict[Atom, int]) -> int:
    total = 0
    for monomial, factor in polynomial.terms:
        for atom in monomial:
            factor *= values[atom]
        total += factor
    return total


def model_of(origins: Mapping[Any, Any]) -> Model:
    return Model((), (), {}, {}, {}, {}, {}, frozenset(), (), frozenset(), origins=origins)


def holds(change: Any, origins: Mapping[Any, Any], goal: Polynomial) -> bool:
    """Whether a goal is changed; what it is changed to is at least 0 only where it is."""
    changed = change(model_of(origins), goal)
    for numbers in itertools.product(range(-7, 8), repeat=len(ATOMS)):
        values: dict[Atom, int] = dict(zip(ATOMS, numbers, strict=True))
        for atom, origin in origins.items():
            if isinstance(origin, Choice):
                values[atom] = worth(origin.then if values[I] >= 0 else origin.otherwise, values)
            elif (divisor := worth(origin.divisor, values)) == 0:
                break
            else:
                found = divmod(worth(origin.dividend, values), divisor)
                values[atom] = found[origin.remainder]
        else:
            assert worth(changed, values) < 0 or worth(goal, values) >= 0, values
    return changed != goal


DIVIDENDS = INDEX * INDEX, INDEX * INDEX + SCALAR, INDEX * SCALAR + number(2)
DIVISORS = 1, 2, 3, 0, -2, SCALAR, SCALAR + number(2), number(3) - SCALAR
"""Those of several terms may be negative, whatever their constants."""


@pytest.mark.parametrize("change", [without_index_floors, without_floors])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_by_positive_numbers_go(change: Any, divisor: Polynomial | int) -> None:
    positive = isinstance(divisor, int) and divisor > 0
    for dividend, factor, rest in itertools.product(DIVIDENDS, (1, -1, 2), (INDEX, SCALAR * INDEX + number(3))):
        goes = positive and (abs(factor) == 1 or change is without_floors)
        assert holds(change, {ONE: quotient(dividend, divisor)}, of_atom(ONE).scale(factor) + rest) is goes


@pytest.mark.parametrize("change", [without_index_floors, without_floors])
def test_what_is_no_quotient_or_is_multiplied_stays(change: Any) -> None:
    square, one = INDEX * INDEX, of_atom(ONE)
    assert not holds(change, {ONE: remainder(square, 3)}, one + INDEX)
    assert not holds(change, {ONE: Choice(Comparison(INDEX), square, SCALAR)}, one - INDEX)
    for goal in (one * one - INDEX, one * SCALAR + INDEX):
        assert not holds(change, {ONE: quotient(square, 2)}, goal)
    assert not holds(change, {}, INDEX - SCALAR)


@pytest.mark.parametrize("signs", list(itertools.product((1, -1), repeat=2)))
def test_several_quotients_go_together(signs: tuple[int, int]) -> None:
    square, ends = INDEX * INDEX, [of_atom(atom).scale(sign) for atom, sign in zip((ONE, OTHER), signs, strict=True)]
    goal = ends[0] + ends[1] + SCALAR
    same = {ONE: quotient(square + SCALAR, 3), OTHER: quotient(square, 3)}
    assert holds(without_index_floors, same, goal)
    assert holds(without_floors, same, goal)
    assert not holds(without_index_floors, {**same, OTHER: quotient(square, 2)}, goal)
    assert not holds(without_index_floors, same, ends[0] + ends[1].scale(2))
    assert not holds(without_index_floors, same, ends[0] + ends[1] * SCALAR)
    # One of an affine dividend, which isl knows of, goes only with others.
    assert holds(without_index_floors, {**same, OTHER: quotient(INDEX, 3)}, goal)
    assert not holds(without_index_floors, {ONE: quotient(SCALAR, 3), OTHER: quotient(INDEX, 3)}, goal)
    assert holds(without_index_floors, {**same, OTHER: remainder(square, 2)}, goal)


def test_a_square_is_least_at_an_end_if_it_never_turns() -> None:
    size, inner = of_atom(SIZE), of_atom(J)
    loops = (
        Loop(loop(I.symbol, 0, 1), I, size - number(1), size.scale(2), 0, leaves=False),
        Loop(loop(J.symbol, 0, 1), J, number(0), size, 1, leaves=False),
    )
    corners = [
        lower_corner(model_of({}), loops, goal)
        for goal in (inner * (INDEX.scale(2) - inner), (inner * inner).scale(-1), inner * (INDEX - inner))
    ]
    last = size - number(1)
    assert corners == [number(0), (last * last).scale(-1), None]


@pytest.mark.parametrize(
    ("stop", "start", "inner", "goal", "least"),
    [
        # for i in range(s), for j in range(s - i - 1): i is at most s - 2.
        (SCALAR, number(0), (number(0), SCALAR - INDEX - number(1)), SCALAR - INDEX, number(2)),
        # for i in range(s), for j in range(i - 3): i is at least 4.
        (SCALAR, number(0), (number(0), INDEX - number(3)), INDEX, number(4)),
        (SCALAR, number(0), (number(5), INDEX), INDEX, number(6)),
        # What is known already stays, and so does what is twice an index, or the inner loop's own.
        (SCALAR, number(0), (number(0), SCALAR - INDEX + number(2)), SCALAR - INDEX, number(1)),
        (SCALAR, number(7), (number(0), INDEX), INDEX, number(7)),
        (SCALAR, number(0), (number(0), INDEX + INDEX - number(3)), INDEX, number(0)),
    ],
)
def test_loops_inside_have_iterations(
    stop: Polynomial, start: Polynomial, inner: tuple[Polynomial, Polynomial], goal: Polynomial, least: Polynomial
) -> None:
    outer = Loop(loop(I.symbol, 0, 4), I, start, stop, 0, leaves=False)
    loops = [outer, Loop(loop(J.symbol, 0, 4), J, *inner, 1, leaves=False)]
    assert lower_corner(model_of({}), loops, goal) == least
