"""The cases of an access, a piecewise map: one for each outcome of the choices in its indices (`min`, a wrapped index).

    x[min(i, n - 1)]      is      x[i] where i <= n - 1,  x[n - 1] elsewhere
    x[i * s + j]          is      x[i * s + j] where s >= 0; elsewhere it may count from the end

Where these are too many, as for windows that are kept inside of the borders of a picture, choices stay in the indices
(`kept_choices.py`). Invariant: the cases of an access exclude one another, and together are all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from brickwork.analysis.formula import AllOf, AnyOf, Comparison, Formula, less, negate
from brickwork.analysis.isl import FOLLOWED, Solver
from brickwork.analysis.kept_choices import kept_choices, natural_if_chosen
from brickwork.analysis.polyhedral_model import Access, Choice, Floor, Model, is_fixed
from brickwork.analysis.polynomial import (
    Atom,
    Monomial,
    Polynomial,
    UnknownAtom,
    combine,
    number,
    of_atom,
    order_of,
)
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One case of an access: its indices there, and the conditions under which it is taken."""

    indices: tuple[Polynomial, ...]
    conditions: tuple[Comparison, ...] = ()


def conjunction(model: Model, case: Case, formula: Formula) -> tuple[Comparison, ...] | None:
    """Return a condition on the way to an access as comparisons that `invert` can take as those of a case.

    None where it is none of them: then it has to be asked in each iteration.
    """
    parts = (*_parts(formula),)
    comparisons = tuple(item for item in parts if isinstance(item, Comparison))
    known = {
        atom for index in (*case.indices, *(item.polynomial for item in case.conditions)) for atom in index.atoms()
    }
    known = {atom for item in known for atom in plain(model, of_atom(item)).atoms()}
    inside = {atom for item in comparisons for atom in plain(model, item.polynomial).atoms()}
    unknown = {atom for atom in inside if isinstance(atom, UnknownAtom) and not is_fixed(atom)}
    return comparisons if len(comparisons) == len(parts) and unknown <= known else None


def _parts(formula: Formula) -> Iterator[Formula]:
    """Yield what all has to hold."""
    if isinstance(formula, AllOf):
        for part in formula.parts:
            yield from _parts(part)
    else:
        yield formula


def plain(model: Model, polynomial: Polynomial) -> Polynomial:
    """Return a polynomial with remainders in terms of quotients."""
    while True:
        values: dict[Atom, Polynomial] = {}
        for atom in polynomial.atoms():
            origin = model.origins.get(atom)
            if isinstance(origin, Floor) and origin.remainder:
                quotient = of_atom(_quotient(model, origin))
                values[atom] = origin.dividend - quotient * origin.divisor
        if not values:
            return polynomial
        polynomial = polynomial.substitute(values)


def _quotient(model: Model, origin: Floor) -> Atom:
    """Return the quotient that a remainder belongs to."""
    same = replace(origin, remainder=False)
    return next(atom for atom, other in model.origins.items() if other == same)


@dataclass(frozen=True, slots=True)
class AccessCases:
    """The cases of an access, which exclude one another, where the `assumed` comparisons hold."""

    cases: tuple[Case, ...]
    assumed: tuple[Comparison, ...]


def access_cases(model: Model, solver: Solver, access: Access) -> AccessCases | None:
    """Return the cases of an access; None where they are too many or not known."""
    found = [Case(tuple(axis.value for axis in access.axes))]
    assumed: list[Comparison] = []
    for place, axis in enumerate(access.axes):
        if axis.wraps and not is_natural(model, solver, access, axis.value):
            conditions = _natural_if(model, model.within(access), axis.value)
            if conditions is None:
                found = [part for case in found for part in _wrapped(case, place, axis.size)]
            else:
                assumed += conditions
    result = _told_apart(model, solver, access, found)
    return _whole(model, solver, access) if result is None else AccessCases(result, tuple(dict.fromkeys(assumed)))


def _whole(model: Model, solver: Solver, access: Access) -> AccessCases | None:
    """Return an access as one case that has choices in its indices; None where they cannot stay there."""
    indices = tuple(plain(model, axis.value) for axis in access.axes)
    if not kept_choices(model, indices):
        return None
    assumed = dict[Comparison, None]()
    for axis in access.axes:
        conditions = natural_if_chosen(model, solver, access, axis.value) if axis.wraps else ()
        if conditions is None:
            return None
        assumed |= dict.fromkeys(conditions)
    return AccessCases((Case(indices),), tuple(assumed))


def _told_apart(model: Model, solver: Solver, access: Access, found: list[Case]) -> tuple[Case, ...] | None:
    """Return cases without choices."""
    result: list[Case] = []
    while found:
        case = found.pop(0)
        if len(found) + len(result) > FOLLOWED:
            return None
        split = _split(model, case)
        if split is None:
            return None
        if len(split) > 1:
            found = [*(part for part in split if _may_happen(model, solver, access, part)), *found]
        elif split:
            result.append(split[0])
    return tuple(result)


def is_natural(model: Model, solver: Solver, access: Access, value: Polynomial) -> bool:
    """Whether an index is at least 0 wherever an access is made."""
    if model.is_natural(value):
        return True
    return solver.feasible(model.closure((*model.domain(access), less(value, number(0))))) is False


def _natural_if(model: Model, inside: Model, value: Polynomial) -> list[Comparison] | None:
    """Return what parameters have to be for a sum of indices, each times a stride, to be at least 0; None if unknown.

    `inside` is what is known where the sum is used.
    """
    strides = _strides(_forwards(model, value, _strides(value)))
    result: list[Comparison] = []
    for moving, stride in strides.items():
        found = [_natural_atom_if(model, inside, atom) for atom in moving]
        known = inside.is_natural(stride)
        if any(item is None for item in found) or not (known or moving) or _is_negative(stride):
            return None
        result += [] if known else [Comparison(stride)]
        result += [part for item in found if item is not None for part in item]
    return result


def _strides(value: Polynomial) -> dict[Monomial, Polynomial]:
    """Return what each product of indices is multiplied with."""
    result: dict[Monomial, Polynomial] = {}
    for monomial, factor in value.terms:
        moving = tuple(atom for atom in monomial if not is_fixed(atom))
        fixed = tuple(atom for atom in monomial if is_fixed(atom))
        result[moving] = result.get(moving, number(0)) + combine([(fixed, factor)])
    return result


def _forwards(model: Model, value: Polynomial, strides: Mapping[Monomial, Polynomial]) -> Polynomial:
    """Return a sum with the indices that are subtracted counted from the ends of their loops."""
    for loop in model.loops:
        stride = strides.get((loop.atom,))
        if stride is not None and _is_negative(stride) and all(map(is_fixed, loop.stop.atoms())):
            value = value - stride * of_atom(loop.atom) + stride * (loop.stop - number(1) - of_atom(loop.atom))
    return value


def _is_negative(stride: Polynomial) -> bool:
    return all(factor < 0 for _, factor in stride.terms)


def _natural_atom_if(model: Model, inside: Model, atom: Atom) -> list[Comparison] | None:
    """Return what parameters have to be for an index, or a quotient of indices, to be at least 0; None if unknown."""
    if inside.is_natural(of_atom(atom)):
        return []
    origin = model.origins.get(atom)
    if not isinstance(origin, Floor) or not all(map(is_fixed, origin.divisor.atoms())):
        return None
    dividend = [] if origin.remainder else _natural_if(model, inside, origin.dividend)
    return None if dividend is None else [*dividend, Comparison(origin.divisor - number(1))]


def _wrapped(case: Case, place: int, size: Polynomial) -> list[Case]:
    """Return the cases that an index is natural, and that it counts from the end."""
    value = case.indices[place]
    moved = (*case.indices[:place], value + size, *case.indices[place + 1 :])
    below = Comparison(number(-1) - value)
    return [Case(case.indices, (*case.conditions, Comparison(value))), Case(moved, (*case.conditions, below))]


def _split(model: Model, case: Case) -> list[Case] | None:
    """Return the cases of the first choice in the indices; the case itself where there is none."""
    for index in (*case.indices, *(item.polynomial for item in case.conditions)):
        for atom in sorted(index.atoms(), key=order_of):
            origin = model.origins.get(atom)
            if not isinstance(origin, Choice):
                continue
            first, second = _ways(origin.condition), _ways(negate(origin.condition))
            if first is None or second is None:
                return None
            pairs = [*((way, origin.then) for way in first), *((way, origin.otherwise) for way in second)]
            return [_chosen(case, {atom: value}, way) for way, value in pairs]
    return [case]


def _chosen(case: Case, value: Mapping[Atom, Polynomial], conditions: Iterable[Comparison]) -> Case:
    indices = tuple(index.substitute(value) for index in case.indices)
    held = tuple(Comparison(item.polynomial.substitute(value), item.equal) for item in case.conditions)
    return Case(indices, (*held, *conditions))


def _ways(formula: Formula) -> list[tuple[Comparison, ...]] | None:
    """Return conjunctions that exclude one another, one of which holds where the formula does."""
    match formula:
        case Comparison():
            return [(formula,)]
        case AllOf(parts=parts):
            result: list[tuple[Comparison, ...]] = [()]
            for part in parts:
                cases = _ways(part)
                if cases is None:
                    return None
                result = [(*one, *other) for one in result for other in cases]
            return result
        case AnyOf(parts=()):
            return []
        case AnyOf(parts=(first, *rest)):
            one, other = _ways(first), _ways(AllOf((negate(first), AnyOf(tuple(rest)))))
            return None if one is None or other is None else [*one, *other]
        case _:
            return None


def _may_happen(model: Model, solver: Solver, access: Access, case: Case) -> bool:
    return solver.feasible(model.closure((*model.domain(access), *case.conditions))) is not False
