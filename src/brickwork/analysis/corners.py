"""Lower bounds of polynomials over all iterations of loops: what they are at a corner of the iteration space."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

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
    loops = _entered(model, loops)
    if not plainly and (natural := _natural_corner(model, loops, goal)) is not None:
        return natural
    for loop in reversed(loops):
        factor = cofactor(goal, loop.atom)
        if factor is None:
            extreme = _turning(model, loops, loop, goal)
            if extreme is None:
                return None
            goal = goal.substitute({loop.atom: extreme})
            continue
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


@legality
def _entered(model: Model, loops: Sequence[Loop]) -> Sequence[Loop]:
    """Return loops that end, and begin, with the iterations in which those inside them have any.

    For j in range(n), for i in range(n - j - 1): j is at most n - 2.
    """
    result = list(loops)
    for place, loop in enumerate(loops):
        index, inside = of_atom(loop.atom), {inner.atom for inner in loops[place:]}
        for inner in loops[place + 1 :]:
            left = inner.stop - inner.start - number(1)
            factor = cofactor(left, loop.atom)
            if factor not in {number(1), number(-1)}:
                continue
            end = left + index if factor == number(-1) else index - left
            if not inside.isdisjoint(end.atoms()):
                continue
            if factor == number(-1) and model.is_natural(result[place].stop - end - number(1)):
                result[place] = replace(result[place], stop=end + number(1))
            if factor == number(1) and model.is_natural(end - result[place].start):
                result[place] = replace(result[place], start=end)
    return result


@legality
def _natural_corner(
    model: Model, loops: Sequence[Loop], goal: Polynomial, *, several: bool = False
) -> Polynomial | None:
    """Return a lower bound of `goal` that is at least 0, by one each of the `several` ends that loops have.

    An index that begins at the greatest of some is no less than any of them. One of them may go with what the goal is
    made of else: `i + h - m // 2` is at least 0 for i from `max(0, m // 2 - h)`.
    """
    for place in reversed(range(len(loops))):
        loop = loops[place]
        factor = cofactor(goal, loop.atom)
        if factor is None:
            return None
        if not factor.terms:
            continue
        if model.is_natural(factor):
            ends = model.greatest_of(loop.start)
        elif model.is_natural(factor.scale(-1)):
            ends = tuple(stop - number(1) for stop in model.least_of(loop.stop))
        else:
            return None
        goals = (goal.substitute({loop.atom: end}) for end in ends)
        if len(ends) > 1:
            found = (_natural_corner(model, loops[:place], each, several=True) for each in goals)
            return next((each for each in found if each is not None), None)
        goal = next(goals)
    goal = without_quotients(model, goal)
    return goal if several and model.is_natural(goal) else None


@legality
def _turning(model: Model, loops: Sequence[Loop], loop: Loop, goal: Polynomial) -> Polynomial | None:
    """Return where a polynomial of an index is least: at an end of the loop, if it never turns; None if it may.

    What it gains from an iteration to the next says so, which is of a lower degree.
    """
    gain = goal.substitute({loop.atom: of_atom(loop.atom) + number(1)}) - goal
    but_the_last = replace(loop, stop=loop.stop - number(1))
    around = [but_the_last if other is loop else other for other in loops]
    for sign, extreme in ((1, loop.start), (-1, loop.stop - number(1))):
        least = lower_corner(model, around, gain.scale(sign))
        if least is not None and model.is_natural(least):
            return extreme
    return None


@legality
def without_index_floors(model: Model, goal: Polynomial) -> Polynomial:
    """Return what is at least 0 only where a goal is, without quotients by a number of products of indices.

    `m + x // n` is at least 0 where `n * m + x` is, `m - x // n` where `n * m + n - 1 - x` is, and
    `m + x // n - y // n` where `n * m + x - y` is.
    """
    origins = {atom: model.origins.get(atom) for atom in goal.atoms()}
    floors = {atom: origin for atom, origin in origins.items() if isinstance(origin, Floor) and not origin.remainder}
    divisors = {origin.divisor for origin in floors.values()}
    if len(divisors) != 1 or all(origin.dividend.is_affine for origin in floors.values()):
        return goal
    (divisor,), counted = divisors, 0
    if not divisor.is_constant or divisor.constant < 1:
        return goal
    rest, dividends = goal, number(0)
    for atom, origin in floors.items():
        factor = cofactor(goal, atom)
        if factor not in {number(1), number(-1)}:
            return goal
        counted += factor == number(1)
        rest -= of_atom(atom) * factor
        dividends += origin.dividend * factor
    return rest.scale(divisor.constant) + dividends - number((counted - 1) * (divisor.constant - 1))


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
    for atom in goal.atoms():
        factor, origin = cofactor(goal, atom), model.origins.get(atom)
        if not isinstance(origin, Floor) or origin.remainder or factor is None or not factor.is_constant:
            continue
        if origin.divisor.is_constant and origin.divisor.constant > 0:
            divisor, times = origin.divisor.constant, factor.constant
            most = number((divisor - 1) * max(times, 0))
            goal = (goal - of_atom(atom) * factor).scale(divisor) + origin.dividend.scale(times) - most
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
