"""Inverse access maps: for an element of a tensor, the iterations that access it.

    for t in range(T):                                 for e in range(T):
        for u in range(t + 1):            ->               for u in range(e + 1):
            w[T - 1 - t + u]                                   t = T - 1 + u - e

Indices of loops are eliminated by the equations `element == index(loops)`, one for each axis. A floor division brings a
quotient with it, one more unknown. What cannot be eliminated stays a loop, bounded by all conditions it stands in.
Invariant: the loops of an `Inverse` run once through the iterations that access the element, if the `assumed` holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from brickwork.analysis.access_cases import Case, plain
from brickwork.analysis.formula import Comparison, Formula, at_least
from brickwork.analysis.inverted import (
    Constraint,
    Dimension,
    Divisible,
    Guard,
    Inverse,
    Ratio,
    Ratios,
    holds_as_computed,
    is_zero,
    unique,
)
from brickwork.analysis.isl import FOLLOWED, Solver
from brickwork.analysis.kept_choices import kept_choices, near_by
from brickwork.analysis.moving_windows import is_moving_window
from brickwork.analysis.polyhedral_model import Access, Floor, Loop, Model, depth_of, is_fixed
from brickwork.analysis.polynomial import (
    SIZE_LIMIT,
    Atom,
    IndexAtom,
    Interval,
    Polynomial,
    UnknownAtom,
    cofactor,
    interval_of,
    number,
    of_atom,
    order_of,
)
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.legality import legality
from brickwork.records import dataclass

ZERO, ONE = number(0), number(1)
MOST_COMBINED = 2 * FOLLOWED
"""Pairs of a lower and an upper bound that bounds of the loops around are made of: a place with three digits has 16."""


class _OpaqueError(Exception):
    """An access map that cannot be inverted."""


def invert(
    model: Model, solver: Solver, access: Access, case: Case, outer: int, elements: Sequence[Atom]
) -> Inverse | None:
    """Return a case of an access inverted, inside the `outer` outermost loops; `elements` has an atom an axis."""
    try:
        turn = _Turn(model, solver, access, outer, tuple(elements))
        turn.begin(case)
        indices = turn.solve()
        return turn.inverse(indices)
    except _OpaqueError:
        return None


# ---------------------------------------------------------------- the equations


@dataclass
class _Turn:
    """The unknowns, the equations and the comparisons of one access; `kept` are choices that stay in indices."""

    model: Model
    solver: Solver
    access: Access
    outer: int
    elements: tuple[Atom, ...]
    loops: tuple[Loop, ...] = ()
    indices: list[Polynomial] = field(default_factory=list[Polynomial])
    unknown: list[Atom] = field(default_factory=list[Atom])
    fixed: dict[Atom, Loop] = field(default_factory=dict[Atom, Loop])
    constraints: list[Constraint] = field(default_factory=list[Constraint])
    divisible: list[Divisible] = field(default_factory=list[Divisible])
    values: dict[Atom, Ratio] = field(default_factory=dict[Atom, Ratio])
    own: list[Atom] = field(default_factory=list[Atom])
    assumed: list[Comparison] = field(default_factory=list[Comparison])
    everywhere: bool = True
    kept: Mapping[Atom, IndexAtom] = field(default_factory=dict[Atom, IndexAtom])
    wrapped: set[Atom] = field(default_factory=set[Atom])

    @cached_property
    def inside(self) -> Model:
        """What is known where the access is made."""
        return self.model.within(self.access)

    # ------------------------------------------------------------ what is given

    def begin(self, case: Case) -> None:
        """Note the unknowns and what is known of them."""
        natural = dict.fromkeys(self.elements, Interval(0, SIZE_LIMIT))
        self.model = replace(self.model, intervals={**self.model.intervals, **natural})
        self.loops = self.access.loops[self.outer :]
        self.indices = [self.plain(index) for index in case.indices]
        indices = {loop.atom for loop in self.loops}
        quotients = self.quotients({atom for index in self.indices for atom in index.atoms()})
        self.wrapped = {quotient for quotient, origin in quotients.items() if self.wraps(quotient, origin)}
        self.kept = kept_choices(self.model, self.indices)
        known = indices | {*quotients, *self.kept}
        for loop in self.loops:
            starts, stops = self.model.greatest_of(loop.start), self.model.least_of(loop.stop)
            starts, stops = tuple(map(self.plain, starts)), tuple(map(self.plain, stops))
            if all(self.is_clear(bound, known) for bound in (*starts, *stops)):
                index = of_atom(loop.atom)
                self.constraints += [Constraint(index - start) for start in starts]
                self.constraints += [Constraint(stop - ONE - index) for stop in stops]
                self.unknown.append(loop.atom)
            elif self.is_copied(loop):
                self.fixed[loop.atom] = loop
            else:
                raise _OpaqueError
        for quotient, origin in quotients.items():
            dividend = self.plain(origin.dividend)
            if not self.is_clear(dividend, known):
                raise _OpaqueError
            rest = dividend - of_atom(quotient) * origin.divisor
            self.need_positive(origin.divisor)
            self.constraints += [Constraint(rest), Constraint(origin.divisor - ONE - rest)]
            self.unknown.append(quotient)
        for comparison in case.conditions:
            polynomial = self.plain(comparison.polynomial)
            if not self.is_clear(polynomial, known):
                raise _OpaqueError
            self.constraints.append(Constraint(polynomial, comparison.equal))
        clear = all(self.is_clear(index, known) for index in self.indices)
        if not clear or not {*self.kept.values()} <= {*self.unknown}:
            raise _OpaqueError

    def wraps(self, quotient: Atom, origin: Floor) -> bool:
        """Whether a quotient counts how often an index has gone round its axis."""
        turns = self.plain(origin.dividend) - of_atom(quotient) * origin.divisor
        axes = zip(self.indices, self.access.axes, strict=True)
        return any(axis.size == origin.divisor and index == turns for index, axis in axes)

    def plain(self, polynomial: Polynomial) -> Polynomial:
        return plain(self.model, polynomial)

    def quotients(self, atoms: Iterable[Atom]) -> dict[Atom, Floor]:
        """Return the quotients among atoms, and those in their dividends, which come first."""
        result: dict[Atom, Floor] = {}
        for atom in sorted(atoms, key=order_of):
            origin = self.model.origins.get(atom)
            if isinstance(origin, Floor) and depth_of(atom) > self.outer:
                if not all(map(is_fixed, origin.divisor.atoms())):
                    raise _OpaqueError
                result.update(self.quotients(self.plain(origin.dividend).atoms()))
                result[atom] = origin
        return result

    def is_copied(self, loop: Loop) -> bool:
        """Whether the bounds of a loop are over indices of the loops around it, and what is fixed around the nest."""
        bounds = (loop.node.start, loop.node.stop)
        inside = assigned_symbols(self.loops[0].node) - {item.node.index for item in self.loops}
        return not read_symbols(bounds) & inside

    def is_clear(self, polynomial: Polynomial, known: set[Atom]) -> bool:
        """Whether a polynomial is one of unknowns and what is fixed around the nest."""
        return all(atom in known or self.is_around(atom) for atom in polynomial.atoms())

    def is_around(self, atom: Atom) -> bool:
        """Whether an atom is fixed around the nest: a parameter, an outer loop's index, an element that these say."""
        element = self.model.elements.get(atom)
        if element is not None:
            return all(self.is_around(item) for index in element.indices for item in index.atoms())
        return is_fixed(atom) or (isinstance(atom, IndexAtom) and atom.depth <= self.outer)

    def need_positive(self, divisor: Polynomial) -> None:
        """Take for granted that a polynomial over parameters is at least 1, unless that is known."""
        room = divisor - ONE
        if not self.model.is_natural(room) and not self.reached(room):
            self.assumed.append(Comparison(room))

    def reached(self, room: Polynomial) -> bool:
        """Whether something is at least 0 where the tensor has elements."""
        return any(self.model.is_natural(room - axis.size + ONE) for axis in self.access.axes)

    # ------------------------------------------------------------ elimination

    def solve(self) -> tuple[Polynomial, ...]:
        """Eliminate an unknown by each axis; return the indices of the element."""
        result: dict[int, Polynomial] = {}
        while len(result) < len(self.indices):
            open_axes = [place for place in range(len(self.indices)) if place not in result]
            place, atom = self.pick(open_axes)
            index = self.indices[place]
            if atom is None:
                result[place] = self.reached_only(place)
                continue
            factor = cofactor(index, atom)
            rest = index - of_atom(atom) * (factor or ZERO)
            if factor is not None and factor.is_constant and abs(factor.constant) == 1:
                ahead = of_atom(self.elements[place]) - rest
                self.eliminate(atom, Ratio(ahead.scale(factor.constant)))
                result[place] = of_atom(self.elements[place])
            elif self.is_alone(atom, index):
                self.need_nonzero(factor)
                self.unknown.remove(atom)
                self.own.append(atom)
                result[place] = self.reached_only(place)
            else:
                self.divide(place, atom, factor, rest)
                result[place] = of_atom(self.elements[place])
        self.solve_conditions()
        self.look_near()
        return tuple(result[place] for place in range(len(self.indices)))

    def solve_conditions(self) -> None:
        """Eliminate an unknown by each condition that two numbers are equal, the outermost loop of those in it.

        So is a remainder of 0: of `(y - k) % 2 == 0` and `(y - k) // 2 == e` it is said that y is 2 * e + k.
        """
        while True:
            for item in self.constraints:
                found = (atom for atom in self.unknown if self.is_solved_by(item, atom))
                if item.equal and (atom := next(found, None)) is not None:
                    break
            else:
                return
            factor = item.polynomial.factor((atom,))
            self.constraints.remove(item)
            self.eliminate(atom, Ratio((of_atom(atom).scale(factor) - item.polynomial).scale(factor)))

    @legality
    def is_solved_by(self, item: Constraint, atom: Atom) -> bool:
        """Whether an equation says what the index of a loop is, which is a place and no distance."""
        return (
            isinstance(atom, IndexAtom)
            and self.is_unit(item.polynomial, atom)
            and not self.bounds_fixed(atom)
            and self.inside.is_natural(of_atom(atom))
        )

    def look_near(self) -> None:
        """Bound the indices that choices are made of by what is known of those: they lie near to the element."""
        for choice, atom in self.kept.items():
            given = [item.polynomial for item in self.constraints if not item.equal]
            added = near_by(self.model, self.solver, self.access, (choice, atom), given)
            if not added:
                raise _OpaqueError
            self.constraints += [Constraint(item, needed=False) for item in added]

    def reads(self, polynomial: Polynomial) -> set[Atom]:
        """Return the atoms of a polynomial, and those that choices in it are made of."""
        return {*polynomial.atoms(), *(self.kept[atom] for atom in polynomial.atoms() & self.kept.keys())}

    def reached_only(self, place: int) -> Polynomial:
        """Return an index that is no variable of its own: only those in range that iterations reach are looked at."""
        self.everywhere = False
        index, size = self.indices[place], self.access.axes[place].size
        self.constraints += [Constraint(index), Constraint(size - ONE - index)]
        return index

    def pick(self, places: Sequence[int]) -> tuple[int, Atom | None]:
        """Return an axis and the unknown to eliminate by it: the outermost loop of those that are only added.

        Indices that may be negative are distances rather than places, and stay: there are few of them, as a rule.
        """
        best: tuple[tuple[int, ...], int, Atom | None] | None = None
        for place in places:
            index = self.indices[place]
            inside = [atom for atom in self.unknown if atom in index.atoms() and not self.bounds_fixed(atom)]
            if not inside:
                if self.reads(index) & {*self.fixed, *self.unknown}:
                    raise _OpaqueError
                return place, None
            units = [atom for atom in inside if self.is_unit(index, atom)]
            for order, atom in enumerate(units or inside):
                elsewhere = sum(atom in self.indices[other].atoms() for other in places) - 1
                signed = not self.inside.is_natural(of_atom(atom))
                rank = (0 if units else 1, isinstance(atom, UnknownAtom), signed, elsewhere, len(units), order)
                if best is None or rank < best[0]:
                    best = (rank, place, atom)
        if best is None:
            raise _OpaqueError
        return best[1], best[2]

    def bounds_fixed(self, atom: Atom) -> bool:
        """Whether a loop whose bounds are copied reads an index, or a choice is made of it."""
        loops = (loop.node for loop in self.fixed.values())
        read = read_symbols([bound for loop in loops for bound in (loop.start, loop.stop)])
        return isinstance(atom, IndexAtom) and (atom.symbol in read or atom in self.kept.values())

    def is_unit(self, index: Polynomial, atom: Atom) -> bool:
        factor = cofactor(index, atom)
        return factor is not None and factor.is_constant and abs(factor.constant) == 1

    def is_alone(self, atom: Atom, index: Polynomial) -> bool:
        """Whether an unknown is the only one in an index, and is in no other."""
        others = {*self.unknown, *self.fixed} - {atom}
        return not others & self.reads(index) and sum(atom in item.atoms() for item in self.indices) == 1

    def need_nonzero(self, factor: Polynomial | None) -> None:
        if factor is None or not all(map(is_fixed, factor.atoms())):
            raise _OpaqueError
        if not factor.is_constant:
            self.need_positive(factor)

    def eliminate(self, atom: Atom, value: Ratio) -> None:
        """Put what an unknown is into all that is known."""
        self.unknown.remove(atom)
        self.indices = [_put(index, atom, value) for index in self.indices]
        self.constraints = [replace(item, polynomial=_put(item.polynomial, atom, value)) for item in self.constraints]
        self.divisible = [
            Divisible(_put(item.numerator, atom, value), item.divisor * value.divisor)
            if atom in item.numerator.atoms()
            else item
            for item in self.divisible
        ]
        self.values = {
            other: Ratio(_put(ratio.numerator, atom, value), ratio.divisor * value.divisor)
            if atom in ratio.numerator.atoms()
            else ratio
            for other, ratio in self.values.items()
        }
        self.values[atom] = value

    def divide(self, place: int, atom: Atom, factor: Polynomial | None, rest: Polynomial) -> None:
        """Eliminate an unknown that is multiplied with a number or parameter: not all elements have one."""
        self.need_nonzero(factor)
        if factor is None or sum(atom in item.atoms() for item in self.indices) > 1:
            raise _OpaqueError
        sign = -1 if factor.is_constant and factor.constant < 0 else 1
        ahead = (of_atom(self.elements[place]) - rest).scale(sign)
        value = Ratio(ahead, factor.scale(sign))
        self.indices[place] = of_atom(self.elements[place])
        self.eliminate(atom, value)
        self.divisible.append(Divisible(value.numerator, value.divisor))

    # ------------------------------------------------------------ bounds

    def inverse(self, indices: tuple[Polynomial, ...]) -> Inverse:
        """Return loops over what is left."""
        axes = zip(indices, self.elements, self.access.axes, strict=True)
        elements = [
            Dimension(atom, (Ratio(ZERO),), (Ratio(axis.size - ONE),))
            for index, atom, axis in axes
            if index == of_atom(atom)
        ]
        own = [Dimension(atom) for atom in self.ordered(self.own)]
        terms = [Dimension(atom, fixed=self.fixed.get(atom)) for atom in self.ordered([*self.unknown, *self.fixed])]
        bounded = self.bounded([*own, *terms])
        held = [item for loop in self.access.loops[: self.outer] for item in loop.domain if holds_as_computed(item)]
        held += [item for each in elements for item in each.domain]
        implied = [Comparison(item.polynomial) for item in self.constraints if not item.needed and not item.equal]
        guards = self.guards((), {each.atom for each in elements}, held)
        held += [item for item in guards if isinstance(item, Comparison)]
        elements, guards = self.narrowed(elements, guards, implied, held)
        result: list[Dimension] = []
        for place, each in enumerate(bounded):
            inside = {each.atom, *(item.atom for item in bounded[:place]), *(item.atom for item in elements)}
            lower, upper = self.pruned(each.lower, held, low=True), self.pruned(each.upper, held, low=False)
            held += replace(each, lower=lower, upper=upper).domain
            tested = self.guards(each.guards, inside, held)
            held += [item for item in tested if isinstance(item, Comparison)]
            bounded_by = replace(each, lower=lower, upper=upper, guards=tuple(tested))
            result.append(bounded_by if bounded_by.is_single else self.clipped(bounded_by))
        values = dict(self.values)
        return Inverse(
            indices=indices,
            elements=(*elements, *result[: len(own)]),
            guards=guards,
            terms=tuple(result[len(own) :]),
            values=values,
            assumed=tuple(dict.fromkeys(self.assumed)),
            everywhere=self.everywhere,
            chooses=bool(self.kept),
        )

    def narrowed(
        self,
        elements: Sequence[Dimension],
        guards: Sequence[Guard],
        implied: Sequence[Comparison],
        held: Sequence[Formula],
    ) -> tuple[list[Dimension], tuple[Guard, ...]]:
        """Return the elements that the iterations inside of the outer loops' can reach, and what else is asked of them.

        Where they are a window that moves with the outer loops, their loops would run for little.
        """
        result, left = [*elements], list[Guard]()
        for item in (*guards, *implied):
            place = self.moving(item, result)
            if place is None or not isinstance(item, Comparison):
                left += [item] if item in guards else []
                continue
            each = result[place]
            lower, upper = [*each.lower], [*each.upper]
            if not self.bound(each.atom, Constraint(item.polynomial, item.equal), lower, upper):
                if item in guards:
                    raise _OpaqueError
                continue
            first, last = self.pruned(unique(lower), held, low=True), self.pruned(unique(upper), held, low=False)
            result[place] = replace(each, lower=first, upper=last)
            self.everywhere = False
            if len(first) > 1 and len(last) > 1:
                raise _OpaqueError
        return result, tuple(left)

    def moving(self, guard: Guard, elements: Sequence[Dimension]) -> int | None:
        """Return the innermost element's place that is compared to what an outer loop says, if one is."""
        atoms = guard.polynomial.atoms() if isinstance(guard, Comparison) else frozenset[Atom]()
        if all(is_fixed(atom) or not self.is_around(atom) for atom in atoms):
            return None
        return next((place for place in reversed(range(len(elements))) if elements[place].atom in atoms), None)

    def clipped(self, loop: Dimension) -> Dimension:
        """Return a loop that begins at one place for all elements, and asks the rest of its iterations.

        That is so for distances, and for loops that stood inside of those that are no loops any more (as the weights
        of a convolution do): they are short, as a rule, and do little in vain. Windows that move are shorter.
        """
        atom, lower = loop.atom, loop.lower
        pairs = [(low.numerator, high.numerator) for low in lower for high in loop.upper if low.divisor == high.divisor]
        if atom in self.kept.values() or is_moving_window(self.model, pairs):
            return loop
        fixed = tuple(item for item in lower if all(map(is_fixed, item.numerator.atoms())))
        long = any(self.is_inside(other, atom) for other in self.values) and self.inside.is_natural(of_atom(atom))
        if len(lower) < 2 or not fixed or long:
            return loop
        asked = (Comparison(of_atom(atom) * item.divisor - item.numerator) for item in lower if item not in fixed)
        return replace(loop, lower=fixed, guards=(*loop.guards, *asked))

    def is_inside(self, other: Atom, atom: Atom) -> bool:
        """Whether an unknown that was eliminated depends on another one, and its loop stood inside of that one's."""
        if atom not in self.values[other].numerator.atoms():
            return False
        order = self.ordered([other, atom])
        return order[0] == atom

    def ordered(self, atoms: Iterable[Atom]) -> list[Atom]:
        """Return unknowns in the order of the loops, a quotient before those that it is of.

        One that wraps around an axis (`(w * size + i - shift) % x.shape[0]`) has few values and tells those loops: it
        is outside of them all, any other one outside of the innermost.
        """
        places = {loop.atom: place for place, loop in enumerate(self.loops)}

        def key(atom: Atom) -> tuple[int, int, int]:
            if atom in places:
                return places[atom], 1, 0
            origin = self.model.origins[atom]
            inside = self.plain(origin.dividend).atoms() if isinstance(origin, Floor) else frozenset[Atom]()
            nearest = min if atom in self.wrapped else max
            return nearest((key(item)[0] for item in inside if item in places), default=0), 0, order_of(atom)[1]

        return sorted(atoms, key=key)

    def bounded(self, dimensions: Sequence[Dimension]) -> list[Dimension]:
        """Return the loops with all bounds that the constraints give, innermost first."""
        result: list[Dimension] = []
        for dimension in reversed(dimensions):
            inside = [item for item in self.constraints if dimension.atom in self.reads(item.polynomial)]
            self.constraints = [item for item in self.constraints if item not in inside]
            lower: list[Ratio] = []
            upper: list[Ratio] = []
            guards: list[Guard] = []
            for item in inside:
                if dimension.fixed is not None or not self.bound(dimension.atom, item, lower, upper):
                    guards += [Comparison(item.polynomial, item.equal)] if item.needed else []
            if dimension.fixed is None:
                self.combine(lower, upper)
                if not lower or not upper:
                    raise _OpaqueError
            result.insert(0, replace(dimension, lower=unique(lower), upper=unique(upper), guards=tuple(guards)))
        return result

    def bound(self, atom: Atom, item: Constraint, lower: list[Ratio], upper: list[Ratio]) -> bool:
        """Add a constraint to the bounds of an unknown, if it is one."""
        factor = cofactor(item.polynomial, atom)
        chosen = any(self.kept.get(choice) == atom for choice in item.polynomial.atoms())
        if chosen or factor is None or not all(map(is_fixed, factor.atoms())):
            return False
        rest = item.polynomial - factor * of_atom(atom)
        if not factor.is_constant:
            self.assume_sign(factor)
        if self.is_positive(factor):
            found, same, other = Ratio(rest.scale(-1), factor), lower, upper
        elif self.is_positive(factor.scale(-1)):
            found, same, other = Ratio(rest, factor.scale(-1)), upper, lower
        else:
            return False
        same.append(found)
        if item.equal:
            other.append(found)
        return True

    def assume_sign(self, factor: Polynomial) -> None:
        """Take for granted what sign a stride has where the access is made; that of one parameter is plain to see."""
        if len(factor.terms) == 1:
            self.need_positive(factor.scale(1 if factor.terms[0][1] > 0 else -1))
            return
        for stride in (factor, factor.scale(-1)):
            if self.inside.is_natural(stride - ONE):
                self.need_positive(stride)

    def is_positive(self, factor: Polynomial) -> bool:
        """Whether something is at least 1, or is taken to be."""
        room = factor - ONE
        low = interval_of(room, self.model.intervals).low
        return (low is not None and low >= 0) or self.reached(room) or Comparison(room) in self.assumed

    def combine(self, lower: Sequence[Ratio], upper: Sequence[Ratio]) -> None:
        """Add what follows for the other unknowns from an unknown's having a value at all."""
        if len(lower) * len(upper) > MOST_COMBINED:
            return
        for low in lower:
            for high in upper:
                same = low.divisor == high.divisor
                room = (
                    high.numerator - low.numerator
                    if same
                    else high.numerator * low.divisor - low.numerator * high.divisor
                )
                if not room.is_constant:
                    self.constraints.append(Constraint(room, needed=False))

    # ------------------------------------------------------------ what is superfluous

    def guards(self, given: Sequence[Guard], inside: set[Atom], held: Sequence[Formula]) -> tuple[Guard, ...]:
        """Return the comparisons to be tested where the atoms `inside` are known, without those that follow."""
        if not given:
            given = [
                Comparison(item.polynomial, item.equal)
                for item in self.constraints
                if item.needed and self.is_ready(item.polynomial, inside)
            ]
            self.constraints = [item for item in self.constraints if not self.is_ready(item.polynomial, inside)]
        found = [item for item in given if not isinstance(item, Comparison) or not self.follows(item, held)]
        ready = [item for item in self.divisible if self.is_ready(item.numerator, inside)]
        self.divisible = [item for item in self.divisible if item not in ready]
        return (*found, *ready)

    def is_ready(self, polynomial: Polynomial, inside: set[Atom]) -> bool:
        return not (self.reads(polynomial) & {*self.unknown, *self.fixed, *self.own}) - inside

    def pruned(self, ratios: Sequence[Ratio], held: Sequence[Formula], *, low: bool) -> Ratios:
        """Return lower or upper bounds without those that others, once they are rounded, are at least as strict as."""
        ratios = [*dict.fromkeys(Ratio(ZERO) if is_zero(item, low=low) else item for item in ratios)]
        kept = [*ratios]
        for ratio in ratios:
            for other in kept:
                if other == ratio:
                    continue
                room = other.numerator * ratio.divisor - ratio.numerator * other.divisor
                rounded = other.divisor - ONE if ratio.divisor == ONE else number(0)
                if self.follows(Comparison((room if low else room.scale(-1)) + rounded), held):
                    kept.remove(ratio)
                    break
        return tuple(kept)

    def follows(self, goal: Comparison, held: Sequence[Formula]) -> bool:
        """Whether a comparison holds wherever others do."""
        if goal.equal:
            return not goal.polynomial.terms
        goal = Comparison(self.divided(goal.polynomial))
        if self.model.is_natural(goal.polynomial):
            return True
        if not goal.polynomial.is_affine:
            return False
        wrong = at_least(number(-1), goal.polynomial)
        return self.solver.feasible(self.model.closure((*held, wrong))) is False

    def divided(self, polynomial: Polynomial) -> Polynomial:
        """Return a polynomial without the factors that are surely positive, or taken to be."""
        for atom in sorted(polynomial.atoms(), key=order_of):
            factor = cofactor(polynomial, atom)
            if factor is not None and polynomial == factor * of_atom(atom) and self.is_positive(of_atom(atom)):
                return self.divided(factor)
        return polynomial


def _put(polynomial: Polynomial, atom: Atom, value: Ratio) -> Polynomial:
    """Return a polynomial, times the divisor of `value`, with that in place of an atom."""
    if atom not in polynomial.atoms():
        return polynomial
    if value.divisor == ONE:
        return polynomial.substitute({atom: value.numerator})
    factor = cofactor(polynomial, atom)
    if factor is None:
        raise _OpaqueError
    return factor * value.numerator + (polynomial - factor * of_atom(atom)) * value.divisor
