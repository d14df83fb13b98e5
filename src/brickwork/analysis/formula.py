"""Conditions over polynomials: comparisons with zero under and/or/not, and `UNKNOWN` where nothing is known.

Invariant: a formula describes a superset of the states in which the IR's condition holds, and is exact if it has no
`UNKNOWN`; negation of an inexact part is `UNKNOWN` again, never its complement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from brickwork.analysis.polynomial import Atom, Polynomial, number
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    """`polynomial >= 0`, or `polynomial == 0` if `equal`."""

    polynomial: Polynomial
    equal: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds; no parts: true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part holds; no parts: false."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition of which nothing is known: it may hold or not."""


Formula: TypeAlias = Comparison | AllOf | AnyOf | Unknown

TRUE = AllOf(())
FALSE = AnyOf(())
UNKNOWN = Unknown()


def both(*parts: Formula) -> Formula:
    """Return the conjunction, flattened."""
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, AllOf) else (part,))
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def either(*parts: Formula) -> Formula:
    """Return the disjunction, flattened."""
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, AnyOf) else (part,))
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def at_least(left: Polynomial, right: Polynomial) -> Formula:
    """Return `left >= right`."""
    difference = left - right
    if difference.is_constant:
        return TRUE if difference.constant >= 0 else FALSE
    return Comparison(difference)


def less(left: Polynomial, right: Polynomial) -> Formula:
    """Return `left < right`."""
    return at_least(right, left + number(1))


def equal(left: Polynomial, right: Polynomial) -> Formula:
    """Return `left == right`."""
    difference = left - right
    if difference.is_constant:
        return FALSE if difference.constant else TRUE
    return Comparison(difference, equal=True)


def negate(formula: Formula) -> Formula:
    """Return a formula that holds wherever `formula` may fail."""
    match formula:
        case Comparison(polynomial, same):
            below = at_least(number(-1), polynomial)
            return either(at_least(polynomial, number(1)), below) if same else below
        case AllOf(parts):
            return either(*(negate(part) for part in parts))
        case AnyOf(parts):
            return both(*(negate(part) for part in parts))
        case Unknown():
            return UNKNOWN


def side_of_choice(condition: Formula, difference: Polynomial) -> int:
    """Return 1 where a condition chooses the greater of two, of which this is the difference, -1 for the less, or 0."""
    for sign in (1, -1):
        if condition in {Comparison(difference.scale(sign)), Comparison(difference.scale(sign) - number(1))}:
            return sign
    return 0


def chosen(condition: Formula, value: Polynomial, then: Polynomial, otherwise: Polynomial) -> Formula:
    """Return that a value is `then` where a condition holds, else `otherwise`."""
    side = side_of_choice(condition, then - otherwise)
    # Bounds that hold in either case: isl need not choose to see what follows of those.
    bounds = [at_least((value - each).scale(side), number(0)) for each in (then, otherwise) if side]
    return both(*bounds, either(both(condition, equal(value, then)), both(negate(condition), equal(value, otherwise))))


def comparisons(formula: Formula) -> Iterator[Comparison]:
    """Yield every comparison in a formula."""
    match formula:
        case Comparison():
            yield formula
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from comparisons(part)
        case Unknown():
            pass


def is_exact(formula: Formula) -> bool:
    """Whether a formula has no unknown part."""
    match formula:
        case Comparison():
            return True
        case AllOf(parts) | AnyOf(parts):
            return all(is_exact(part) for part in parts)
        case Unknown():
            return False


def atoms_of(formulas: Iterable[Formula]) -> frozenset[Atom]:
    """Return all atoms that occur in the formulas."""
    return frozenset(atom for formula in formulas for item in comparisons(formula) for atom in item.polynomial.atoms())


def substitute(formula: Formula, values: Mapping[Atom, Polynomial]) -> Formula:
    """Return the formula with atoms replaced."""
    match formula:
        case Comparison(polynomial, same):
            return Comparison(polynomial.substitute(values), same)
        case AllOf(parts):
            return AllOf(tuple(substitute(part, values) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(substitute(part, values) for part in parts))
        case Unknown():
            return formula
