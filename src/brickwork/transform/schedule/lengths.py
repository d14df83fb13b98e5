"""How long loops are at most, as what is known before the nest begins that they stand in.

    first = i * step - radius
    for j in range(max(first, 0), min(first + width, n)):       j: at most `width` iterations, whatever `i` is

Each of two starts of which the greater counts, and each of two stops of which the smaller counts, is a limit: of all
their differences those are of use in which the indices around cancel. Variables that are assigned at one place stand
for what they are assigned. This is for choices between schedules: no proof rests on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product

from brickwork.analysis.definitions import LARGEST
from brickwork.analysis.polynomial import SIZE_LIMIT
from brickwork.ir import build
from brickwork.ir.answers import Answers
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Block, Constant, Expression, For, Load, Read, Select, Size, Store, Symbol
from brickwork.ir.walk import assigned_symbols, operands_of, read_symbols, statements, substitute, walk
from brickwork.records import dataclass

_Product = tuple[Expression, ...]
_Sum = dict[_Product, int]


@dataclass(frozen=True, slots=True)
class Lengths:
    """What the loops of a block are worth: what it assigns, and what of that is assigned at one place.

    Planners ask for the length of a loop again for each place that it could have; `known` has those that were found.
    """

    changing: frozenset[Symbol]
    values: Mapping[Symbol, Expression]
    known: Answers[For, Expression | None] = field(
        init=False, default_factory=Answers["For", "Expression | None"], compare=False, repr=False
    )

    def resolved(self, expression: Expression) -> Expression:
        """Return an expression in terms of indices, and of what the block does not change, as far as that is known."""
        for _ in self.values:
            found = substitute(expression, self.values)
            if found == expression or sum(1 for _ in walk(found)) > LARGEST:
                break
            expression = found
        return expression

    def most(self, loop: For) -> Expression | None:
        """Return how many iterations a loop has at most, if that is known before the block; a literal if it is one."""
        return self.known.of(loop, self._most)

    def _most(self, loop: For) -> Expression | None:
        found = [length for limit in self._limits(loop) if (length := self._known(limit)) is not None]
        # What no axis is as long as tells nothing.
        found = [each for each in found if not isinstance(each, Constant) or int(each.value) <= SIZE_LIMIT]
        literal = [each for each in found if isinstance(each, Constant)]
        if literal:
            return min(literal, key=lambda each: each.value)
        unique = [*dict.fromkeys(found)]
        return None if not unique else unique[0] if len(unique) == 1 else _least(unique)

    def leans(self, loop: For) -> bool:
        """Whether a loop is as long as the indices around it have come to, as the rows of a triangle are."""
        limits = [[leaf for factors in limit for leaf in factors] for limit in self._limits(loop)]
        return any(all(effects((leaf,)).plain for leaf in leaves) for leaves in limits)

    def _is_known(self, *values: Expression) -> bool:
        return not read_symbols(values) & self.changing and not effects(values).loads

    def _limits(self, loop: For) -> list[_Sum]:
        """Return what a loop's length is at most, all of it."""
        starts = [sum_of_products(start) for start in operands_of(self.resolved(loop.start), "maximum")]
        stops = [sum_of_products(stop) for stop in operands_of(self.resolved(loop.stop), "minimum")]
        return [self._within_limits(_less(stop, start)) for start, stop in product(starts, stops)]

    def _within_limits(self, total: _Sum) -> _Sum:
        """Return a sum in which values are subtracted before they are kept in the same limits, or divided.

        They are no further apart then: clipped windows, and rows that quotients begin and end, are as long as others.
        """
        for gain, loss in product(total, total):
            if total[gain] > 0 and total[gain] == -total[loss] and len(gain) == len(loss) == 1:
                apart = self._apart(gain[0], loss[0])
                if apart is not None:
                    others = {factors: count for factors, count in total.items() if factors not in (gain, loss)}
                    scaled = {factors: -total[gain] * count for factors, count in apart.items()}
                    return self._within_limits(_less(others, scaled))
        return total

    def _apart(self, gain: Expression, loss: Expression) -> _Sum | None:
        """Return how far two values are apart at most that are made alike of two others."""
        match gain, loss:
            case Apply(operator=operator, operands=first), Apply(operator=other, operands=second) if operator == other:
                ways = ((0, 1), (1, 0)) if operator.name in {"minimum", "maximum"} else ((0, 1),)
                place, same = next((way for way in ways if first[way[-1]] == second[way[-1]]), (0, 0))
                apart = self._within_limits(_less(sum_of_products(first[place]), sum_of_products(second[place])))
            case _:
                return None
        if place == same:
            return None
        if operator.name != "floordiv":
            return apart if len(ways) > 1 else None
        # Of neighbouring quotients the greater one may be one more than that of the difference.
        known, least = self._known(apart), build.sub(second[1], build.integer(1))
        return None if known is None else sum_of_products(build.apply("floordiv", build.add(known, least), second[1]))

    def has_sizes(self, loop: For) -> bool:
        """Whether a loop ends by a size."""
        return any(isinstance(node, Size) for node in walk(self.resolved(loop.stop)))

    def comes_from_data(self, loop: For) -> bool:
        """Whether elements say where a loop begins or ends."""
        pending, seen = [loop.start, loop.stop], set[Symbol]()
        while pending:
            expression = pending.pop()
            if effects(expression).loads:
                return True
            read = (read_symbols(expression) & self.values.keys()) - seen
            pending += (self.values[symbol] for symbol in read)
            seen |= read
        return False

    def rows_of(self, loop: For) -> Expression | None:
        """Return how many rows there are, if neighbouring elements begin and end a loop, whatever place says which."""
        ends = self._assigned(loop.start), self._assigned(loop.stop)
        if not all(isinstance(end, Load) for end in ends):
            return None
        first, last = (end for end in ends if isinstance(end, Load))
        axes = [axis for axis, pair in enumerate(zip(first.indices, last.indices, strict=False)) if len({*pair}) > 1]
        if first.tensor != last.tensor or len(axes) != 1:
            return None
        lower, upper = (self._written(_without_sign(end.indices[axes[0]])) for end in (first, last))
        if not any(_less(above, below) == {(): 1} for below, above in product(lower, upper)):
            return None
        return build.sub(Size(tensor=first.tensor, axis=axes[0]), build.integer(1))

    def _written(self, value: Expression) -> tuple[_Sum, ...]:
        """Return an integer as a sum in terms of names, and of what these are assigned: a place may have a name."""
        assigned = substitute(value, self.values)
        return tuple(map(sum_of_products, (value, assigned, substitute(assigned, self.values))))

    def _assigned(self, value: Expression) -> Expression:
        """Return what a variable is assigned, if that is at one place."""
        return self.values.get(value.symbol, value) if isinstance(value, Read) else value

    def _known(self, total: _Sum) -> Expression | None:
        """Return a sum as an expression, if all that is added up is known before the block."""
        if not self._is_known(*(leaf for factors in total for leaf in factors)):
            return None
        value: Expression = build.integer(0)
        for factors, count in sorted(total.items(), key=lambda term: term[1] < 0):
            part = build.product([build.integer(abs(count)), *factors])
            value = build.add(value, part) if count > 0 else build.sub(value, part)
        return value


def lengths_in(block: Block) -> Lengths:
    """Return what is known of the loops of a block."""
    assigned = [node for node in statements(block) if isinstance(node, Assign)]
    times = Counter(node.symbol for node in assigned)
    once = {node.symbol: node.value for node in assigned if times[node.symbol] == 1}
    return Lengths(assigned_symbols(block), once)


def by_axes(loop: For, levels: Sequence[For]) -> tuple[Expression, Expression] | None:
    """Return how long a loop that elements end is on average and at most, by the axes along which it accesses elements.

    It stands in the last of the `levels`. Its iterations for all of these share an axis, as rows of a sparse matrix do,
    unless an access has another axis for these, as rows that are padded have.
    """
    lengths = lengths_in(levels[-1].body)
    if not lengths.comes_from_data(loop):
        return None
    ends = read_symbols((lengths.resolved(loop.start), lengths.resolved(loop.stop)))
    around = {level.index: build.iterations(level.start, level.stop) for level in levels if level.index in ends}
    rows = None if around else lengths.rows_of(loop)
    rows = build.apply("maximum", rows or build.product([build.integer(1), *around.values()]), build.integer(1))
    found: dict[Expression, Expression] = {}
    for node, size in _axes(loop):
        others = read_symbols((*node.indices[: size.axis], *node.indices[size.axis + 1 :]))
        found[size] = size if others & around.keys() else build.apply("floordiv", size, rows)
    return (_least([*found.values()]), _least([*found])) if found else None


def shortest_axis(loop: For) -> Expression | None:
    """Return how long the shortest of the axes is along which a loop goes."""
    found = [*dict.fromkeys(size for _, size in _axes(loop))]
    return _least([*found]) if found else None


def _axes(loop: For) -> Iterator[tuple[Load | Store, Size]]:
    """Yield the accesses in a loop whose places its index says, and how long the axes are along which they move."""
    for node in walk(loop.body):
        if isinstance(node, Load | Store) and not node.tensor.is_local:
            for axis, item in enumerate(node.indices):
                if loop.index in read_symbols(item) and not effects(item).loads:
                    yield node, Size(tensor=node.tensor, axis=axis)


def _without_sign(index: Expression) -> Expression:
    """Return an index that may count from the end as if it did not."""
    return index.otherwise if isinstance(index, Select) else index


def _least(values: list[Expression]) -> Expression:
    least = values[0]
    for value in values[1:]:
        least = build.apply("minimum", least, value)
    return least


def _less(first: _Sum, second: _Sum) -> _Sum:
    total = Counter(first)
    total.subtract(second)
    return {factors: count for factors, count in total.items() if count}


def sum_of_products(value: Expression) -> _Sum:
    """Return an integer as products, each so many times."""
    match value:
        case Constant(value=number):
            return {(): int(number)} if number else {}
        case Apply(operator=operator, operands=(left, right)) if operator.name == "add":
            return _less(sum_of_products(left), {factors: -count for factors, count in sum_of_products(right).items()})
        case Apply(operator=operator, operands=(left, right)) if operator.name == "sub":
            return _less(sum_of_products(left), sum_of_products(right))
        case Apply(operator=operator, operands=(left, right)) if operator.name == "mul":
            first, second = sum_of_products(left), sum_of_products(right)
            if len(first) * len(second) > LARGEST:
                return {(value,): 1}
            total: Counter[_Product] = Counter()
            for (one, count), (other, times) in product(first.items(), second.items()):
                total[tuple(sorted((*one, *other), key=_order))] += count * times
            return {factors: count for factors, count in total.items() if count}
        case _:
            return {(value,): 1}


def _order(value: Expression) -> tuple[int, ...]:
    """Return a key by which equal products are written in one order."""
    nodes = [*walk(value)]
    sizes = (item for node in nodes if isinstance(node, Size) for item in (node.tensor.number, node.axis))
    return (len(nodes), *(node.symbol.number for node in nodes if isinstance(node, Read)), *sizes)
