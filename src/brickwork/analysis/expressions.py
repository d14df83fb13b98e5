"""Expressions as polynomials and formulas; whatever is not polynomial becomes an unknown with a definition.

Rules beyond plain arithmetic: floor division and remainder by constants (exact) and by parameters (`0 <= a mod n < n`),
`a - (a // n) * n` as a remainder even where the two `n` are only equal for some arguments, minimum, maximum, Select.
Invariant: an unknown's definition holds in every state that the kernel can reach.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from brickwork.analysis import formula as logic
from brickwork.analysis.formula import FALSE, TRUE, UNKNOWN, Comparison, Formula, atoms_of, both, either, negate
from brickwork.analysis.intervals import interval_of_bits, interval_of_choice, interval_of_rest, mirrored
from brickwork.analysis.polyhedral_model import (
    Choice,
    Element,
    Exclusive,
    Floor,
    Origin,
    Quotient,
    depth_of,
    depth_of_polynomial,
)
from brickwork.analysis.polynomial import (
    EVERYTHING,
    INT64_RANGE,
    SIZE_LIMIT,
    Atom,
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
    only_atom,
)
from brickwork.ir.dtypes import BOOL, INT64, Kind
from brickwork.ir.nodes import (
    Apply,
    Ascending,
    Cast,
    Constant,
    Expression,
    Load,
    Random,
    Read,
    Select,
    Size,
    Symbol,
    Tensor,
)
from brickwork.legality import legality

Environment: TypeAlias = "dict[Symbol, Polynomial | Formula | None]"


class Values:
    """What is known of the atoms of one kernel, filled while expressions are evaluated."""

    def __init__(
        self,
        scalars: Iterable[Symbol],
        assumed: Mapping[Atom, Interval],
        unchanged: frozenset[Tensor] = frozenset(),
        ascending: Iterable[Ascending] = (),
    ) -> None:
        """Begin with the kernel's scalar arguments, and intervals that are taken for granted.

        The elements of the `unchanged` tensors are the same in the whole kernel, and some of these ascend.
        """
        self.scalars = frozenset(scalars)
        self.unchanged = unchanged
        self.ascending = {tensor: item for item in ascending for tensor in (item.last, item.tensor) if tensor}
        self.elements: dict[Atom, Element] = {}
        self.definitions: dict[Atom, Formula] = {}
        self.intervals: dict[Atom, Interval] = dict(assumed)
        self.own: dict[Atom, Interval] = {}
        """Of unknowns and indices, the intervals that no limit of a size or a scalar is the reason for."""
        self.ranges: dict[Atom, frozenset[Atom]] = {}
        self.ends: dict[Atom, tuple[Polynomial, Polynomial]] = {}
        """Of the indices of loops, outer ones first, what they begin with and end before."""
        self.factors: set[Atom] = set()
        self.counts: set[Atom] = set()
        """What natural numbers are shifted to the left by, and what bounds that."""
        self.degree = 1
        self.wrapped: set[Polynomial] = set()
        """What may differ from the machine's value."""
        self.used: set[Symbol] = set()
        self.loose: set[Atom] = set()
        self._replaced: dict[Atom, Polynomial] = {}
        self._made: dict[Hashable, Atom] = {}
        self._loaded: dict[tuple[Tensor, tuple[Polynomial, ...]], Polynomial] = {}
        self._bounding: dict[Atom, Atom] = {}
        """The sizes that unknowns are as small as, but for a number."""
        self.quotients: dict[Atom, Quotient] = {}
        self.origins: dict[Atom, Origin] = {}
        self.exclusive: dict[Atom, Exclusive] = {}
        self.powers: set[Atom] = set()
        """Of two."""
        self.moved: dict[Atom | None, tuple[Polynomial, Polynomial]] = {}
        """What was shifted to the right, and by how many places."""
        self._count = 0

    def interval(self, polynomial: Polynomial) -> Interval:
        """Return an interval around a polynomial's values."""
        return interval_of(polynomial, self.intervals)

    def own_interval(self, polynomial: Polynomial) -> Interval:
        """Return an interval around a polynomial's values, however large sizes and scalars are."""
        return interval_of(polynomial, {atom: self.own.get(atom, EVERYTHING) for atom in polynomial.atoms()})

    def replace(self, atom: Atom, value: Polynomial) -> None:
        """Let `value` stand for `atom` from now on."""
        self._replaced = {old: new.substitute({atom: value}) for old, new in self._replaced.items()}
        self._replaced[atom] = value

    def narrow(self, value: Polynomial, atom: Atom) -> None:
        """Note that an unknown with another addend is as small as an atom that the sum is equal to."""
        unknown = only_atom(value - number(value.constant))
        if isinstance(unknown, UnknownAtom):
            within = self.interval(of_atom(atom) - number(value.constant))
            self.intervals[unknown] = atom_interval(unknown, self.intervals).meet(within)
            self._bounding[unknown] = atom

    def name(self, same: Comparison) -> None:
        """Note that a scalar has the value of an unknown, if that is what a comparison says."""
        for scalar in same.polynomial.atoms():
            value = of_atom(scalar) - same.polynomial.scale(same.polynomial.factor((scalar,)))
            if isinstance(scalar, ScalarAtom) and isinstance(only_atom(value), UnknownAtom):
                self._define(of_atom(scalar), same)
                self.intervals[scalar] = atom_interval(scalar, self.intervals).meet(self.interval(value))

    def unknown(self, depth: int, interval: Interval = INT64_RANGE, own: Interval = EVERYTHING) -> Polynomial:
        """Return a new unknown; no limit of a size or a scalar is the reason for the ends of `own`."""
        self._count += 1
        atom = UnknownAtom(self._count, depth)
        self.intervals[atom], self.own[atom] = interval, own
        return of_atom(atom)

    @contextmanager
    def trial(self) -> Generator[None]:
        """Forget afterwards what was derived meanwhile: it may rest on limits that turn out not to hold."""
        made, wrapped = {**self._made}, {*self.wrapped}
        yield
        self._made, self.wrapped = made, wrapped

    def restrict(self, unknown: Polynomial, condition: Formula) -> None:
        """Note that a condition holds for an unknown, which does not fix it."""
        self._define(unknown, condition)
        self.loose |= unknown.atoms()

    def narrowed(self, value: Polynomial, interval: Interval, rests: frozenset[Atom], depth: int) -> Polynomial:
        """Return a new unknown that equals `value`, for a block that runs only where it lies in an interval.

        `rests` are what the interval comes from.
        """
        result = self.unknown(depth, interval, EVERYTHING if rests else interval)
        low = number(max(interval.low or 0, 0))
        square = logic.at_least(result * result, result * low) if (interval.low or 0) > 0 else TRUE
        self._define(result, both(logic.equal(result, value), square))
        self.ranges[next(iter(result.atoms()))] = rests
        return result

    def forget(self, environment: Environment, changed: Iterable[Symbol], depth: int) -> Environment:
        """Return the environment with new unknowns for the changed symbols."""
        result = dict(environment)
        for symbol in changed:
            result[symbol] = self._fresh(symbol, depth)
        return result

    def _fresh(self, symbol: Symbol, depth: int) -> Polynomial | Formula | None:
        if symbol.dtype is INT64:
            return self.unknown(depth)
        return UNKNOWN if symbol.dtype is BOOL else None

    def join(
        self, condition: Formula, then: Environment, otherwise: Environment, changed: Iterable[Symbol], depth: int
    ) -> Environment:
        """Return the environment after a branch."""
        result = dict(otherwise)
        for symbol in changed:
            left, right = then.get(symbol), otherwise.get(symbol)
            if left == right:
                result[symbol] = left
            elif isinstance(left, Polynomial) and isinstance(right, Polynomial):
                result[symbol] = self.choose(condition, left, right, depth)
            elif left is None or right is None or isinstance(left, Polynomial) or isinstance(right, Polynomial):
                result[symbol] = self._fresh(symbol, depth)
            else:
                result[symbol] = either(both(condition, left), both(negate(condition), right))
        return result

    # ------------------------------------------------------------ integers

    def exact(self, polynomial: Polynomial) -> Polynomial:
        """Return a polynomial that equals the machine's value, where `polynomial` may differ by multiples of 2**64."""
        if self.interval(polynomial).fits or self._fits_in_loops(polynomial):
            return polynomial
        self.wrapped.add(polynomial)
        return self._derived(("wrapped", polynomial), (polynomial,), INT64_RANGE)

    def _fits_in_loops(self, polynomial: Polynomial) -> bool:
        """Whether a polynomial fits 64 bits at all turns of loops, whose indices lie between their ends."""
        return self._in_loops(polynomial).fits

    @legality
    def _in_loops(self, polynomial: Polynomial) -> Interval:
        """Return an interval around a polynomial's values, by the ends of loops where these tell it."""
        least, most = (self._extreme(polynomial, most=most) for most in (False, True))
        if least is None or most is None:
            return self.interval(polynomial)
        return Interval(self.interval(least).low, self.interval(most).high).meet(self.interval(polynomial))

    @legality
    def _extreme(self, polynomial: Polynomial, *, most: bool) -> Polynomial | None:
        """Return the least value of a polynomial in all turns, or the greatest, by what loops do not change."""
        for atom, (start, stop) in reversed(self.ends.items()):
            factor = cofactor(polynomial, atom)
            if factor is None or not factor.is_constant:
                return None
            grows = factor.constant > 0
            polynomial = polynomial.substitute({atom: stop - number(1) if grows == most else start})
        return polynomial

    def integer(self, expression: Expression, environment: Environment, depth: int) -> Polynomial:
        """Return the value of an int64 expression, modulo 2**64."""
        match expression:
            case Constant(value=value) if not isinstance(value, float):
                return number(int(value))
            case Read(symbol=symbol):
                return self._read(symbol, environment, depth)
            case Size(tensor=tensor, axis=axis):
                atom = SizeAtom(tensor, axis)
                return self._replaced.get(atom, of_atom(atom))
            case Load():
                return self._load(expression, environment, depth)
            case Apply(dtype=dtype) if dtype is INT64:
                operands = [self.integer(operand, environment, depth) for operand in expression.operands]
                return self._apply(expression.operator.name, operands, depth)
            case Select(condition=condition, then=then, otherwise=otherwise):
                return self.choose(
                    self.condition(condition, environment, depth),
                    self.integer(then, environment, depth),
                    self.integer(otherwise, environment, depth),
                    depth,
                )
            case Cast(operand=operand) if operand.dtype is BOOL:
                return self.choose(self.condition(operand, environment, depth), number(1), number(0), depth)
            case Random(bounds=(low, high)):
                return self._random(
                    self.integer(low, environment, depth), self.integer(high, environment, depth), depth
                )
            case _:
                return self.unknown(depth)

    def _load(self, load: Load, environment: Environment, depth: int) -> Polynomial:
        """Return the value of an element: of a tensor that stays the same, one unknown for the same indices."""
        dtype = load.tensor.type.dtype
        low, high = (
            (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if dtype.kind is Kind.INT else (0, 2**dtype.bits - 1)
        )
        known = (Interval(low, high),) * 2 if dtype.bits < INT64.bits else ()
        if load.tensor not in self.unchanged:
            return self.unknown(depth, *known)
        indices = tuple(self.exact(self.integer(index, environment, depth)) for index in load.indices)
        if (load.tensor, indices) not in self._loaded:
            fixed = max(map(depth_of_polynomial, indices), default=0)
            # Of what stands in no loop, conditions are told to the host, which reads no elements.
            self._loaded[load.tensor, indices] = self._element(load.tensor, indices, max(fixed, min(depth, 1)), known)
        return self._loaded[load.tensor, indices]

    @legality
    def _element(
        self, tensor: Tensor, indices: tuple[Polynomial, ...], depth: int, known: tuple[Interval, ...]
    ) -> Polynomial:
        if (fact := self.ascending.get(tensor)) is None:
            value, element = self.unknown(depth, *known), Element(tensor, indices, None)
        else:
            value = self.unknown(depth, Interval(0, SIZE_LIMIT))
            sizes = (self.integer(size, {}, 0) for size in fact.most)
            self.restrict(value, both(*(logic.at_least(size, value) for size in sizes)))
            most = fact.most if fact.last is None else None
            element = Element(tensor, indices, most, fact.last if tensor == fact.tensor else None, fact.counted)
        self.elements[next(iter(value.atoms()))] = element
        return value

    def _read(self, symbol: Symbol, environment: Environment, depth: int) -> Polynomial:
        known = environment.get(symbol)
        if isinstance(known, Polynomial):
            return known
        if symbol in self.scalars:
            self.used.add(symbol)
            atom = ScalarAtom(symbol)
            return self._replaced.get(atom, of_atom(atom))
        return self.unknown(depth)

    def _random(self, low: Polynomial, high: Polynomial, depth: int) -> Polynomial:
        low, high = self.exact(low), self.exact(high)
        own = self.own_interval(low).hull(self.own_interval(high))
        value = self.unknown(depth, self.interval(low).hull(self.interval(high)), own)
        inside = both(logic.at_least(value, low), logic.less(value, high))
        # Where the bounds are in the wrong order nothing is drawn, and a path may go on without the number.
        self._define(value, either(inside, logic.at_least(low, high)))
        self.loose |= value.atoms()
        return value

    def _apply(self, name: str, operands: list[Polynomial], depth: int) -> Polynomial:
        if name in {"minimum", "maximum", "abs"}:
            operands = [self.exact(operand) for operand in operands]
        match name, operands:
            case "add", [left, right]:
                return left + right
            case "sub", [left, right]:
                return left - right
            case "mul", [left, right]:
                return self._product(left, right)
            case "neg", [operand]:
                return operand.scale(-1)
            case "floordiv", [left, right]:
                return self.divide(left, right)[0]
            case "mod", [left, right]:
                return self.divide(left, right)[1]
            case "minimum", [left, right]:
                return self.choose(logic.less(right, left), right, left, depth)
            case "maximum", [left, right]:
                return self.choose(logic.less(left, right), right, left, depth)
            case "abs", [operand]:
                return self.choose(logic.less(operand, number(0)), operand.scale(-1), operand, depth)
            case "shift_left", [left, right] if right.is_constant and 0 <= right.constant < INT64.bits - 2:
                return left.scale(2**right.constant)
            case "shift_right", [left, right] if right.is_constant and 0 <= right.constant < INT64.bits - 2:
                return self.divide(left, number(2**right.constant))[0]
            case "bit_and", [left, right]:
                return self._common_bits(left, right, depth)
            case "bit_or", [left, right] if self._is_power(right):
                return self.choose(self._has_bit(left, right), left, self._exclusive(self.exact(left), right), depth)
            case (("shift_left" | "shift_right" | "bit_length"), _):
                return self._of_bits(name, operands)
            case "bit_xor", [left, right]:
                return self._exclusive(self.exact(left), self.exact(right))
            case _:
                return self.unknown(depth)

    def _common_bits(self, left: Polynomial, right: Polynomial, depth: int) -> Polynomial:
        if self._is_power(left):
            left, right = right, left
        moved = self.moved.get(only_atom(left))
        if right == number(1) and moved is not None:
            power = self._of_bits("shift_left", (number(1), moved[1]))
            if self._is_power(power):
                return self.choose(self._has_bit(moved[0], power), number(1), number(0), depth)
        mask = right.constant if right.is_constant else 0
        if mask > 0 and mask & (mask + 1) == 0:
            return self.divide(left, number(mask + 1))[1]
        if self._is_power(right):
            return self.choose(self._has_bit(left, right), right, number(0), depth)
        return self.unknown(depth, *((Interval(0, mask),) * 2 if mask > 0 else ()))

    @legality
    def _is_power(self, value: Polynomial) -> bool:
        """Whether an integer is a positive power of two."""
        if value.is_constant:
            return value.constant > 0 and value.constant & (value.constant - 1) == 0
        return only_atom(value) in self.powers

    def _has_bit(self, value: Polynomial, power: Polynomial) -> Formula:
        """Return whether a bit is set: without it a number is less, with it greater, by that power of two."""
        value = self.exact(value)
        other = self._exclusive(value, power)
        self.restrict(other, either(logic.equal(other, value + power), logic.equal(other, value - power)))
        return logic.less(other, value)

    def _exclusive(self, left: Polynomial, right: Polynomial) -> Polynomial:
        one, two = self.interval(left), self.interval(right)
        within = INT64_RANGE
        if one.fits and two.fits and min(one.low or 0, two.low or 0) >= 0:
            within = Interval(0, 2 ** max(one.high or 0, two.high or 0).bit_length() - 1)
        value = self._derived(("exclusive", left, right), (left, right), within)
        self.loose |= value.atoms()
        self.exclusive[next(iter(value.atoms()))] = Exclusive(left, right)
        return value

    def _of_bits(self, name: str, operands: Sequence[Polynomial]) -> Polynomial:
        """Return a number that is shifted, or how many bits one takes."""
        operands = [self.exact(operand) for operand in operands]
        around = [self._in_loops(operand) for operand in operands]
        if name == "shift_left" and all(each.low is not None and each.low >= 0 for each in around):
            self._bounds_of(operands[1].atoms(), self.counts)
        within = interval_of_bits(name, around)
        value = self._derived((name, *operands), operands, within)
        self.loose |= value.atoms()
        if name == "shift_left" and self._is_power(operands[0]) and within.low is not None and within.low > 0:
            self.powers |= value.atoms()
        if name == "shift_right":
            self.moved[next(iter(value.atoms()))] = operands[0], operands[1]
        return value

    def _product(self, left: Polynomial, right: Polynomial) -> Polynomial:
        for quotient, factor in ((left, right), (right, left)):
            if len(quotient.terms) == 1 and len(quotient.terms[0][0]) == 1:
                ((atom,), times) = quotient.terms[0]
                if (known := self.quotients.get(atom)) is not None and known.divisor == factor:
                    return (known.dividend - known.rest).scale(times)
        result = left * right
        if not left.is_constant and not right.is_constant:
            self.degree = max((self.degree, *(len(monomial) for monomial, _ in result.terms)))
            self._bounds_of(result.atoms(), self.factors)
        return result

    def widening(self) -> set[Atom]:
        """Return the factors of what may wrap, except with a value that may be anything: there no limit helps."""
        result: set[Atom] = set()
        derived = set(self._made.values())
        anything = {atom for atom, interval in self.intervals.items() if interval == INT64_RANGE} - derived
        for polynomial in self.wrapped:
            if not polynomial.atoms() & anything:
                self._bounds_of(polynomial.atoms(), result)
        return result & self.factors

    def _bounds_of(self, atoms: Iterable[Atom], found: set[Atom]) -> None:
        """Add atoms, and the parameters that bound them through the ranges of loop indices."""
        for atom in atoms:
            if atom not in found:
                found.add(atom)
                bounding = self._bounding.get(atom)
                self._bounds_of(self.ranges.get(atom, ()) if bounding is None else (bounding,), found)

    def divide(self, dividend: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Return floor quotient and remainder; the divisor is not zero."""
        top, bottom = self.exact(dividend), self.exact(divisor)
        if bottom.is_constant and bottom.constant in {0, -1}:
            # -2**63 // -1 wraps. A division by 0 is never reached.
            return dividend.scale(-1), number(0)
        inside, by = self._in_loops(top), self.interval(bottom)
        if by.low is not None and by.low >= 0:
            by = Interval(max(by.low, 1), by.high)
        if bottom == number(1):
            return dividend, number(0)
        positive = by.low is not None and by.low > 0
        ahead = inside.low is not None and inside.low >= 0
        if positive and ahead and inside.high is not None and by.low is not None and inside.high < by.low:
            return number(0), dividend
        own = self.own_interval(top)
        within, own = ((Interval(0, item.high) if positive and ahead else mirrored(item)) for item in (inside, own))
        quotient = self._derived(("quotient", top, bottom), (top, bottom), within, own)
        rest = self._derived(
            ("rest", top, bottom), (top, bottom), interval_of_rest(by), interval_of_rest(self.own_interval(bottom))
        )
        self.ranges[next(iter(quotient.atoms()))] = top.atoms() | bottom.atoms()
        for made, remainder in ((quotient, False), (rest, True)):
            self.origins[next(iter(made.atoms()))] = Floor(top, bottom, remainder)
        if bottom.is_constant:
            difference = top - quotient.scale(bottom.constant)
            self._define(quotient, self._rest_bounds(difference, bottom, by))
            self._define(rest, logic.equal(rest, difference))
            return quotient, rest
        below = logic.at_least(top, rest) if positive and ahead else TRUE
        self._define(rest, both(self._rest_bounds(rest, bottom, by), below))
        self.loose |= quotient.atoms() | rest.atoms()
        self.quotients[next(iter(quotient.atoms()))] = Quotient(dividend, bottom, rest)
        if positive and ahead:
            # Each of 1 to the quotient takes the divisor away, which is at least 1.
            taken = logic.at_least(top - bottom + number(1), quotient)
            within = either(logic.equal(quotient, number(0)), taken)
            self._define(
                quotient, both(both(logic.at_least(quotient, number(0)), logic.at_least(top, quotient)), within)
            )
        return quotient, rest

    def _rest_bounds(self, rest: Polynomial, divisor: Polynomial, by: Interval) -> Formula:
        """Return the range of a remainder; paths on which the divisor is zero, and nothing is divided, are included."""
        zero = number(0)
        return either(self._nonzero_rest_bounds(rest, divisor, by), logic.equal(divisor, zero))

    def _nonzero_rest_bounds(self, rest: Polynomial, divisor: Polynomial, by: Interval) -> Formula:
        zero = number(0)
        positive = both(logic.at_least(rest, zero), logic.less(rest, divisor))
        negative = both(logic.at_least(zero, rest), logic.less(divisor, rest))
        if by.low is not None and by.low > 0:
            return positive
        if by.high is not None and by.high < 0:
            return negative
        return either(positive, negative)

    def choose(self, condition: Formula, then: Polynomial, otherwise: Polynomial, depth: int) -> Polynomial:
        """Return `then` where the condition holds, else `otherwise`."""
        condition = self.decide(condition)
        then, otherwise = self.exact(then), self.exact(otherwise)
        if then == otherwise or condition == TRUE:
            return then
        if condition == FALSE:
            return otherwise
        side = logic.side_of_choice(condition, then - otherwise)
        interval, own = (
            interval_of_choice(side, *map(around, (then, otherwise))) for around in (self.interval, self.own_interval)
        )
        if logic.is_exact(condition):
            key = ("choose", condition, then, otherwise)
            value = self._derived(key, (then, otherwise), interval, own, condition)
            self.origins[next(iter(value.atoms()))] = Choice(condition, then, otherwise)
        else:
            value = self.unknown(depth, interval, own)
        self._define(value, logic.chosen(condition, value, then, otherwise))
        return value

    def _derived(
        self,
        key: Hashable,
        sources: Iterable[Polynomial],
        interval: Interval,
        own: Interval = EVERYTHING,
        condition: Formula = TRUE,
    ) -> Polynomial:
        """Return the unknown that is a function of `sources` (the same one for the same key)."""
        if (made := self._made.get(key)) is not None:
            return of_atom(made)
        depth = max(map(depth_of_polynomial, sources), default=0)
        depth = max((depth, *(depth_of(atom) for atom in atoms_of((condition,)))))
        result = self.unknown(depth, interval.meet(INT64_RANGE), own)
        self._made[key] = next(iter(result.atoms()))
        return result

    def _define(self, value: Polynomial, definition: Formula) -> None:
        self.definitions.setdefault(next(iter(value.atoms())), definition)

    # ------------------------------------------------------------ conditions

    def decide(self, condition: Formula) -> Formula:
        """Return TRUE or FALSE for a comparison that the intervals decide."""
        if not isinstance(condition, Comparison) or condition.equal:
            return condition
        interval = self.interval(condition.polynomial)
        if interval.low is not None and interval.low >= 0:
            return TRUE
        return FALSE if interval.high is not None and interval.high < 0 else condition

    def condition(self, expression: Expression, environment: Environment, depth: int) -> Formula:
        """Return the formula of a bool expression."""
        match expression:
            case Constant(value=value):
                return TRUE if value else FALSE
            case Read(symbol=symbol):
                return self._flag(symbol, environment)
            case Apply(operator=operator, operands=(left, right)) if left.dtype is INT64:
                first, second = self.integer(left, environment, depth), self.integer(right, environment, depth)
                return self._compare(operator.name, first, second)
            case Apply(operator=operator, operands=operands) if all(item.dtype is BOOL for item in operands):
                return _logic(operator.name, [self.condition(item, environment, depth) for item in operands])
            case Cast(operand=operand) if operand.dtype is INT64:
                return self._compare("ne", self.integer(operand, environment, depth), number(0))
            case Select(condition=test, then=then, otherwise=otherwise):
                known, one, other = (self.condition(item, environment, depth) for item in (test, then, otherwise))
                return either(both(known, one), both(negate(known), other))
            case _:
                return UNKNOWN

    def _compare(self, name: str, left: Polynomial, right: Polynomial) -> Formula:
        left, right = self.exact(left), self.exact(right)
        match name:
            case "lt":
                return logic.less(left, right)
            case "le":
                return logic.at_least(right, left)
            case "gt":
                return logic.less(right, left)
            case "ge":
                return logic.at_least(left, right)
            case "eq":
                return logic.equal(left, right)
            case "ne":
                return negate(logic.equal(left, right))
            case _:
                return UNKNOWN

    def _flag(self, symbol: Symbol, environment: Environment) -> Formula:
        known = environment.get(symbol)
        if known is not None and not isinstance(known, Polynomial):
            return known
        if symbol in self.scalars:
            return Comparison(of_atom(ScalarAtom(symbol)) - number(1), equal=True)
        return UNKNOWN


def _logic(name: str, operands: list[Formula]) -> Formula:
    match name, operands:
        case (("logical_and" | "bit_and"), [left, right]):
            return both(left, right)
        case (("logical_or" | "bit_or"), [left, right]):
            return either(left, right)
        case "logical_not", [operand]:
            return negate(operand)
        case _:
            return UNKNOWN
