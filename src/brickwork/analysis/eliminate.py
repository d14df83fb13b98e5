"""Variable elimination, partly Fourier and Motzkin's, before isl is asked whether integers satisfy formulas.

    0 <= i < n,  n <= k,  0 <= k          ->          nothing: some integers satisfy them
    0 <= i < n,  n <= 0                   ->          none do

Each product of atoms is a variable of its own, as in `isl.py`. A variable of which only greater, or only smaller,
values are asked for goes with all that asks for it; one that stands in a single equation goes with that; one between
bounds goes where these are few: each lower bound is then compared with each upper one. What is left falls into parts
that share no variable. Invariant: integers satisfy what is left exactly where they can be completed to some that
satisfy the given formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from brickwork.analysis.formula import AllOf, AnyOf, Comparison, Formula, Unknown
from brickwork.analysis.polynomial import Monomial, Polynomial, place_of

_UPWARDS, _DOWNWARDS, _BOTH = 1, 2, 3


class Row(NamedTuple):
    """A comparison: the sum of multiples of numbered variables and a constant is at least 0, or 0 if `equal`."""

    terms: tuple[tuple[int, int], ...]
    constant: int
    equal: bool

    def factor(self, variable: int) -> int:
        """Return the factor of a variable."""
        return next((factor for other, factor in self.terms if other == variable), 0)


class Choice(NamedTuple):
    """A disjunction of conjunctions: all rows of at least one of the parts hold."""

    parts: tuple[tuple[Clause, ...], ...]


Clause: TypeAlias = Row | Choice


def left_over(formulas: Iterable[Formula]) -> tuple[tuple[Formula, ...], ...] | None:
    """Return what is left of formulas, in parts that share no variable; None where nothing satisfies them."""
    numbers: dict[Monomial, int] = {}
    clauses = [clause for formula in formulas for clause in _clauses(formula, numbers)]
    system = _System()
    if not system.add(clauses) or not system.eliminated():
        return None
    parts = [*_parts([*system.clauses.values()])]
    if not parts:
        return ()
    order = sorted(numbers, key=place_of)
    ranks = {numbers[monomial]: rank for rank, monomial in enumerate(order)}
    return tuple(tuple(_formula(clause, ranks, order) for clause in part) for part in parts)


class _System:
    """Clauses that all have to hold, and where each variable occurs; `pending` are variables to look at."""

    def __init__(self) -> None:
        """Begin without clauses."""
        self.clauses: dict[int, Clause] = {}
        self.known: set[Clause] = set()
        self.places: dict[int, dict[int, int]] = {}
        self.pending: dict[int, None] = {}
        self.count = 0

    def add(self, clauses: Iterable[Clause]) -> bool:
        """Take clauses in; return False where one cannot hold."""
        for clause in clauses:
            if isinstance(clause, Row):
                if not clause.terms:
                    if clause.constant < 0 or (clause.equal and clause.constant):
                        return False
                    continue
            elif not clause.parts:
                return False
            if clause not in self.known:
                self.known.add(clause)
                self.count += 1
                self.clauses[self.count] = clause
                for variable, way in _ways(clause):
                    places = self.places.setdefault(variable, {})
                    places[self.count] = places.get(self.count, 0) | way
                    self.pending[variable] = None
        return True

    def remove(self, place: int) -> Clause:
        """Take a clause out."""
        clause = self.clauses.pop(place)
        self.known.discard(clause)
        for variable, _ in _ways(clause):
            if self.places[variable].pop(place, None) is not None:
                self.pending[variable] = None
        return clause

    def eliminated(self) -> bool:
        """Take out the variables that can be; return False where the clauses cannot all hold."""
        while self.pending:
            variable, _ = self.pending.popitem()
            if not self.without(variable):
                return False
        return True

    def without(self, variable: int) -> bool:
        """Take a variable out if no more clauses come of that; return False where they cannot all hold."""
        places = [*self.places[variable]]
        ways = {*self.places[variable].values()}
        if len(ways) == 1 and _BOTH not in ways:
            return all(self.add(_granted((self.remove(place),), variable)) for place in places)
        found = [self.clauses[place] for place in places]
        rows = [item for item in found if isinstance(item, Row) and abs(item.factor(variable)) == 1]
        if len(rows) < len(found):
            return True
        if any(row.equal for row in rows):
            if len(rows) == 1:
                self.remove(places[0])
            return True
        lower = [row for row in rows if row.factor(variable) > 0]
        upper = [row for row in rows if row.factor(variable) < 0]
        if len(lower) * len(upper) > len(rows):
            return True
        for place in places:
            self.remove(place)
        return self.add([_sum(low, high) for low in lower for high in upper])


def _sum(one: Row, other: Row) -> Row:
    total = dict(one.terms)
    for variable, factor in other.terms:
        total[variable] = total.get(variable, 0) + factor
    return Row(tuple(sorted(item for item in total.items() if item[1])), one.constant + other.constant, equal=False)


def _ways(clause: Clause) -> Iterator[tuple[int, int]]:
    """Yield the variables of a clause, and whether greater or smaller values of them are asked for."""
    if isinstance(clause, Row):
        for variable, factor in clause.terms:
            yield variable, _BOTH if clause.equal else _UPWARDS if factor > 0 else _DOWNWARDS
    else:
        for part in clause.parts:
            for inner in part:
                yield from _ways(inner)


def _granted(clauses: Iterable[Clause], variable: int) -> tuple[Clause, ...]:
    """Return the clauses but for what a variable occurs in, which holds."""
    result: list[Clause] = []
    for clause in clauses:
        if isinstance(clause, Row):
            if not clause.factor(variable):
                result.append(clause)
            continue
        parts = tuple(_granted(part, variable) for part in clause.parts)
        if all(parts):
            result.append(Choice(parts))
    return tuple(result)


def _parts(clauses: Sequence[Clause]) -> Iterator[list[Clause]]:
    """Yield the clauses in parts that share no variable."""
    owners: dict[int, int] = {}

    def owner(variable: int) -> int:
        while (above := owners.setdefault(variable, variable)) != variable:
            variable = above
        return variable

    firsts: list[int] = []
    for clause in clauses:
        first, *others = [owner(variable) for variable, _ in _ways(clause)] or [-1]
        for other in others:
            owners[owner(other)] = owner(first)
        firsts.append(first)
    parts: dict[int, list[Clause]] = {}
    for clause, first in zip(clauses, firsts, strict=True):
        parts.setdefault(owner(first), []).append(clause)
    yield from parts.values()


# ---------------------------------------------------------------- formulas


def _clauses(formula: Formula, numbers: dict[Monomial, int]) -> tuple[Clause, ...]:
    """Return a formula as clauses that all have to hold; what is not known may hold."""
    match formula:
        case Comparison(polynomial=polynomial, equal=same):
            terms = ((numbers.setdefault(item, len(numbers)), factor) for item, factor in polynomial.terms if item)
            return (Row(tuple(sorted(terms)), polynomial.constant, same),)
        case AllOf(parts=parts):
            return tuple(clause for part in parts for clause in _clauses(part, numbers))
        case AnyOf(parts=parts):
            found = tuple(_clauses(part, numbers) for part in parts)
            return (Choice(found),) if all(found) else ()
        case Unknown():
            return ()


def _formula(clause: Clause, ranks: Mapping[int, int], order: Sequence[Monomial]) -> Formula:
    """Return a clause as a formula; `ranks` are the places of variables in the order of terms."""
    if isinstance(clause, Row):
        terms = [
            (order[rank], factor) for rank, factor in sorted((ranks[item], factor) for item, factor in clause.terms)
        ]
        return Comparison(Polynomial((*(((), clause.constant),) * bool(clause.constant), *terms)), clause.equal)
    return AnyOf(tuple(AllOf(tuple(_formula(inner, ranks, order) for inner in part)) for part in clause.parts))
