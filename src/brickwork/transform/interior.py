"""Interiors: the iterations that lie between the borders which conditions draw run in a loop of their own.

    for j in range(m):                        for j in range(0, 1): as it is
        v = x[j]                              for j in range(1, m - 1):
        if j > 0: v += x[j - 1]         ->        v = x[j]; v += x[j - 1]; v += x[j + 1]; out[j] = v
        if j < m - 1: v += x[j + 1]           for j in range(m - 1, m): as it is
        out[j] = v

That is for loops of processors that may be long and hold no such ones, in order or in lanes, and check nothing. What a
condition that the loop does not change is to be there is tested before it; where the tests fail, all of the loop runs
as it is.
Invariant: the same statements run in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import count

from brickwork.analysis.definitions import Definitions, definitions_in
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Break,
    Check,
    Constant,
    Expression,
    For,
    If,
    Node,
    Role,
    Select,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import statements, unused_number, walk, with_blocks
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.transform.borders import NEAR, Borders, Line
from brickwork.transform.guard import conjunction
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.schedule.planner import LARGE_BODY

BORDER_OPERATORS = frozenset({"minimum", "maximum", "mod"})


def with_interiors(block: Block) -> Block:
    """Return a block in which the interiors of loops run by themselves."""
    return _Cutter(count(unused_number(block)), Ranges(frozenset(), _literals(block))).block(block, {})


def _literals(block: Block) -> dict[Symbol, tuple[Constant, Constant]]:
    """Return the least and the greatest value of the integers that are assigned literals alone."""
    assigned = [node for node in statements(block) if isinstance(node, Assign) and node.symbol.dtype is INT64]
    others = {node.symbol for node in assigned if not isinstance(node.value, Constant)}
    values: dict[Symbol, list[Constant]] = {}
    for node in assigned:
        if isinstance(node.value, Constant) and node.symbol not in others:
            values.setdefault(node.symbol, []).append(node.value)
    ends = {symbol: sorted(found, key=lambda each: each.value) for symbol, found in values.items()}
    return {symbol: (found[0], found[-1]) for symbol, found in ends.items()}


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts the loops of one block; `numbers` are for new indices, and `ranges` say how long loops are at most."""

    numbers: Iterator[int]
    ranges: Ranges

    def block(self, block: Block, around: Mapping[Symbol, For]) -> Block:
        """Return a block that stands in the loops `around` with their interiors by themselves."""
        return tuple(item for statement in block for item in self.parts(statement, around))

    def parts(self, statement: Statement, around: Mapping[Symbol, For]) -> Block:
        """Return a statement as one, or as several."""
        match statement:
            case For() if _may_be_cut(statement) and self.is_worth(statement):
                return _cut(statement, self.numbers, around)
            case For(body=body):
                return (replace(statement, body=self.block(body, {**around, statement.index: statement})),)
            case _:
                return (with_blocks(statement, lambda block: self.block(block, around)),)

    def is_worth(self, loop: For) -> bool:
        """Whether a loop is long, and its iterations are small enough to be written three times."""
        inside = (node for node in statements(loop.body) if isinstance(node, For))
        small = all(map(self.is_part, inside)) and sum(1 for _ in walk(loop.body)) <= LARGE_BODY
        return small and not self.is_short(loop)

    def is_part(self, loop: For) -> bool:
        """Whether a loop belongs to an iteration of the one around it: it has no interior of its own."""
        plain = self.is_short(loop) or not any(isinstance(node, If) for node in loop.body)
        return loop.role is Role.SEQUENTIAL and plain

    def is_short(self, loop: For) -> bool:
        """Whether a loop has few iterations: its parts would begin and end more often than they spare conditions."""
        length = build.sub(loop.stop, loop.start)
        most = length if isinstance(length, Constant) else self.ranges.iterations(loop)
        return isinstance(most, Constant) and most.value <= 2 * NEAR


@legality
def _may_be_cut(loop: For) -> bool:
    """Whether a loop's iterations may be taken in several loops, one after the other."""
    plain = loop.width > 1 if loop.role is Role.VECTOR else loop.role is Role.SEQUENTIAL and loop.unrolled == 1
    if not plain or loop.reductions:
        return False
    return not any(isinstance(node, Check | While) for node in statements(loop.body)) and not _leaves(loop.body)


@hazard
def _leaves(block: Block) -> bool:
    """Whether a loop with this body may end before its last iteration."""
    return any(
        isinstance(node, Break) or (isinstance(node, If) and (_leaves(node.then) or _leaves(node.otherwise)))
        for node in block
    )


def _cut(loop: For, numbers: Iterator[int], around: Mapping[Symbol, For]) -> Block:
    """Return a loop in up to three parts, or as it is."""
    if not any(map(_draws_a_border, walk(loop.body))):
        return (loop,)
    borders = Borders(loop, around)
    for end in (loop.start, loop.stop):
        borders.bound(end)
    known = definitions_in(loop.body)
    body = _middle(loop.body, borders, replace(known, changing=known.changing - borders.indices_in()), {})
    if not borders.lows and not borders.highs:
        return (loop,)
    holds = conjunction(borders.tests)
    names = [replace(loop.index, name=f"{loop.index.name}_{end}", number=next(numbers)) for end in ("low", "high")]
    low, high = map(build.read, names)
    # No end lies beyond the loop's: where that is before the start, no part has iterations.
    inner = build.apply("minimum", _inmost(loop.start, borders.lows, "maximum"), loop.stop)
    first = build.select(holds, inner, loop.stop)
    last = build.apply("maximum", low, _inmost(loop.stop, borders.highs, "minimum"))
    return (
        Assign(symbol=names[0], value=first, loc=loop.loc),
        Assign(symbol=names[1], value=last, loc=loop.loc),
        replace(loop, stop=low),
        replace(loop, start=low, stop=high, body=body),
        replace(loop, start=high),
    )


def _draws_a_border(node: Node) -> bool:
    return isinstance(node, If | Select) or (
        isinstance(node, Apply) and node.dtype is INT64 and node.operator.name in BORDER_OPERATORS
    )


def _inmost(end: Expression, borders: Iterable[Expression], name: str) -> Expression:
    """Return the innermost of an end of the loop and borders."""
    return reduce(lambda one, other: build.apply(name, one, other), borders, end)


def _middle(block: Block, borders: Borders, known: Definitions, inside: Mapping[Symbol, Line]) -> Block:
    """Return a block as it is in the middle of the loop."""
    result: list[Statement] = []
    for statement in block:
        match statement:
            case If(condition=condition, then=then, otherwise=otherwise):
                settled = borders.settled(condition, known, inside)
                if isinstance(settled, Constant):
                    result += _middle(then if settled.value else otherwise, borders, known, inside)
                else:
                    parts = [_middle(part, borders, known, inside) for part in (then, otherwise)]
                    result.append(replace(statement, condition=settled, then=parts[0], otherwise=parts[1]))
            case For(body=body):
                indices = borders.indices(statement, known, inside)
                result.append(replace(statement, body=_middle(body, borders, known.inside(statement), indices)))
            case _:
                result.append(borders.plain(statement, known, inside))
        known = known.after(statement)
    return tuple(result)
