"""Lower bounds of polynomials over all iterations of loops: what they are at a corner of the iteration space."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from brickwork.analysis.polyhedral_model import Floor, Loop, Model, is_parameter
from brickwork.analysis.polynomial import (
    Atom,
    Polynomial,
    UnknownAtom,
    cofactor,
    combine,
    interval_of,
    number,
    of_atom,
)
from brickwork.legality import legality


def lower_corner(
    model: Model,
    loops: Sequence[Loop],
    goal: Polynomial,
    assumed: list[Polynomial] | None = None,
    *,
    plainly: bool = False,
    kept: Collection[Atom] = (),
) -> Polynomial | None:
    """Return a lower bound of `goal` in which the indices of `loops` do not occur, or None; unknowns in `kept` may.

    Arguments that indices are multiplied with are added to `assumed`, if given: the bound holds where none is negative.
    Of the least or greatest of several ends of a loop, only one over parameters is taken if `plainly`.
    """
    for loop in reversed(loops):
        factor = cofactor(goal, loop.atom)
        if factor is None:
            return None
        if not factor.terms:
            continue
        if model.is_natural(factor):
            extreme = _plainest(loop.start, model.greatest_of(loop.start)) if plainly else loop.start
        elif model.is_natural(factor.scale(-1)):
            stop = _plainest(loop.stop, model.least_of(loop.stop)) if plainly else loop.stop
            extreme = stop - number(1)
        elif assumed is not None and (stride := _stride(factor)) is not None:
            assumed.append(stride)
            extreme = loop.start if stride == factor else loop.stop - number(1)
        else:
            return None
        goal = goal.substitute({loop.atom: extreme})
    return _without_unknowns(model, without_quotients(model, goal), kept)


def _plainest(bound: Polynomial, parts: Sequence[Polynomial]) -> Polynomial:
    """Return the first of the parts of a bound that is over parameters alone, or the bound itself."""
    return next((part for part in parts if all(map(is_parameter, part.atoms()))), bound)


def _stride(factor: Polynomial) -> Polynomial | None:
    """Return a product of parameters that is meant to be positive, if the factor of an index is one or its negation."""
    if len(factor.terms) != 1 or not all(map(is_parameter, factor.atoms())):
        return None
    return factor if factor.terms[0][1] > 0 else factor.scale(-1)


def without_quotients(model: Model, goal: Polynomial) -> Polynomial:
    """Replace `(a // n) * n` by `a - a mod n`."""
    for monomial, factor in goal.terms:
        for quotient, divisor in (monomial, monomial[::-1]) if len(monomial) == 2 else ():
            known = model.quotients.get(quotient)
            if known is not None and known.divisor == of_atom(divisor):
                goal = goal - combine(((monomial, factor),)) + (known.dividend - known.rest).scale(factor)
    return goal


@legality
def without_floors(model: Model, goal: Polynomial) -> Polynomial:
    """Return what is at least 0 only where a goal is, without quotients of sizes by numbers.

    `x // n` is `(x - rest) / n`, with a rest from 0 to n - 1: of `b - 2 * (x // 3)` comes `3 * b - 2 * x`.
    """
    for atom in [atom for atom in goal.atoms() if isinstance(atom, UnknownAtom)]:
        factor, origin = cofactor(goal, atom), model.origins.get(atom)
        if not isinstance(origin, Floor) or origin.remainder or factor is None or not factor.is_constant:
            continue
        if origin.divisor.is_constant and origin.divisor.constant > 0:
            rest = number(origin.divisor.constant - 1 if factor.constant > 0 else 0)
            others = goal - of_atom(atom) * factor
            goal = others.scale(origin.divisor.constant) + (origin.dividend - rest).scale(factor.constant)
    return goal


def _without_unknowns(model: Model, goal: Polynomial, kept: Collection[Atom]) -> Polynomial:
    """Replace other unknowns, on their own, by their extremes, where a definition or an interval gives them."""
    for atom in [atom for atom in goal.atoms() if isinstance(atom, UnknownAtom) and atom not in kept]:
        factor = cofactor(goal, atom)
        interval = model.intervals.get(atom)
        if factor is None or interval is None:
            return goal
        grows = model.is_natural(factor)
        if not grows and not model.is_natural(factor.scale(-1)):
            return goal
        rest = _rest_limit(model, atom)
        low = None if interval.low is None else number(interval.low)
        high = rest if rest is not None else None if interval.high is None else number(interval.high)
        extreme = low if grows else high
        if extreme is None:
            return goal
        goal = goal.substitute({atom: extreme})
    return goal


def _rest_limit(model: Model, atom: Atom) -> Polynomial | None:
    """Return the largest value of a remainder by a positive divisor."""
    for quotient in model.quotients.values():
        low = interval_of(quotient.divisor, model.intervals).low
        if quotient.rest == of_atom(atom) and low is not None and low >= 0:
            return quotient.divisor - number(1)
    return None
