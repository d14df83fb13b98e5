"""Interiors: the iterations that lie between the borders which conditions draw run in a loop of their own.

    for j in range(m):                        for j in range(0, 1): as it is
        v = x[j]                              for j in range(1, m - 1):
        if j > 0: v += x[j - 1]         ->        v = x[j]; v += x[j - 1]; v += x[j + 1]; out[j] = v
        if j < m - 1: v += x[j + 1]           for j in range(m - 1, m): as it is
        out[j] = v

That is for loops of processors that hold no long ones, in order or in lanes, and check nothing. What a condition that
the loop does not change is to be there is tested before it; where the tests fail, all of the loop runs as it is.
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
from brickwork.ir.walk import assigned_symbols, statements, walk
from brickwork.legality import hazard, legality
from brickwork.transform.borders import NEAR, Borders, Line
from brickwork.transform.guard import conjunction

LARGEST = 600
"""Nodes of a body beyond which it is not written three times."""
BORDER_OPERATORS = frozenset({"minimum", "maximum", "mod"})


def with_interiors(block: Block) -> Block:
    """Return a block in which the interiors of loops run by themselves."""
    highest = max((symbol.number for symbol in assigned_symbols(block)), default=0)
    return _block(block, count(highest + 1), {})


def _block(block: Block, numbers: Iterator[int], around: Mapping[Symbol, For]) -> Block:
    return tuple(item for statement in block for item in _parts(statement, numbers, around))


def _parts(statement: Statement, numbers: Iterator[int], around: Mapping[Symbol, For]) -> Block:
    match statement:
        case For() if _may_be_cut(statement) and _is_worth(statement):
            return _cut(statement, numbers, around)
        case For(body=body):
            return (replace(statement, body=_block(body, numbers, {**around, statement.index: statement})),)
        case While(body=body):
            return (replace(statement, body=_block(body, numbers, around)),)
        case If(then=then, otherwise=otherwise):
            parts = [_block(part, numbers, around) for part in (then, otherwise)]
            return (replace(statement, then=parts[0], otherwise=parts[1]),)
        case _:
            return (statement,)


@legality
def _may_be_cut(loop: For) -> bool:
    """Whether a loop's iterations may be taken in several loops, one after the other."""
    plain = loop.width > 1 if loop.role is Role.VECTOR else loop.role is Role.SEQUENTIAL and loop.unrolled == 1
    if not plain or loop.reductions:
        return False
    return not any(isinstance(node, Check | While) for node in statements(loop.body)) and not _leaves(loop.body)


def _is_worth(loop: For) -> bool:
    """Whether a loop is long, and its iterations are small enough to be written three times."""
    inside = (node for node in statements(loop.body) if isinstance(node, For))
    return not _is_short(loop) and all(map(_is_part, inside)) and sum(1 for _ in walk(loop.body)) <= LARGEST


@hazard
def _leaves(block: Block) -> bool:
    """Whether a loop with this body may end before its last iteration."""
    return any(
        isinstance(node, Break) or (isinstance(node, If) and (_leaves(node.then) or _leaves(node.otherwise)))
        for node in block
    )


def _is_part(loop: For) -> bool:
    """Whether a loop belongs to an iteration of the one around it: it has no interior of its own."""
    return loop.role is Role.SEQUENTIAL and (_is_short(loop) or not any(isinstance(node, If) for node in loop.body))


def _is_short(loop: For) -> bool:
    length = build.sub(loop.stop, loop.start)
    return isinstance(length, Constant) and length.value <= 2 * NEAR


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
