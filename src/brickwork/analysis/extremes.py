"""Indices with a quotient or a remainder by what arguments say: their extremes are computed by the host.

    x[i // n]                  (rows - 1) // n < x.shape[0]              asked once, with n >= 1
    x[o // (m // g) * k + c]   (m - 1) // (m // g) * k + k - 1 < x.shape[0]

The greatest dividend that is not negative has the greatest quotient by a positive divisor, and a remainder is less than
that. Of one unknown quotient or remainder the extremes are met, if that of the dividend is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from brickwork.analysis.corners import lower_corner
from brickwork.analysis.formula import Comparison, atoms_of
from brickwork.analysis.parameter_expressions import comparison_expression, expression_of
from brickwork.analysis.polyhedral_model import Access, Axis, Floor, Loop, Model, is_fixed, is_parameter
from brickwork.analysis.polynomial import (
    SIZE_LIMIT,
    Atom,
    Polynomial,
    UnknownAtom,
    atom_interval,
    cofactor,
    interval_of,
    number,
    of_atom,
    order_of,
)
from brickwork.ir import build
from brickwork.ir.nodes import Expression
from brickwork.legality import legality
from brickwork.records import dataclass


@legality
def guard_of_extremes(
    model: Model, access: Access, axis: Axis, can_hold: Callable[[Polynomial], bool]
) -> tuple[Expression, ...] | None:
    """Return what must hold so that an index with a quotient is in range, and is not counted from the end.

    None if it has none, or several that move: their extremes are not met together. None, too, if no access is made
    where this is at least 0, of which `can_hold` tells: conditions around may keep the index from its extremes.
    """
    moving = [atom for atom in axis.value.atoms() if atom in model.origins and not is_fixed(atom)]
    if len(moving) > 1 or any(_is_tested(model, access, atom) for atom in moving):
        return None
    finder = _Extremes(model, access.loops)
    lowest, room = finder.least(axis.value), finder.least(axis.size - axis.value - number(1))
    if lowest is None or room is None or not finder.values or not finder.is_natural(lowest):
        return None
    if not can_hold(finder.known(room)):
        return None
    return (*dict.fromkeys(finder.positive), comparison_expression(Comparison(room), finder.values))


def _is_tested(model: Model, access: Access, atom: Atom) -> bool:
    """Whether conditions around an access limit what an unknown is computed from."""
    origin = model.origins[atom]
    if not isinstance(origin, Floor):
        return True
    tested = atoms_of(access.conditions)
    return not all(map(is_fixed, tested & (origin.dividend.atoms() | {atom})))


@dataclass(slots=True)
class _Extremes:
    """Finds lower bounds over sizes, arguments, and `values`: numbers that the host computes of them.

    They hold where all of `positive` do.
    """

    model: Model
    loops: Sequence[Loop]
    values: dict[Atom, Expression] = field(default_factory=dict[Atom, Expression])
    positive: list[Expression] = field(default_factory=list[Expression])
    given: dict[Atom, Polynomial] = field(default_factory=dict[Atom, Polynomial])
    """What numbers of `values` are in the model, where they are the same in the whole kernel."""

    def known(self, polynomial: Polynomial) -> Polynomial:
        """Return a polynomial in terms of the model, as far as that goes."""
        return polynomial.substitute(self.given)

    def least(self, goal: Polynomial) -> Polynomial | None:
        """Return a lower bound of a polynomial over all iterations, which can be computed without wrapping."""
        for atom in sorted(goal.atoms(), key=order_of):
            if not isinstance(atom, UnknownAtom) or is_fixed(atom):
                continue
            factor = cofactor(goal, atom)
            extreme = None if factor is None else self.extreme(atom, factor)
            if extreme is None:
                return None
            goal = goal.substitute({atom: extreme})
        corner = lower_corner(self.model, self.loops, goal, kept={*self.model.origins, *self.values})
        found = None if corner is None else self.fixed(corner)
        return found if found is not None and self.fits(found) else None

    @legality
    def extreme(self, atom: UnknownAtom, factor: Polynomial) -> Polynomial | None:
        """Return the least value of an unknown if its factor is not negative, the greatest if that is not positive."""
        origin = self.model.origins.get(atom)
        if not isinstance(origin, Floor):
            return None
        if self.divisor(origin) is None or not self.is_natural(origin.dividend):
            return None
        if self.model.is_natural(factor):
            return number(0)
        if not self.model.is_natural(factor.scale(-1)):
            return None
        if origin.remainder:
            divisor = self.fixed(origin.divisor)
            return None if divisor is None else divisor - number(1)
        most = lower_corner(self.model, self.loops, origin.dividend.scale(-1))
        # What no size is as large as is the limit of an element's integer: such a guard would never hold.
        if most is None or abs(most.constant) > SIZE_LIMIT:
            return None
        return self.computed(atom, most.scale(-1), origin)

    def is_natural(self, polynomial: Polynomial) -> bool:
        """Whether a polynomial is surely at least 0."""
        return self.model.is_natural(polynomial)

    def computed(self, atom: UnknownAtom, dividend: Polynomial, origin: Floor) -> Polynomial | None:
        """Return an atom for the quotient or remainder of what is the same in the whole kernel."""
        top, bottom = self.expression(dividend), self.divisor(origin)
        if top is None or bottom is None:
            return None
        value = build.apply("mod" if origin.remainder else "floordiv", top, bottom)
        made = UnknownAtom(-1 - atom.number, 0)
        self.values[made] = value
        if is_fixed(atom):
            self.given[made] = of_atom(atom)
        known = {made: atom_interval(atom, self.model.intervals)}
        self.model = replace(self.model, intervals={**self.model.intervals, **known})
        return of_atom(made)

    def divisor(self, origin: Floor) -> Expression | None:
        """Return what is divided by, where that is positive, and else 1: the host divides also if no access is made."""
        found = self.expression(origin.divisor)
        if found is None:
            return None
        if not self.is_natural(origin.divisor - number(1)):
            self.positive.append(build.apply("ge", found, build.integer(1)))
        return found if origin.divisor.is_constant else build.apply("maximum", found, build.integer(1))

    def expression(self, polynomial: Polynomial) -> Expression | None:
        """Return what is the same in the whole kernel as an expression that does not wrap; None for what is not."""
        found = self.fixed(polynomial)
        return None if found is None or not self.fits(found) else expression_of(found, self.values)

    def fixed(self, polynomial: Polynomial) -> Polynomial | None:
        """Return a polynomial over sizes, arguments and what is computed of them; None if it is none."""
        for atom in sorted(polynomial.atoms(), key=order_of):
            if is_parameter(atom) or atom in self.values:
                continue
            origin = self.model.origins.get(atom)
            if not isinstance(atom, UnknownAtom) or not is_fixed(atom) or not isinstance(origin, Floor):
                return None
            made = self.computed(atom, origin.dividend, origin)
            if made is None:
                return None
            polynomial = polynomial.substitute({atom: made})
        return polynomial

    def fits(self, polynomial: Polynomial) -> bool:
        """Whether neither what is added nor what is taken away wraps."""
        gains = Polynomial(tuple(term for term in polynomial.terms if term[1] > 0))
        return all(interval_of(side, self.model.intervals).fits for side in (gains, gains - polynomial))
