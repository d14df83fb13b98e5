"""Rows of unequal length that have no element of an axis in common, as those of a packed triangle.

    for i in range(n):
        for j in range(i + 1):
            out[i * (i + 1) // 2 + j] = ...

Where a row begins is no multiple of `i`, but what it is further on than the row before has a lower degree: `i + 1`.
Rows that elements begin and end, or count, are apart where that is known of the elements.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from brickwork.analysis.corners import lower_corner
from brickwork.analysis.formula import less
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Element, Floor, Loop, Model, depth_of, depth_of_polynomial
from brickwork.analysis.polynomial import Atom, Polynomial, UnknownAtom, combine, number, of_atom
from brickwork.legality import legality


@legality
def rows_ascend(model: Model, loop: Loop, access: Access, index: Polynomial) -> bool:
    """Whether each iteration of a loop goes along places beyond those of the one before, as rows of a triangle do."""
    inner = tuple(other for other in access.loops if other.depth > loop.depth)
    kept = [atom for atom in index.atoms() if depth_of(atom) <= loop.depth + 1]
    ends = (lower_corner(model, inner, index.scale(sign), kept=kept) for sign in (1, -1))
    known = [end for end in ends if end is not None and all(depth_of(atom) <= loop.depth + 1 for atom in end.atoms())]
    if len(known) < 2:
        return False
    low, high = known
    if (gain := _gain(model, low, loop)) is None:
        return False
    leasts = [lower_corner(model, access.loops, each) for each in (gain, low + gain + high - number(1))]
    return all(least is not None and model.is_natural(least) for least in leasts)


@legality
def _gain(model: Model, index: Polynomial, loop: Loop) -> Polynomial | None:
    """Return what an index gains from one iteration of a loop to the next, all others the same; None if unknown."""
    moved: dict[Atom, Polynomial] = {loop.atom: of_atom(loop.atom) + number(1)}
    for atom in (item for item in index.atoms() if isinstance(item, UnknownAtom) and depth_of(item) > loop.depth):
        origin = model.origins.get(atom)
        if not isinstance(origin, Floor) or origin.remainder or not origin.divisor.is_constant:
            return None
        gain, divisor = _gain(model, origin.dividend, loop), origin.divisor.constant
        if gain is None or any(factor % divisor for _, factor in gain.terms):
            return None
        moved[atom] = of_atom(atom) + combine((monomial, factor // divisor) for monomial, factor in gain.terms)
    return index.substitute(moved) - index


# ---------------------------------------------------------------- rows that elements begin and end


@legality
def are_in_other_rows(model: Model, solver: Solver, loop: Loop, pair: tuple[Access, Access], depth: int) -> bool:
    """Whether two accesses go along rows that have no element in common in two iterations of a loop.

    Loops that stand `depth` loops deep, or deeper, may be in any two iterations.
    """
    rows = _rows(model, solver, pair)
    return any(one is not None and one == other and _moves_on(one, loop, depth) for one, other in rows)


def _rows(model: Model, solver: Solver, pair: tuple[Access, Access]) -> list[tuple[Element | None, Element | None]]:
    """Return for each index the rows that two accesses go along; none where nothing is known of elements."""
    known = any(each.ascends or each.last is not None for each in model.elements.values())
    places = range(len(pair[0].axes)) if known else ()
    return [(_row_of(model, solver, pair[0], place), _row_of(model, solver, pair[1], place)) for place in places]


@legality
def _row_of(model: Model, solver: Solver, access: Access, place: int) -> Element | None:
    """Return the element that begins the row along which an index goes."""
    index = access.axes[place].value
    row = next((loop for loop in access.loops if loop.goes_along(index)), None)
    begin = None if row is None else begin_of(model, row)
    if begin is not None:
        return begin
    for one, two in product(model.elements.items(), repeat=2):
        (atom, found), (end, other) = one, two
        if found.last == other.tensor and is_in_row(model, solver, access, place, (atom, end), counted=found.counted):
            return found
    return None


@legality
def is_in_row(
    model: Model, solver: Solver, access: Access, place: int, row: tuple[Atom, Atom], *, counted: bool
) -> bool:
    """Whether an index is at least one element, and below the other at the same place, or as many beyond as that is."""
    index, (start, stop) = access.axes[place].value, map(of_atom, row)
    begin, end = (model.elements[atom] for atom in row)
    domain = model.domain(access)
    stop = start + stop if counted else stop
    return begin.indices == end.indices and all(
        solver.feasible(model.closure((*domain, less(goal, number(0))))) is False
        for goal in (index - start, stop - number(1) - index)
    )


@legality
def begin_of(model: Model, row: Loop) -> Element | None:
    """Return the first of two neighbouring elements between which a loop goes, of a tensor whose elements ascend."""
    start, stop = (_element(model, bound) for bound in (row.start, row.stop))
    if start is None or not start.ascends:
        return None
    following = (*start.indices[:-1], start.indices[-1] + number(1))
    return start if stop == replace(start, indices=following) else None


def _element(model: Model, value: Polynomial) -> Element | None:
    return next((model.elements.get(atom) for atom in value.atoms() if of_atom(atom) == value), None)


@legality
def _moves_on(row: Element, loop: Loop, depth: int) -> bool:
    """Whether each iteration of a loop goes along a row of its own: the places of rows differ by the loop's index."""
    *others, last = row.indices
    step = last.factor((loop.atom,))
    rest = last - of_atom(loop.atom).scale(step)
    return step != 0 and all(depth_of_polynomial(each) <= depth for each in (*others, rest))
