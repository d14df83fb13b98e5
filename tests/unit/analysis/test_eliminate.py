"""Formulas made fewer before isl is asked: the answers are isl's."""

from __future__ import annotations

import random

import islpy
import pytest

from brickwork.analysis.eliminate import left_over
from brickwork.analysis.formula import FALSE, UNKNOWN, AllOf, AnyOf, Comparison, Formula, at_least, both, either, less
from brickwork.analysis.isl import Solver
from brickwork.analysis.polynomial import Monomial, Polynomial, UnknownAtom, combine, number, of_atom, order_of

A, B, C, D, E, F = ATOMS = [UnknownAtom(place, 0) for place in range(6)]
a, b, c, d, e, f = map(of_atom, ATOMS)


def answer_of_isl(formulas: list[Formula]) -> bool | None:
    """Return what isl says of the formulas as they are."""
    solver = Solver()
    return solver._feasible(tuple(formulas))  # pyright: ignore[reportPrivateUsage]  # past what is tested


def random_comparison(source: random.Random) -> Comparison:
    terms: list[tuple[Monomial, int]] = [
        ((atom,), source.choice([-1, 1, 1, -1, 2, -3])) for atom in source.sample(ATOMS, source.randint(1, 3))
    ]
    if source.random() < 0.2:
        terms.append((tuple(sorted(source.sample(ATOMS, 2), key=order_of)), source.choice([1, -1])))
    return Comparison(combine([*terms, ((), source.randint(-4, 4))]), equal=source.random() < 0.25)


def random_formula(source: random.Random, depth: int = 2) -> Formula:
    kind = source.random()
    if depth == 0 or kind < 0.6:
        return random_comparison(source)
    if kind < 0.65:
        return UNKNOWN
    parts = tuple(random_formula(source, depth - 1) for _ in range(source.randint(0, 3)))
    return AllOf(parts) if kind < 0.8 else AnyOf(parts)


@pytest.mark.parametrize("seed", range(300))
def test_the_answers_are_those_of_isl(seed: int) -> None:
    source = random.Random(seed)
    formulas = [random_formula(source) for _ in range(source.randint(1, 9))]
    assert Solver().feasible(formulas) == answer_of_isl(formulas)


def inside(value: Polynomial, stop: Polynomial) -> Formula:
    return both(at_least(value, number(0)), less(value, stop))


def test_bounds_of_loops_are_decided_without_isl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(islpy, "Set")
    nest = [inside(a, d), inside(b, a), inside(c, e), at_least(d, number(0)), at_least(e, number(0))]
    assert Solver().feasible(nest) is True
    assert Solver().feasible([*nest, less(d, number(2))]) is False
    assert Solver().feasible([*nest, at_least(b, d)]) is False
    assert Solver().feasible([*nest, either(less(f, a), FALSE)]) is True
    assert Solver().feasible([*nest, FALSE]) is False


def test_what_is_left_falls_into_parts() -> None:
    twice = [Comparison(one.scale(2) - other.scale(3) + number(1), equal=True) for one, other in ((a, b), (c, d))]
    parts = left_over([*twice, inside(e, f)])
    assert parts is not None
    assert [*map(len, parts)] == [1, 1]


def test_parts_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Solver] = []
    may_ask = Solver._may_ask  # pyright: ignore[reportPrivateUsage]  # counted

    def counted(self: Solver) -> bool:
        asked.append(self)
        return may_ask(self)

    monkeypatch.setattr(Solver, "_may_ask", counted)
    solver, odd = Solver(), Comparison(a.scale(2) - b.scale(3) + number(1), equal=True)
    for limit in range(5):
        assert solver.feasible([odd, inside(e, f), at_least(f, number(limit))]) is True
    assert solver.feasible([Comparison(c.scale(2) - d.scale(3) + number(1), equal=True)]) is True
    assert len(asked) == 1
    assert solver.feasible([Comparison(c.scale(2) - d.scale(4) + number(1), equal=True)]) is False
    assert len(asked) == 2


def test_what_contradicts_itself_without_choices_is_seen_before_them() -> None:
    """Each of twelve is one of three others, and none may be more than what all of them have to exceed."""
    many = [UnknownAtom(place, 0) for place in range(20, 32)]
    total, limits, choices = number(0), list[Formula](), list[Formula]()
    for place, each in enumerate(map(of_atom, many)):
        total = total + each
        limits.append(at_least(a, each))
        choices.append(either(*(Comparison(each - other - number(place), equal=True) for other in (b, c, d))))
    assert Solver().feasible([*limits, *choices, less(a.scale(12), total)]) is False
    assert Solver().feasible([*limits, *choices[:2], less(a.scale(12), total + number(1))]) is True
