"""Integer expressions as polynomials over atoms: parameters of a launch, loop indices, and unknowns.

A polynomial is exact: it is only made where the 64-bit arithmetic of the expression cannot wrap, which the intervals
of its atoms show. What an unknown is constrained to be is not known here (`symbolic.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from brickwork.ir.nodes import Symbol, Tensor
from brickwork.records import dataclass

SIZE_LIMIT = 2**48
"""No tensor has more elements along an axis."""
SCALAR_LIMIT = 2**31
"""A kernel scalar in a proof is guarded to lie within plus or minus this."""
WORD = 2**63


@dataclass(frozen=True, slots=True)
class SizeAtom:
    """The extent of a tensor along an axis."""

    tensor: Tensor
    axis: int

    @property
    def order(self) -> tuple[int, int, int]:
        """A key that puts atoms in a fixed order."""
        return (0, self.tensor.number, self.axis)

    def __hash__(self) -> int:
        """Return one that other atoms do not have."""
        return 4 * (8 * self.tensor.number + self.axis)


@dataclass(frozen=True, slots=True)
class ScalarAtom:
    """An integer argument of the kernel."""

    symbol: Symbol

    @property
    def order(self) -> tuple[int, int, int]:
        """A key that puts atoms in a fixed order."""
        return (1, self.symbol.number, 0)

    def __hash__(self) -> int:
        """Return one that other atoms do not have."""
        return 4 * self.symbol.number + 1


@dataclass(frozen=True, slots=True)
class IndexAtom:
    """The index of the loop with this number, which stands `depth` loops deep."""

    symbol: Symbol
    number: int
    depth: int

    @property
    def order(self) -> tuple[int, int, int]:
        """A key that puts atoms in a fixed order."""
        return (2, self.number, 0)

    def __hash__(self) -> int:
        """Return one that other atoms do not have."""
        return 4 * self.number + 2


@dataclass(frozen=True, slots=True)
class UnknownAtom:
    """A value that has no polynomial; made inside `depth` loops, so fixed during one iteration of each of them."""

    number: int
    depth: int

    @property
    def order(self) -> tuple[int, int, int]:
        """A key that puts atoms in a fixed order."""
        return (3, self.number, 0)

    def __hash__(self) -> int:
        """Return one that other atoms do not have."""
        return 4 * self.number + 3


Atom: TypeAlias = SizeAtom | ScalarAtom | IndexAtom | UnknownAtom
Monomial: TypeAlias = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """Integers from `low` to `high`, both included; None is unbounded."""

    low: int | None
    high: int | None

    @property
    def fits(self) -> bool:
        """Whether every member is a 64-bit signed integer."""
        return self.low is not None and self.high is not None and self.low >= -WORD and self.high < WORD

    def __add__(self, other: Interval) -> Interval:
        """Return the sums."""
        low = None if self.low is None or other.low is None else self.low + other.low
        high = None if self.high is None or other.high is None else self.high + other.high
        return Interval(low, high)

    def __mul__(self, other: Interval) -> Interval:
        """Return the products; unbounded unless both are bounded or both are non-negative."""
        if self.low is None or other.low is None:
            return EVERYTHING
        if self.high is None or other.high is None:
            return Interval(self.low * other.low, None) if self.low >= 0 and other.low >= 0 else EVERYTHING
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(corners), max(corners))

    def meet(self, other: Interval) -> Interval:
        """Return the intersection of two intervals."""
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Interval(max(lows, default=None), min(highs, default=None))

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval around both."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return Interval(low, high)


EVERYTHING = Interval(None, None)
INT64_RANGE = Interval(-WORD, WORD - 1)
SIZE_RANGE = Interval(0, SIZE_LIMIT)
SCALAR_RANGE = Interval(-SCALAR_LIMIT, SCALAR_LIMIT)


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of integer multiples of products of atoms; the empty product is the constant. Terms are never zero."""

    terms: tuple[tuple[Monomial, int], ...]

    @property
    def constant(self) -> int:
        """The constant term."""
        return next((factor for monomial, factor in self.terms if not monomial), 0)

    @property
    def is_constant(self) -> bool:
        """Whether no atom occurs."""
        return all(not monomial for monomial, _ in self.terms)

    @property
    def is_affine(self) -> bool:
        """Whether no product of atoms occurs."""
        return all(len(monomial) <= 1 for monomial, _ in self.terms)

    def atoms(self) -> frozenset[Atom]:
        """Return all atoms that occur."""
        return frozenset([atom for monomial, _ in self.terms for atom in monomial])

    def factor(self, monomial: Monomial) -> int:
        """Return the factor of a product of atoms."""
        return next((factor for other, factor in self.terms if other == monomial), 0)

    def __add__(self, other: Polynomial) -> Polynomial:
        """Return the sum."""
        return self._plus(other, 1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        """Return the difference."""
        return self._plus(other, -1)

    def _plus(self, other: Polynomial, sign: int) -> Polynomial:
        """Return the sum with a multiple; terms stay in order where no new product of atoms joins them."""
        if not other.terms:
            return self
        if not self.terms:
            return other.scale(sign)
        if not other.terms[-1][0]:
            return self._raised(sign * other.terms[-1][1])
        total = dict(self.terms)
        for monomial, factor in other.terms:
            total[monomial] = total.get(monomial, 0) + sign * factor
        kept = [term for term in total.items() if term[1]]
        if len(total) > len(self.terms):
            kept.sort(key=_place)
        return Polynomial(tuple(kept))

    def _raised(self, constant: int) -> Polynomial:
        """Return the sum with a constant, which stands before all other terms."""
        (first, factor), *rest = self.terms
        if first:
            return Polynomial((((), constant), *self.terms))
        return Polynomial((((), factor + constant), *rest) if factor + constant else tuple(rest))

    def __mul__(self, other: Polynomial) -> Polynomial:
        """Return the product."""
        if len(self.terms) == 1 and not self.terms[0][0]:
            return other.scale(self.terms[0][1])
        if len(other.terms) == 1 and not other.terms[0][0]:
            return self.scale(other.terms[0][1])
        return combine(
            (tuple(sorted((*left, *right), key=order_of)), a * b) for left, a in self.terms for right, b in other.terms
        )

    def scale(self, factor: int) -> Polynomial:
        """Return a multiple."""
        if factor in {0, 1}:
            return self if factor else number(0)
        return Polynomial(tuple([(monomial, factor * value) for monomial, value in self.terms]))

    def substitute(self, values: Mapping[Atom, Polynomial]) -> Polynomial:
        """Return the polynomial with atoms replaced."""
        kept = [term for term in self.terms if not any(atom in values for atom in term[0])]
        if len(kept) == len(self.terms):
            return self
        total = Polynomial(tuple(kept))
        for monomial, factor in self.terms:
            if any(atom in values for atom in monomial):
                product = number(factor)
                for atom in monomial:
                    product = product * values.get(atom, of_atom(atom))
                total = total + product
        return total


def order_of(atom: Atom) -> tuple[int, int, int]:
    """Return a key that puts atoms in a fixed order."""
    return atom.order


def combine(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    """Return the sum of the terms."""
    total: dict[Monomial, int] = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, 0) + factor
    kept = [(monomial, factor) for monomial, factor in total.items() if factor]
    if len(kept) > 1:
        kept.sort(key=_place)
    return Polynomial(tuple(kept))


def _place(term: tuple[Monomial, int]) -> tuple[int, list[tuple[int, int, int]]]:
    return place_of(term[0])


def place_of(monomial: Monomial) -> tuple[int, list[tuple[int, int, int]]]:
    """Return a key that puts products of atoms in the order in which they stand in polynomials."""
    return len(monomial), [atom.order for atom in monomial]


def cofactor(polynomial: Polynomial, atom: Atom) -> Polynomial | None:
    """Return the polynomial that an atom is multiplied with, or None where it occurs squared."""
    terms: list[tuple[Monomial, int]] = []
    for monomial, factor in polynomial.terms:
        if monomial.count(atom) > 1:
            return None
        if atom in monomial:
            terms.append((tuple(other for other in monomial if other != atom), factor))
    return combine(terms)


def number(value: int) -> Polynomial:
    """Return a constant."""
    return Polynomial((((), value),)) if value else Polynomial(())


def of_atom(atom: Atom) -> Polynomial:
    """Return an atom as a polynomial."""
    return Polynomial((((atom,), 1),))


def interval_of(polynomial: Polynomial, intervals: Mapping[Atom, Interval]) -> Interval:
    """Return an interval around the values of a polynomial, from those of its atoms."""
    low, high = 0, 0
    for monomial, factor in polynomial.terms:
        if len(monomial) == 1 and factor > 0:
            product = atom_interval(monomial[0], intervals)
            least, most = product.low, product.high
            if least is None or (most is None and least < 0):
                return EVERYTHING
            least, most = factor * least, None if most is None else factor * most
        else:
            product = Interval(factor, factor)
            for atom in monomial:
                product = product * atom_interval(atom, intervals)
            least, most = product.low, product.high
            if least is None:
                return EVERYTHING
        low, high = low + least, None if high is None or most is None else high + most
    return Interval(low, high)


def atom_interval(atom: Atom, intervals: Mapping[Atom, Interval]) -> Interval:
    """Return what an atom is known to lie in."""
    known = intervals.get(atom)
    if known is not None:
        return known
    match atom:
        case SizeAtom():
            return SIZE_RANGE
        case ScalarAtom():
            return SCALAR_RANGE
        case IndexAtom() | UnknownAtom():
            return INT64_RANGE


def only_atom(polynomial: Polynomial) -> Atom | None:
    """Return the atom that a polynomial is, if it is nothing else."""
    if len(polynomial.terms) == 1 and polynomial.terms[0][1] == 1 and len(polynomial.terms[0][0]) == 1:
        return polynomial.terms[0][0][0]
    return None
