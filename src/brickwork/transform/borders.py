"""Borders: which way conditions go in the middle of a loop, and between which iterations that is.

    j > 0 and j < m - 1                 true from 1 to m - 1
    if i == 0 or j - r < 0: ...         false where i is not 0, from r on
    max(j - 1, 0), (j + s) % m          j - 1 from 1 on; j + s up to m - s

A comparison of integers is a sum `c * j + rest` against 0, where nothing in the rest changes with the loop but the
indices of loops inside, of which the extremes count. Which of its two ways is the middle's is a guess that costs no
more than time: not the way of few iterations at an end of an axis.
Invariant: where the tests hold, each condition goes the way that was returned for it in all iterations between the
borders. The tests say, too, that what is added up is small: no sum wraps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from brickwork.analysis.definitions import Definitions
from brickwork.analysis.found_places import divides
from brickwork.analysis.polynomial import SIZE_LIMIT
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Apply, Constant, Expression, For, Load, Node, Read, Select, Size, Symbol
from brickwork.ir.walk import NodeType, read_symbols, rewrite, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.schedule.defaults import FEW_ITERATIONS
from brickwork.transform.sums import SMALL, Sum

MOST = 2**62
"""No sum is greater than this, whatever its parts are within their limits."""
NEAR = FEW_ITERATIONS
"""So many iterations at an end of an axis are its border, and not the middle."""
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


@dataclass(frozen=True, slots=True)
class Line:
    """Values `factor` times the loop's index, and between `low` and `high` more."""

    factor: int
    low: Sum
    high: Sum

    def plus(self, other: Line, factor: int = 1) -> Line:
        """Return this and so many times the other."""
        ends = (other.low, other.high) if factor > 0 else (other.high, other.low)
        return Line(
            self.factor + factor * other.factor, self.low.plus(ends[0], factor), self.high.plus(ends[1], factor)
        )

    @property
    def is_small(self) -> bool:
        """Whether no value wraps."""
        return abs(self.factor) * SIZE_LIMIT + max(self.low.limit, self.high.limit) <= MOST


ONE = Line(0, Sum((), 1), Sum((), 1))
NOTHING = Line(0, Sum(), Sum())


@dataclass(slots=True)
class Borders:
    """The middle of a loop that stands in those `around`: from `lows` to `highs`, if the `tests` hold before it."""

    loop: For
    around: Mapping[Symbol, For]
    lows: dict[Expression, None] = field(default_factory=dict[Expression, None])
    highs: dict[Expression, None] = field(default_factory=dict[Expression, None])
    tests: dict[Expression, None] = field(default_factory=dict[Expression, None])
    leaves: dict[Expression, None] = field(default_factory=dict[Expression, None])
    """What the condition that is looked at is made of."""

    def plain(self, node: NodeType, known: Definitions, inside: Mapping[Symbol, Line]) -> NodeType:
        """Return an expression, or a statement with no other in it, as it is in the middle.

        `inside` are the indices of the loops of the body around it.
        """

        def visit(item: Node) -> Node:
            match item:
                case Select(condition=condition, then=then, otherwise=otherwise):
                    return build.select(self.settled(condition, known, inside), then, otherwise, loc=item.loc)
                case Apply(operator=operator, operands=(left, right)) if item.dtype is INT64:
                    return self.chosen(operator.name, left, right, known, inside) or item
                case _:
                    return item

        return rewrite(node, visit)

    # ------------------------------------------------------------ conditions

    def settled(
        self, condition: Expression, known: Definitions, inside: Mapping[Symbol, Line], *, wanted: bool | None = None
    ) -> Expression:
        """Return a condition as it is in the middle: a literal if that is known; `wanted` is the likelier way."""
        match condition:
            case Read():
                value = known.value(condition)
                if value is None or isinstance(value, Read):
                    return condition
                found = self.settled(value, known, inside, wanted=wanted)
                return found if isinstance(found, Constant) else condition
            case Apply(operator=operator, operands=(left, right)) if operator.name in {"logical_and", "logical_or"}:
                way = operator.name == "logical_and"
                parts = (self.settled(part, known, inside, wanted=way) for part in (left, right))
                return build.apply(operator.name, next(parts), next(parts), loc=condition.loc)
            case Apply(operator=operator, operands=(operand,)) if operator.name == "logical_not":
                opposite = None if wanted is None else not wanted
                return build.apply("logical_not", self.settled(operand, known, inside, wanted=opposite))
            case Apply(operator=operator, operands=(left, right)) if operator.name in COMPARISONS:
                way = self.compared(operator.name, left, right, known, inside, wanted)
                return condition if way is None else build.constant(way, BOOL)
            case _:
                return condition

    def compared(
        self,
        name: str,
        left: Expression,
        right: Expression,
        known: Definitions,
        inside: Mapping[Symbol, Line],
        wanted: bool | None,
    ) -> bool | None:
        """Return which way a comparison goes in the middle, and note where that is; None if it is not known."""
        line = self.difference(left, right, known, inside)
        if line is None:
            return None
        if name in {"eq", "ne"}:
            return self.differs(line, name) if line.low == line.high else None
        if name in {"lt", "le"}:
            line = NOTHING.plus(line, -1)
        if name in {"lt", "gt"}:
            line = line.plus(ONE, -1)
        # The comparison is now: the line is not negative.
        end = self.end(line)
        way = wanted if end is None else (end == "low") is (self.slope(line) > 0)
        if way is None and line.factor:
            way = True
        if way is not None:
            self.note(line if way else NOTHING.plus(line.plus(ONE), -1))
        return way

    def differs(self, line: Line, name: str) -> bool | None:
        """Note on which side of where a line is 0 the middle lies, if that is at an end."""
        end = self.end(line)
        if end is None or abs(self.slope(line)) != 1:
            return None
        above = self.slope(line) > 0 if end == "low" else self.slope(line) < 0
        self.note((line if above else NOTHING.plus(line, -1)).plus(ONE, -1))
        return name == "ne"

    def chosen(
        self, name: str, left: Expression, right: Expression, known: Definitions, inside: Mapping[Symbol, Line]
    ) -> Expression | None:
        """Return what `min`, `max` or `%` is of in the middle, if that is one operand."""
        if name == "mod":
            return self.remainder(left, right, known, inside)
        if name not in {"minimum", "maximum"}:
            return None
        line = self.difference(left, right, known, inside)
        if line is None or not line.factor:
            return None
        fixed = self.line(right, known, inside)
        kept = left if fixed is not None and not fixed.factor else right
        above = (kept is left) is (name == "maximum")
        self.note(line if above else NOTHING.plus(line, -1))
        return kept

    def remainder(
        self, left: Expression, right: Expression, known: Definitions, inside: Mapping[Symbol, Line]
    ) -> Expression | None:
        """Return the dividend of a remainder by the loop's length, where that is not negative and less."""
        over, line = self.difference(right, left, known, inside), self.line(left, known, inside)
        if line is None or over is None:
            return None
        axis = None if line.factor else self.axis(line)
        if right not in _stops(self.loop if axis is None else self.around[axis.symbol]):
            return None
        self.note(line)
        self.note(over.plus(ONE, -1))
        return left

    # ------------------------------------------------------------ borders

    def end(self, line: Line) -> str | None:
        """Return at which end of an axis a line crosses 0: `low`, `high` or None."""
        slope, rest = self.slope(line), line.low
        if abs(slope) != 1:
            return "low" if slope and not rest.terms and abs(rest.constant) <= NEAR * abs(slope) else None
        if not line.factor:
            rest = Sum(tuple(item for item in rest.terms if item[0] != self.axis(line)), rest.constant)
        if abs(rest.constant) > NEAR or len(rest.terms) > 1:
            return None
        if not rest.terms:
            return "low"
        ((item, factor),) = rest.terms
        return "high" if factor == -slope and (isinstance(item, Size) or item in _stops(self.loop)) else None

    def slope(self, line: Line) -> int:
        """Return the factor of the index that a line runs along: the loop's, or that of one around it."""
        axis = self.axis(line)
        return line.factor or next((factor for item, factor in line.low.terms if item == axis), 0)

    def axis(self, line: Line) -> Read | None:
        """Return the index of a loop around that a line runs along."""
        found = [item for item, _ in line.low.terms if isinstance(item, Read) and item.symbol in self.around]
        return found[0] if len(found) == 1 and not line.factor else None

    @legality
    def note(self, line: Line) -> None:
        """Take only those iterations for the middle in which a line is not negative; its leaves are to be small."""
        for leaf in self.leaves:
            self.bound(leaf)
        low, factor = line.low.expression(), line.factor
        if factor > 0:
            quotient = build.apply("floordiv", low, build.integer(factor))
            self.lows[build.apply("neg", quotient)] = None
        elif factor < 0:
            quotient = build.apply("floordiv", low, build.integer(-factor))
            self.highs[build.add(quotient, build.integer(1))] = None
        else:
            self.test(build.apply("ge", low, build.integer(0)))

    def test(self, condition: Expression) -> None:
        """Note what is to hold before the loop, unless it is sure to."""
        if not (isinstance(condition, Constant) and condition.value):
            self.tests[condition] = None

    # ------------------------------------------------------------ lines

    @legality
    def difference(
        self, left: Expression, right: Expression, known: Definitions, inside: Mapping[Symbol, Line]
    ) -> Line | None:
        """Return what one operand is more than the other."""
        if left.dtype is not INT64:
            return None
        self.leaves.clear()
        first, second = self.line(left, known, inside), self.line(right, known, inside)
        if first is None or second is None or not (found := first.plus(second, -1)).is_small:
            return None
        return found

    @legality
    def line(self, expression: Expression, known: Definitions, inside: Mapping[Symbol, Line]) -> Line | None:
        """Return an expression as a line; what it is made of is tested to be small."""
        value = known.value(expression)
        return None if value is None else self.line_of(value, inside)

    @legality
    def line_of(self, value: Expression, inside: Mapping[Symbol, Line]) -> Line | None:
        """Return a value, made of what the loop's body does not change and of indices, as a line."""
        match value:
            case Constant(value=number):
                return _small(NOTHING.plus(ONE, int(number)))
            case Read(symbol=symbol) if symbol == self.loop.index:
                return Line(1, Sum(), Sum())
            case Read(symbol=symbol) if symbol in inside:
                return inside[symbol]
            case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
                first, second = self.line_of(left, inside), self.line_of(right, inside)
                if first is None or second is None:
                    return None
                return _small(first.plus(second, 1 if operator.name == "add" else -1))
            case Apply(
                operator=operator, operands=(Constant(value=number), other) | (other, Constant(value=number))
            ) if operator.name == "mul":
                found = self.line_of(other, inside)
                return None if found is None else _small(NOTHING.plus(found, int(number)))
            case Apply(operator=operator, operands=(operand,)) if operator.name == "neg":
                found = self.line_of(operand, inside)
                return None if found is None else NOTHING.plus(found, -1)
            case _:
                return self.leaf(value)

    @legality
    def leaf(self, value: Expression) -> Line | None:
        """Return what the loop does not change as a line of its own."""
        if read_symbols(value) & self.indices_in() or not is_safe(value):
            return None
        self.leaves[value] = None
        return Line(0, Sum(((value, 1),)), Sum(((value, 1),)))

    def bound(self, value: Expression) -> None:
        """Test that what is added up is small; sizes are."""
        if not isinstance(value, Size):
            self.test(build.apply("ge", value, build.integer(-SMALL)))
            self.test(build.apply("le", value, build.integer(SMALL)))

    def indices_in(self) -> frozenset[Symbol]:
        """Return the indices of the loop and of those in its body."""
        return frozenset(node.index for node in statements(self.loop) if isinstance(node, For))

    def indices(self, loop: For, known: Definitions, inside: Mapping[Symbol, Line]) -> Mapping[Symbol, Line]:
        """Return the values of the indices inside of a loop in the body."""
        self.leaves.clear()
        first, stop = self.line(loop.start, known, inside), self.line(loop.stop, known, inside)
        if first is None or stop is None or first.factor or stop.factor:
            return {symbol: line for symbol, line in inside.items() if symbol != loop.index}
        for leaf in self.leaves:
            self.bound(leaf)
        return {**inside, loop.index: replace(first, high=stop.plus(ONE, -1).high)}


def _stops(loop: For) -> tuple[Expression, ...]:
    """Return the ends of a loop: of one that is cut into chunks, that of the last chunk, too."""
    match loop.stop:
        case Apply(operator=operator, operands=operands) if operator.name == "minimum":
            return operands
        case stop:
            return (stop,)


@legality
def _small(line: Line) -> Line | None:
    return line if line.is_small else None


@legality
def is_safe(value: Expression) -> bool:
    """Whether an expression can be computed although the loop may not run: nothing in it may fail."""
    return not any(isinstance(node, Load) or divides(node) for node in walk(value))
