"""Greatest trip counts of the loops around a place, in terms that the host knows: the sizes of tapes.

`for t in range(n): for u in range(t + 1)` has at most n iterations of u in any iteration of t. Where a bound is not
known beforehand, an element that each iteration reads tells: `for e in range(begin[s], begin[s + 1])` with `x[e]` in it
runs through what can be an index of x, since the call that gradients are for has passed its checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Read,
    Select,
    Size,
    Statement,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import read_symbols, walk
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of an integer, where it is computed at all."""

    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What an integer is at least and at most, where that is known."""

    low: Expression | None = None
    high: Expression | None = None


_UNKNOWN = _Bounds()


class TripCounts:
    """The ranges of the loops of a normalised kernel; `scalars` are what the host gives it.

    With `reached`, what is read in loops tells of them, too.
    """

    def __init__(self, block: Block, scalars: Iterable[Symbol], *, reached: bool = False) -> None:
        """Note what the variables are that have one value."""
        self.reached = reached
        nodes = [*walk(block)]
        self.loops = {node.index: node for node in nodes if isinstance(node, For)}
        counts = Counter(node.symbol for node in nodes if isinstance(node, Assign))
        assigns = (node for node in nodes if isinstance(node, Assign))
        self.values = {node.symbol: node.value for node in assigns if counts[node.symbol] == 1}
        self.scalars = frozenset(scalars)
        self.known: dict[Symbol, Range | None] = {}

    def of_loop(self, index: Symbol) -> Range | None:
        """Return what a loop's index runs through, in any iteration of the loops around it."""
        if index not in self.known:
            loop = self.loops[index]
            self.known[index] = None
            start, stop = self.of(loop.start).low, self.of(loop.stop).high
            last = None if stop is None else build.sub(stop, build.integer(1))
            if self.reached and (start is None or last is None):
                start, last = self._reached(loop, start, last)
            self.known[index] = None if start is None or last is None else Range(start, last)
        return self.known[index]

    def begins(self, index: Symbol) -> bool:
        """Whether the host knows the least start of a loop, without what is read in it."""
        return self.of(self.loops[index].start).low is not None

    def _reached(
        self, loop: For, low: Expression | None, high: Expression | None
    ) -> tuple[Expression | None, Expression | None]:
        """Return the ends of a loop where they are known, and else those that an access in each iteration tells."""
        for access in _accesses(loop.body):
            for axis, index in enumerate(access.indices):
                size = build.size(access.tensor, axis)
                plain = natural(index)
                least = build.integer(0) if plain is index else build.sub(build.integer(0), size)
                found = self._solved(plain, loop, _Bounds(least, build.sub(size, build.integer(1))))
                low, high = low or found.low, high or found.high
        return low, high

    def _solved(self, expression: Expression, loop: For, held: _Bounds) -> _Bounds:
        """Return the bounds of a loop's index where those of an expression that it stands in are known.

        A loop that is run backwards by the variable that it sets first runs through what that variable does.
        """
        match expression:
            case Read(symbol=symbol) if symbol == loop.index:
                return held
            case Read(symbol=symbol) if symbol in self.values:
                return self._solved(self.values[symbol], loop, held)
            case Apply(operator=operator, operands=(left, Read(symbol=symbol))) if (
                operator.name == "sub" and symbol == loop.index and left == _ends(loop)
            ):
                return held
            case Apply(operator=operator, operands=(Constant(value=-1) as minus, right)) if operator.name == "mul":
                return self._solved(right, loop, _applied("mul", held, _Bounds(minus, minus)))
            case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
                if not self._depends(right, loop.index):
                    inverse = "sub" if operator.name == "add" else "add"
                    return self._solved(left, loop, _applied(inverse, held, self.of(right)))
                if self._depends(left, loop.index):
                    return _UNKNOWN
                ends = (held, self.of(left)) if operator.name == "add" else (self.of(left), held)
                return self._solved(right, loop, _applied("sub", *ends))
            case _:
                return _UNKNOWN

    def _depends(self, expression: Expression, index: Symbol) -> bool:
        """Whether an expression is another one in other iterations of a loop, as far as is known."""
        read = read_symbols(expression)
        return index in read or any(self._depends(self.values[symbol], index) for symbol in read & self.values.keys())

    def of(self, expression: Expression) -> _Bounds:
        """Return the bounds of an int64 expression."""
        if expression.dtype is not INT64:
            return _UNKNOWN
        match expression:
            case Constant() | Size():
                return _Bounds(expression, expression)
            case Read(symbol=symbol):
                return self._read(expression, symbol)
            case Select(then=then, otherwise=otherwise):
                return _either(self.of(then), self.of(otherwise))
            case Apply(operator=operator, operands=(operand,)) if operator.name == "neg":
                return _applied("sub", _Bounds(build.integer(0), build.integer(0)), self.of(operand))
            case Apply(operator=operator, operands=(operand,)) if operator.name == "bit_length":
                return _length(self.of(operand))
            case Apply(operator=operator, operands=(left, right)):
                return _applied(operator.name, self.of(left), self.of(right))
            case _:
                return _UNKNOWN

    def _read(self, node: Read, symbol: Symbol) -> _Bounds:
        if symbol in self.scalars:
            return _Bounds(node, node)
        if symbol in self.loops:
            held = self.of_loop(symbol)
            return _UNKNOWN if held is None else _Bounds(held.low, held.high)
        value = self.values.get(symbol)
        return _UNKNOWN if value is None else self.of(value)


def _accesses(block: Block) -> Iterator[Load | Store]:
    """Yield the accesses of tensors that each iteration of the innermost loops around them makes."""
    for statement in block:
        roots: tuple[Expression | Statement, ...]
        match statement:
            case If(condition=condition):
                roots = (condition,)
            case For(start=start, stop=stop):
                roots = (start, stop)
            case While():
                roots = ()
            case _:
                roots = (statement,)
        for node in walk(roots):
            if isinstance(node, Load | Store) and not node.tensor.is_local:
                yield node
        if isinstance(statement, For):
            yield from _accesses(statement.body)


def _ends(loop: For) -> Expression:
    """Return the first and the last value of a loop's index added up."""
    return build.sub(build.add(loop.start, loop.stop), build.integer(1))


def natural(index: Expression) -> Expression:
    """Return an index without what makes it count from the end."""
    match index:
        case Select(
            condition=Apply(operator=operator, operands=(left, Constant(value=0))),
            then=Apply(operands=(first, Size())),
            otherwise=otherwise,
        ) if operator.name == "lt" and left == first == otherwise:
            return otherwise
        case _:
            return index


def _both(name: str, first: Expression | None, second: Expression | None) -> Expression | None:
    """Return an operator applied to two bounds, if both are known."""
    if first is None or second is None:
        return None
    return first if first == second and name in {"minimum", "maximum"} else build.apply(name, first, second)


def _one(name: str, first: Expression | None, second: Expression | None) -> Expression | None:
    """Return the minimum or maximum of two bounds, of which one is enough."""
    return _both(name, first, second) if first is not None and second is not None else first or second


def _either(first: _Bounds, second: _Bounds) -> _Bounds:
    return _Bounds(_both("minimum", first.low, second.low), _both("maximum", first.high, second.high))


def _applied(name: str, left: _Bounds, right: _Bounds) -> _Bounds:
    match name:
        case "add":
            return _Bounds(_both("add", left.low, right.low), _both("add", left.high, right.high))
        case "sub":
            return _Bounds(_both("sub", left.low, right.high), _both("sub", left.high, right.low))
        case "minimum":
            return _Bounds(_both("minimum", left.low, right.low), _one("minimum", left.high, right.high))
        case "maximum":
            return _Bounds(_one("maximum", left.low, right.low), _both("maximum", left.high, right.high))
        case "mul":
            return _product(left, right)
        case "floordiv" if (divisor := _constant(right)) is not None and divisor.value > 0:
            return _Bounds(_both("floordiv", left.low, divisor), _both("floordiv", left.high, divisor))
        case "floordiv" if left.low is not None and left.high is not None and right.low != right.high:
            zero = build.integer(0)
            ends = _Bounds(_both("minimum", left.low, zero), _both("maximum", left.high, zero))
            return ends if _is_positive(right.low) else _UNKNOWN
        case "floordiv" if left.low is not None and left.high is not None:
            return _quotient(left.low, left.high, right)
        case "mod" if (divisor := _constant(right)) is not None and divisor.value > 0:
            return _Bounds(build.integer(0), build.sub(divisor, build.integer(1)))
        case _:
            return _UNKNOWN


def _quotient(low: Expression, high: Expression, divisor: _Bounds) -> _Bounds:
    """Return the bounds of a quotient by what the host knows; a divisor of 0 has been refused where it divides."""
    if divisor.low is None or divisor.low != divisor.high:
        return _UNKNOWN
    zero = build.apply("eq", divisor.low, build.integer(0))
    known = build.select(zero, build.integer(1), divisor.low)
    ends = [build.apply("floordiv", end, known) for end in (low, high)]
    return _Bounds(_both("minimum", *ends), _both("maximum", *ends))


def _length(operand: _Bounds) -> _Bounds:
    """Return the bounds of how many bits an integer has."""
    zero = build.integer(0)
    if operand.low is None or operand.high is None:
        return _Bounds(zero, build.integer(INT64.bits))
    return _Bounds(zero, _both("maximum", *(build.apply("bit_length", end) for end in (operand.low, operand.high))))


def _is_positive(value: Expression | None) -> bool:
    """Whether a number is at least 1: a literal, or the greater of one and another number."""
    match value:
        case Constant(value=number):
            return number >= 1
        case Apply(operator=operator, operands=operands) if operator.name == "maximum":
            return any(map(_is_positive, operands))
        case _:
            return False


def _constant(bounds: _Bounds) -> Constant | None:
    return bounds.low if isinstance(bounds.low, Constant) and bounds.low == bounds.high else None


def _product(left: _Bounds, right: _Bounds) -> _Bounds:
    for one, other in ((left, right), (right, left)):
        if (factor := _constant(one)) is not None:
            low, high = _both("mul", factor, other.low), _both("mul", factor, other.high)
            return _Bounds(low, high) if factor.value >= 0 else _Bounds(high, low)
    for one, other in ((left, right), (right, left)):
        if one.low is not None and one.low == one.high:
            ends = _both("mul", one.low, other.low), _both("mul", one.low, other.high)
            return _Bounds(_both("minimum", *ends), _both("maximum", *ends))
    return _UNKNOWN
