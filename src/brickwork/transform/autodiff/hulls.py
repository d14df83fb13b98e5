"""How many iterations the loops around a place can have, in terms that the host knows: the sizes of tapes.

`for t in range(n): for u in range(t + 1)` has at most n iterations of u in any iteration of t.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Assign, Block, Constant, Expression, For, Read, Select, Size, Symbol
from brickwork.ir.walk import walk


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of an integer, where it is computed at all."""

    low: Expression
    high: Expression


class Hulls:
    """The ranges of the loops of a normalised kernel; `scalars` are what the host gives it."""

    def __init__(self, block: Block, scalars: Iterable[Symbol]) -> None:
        """Note what the variables are that have one value."""
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
            start, stop = self.of(loop.start), self.of(loop.stop)
            last = None if stop is None else build.sub(stop.high, build.integer(1))
            self.known[index] = None if start is None or last is None else Range(start.low, last)
        return self.known[index]

    def of(self, expression: Expression) -> Range | None:
        """Return the range of an int64 expression."""
        match expression:
            case Constant() | Size() if expression.dtype is INT64:
                return Range(expression, expression)
            case Read(symbol=symbol):
                return self._read(expression, symbol)
            case Select(then=then, otherwise=otherwise) if expression.dtype is INT64:
                first, second = self.of(then), self.of(otherwise)
                return None if first is None or second is None else _either(first, second)
            case Apply(operator=operator, operands=(left, right)) if expression.dtype is INT64:
                first, second = self.of(left), self.of(right)
                return None if first is None or second is None else _applied(operator.name, first, second)
            case _:
                return None

    def _read(self, node: Read, symbol: Symbol) -> Range | None:
        if symbol.dtype is not INT64:
            return None
        if symbol in self.scalars:
            return Range(node, node)
        if symbol in self.loops:
            return self.of_loop(symbol)
        value = self.values.get(symbol)
        return None if value is None else self.of(value)


def _either(first: Range, second: Range) -> Range:
    return Range(_least(first.low, second.low), _greatest(first.high, second.high))


def _least(first: Expression, second: Expression) -> Expression:
    return first if first == second else build.apply("minimum", first, second)


def _greatest(first: Expression, second: Expression) -> Expression:
    return first if first == second else build.apply("maximum", first, second)


def _applied(name: str, left: Range, right: Range) -> Range | None:
    match name:
        case "add":
            return Range(build.add(left.low, right.low), build.add(left.high, right.high))
        case "sub":
            return Range(build.sub(left.low, right.high), build.sub(left.high, right.low))
        case "minimum":
            return Range(_least(left.low, right.low), _least(left.high, right.high))
        case "maximum":
            return Range(_greatest(left.low, right.low), _greatest(left.high, right.high))
        case "mul" if left.low == left.high and isinstance(left.low, Constant):
            return _scaled(left.low, right)
        case "mul" if right.low == right.high and isinstance(right.low, Constant):
            return _scaled(right.low, left)
        case "mul" if left.low == left.high and right.low == right.high:
            product = build.mul(left.low, right.low)
            return Range(product, product)
        case "floordiv" if isinstance(right.low, Constant) and right.low == right.high and right.low.value > 0:
            return Range(build.apply("floordiv", left.low, right.low), build.apply("floordiv", left.high, right.low))
        case "mod" if isinstance(right.low, Constant) and right.low == right.high and right.low.value > 0:
            return Range(build.integer(0), build.sub(right.low, build.integer(1)))
        case _:
            return None


def _scaled(factor: Constant, other: Range) -> Range:
    low, high = build.mul(factor, other.low), build.mul(factor, other.high)
    return Range(low, high) if factor.value >= 0 else Range(high, low)
