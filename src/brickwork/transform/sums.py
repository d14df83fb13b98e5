"""Integer expressions as sums: of what is added up, each so many times, and a constant.

Sums are equal modulo 2**64 to the expressions that they are of, whatever wraps in these.
"""

from __future__ import annotations

from collections.abc import Mapping

from brickwork.analysis.polynomial import SIZE_LIMIT
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Constant, Expression, For, Read, Size, Symbol
from brickwork.ir.walk import read_symbols
from brickwork.legality import legality
from brickwork.records import dataclass

SMALL = 2**40
"""What is added up is tested to lie within plus or minus this, but for sizes, which are below `SIZE_LIMIT`."""

MOST = 2**60
"""The greatest limit that is told: two such and a constant are added without leaving 64 bits. No tuned number."""
Limits = Mapping[Symbol, int]
"""Variables, with the greatest absolute value of each."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Expressions, each times a factor that is not 0, and a constant."""

    terms: tuple[tuple[Expression, int], ...] = ()
    constant: int = 0

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """Return this and so many times the other."""
        terms = dict(self.terms)
        for item, count in other.terms:
            terms[item] = terms.get(item, 0) + factor * count
        left = tuple((item, count) for item, count in terms.items() if count)
        return Sum(left, self.constant + factor * other.constant)

    def often(self, item: Expression) -> int:
        """Return how many times an expression is in it."""
        return dict(self.terms).get(item, 0)

    @property
    def limit(self) -> int:
        """The greatest absolute value, where what is added up is small."""
        sizes = sum(abs(factor) * (SIZE_LIMIT if isinstance(item, Size) else SMALL) for item, factor in self.terms)
        return sizes + abs(self.constant)

    @legality
    def along(self, symbol: Symbol) -> tuple[int, Sum] | None:
        """Return how many times a variable is in it, and the rest; None if something in that is computed from it."""
        own: Expression = Read(symbol=symbol)
        rest = Sum(tuple(pair for pair in self.terms if pair[0] != own), self.constant)
        return None if symbol in read_symbols([item for item, _ in rest.terms]) else (self.often(own), rest)

    def expression(self) -> Expression:
        """Return what computes it, what is taken away last."""
        total: Expression = build.integer(0)
        for item, factor in sorted(self.terms, key=lambda term: term[1] < 0):
            part = build.mul(build.integer(abs(factor)), item)
            total = build.add(total, part) if factor > 0 else build.sub(total, part)
        return build.add(total, build.integer(self.constant))


@legality
def sum_of(value: Expression) -> Sum | None:
    """Return an int64 that is added up of variables, sizes and literals; None for another one."""
    match value:
        case Constant(value=number) if value.dtype is INT64:
            return Sum((), int(number))
        case Read() | Size() if value.dtype is INT64:
            return Sum(((value, 1),))
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
            first, second = sum_of(left), sum_of(right)
            if first is None or second is None:
                return None
            return first.plus(second, 1 if operator.name == "add" else -1)
        case _:
            return None


@legality
def linear(value: Expression) -> Sum:
    """Return an int64 as a sum, of whatever it is added up of."""
    match value:
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
            return linear(left).plus(linear(right), 1 if operator.name == "add" else -1)
        case Apply(operator=operator, operands=(Constant(value=factor), other) | (other, Constant(value=factor))) if (
            operator.name == "mul"
        ):
            return Sum().plus(linear(other), int(factor))
        case _:
            return sum_of(value) or Sum(((value, 1),))


@legality
def limit_of(value: Expression, limits: Limits) -> int | None:
    """Return a limit of an int64's absolute value, if variables with limits say it and no step of it nears 2**63."""
    match value:
        case Constant(value=number) if value.dtype is INT64:
            found = abs(int(number))
        case Size():
            found = SIZE_LIMIT
        case Read(symbol=symbol) if symbol in limits:
            found = limits[symbol]
        case Apply(operator=operator, operands=(left, right)) if value.dtype is INT64:
            first, second = limit_of(left, limits), limit_of(right, limits)
            divides = isinstance(right, Constant) and right.value > 0
            if first is None or second is None:
                return None
            match operator.name:
                case "add" | "sub":
                    found = first + second
                case "mul":
                    found = first * second
                case "minimum" | "maximum":
                    found = max(first, second)
                case "floordiv" if divides:
                    found = first
                case "mod" if divides:
                    found = second
                case _:
                    return None
        case _:
            return None
    return found if found <= MOST else None


def within(limits: Limits, loop: For) -> Limits:
    """Return the limits of variables in a loop: also of its index, if its bounds have some."""
    first, last = limit_of(loop.start, limits), limit_of(loop.stop, limits)
    return limits if first is None or last is None else {**limits, loop.index: max(first, last)}
