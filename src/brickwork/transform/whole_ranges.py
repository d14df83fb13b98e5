"""Ranges that are cut into blocks by hand, with loops over the blocks around loops in a block, as whole ranges again.

    for b in range((n - 1) // 32 + 1):                            for b in range(n // 32):
        ...                                                           ...
            for i in range(32 * b, min(32 * b + 32, n)): y[i]             for i in range(32): y[32 * b + i]

    ->  for i in range(0, n): y[i]                                for i in range(32 * (n // 32)): y[i]

Blocks follow on one another, so the inner loop goes over all of them where the outer one stood around it, if nothing
else asks which block it is. Loops may stand between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import cast

from brickwork.ir import build
from brickwork.ir.nodes import Apply, Assign, Constant, Expression, For, Node, Read, Select, Store, Symbol
from brickwork.ir.walk import (
    NodeType,
    assigned_symbols,
    operands_of,
    read_symbols,
    rewrite,
    statements,
    substitute,
    walk,
)
from brickwork.legality import legality
from brickwork.transform.canonical.choices import is_simple
from brickwork.transform.schedule.segments import headed
from brickwork.transform.scratch import Names
from brickwork.transform.sums import Sum, linear

MayMove = Callable[[For, Sequence[For]], bool]
"""Whether a loop over blocks may move to the loop in one, which is the whole range then, past loops between the two."""


@legality
def with_whole_ranges(nest: For, names: Names, asked: list[Expression], may_move: MayMove) -> For:
    """Return a nest with whole ranges, where a loop over blocks `may_move` to the loop in one.

    What must hold for it is added to what is `asked`: the last block ends where the range does.
    """
    loops = chain(nest)
    for place, inner in enumerate(loops):
        for at, outer in enumerate(loops[:place]):
            between = loops[at + 1 : place]
            if outer.index in read_symbols([bound for loop in between for bound in (loop.start, loop.stop)]):
                continue
            more: list[Expression] = []
            whole = _whole(outer, inner, names, more)
            if whole is not None and may_move(whole, between):
                for around in reversed([*loops[:at], *between]):
                    whole = replace(around, body=(whole,))
                asked += more
                return with_whole_ranges(whole, names, asked, may_move)
    return nest


def chain(nest: For) -> list[For]:
    """Return loops that stand directly in one another, outermost first."""
    loops = [nest]
    while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], For):
        loops.append(inner)
    return loops


@legality
def directly(nest: For) -> For:
    """Return a nest with what is assigned between its loops, if that is computed of their indices, put in."""
    match nest.body:
        case (For() as inner,):
            return replace(nest, body=(directly(inner),))
        case body if (found := headed(body)) is not None:
            heads, inner = found
            values = dict[Symbol, Expression]()
            values |= {head.symbol: head.value for head in heads if isinstance(head, Assign)}
            changing = assigned_symbols(inner) | values.keys()
            simple = all(map(is_simple, values.values())) and len(values) == len(heads)
            if not simple or changing & read_symbols(values.values()) or assigned_symbols(inner) & values.keys():
                return nest  # a variable that changes is not what it was
            return replace(nest, body=(directly(substitute(inner, values)),))
        case _:
            return nest


@legality
def without_ends(nest: NodeType) -> NodeType:
    """Return a nest with the indices of its loops as they are where they are not negative: not counted from an end."""
    starts = [(node.index, node.start) for node in walk(nest) if isinstance(node, For)]
    natural = {index for index, start in starts if isinstance(start, Constant) and start.value >= 0}

    def visit(node: Node) -> Node:
        match node:
            case Select(condition=Apply(operator=operator, operands=(Read(symbol=symbol), zero)), otherwise=index) if (
                operator.name == "lt" and symbol in natural and build.is_constant(zero, 0)
            ):
                return index
            case _:
                return node

    return rewrite(nest, visit)


@legality
def follows(_: For, between: Sequence[For]) -> bool:
    """Whether iterations stay in the order that they have."""
    return not between


def in_any_order(_: For, __: Sequence[For]) -> bool:
    """Whether iterations may run in any order: callers have found out."""
    return True


@legality
def keeps_sums(whole: For, between: Sequence[For]) -> bool:
    """Whether each element gets its terms in the same order, in a nest that adds to elements and does nothing else.

    An iteration of the whole range has elements of its own, or all loops between have.
    """
    stores = [node for node in statements(whole) if isinstance(node, Store)]
    own = {index.symbol for node in stores for index in node.indices if isinstance(index, Read)}
    return not between or (len(stores) == 1 and (whole.index in own or all(loop.index in own for loop in between)))


@legality
def _whole(outer: For, inner: For, names: Names, asked: list[Expression]) -> For | None:
    """Return a loop in a block as one over all blocks; None if it is none, or something in it asks for the block."""
    block = build.read(outer.index)
    if (bounds := _bounds(outer, inner, asked)) is not None:
        whole = replace(inner, start=bounds[0], stop=bounds[1], claimed=outer.claimed and inner.claimed)
        return None if outer.index in read_symbols(whole) else whole
    counted = build.is_constant(inner.start, 0) and isinstance(inner.stop, Constant) and inner.stop.value > 0
    if not counted or not {outer.index, inner.index} <= read_symbols(inner.body):
        return None
    place, symbol = build.read(inner.index), names.symbol(inner.index.name, inner.index.dtype)
    size = cast("int", cast("Constant", inner.stop).value)

    def visit(node: Node) -> Node:
        if isinstance(node, Apply) and node.operator.name in {"add", "sub"} and node.dtype is symbol.dtype:
            found = linear(node)
            often = found.often(place)
            if often and found.often(block) == often * size:
                rest = found.plus(Sum(((place, 1), (block, size))), -often)
                return Sum(((build.read(symbol), often),)).plus(rest).expression()
        return node

    body = tuple(rewrite(item, visit) for item in inner.body)
    if {outer.index, inner.index} & read_symbols(body):
        return None
    start, stop = (build.mul(build.integer(size), bound) for bound in (outer.start, outer.stop))
    claimed = outer.claimed and inner.claimed
    return replace(inner, index=symbol, start=start, stop=stop, body=body, claimed=claimed)


@legality
def _bounds(outer: For, inner: For, asked: list[Expression]) -> tuple[Expression, Expression] | None:
    """Return where the first block begins and the last one ends; None if blocks do not follow on one another."""
    begin = linear(inner.start)
    if (along := begin.along(outer.index)) is None:
        return None
    size, rest = along
    ends = [*operands_of(inner.stop, "minimum")]
    limits = [end for end in ends if linear(end) != begin.plus(Sum((), size))]
    if size < 1 or len(limits) == len(ends) or outer.index in read_symbols(limits):
        return None
    first, last = (rest.plus(linear(bound), size) for bound in (outer.start, outer.stop))
    least, whole = _least(last)
    if not limits and last.constant >= size:
        asked += whole
        return first.expression(), least.expression()
    over = [least.plus(linear(limit), -1) for limit in limits]
    beyond = any(each.constant >= 0 and not each.terms for each in over)
    ends = limits if beyond else [last.expression(), *limits]
    return first.expression(), reduce(lambda one, other: build.apply("minimum", one, other), ends)


@legality
def _least(found: Sum) -> tuple[Sum, list[Expression]]:
    """Return what a sum is at least: what is rounded down loses at most so much. It is that where conditions hold."""
    least, whole = Sum((), found.constant), list[Expression]()
    for term, often in found.terms:
        match term:
            case Apply(operator=operator, operands=(value, Constant(value=int(by)) as divisor)) if (
                operator.name == "floordiv" and by > 0 and often > 0 and often % by == 0
            ):
                least = least.plus(linear(value).plus(Sum((), 1 - by)), often // by)
                rest = build.apply("mod", build.add(value, build.integer(1)), divisor)
                whole.append(build.apply("eq", rest, build.integer(0)))
            case _:
                least = least.plus(Sum(((term, often),)))
    return least, whole
