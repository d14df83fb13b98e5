"""Loop normalisation of inverted accesses: their loops begin at 0 instead of at a place of each element.

    for u in range(e, n): y[e] += x[u - e]     ->     for u in range(n - e): y[e] += x[u]

So the iterations of neighbouring elements go together. Invariant: the iterations are the same, in the same order or
backwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.formula import Comparison
from brickwork.analysis.inverted import Dimension, Divisible, Guard, Inverse, Ratio
from brickwork.analysis.polyhedral_model import is_fixed
from brickwork.analysis.polynomial import Atom, Polynomial, number, of_atom

ZERO, ONE = number(0), number(1)


def normalise_inverse(inverse: Inverse, *, backwards: bool) -> Inverse:
    """Return an inverse whose loops begin at 0 where they begin at a place of each element.

    So the iterations of neighbouring elements go together. If `backwards`, those that end at one place for all elements
    begin there and run the other way.
    """
    terms, values = [*inverse.terms], dict(inverse.values)
    if inverse.chooses or any(each.fixed is not None for each in terms):
        return inverse
    for place, each in enumerate(terms):
        start, stop = _only(each.lower), _only(each.upper)
        if start is None or _is_fixed(start):
            continue
        index = of_atom(each.atom)
        if backwards and stop is not None and _is_fixed(stop):
            moved, ends = {each.atom: stop - index}, (Ratio(stop - start),)
        else:
            moved = {each.atom: index + start}
            ends = tuple(Ratio(item.numerator - start * item.divisor, item.divisor) for item in each.upper)
        guards = tuple(_moved(item, moved) for item in each.guards)
        terms[place] = replace(each, lower=(Ratio(ZERO),), upper=ends, guards=guards)
        terms[place + 1 :] = [_moved_loop(inner, moved) for inner in terms[place + 1 :]]
        values = {atom: _moved_ratio(ratio, moved) for atom, ratio in values.items()}
        values[each.atom] = Ratio(moved[each.atom])
    return replace(inverse, terms=tuple(terms), values=values)


def _only(ratios: Sequence[Ratio]) -> Polynomial | None:
    """Return the bound, if there is one that is whole."""
    return ratios[0].numerator if len(ratios) == 1 and ratios[0].divisor == ONE else None


def _is_fixed(polynomial: Polynomial) -> bool:
    return all(map(is_fixed, polynomial.atoms()))


def _moved_loop(each: Dimension, values: Mapping[Atom, Polynomial]) -> Dimension:
    return replace(
        each,
        lower=tuple(_moved_ratio(item, values) for item in each.lower),
        upper=tuple(_moved_ratio(item, values) for item in each.upper),
        guards=tuple(_moved(item, values) for item in each.guards),
    )


def _moved_ratio(ratio: Ratio, values: Mapping[Atom, Polynomial]) -> Ratio:
    return Ratio(ratio.numerator.substitute(values), ratio.divisor)


def _moved(guard: Guard, values: Mapping[Atom, Polynomial]) -> Guard:
    if isinstance(guard, Divisible):
        return Divisible(guard.numerator.substitute(values), guard.divisor)
    return Comparison(guard.polynomial.substitute(values), guard.equal)
