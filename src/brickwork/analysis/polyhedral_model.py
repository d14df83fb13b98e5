"""The model that analyses ask: a kernel's loops and accesses as polynomials and formulas (integer sets).

Made by `symbolic.py`. Invariant: every state that the kernel can reach satisfies the formulas given here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from brickwork.analysis.formula import Comparison, Formula, at_least, atoms_of, less
from brickwork.analysis.polynomial import (
    Atom,
    IndexAtom,
    Interval,
    Polynomial,
    ScalarAtom,
    SizeAtom,
    UnknownAtom,
    atom_interval,
    cofactor,
    interval_of,
    number,
    of_atom,
    order_of,
)
from brickwork.diagnostics.location import Location
from brickwork.ir.answers import Answers
from brickwork.ir.nodes import Expression, For, Size, Symbol, Tensor
from brickwork.legality import legality
from brickwork.records import dataclass

SMALL = 2**40
"""Bounds of unknowns beyond this tell nothing about indices and are left out of the formulas."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A For in its place: `depth` loops stand around it; `leaves` if a break may end it early."""

    node: For
    atom: IndexAtom
    start: Polynomial
    stop: Polynomial
    depth: int
    leaves: bool

    def __hash__(self) -> int:
        """Return that of the index: loops are looked up often, and their bodies are long."""
        return hash(self.atom)

    @property
    def domain(self) -> tuple[Formula, Formula]:
        """The range of the index."""
        return at_least(of_atom(self.atom), self.start), less(of_atom(self.atom), self.stop)

    @legality
    def goes_along(self, index: Polynomial) -> bool:
        """Whether an index is the loop's own, or that counted from the end: it goes through the same numbers."""
        own = of_atom(self.atom)
        return index == own or index == self.start + self.stop - number(1) - own


@dataclass(frozen=True, slots=True)
class Axis:
    """One index of an access. If `wraps`, a negative value counts from the end.

    `modular` equals `value` but for multiples of 2**64, in terms that speculation can work on.
    """

    value: Polynomial
    size: Polynomial
    wraps: bool
    source: Expression
    modular: Polynomial


@dataclass(frozen=True, slots=True)
class Access:
    """An element read or written: where, inside which loops, and on which path.

    Of the `loops`, the first `private` have the tensor's declaration in them: each iteration has one of its own. No two
    iterations of all loops touch the same element by accesses that are `alone`. A `literal` is what is stored, as text.
    """

    number: int
    tensor: Tensor
    store: bool
    axes: tuple[Axis, ...]
    loops: tuple[Loop, ...]
    conditions: tuple[Formula, ...]
    depth: int
    loc: Location
    private: int = 0
    alone: bool = False
    literal: str | None = None

    def is_shared(self, loop: Loop) -> bool:
        """Whether the access is made in a loop whose iterations all see the same tensor."""
        return loop in self.loops[self.private :]


@dataclass(frozen=True, slots=True)
class Quotient:
    """A floor division by parameters: `dividend == quotient * divisor + rest`, modulo 2**64."""

    dividend: Polynomial
    divisor: Polynomial
    rest: Polynomial


@dataclass(frozen=True, slots=True)
class Floor:
    """What an unknown is: the floor of a quotient, or the remainder that belongs to it. The divisor is not zero."""

    dividend: Polynomial
    divisor: Polynomial
    remainder: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """What an unknown is: `then` where an exact condition holds, else `otherwise`."""

    condition: Formula
    then: Polynomial
    otherwise: Polynomial


Origin: TypeAlias = Floor | Choice
Place: TypeAlias = tuple[tuple[Loop, ...], tuple[Formula, ...]]
"""The loops around something, and the conditions on its path."""


@dataclass(frozen=True, slots=True)
class Exclusive:
    """An exclusive or of two 64-bit integers, bit by bit."""

    left: Polynomial
    right: Polynomial


@dataclass(frozen=True, slots=True)
class Element:
    """What an unknown is: an element of a tensor that stays the same.

    If no element is greater than the next, `most` are the sizes that none exceeds; else it is None. If it begins a row
    that has no element in common with those that others begin, `last` has its end, or its length if `counted`.
    """

    tensor: Tensor
    indices: tuple[Polynomial, ...]
    most: tuple[Size, ...] | None
    last: Tensor | None = None
    counted: bool = False

    @property
    def ascends(self) -> bool:
        """Whether no element of the tensor is greater than the next."""
        return self.most is not None


@dataclass(frozen=True, slots=True)
class Model:
    """The loops and accesses of a kernel, and what is known of the atoms in them.

    `loose` atoms have definitions that hold but do not fix them. `scalars` are the integer arguments that values of
    indices, bounds or conditions were computed from. `floors` are polynomials over parameters, each at least 0.
    `origins` say what unknowns are that are functions of other atoms. `own` has intervals of unknowns and indices that
    no limit of a size or a scalar is the reason for. `elements` are what unknowns were read from. `places`, `free`,
    `naturals` and `steps` are what is known at places, without limits, of signs, and which accesses a loop's step keeps
    apart, as it was found: many accesses are made in the same loops.
    """

    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    definitions: Mapping[Atom, Formula]
    intervals: Mapping[Atom, Interval]
    own: Mapping[Atom, Interval]
    quotients: Mapping[Atom, Quotient]
    exclusive: Mapping[Atom, Exclusive]
    loose: frozenset[Atom]
    context: tuple[Formula, ...]
    scalars: frozenset[Symbol]
    floors: tuple[Polynomial, ...] = ()
    origins: Mapping[Atom, Origin] = field(default_factory=dict[Atom, Origin])
    elements: Mapping[Atom, Element] = field(default_factory=dict[Atom, Element])
    places: dict[Place, Model] = field(init=False, default_factory=dict["Place", "Model"], compare=False, repr=False)
    free: Answers[Model, Model] = field(
        init=False, default_factory=Answers["Model", "Model"], compare=False, repr=False
    )
    naturals: dict[Polynomial, bool] = field(
        init=False, default_factory=dict[Polynomial, bool], compare=False, repr=False
    )
    steps: dict[tuple[object, ...], bool] = field(
        init=False, default_factory=dict[tuple[object, ...], bool], compare=False, repr=False
    )

    def within(self, *accesses: Access) -> Model:
        """Return what is known where all of these accesses happen: their loops run, their conditions hold."""
        loops = tuple(dict.fromkeys(loop for access in accesses for loop in access.loops))
        conditions = tuple(dict.fromkeys(item for access in accesses for item in access.conditions))
        found = self.places.get((loops, conditions))
        if found is None:
            found = self.places[loops, conditions] = self._at((loops, conditions))
        return found

    def _at(self, place: Place) -> Model:
        loops, conditions = place
        lengths = [
            stop - start - number(1)
            for loop in loops
            for start in self.greatest_of(loop.start)
            for stop in self.least_of(loop.stop)
        ]
        holding = (*self.context, *conditions)
        lengths += [item.polynomial for item in holding if isinstance(item, Comparison) and not item.equal]
        floors = tuple(dict.fromkeys(item for item in lengths if all(map(is_fixed, item.atoms()))))
        intervals = dict(self.intervals)
        for floor in floors:
            _tighten(floor, intervals)
        for quotient in self.quotients.values():
            low = interval_of(quotient.divisor, intervals).low
            if low is not None and low > 0:
                for rest in quotient.rest.atoms():
                    intervals[rest] = atom_interval(rest, intervals).meet(Interval(0, None))
        return replace(self, intervals=intervals, floors=floors)

    def is_natural(self, polynomial: Polynomial) -> bool:
        """Whether a polynomial is surely at least 0."""
        found = self.naturals.get(polynomial)
        if found is None:
            found = self.naturals[polynomial] = self._is_natural(polynomial)
        return found

    def _is_natural(self, polynomial: Polynomial) -> bool:
        low = interval_of(polynomial, self.intervals).low
        if low is not None and low >= 0:
            return True
        rests = (interval_of(polynomial - floor, self.intervals).low for floor in self.floors)
        return any(rest is not None and rest >= 0 for rest in rests)

    @legality
    def _sign(self, factor: Polynomial) -> int:
        """Return 1 for what is never negative, -1 for what is never positive, 0 if that is not known."""
        return 1 if self.is_natural(factor) else -1 if self.is_natural(factor.scale(-1)) else 0

    @property
    def unlimited(self) -> Model:
        """The model without the ends of unknowns that come from limits of sizes and scalars.

        What has to hold for those would have to for the largest tensors alone.
        """
        return self.free.of(self, Model._without_limits)

    def _without_limits(self) -> Model:
        intervals = dict(self.intervals)
        for atom, interval in self.intervals.items():
            if isinstance(atom, UnknownAtom):
                own = self.own[atom]
                low = None if own.low is None and interval.low != 0 else interval.low
                intervals[atom] = Interval(low, None if own.high is None and interval.high != 0 else interval.high)
        return replace(self, intervals=intervals)

    def domain(self, access: Access) -> tuple[Formula, ...]:
        """Return where an access happens: the ranges of its loops and the conditions on its path."""
        return (*(part for loop in access.loops for part in loop.domain), *access.conditions)

    def least_of(self, polynomial: Polynomial) -> tuple[Polynomial, ...]:
        """Return polynomials of which the given one is the least: more than one if it is made with `min`."""
        for atom in sorted(polynomial.atoms() & self.origins.keys(), key=order_of):
            origin, factor = self.origins[atom], cofactor(polynomial, atom)
            if isinstance(origin, Choice) and factor is not None and (sign := self._sign(factor)):
                rest = polynomial - of_atom(atom) * factor
                then, otherwise = (rest + factor * item for item in (origin.then, origin.otherwise))
                # `otherwise` is taken where `then` is greater, and where both are the same either is.
                room = (origin.otherwise - origin.then).scale(sign)
                if origin.condition in {Comparison(room), Comparison(room - number(1))}:
                    return (*self.least_of(then), *self.least_of(otherwise))
        return (polynomial,)

    def greatest_of(self, polynomial: Polynomial) -> tuple[Polynomial, ...]:
        """Return polynomials of which the given one is the greatest: more than one if it is made with `max`."""
        return tuple(item.scale(-1) for item in self.least_of(polynomial.scale(-1)))

    def is_defined(self, atom: Atom, offset: int) -> bool:
        """Whether an unknown (or its copy, numbered higher by `offset`) is described exactly by its definition."""
        if isinstance(atom, UnknownAtom) and atom.number > offset:
            atom = UnknownAtom(atom.number - offset, atom.depth)
        return atom in self.definitions and atom not in self.loose

    def closure(self, formulas: Iterable[Formula], atoms: Iterable[Atom] = ()) -> tuple[Formula, ...]:
        """Return the formulas with all that is known of the atoms in them, and of the given ones."""
        result = list(formulas)
        seen: set[Atom] = set()
        pending = {*atoms_of(result), *atoms}
        while pending:
            atom = pending.pop()
            seen.add(atom)
            added = [*self._bounds(atom)]
            if (definition := self.definitions.get(atom)) is not None:
                added.append(definition)
            result.extend(added)
            pending |= atoms_of(added) - seen
        result.extend(fact for fact in self.context if atoms_of((fact,)) <= seen)
        return tuple(result)

    def _bounds(self, atom: Atom) -> list[Formula]:
        if isinstance(atom, SizeAtom):
            return [at_least(of_atom(atom), number(0))]
        if not isinstance(atom, UnknownAtom):
            return []
        interval = atom_interval(atom, self.intervals)
        result: list[Formula] = []
        if interval.low is not None and abs(interval.low) <= SMALL:
            result.append(at_least(of_atom(atom), number(interval.low)))
        if interval.high is not None and abs(interval.high) <= SMALL:
            result.append(at_least(number(interval.high), of_atom(atom)))
        return result


def is_parameter(atom: Atom) -> bool:
    """Whether an atom is the same in the whole kernel."""
    return isinstance(atom, SizeAtom | ScalarAtom)


def is_fixed(atom: Atom) -> bool:
    """Whether an atom is the same in the whole kernel: a parameter, or what was computed of some before all loops."""
    return depth_of(atom) == 0


def _tighten(floor: Polynomial, intervals: dict[Atom, Interval]) -> None:
    """Narrow the interval of the atom of `factor * atom + constant >= 0`."""
    atoms = floor.atoms()
    if len(atoms) != 1 or not floor.is_affine:
        return
    (atom,) = atoms
    factor = floor.factor((atom,))
    least_or_most = -(floor.constant // factor)
    bound = Interval(least_or_most, None) if factor > 0 else Interval(None, floor.constant // -factor)
    intervals[atom] = atom_interval(atom, intervals).meet(bound)


def depth_of(atom: Atom) -> int:
    """Return during one iteration of how many enclosing loops an atom is fixed."""
    return atom.depth if isinstance(atom, IndexAtom | UnknownAtom) else 0


def depth_of_polynomial(polynomial: Polynomial) -> int:
    """Return during one iteration of how many enclosing loops a polynomial is fixed."""
    return max((depth_of(atom) for atom in polynomial.atoms()), default=0)
