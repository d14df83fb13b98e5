"""Rows that lie one after the other in an axis and are of unequal length, as those of a packed triangle are.

    for i in range(n):
        for j in range(i + 1):
            out[i * (i + 1) // 2 + j] = ...

Where a row begins is no multiple of `i`, but what it is further on than the row before has a lower degree: `i + 1`.
"""

from __future__ import annotations

from brickwork.analysis.corners import lower_corner
from brickwork.analysis.polyhedral_model import Access, Floor, Loop, Model, depth_of
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
