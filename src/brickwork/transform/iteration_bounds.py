"""Upper bounds of how often loops run, as expressions that a host can evaluate before the loops around begin.

    for i in range(n): for j in range(i + 1, m): ...        j: at most max(m - 1, 0)

By intervals: an expression's extremes are those of its operands. Invariant: a bound reads sizes and the variables that
it was allowed to read, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Constant, Expression, For, Read, Size, Symbol
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.argument_checks import total


@dataclass(frozen=True, slots=True)
class Ranges:
    """What is known of variables: the `fixed` have one value, and others a least and a most one."""

    fixed: frozenset[Symbol]
    indices: Mapping[Symbol, tuple[Expression | None, Expression | None]] = field(
        default_factory=dict[Symbol, tuple[Expression | None, Expression | None]]
    )

    def inside(self, loop: For) -> Ranges:
        """Return the ranges inside of a loop."""
        low, high = self.extreme(loop.start, most=False), self.extreme(loop.stop, most=True)
        last = None if high is None else build.sub(high, build.integer(1))
        return replace(self, indices={**self.indices, loop.index: (low, last)})

    @legality
    def iterations(self, loop: For) -> Expression | None:
        """Return how many iterations a loop has at most; None where that is not known."""
        low, high = self.extreme(loop.start, most=False), self.extreme(loop.stop, most=True)
        return None if low is None or high is None else build.iterations(low, high)

    @legality
    def extreme(self, value: Expression, *, most: bool) -> Expression | None:
        """Return the greatest value of an int64, or the least one; None where it is not known."""
        match value:
            case Constant() | Size():
                return value
            case Read(symbol=symbol):
                if symbol in self.indices:
                    return self.indices[symbol][most]
                return value if symbol in self.fixed else None
            case Apply(operator=operator, operands=(left, right)):
                divides = operator.name == "floordiv" and not isinstance(right, Constant)
                if divides and effects(value).made_of(self.fixed):
                    return total(value)
                return self._of_two(operator.name, left, right, most=most)
            case _:
                return None

    @legality
    def _of_two(self, name: str, left: Expression, right: Expression, *, most: bool) -> Expression | None:
        match name:
            case "mul" if isinstance(right, Constant):
                grows = right.value == abs(right.value)
                operands = self.extreme(left, most=most is grows), right
            case "mul" if isinstance(left, Constant):
                return self._of_two(name, right, left, most=most)
            case "floordiv" if isinstance(right, Constant) and right.value > 0:
                operands = self.extreme(left, most=most), right
            case "sub":
                operands = self.extreme(left, most=most), self.extreme(right, most=not most)
            case "add" | "minimum" | "maximum":
                operands = self.extreme(left, most=most), self.extreme(right, most=most)
            case _:
                return None
        first, second = operands
        if first is None or second is None:
            # Of two of which the smaller counts, each is an upper bound.
            return (first or second) if name == ("minimum" if most else "maximum") else None
        return build.apply(name, first, second)
