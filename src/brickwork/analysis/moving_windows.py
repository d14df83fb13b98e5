"""Windows that move along an axis: loops that are as long as arguments say which are no sizes.

for i in range(max(0, e - r), min(n, e + r + 1)): ...          2 * r + 1 iterations about e, of n
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.polyhedral_model import Floor, Model, is_fixed
from brickwork.analysis.polynomial import Atom, Polynomial, ScalarAtom


def is_moving_window(model: Model, bounds: Sequence[tuple[Polynomial, Polynomial]]) -> bool:
    """Whether a loop that may begin and end at these places is short about one that moves, and else as long as an axis.

    A length is taken for short that no size is in.
    """
    short = {
        all(map(is_fixed, start.atoms()))
        for start, stop in bounds
        if all(_is_of_scalars(model, atom) for atom in (stop - start).atoms())
    }
    return short == {False}


def _is_of_scalars(model: Model, atom: Atom) -> bool:
    """Whether an atom is an argument that is no size, or a quotient of such, or a size divided by an argument."""
    origin = model.origins.get(atom)
    if isinstance(origin, Floor):
        if not origin.remainder and not origin.divisor.is_constant and is_fixed(atom):
            return True
        return all(_is_of_scalars(model, item) for item in (*origin.dividend.atoms(), *origin.divisor.atoms()))
    return isinstance(atom, ScalarAtom)
