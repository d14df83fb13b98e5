"""Loops over the length of a row that elements begin and end go over the places in that row.

    start = ends[b]                            start = ends[b]
    for s in range(ends[b + 1] - start):       for i in range(start, ends[b + 1]):
        y[start + s] = f(x[start + s], s)  ->      y[i] = f(x[i], i - start)

Then it is seen that rows which follow each other have no place in common. Invariant: the kernel does not store into
what begins rows, and the loop reads at its places; sums wrap as those did that they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Block, Expression, For, Load, Node, Read, Statement, Symbol, Tensor
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, statements, walk, with_blocks
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.scratch import Names
from brickwork.transform.sums import Sum, sum_of

Known = Mapping[Symbol, Expression]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What a kernel stores into, and new names."""

    stored: frozenset[Tensor]
    names: Names


def over_places(block: Block, names: Names) -> Block:
    """Return the body of a kernel with loops over places in rows."""
    if not any(isinstance(node, For) for node in statements(block)):
        return block
    return _changed(block, {}, _Kernel(effects(block).stores, names))


def _changed(block: Block, before: Known, kernel: _Kernel) -> Block:
    """Return a block before which variables have these values."""
    known, result = dict(before), list[Statement]()
    for statement in block:
        inside = _kept(known, assigned_symbols(statement))
        result.append(statement)
        if isinstance(statement, For):
            result = [*_shifted(result[:-1], statement, known, kernel)]
        result[-1] = with_blocks(result[-1], lambda body, inside=inside: _changed(body, inside, kernel))
        known = inside
        if isinstance(statement, Assign) and statement.symbol not in read_symbols(statement.value):
            known = {**inside, statement.symbol: statement.value}
    return tuple(result)


def _kept(known: Known, changing: frozenset[Symbol]) -> dict[Symbol, Expression]:
    """Return the values that hold whatever these variables become."""
    return {
        symbol: value
        for symbol, value in known.items()
        if symbol not in changing and not read_symbols(value) & changing
    }


@dataclass(frozen=True, slots=True)
class _Row:
    """What gives the length of a row, its two ends, and the element that is the first of them."""

    length: Assign
    begin: Expression
    end: Expression
    first: Load


@legality
def _row(ahead: list[Statement], loop: For, known: Known, kernel: _Kernel) -> _Row | None:
    """Return the row whose length a loop has, which stands after some statements of its block."""
    given = (item for item in reversed(ahead) if isinstance(item, Assign) and build.read(item.symbol) == loop.stop)
    length = next(given, None)
    if length is None or known.get(length.symbol) is not length.value or not build.is_constant(loop.start, 0):
        return None
    match length.value:
        case Apply(operator=operator, operands=(end, begin)) if operator.name == "sub":
            last, first = _load(end, known, kernel.stored), _load(begin, known, kernel.stored)
        case _:
            return None
    if last is None or first is None or last.tensor != first.tensor:
        return None
    steady = not read_symbols(begin) & assigned_symbols(loop.body)
    return _Row(length, begin, end, first) if steady else None


@legality
def _shifted(ahead: list[Statement], loop: For, known: Known, kernel: _Kernel) -> Block:
    """Return what stands before a loop in its block, and last the loop: over the places of its row, if it has one."""
    row = _row(ahead, loop, known, kernel)
    if row is None:
        return (*ahead, loop)
    variables: dict[Expression, Expression] = {}
    own: list[Statement] = []
    for each in (row.end, row.begin):
        if not isinstance(each, Read):
            symbol = kernel.names.symbol(loop.index.name, INT64)
            variables[each] = build.read(symbol)
            own.append(Assign(symbol=symbol, value=each))
    begin, end = (variables.get(each, each) for each in (row.begin, row.end))
    index = kernel.names.symbol(loop.index.name, INT64)
    step, place = build.read(loop.index), build.read(index)

    def visit(node: Node) -> Node:
        if (
            row.begin != begin
            and isinstance(node, Load)
            and replace(row.first, access=node.access, loc=node.loc) == node
        ):
            return begin
        return _at(node, begin, step, place)

    body = tuple(rewrite(each, visit) for each in loop.body)
    if not any(place == node for node in walk(body)):
        return (*ahead, loop)
    body = (Assign(symbol=loop.index, value=build.sub(place, begin)), *body)
    own.append(replace(row.length, value=build.sub(end, begin)))
    before = (item for each in ahead for item in (own if each is row.length else (each,)))
    return (*before, replace(loop, index=index, start=begin, stop=end, body=body))


@legality
def _load(value: Expression, known: Known, stored: frozenset[Tensor]) -> Load | None:
    """Return the element that a value is: it is the same all along."""
    value = known.get(value.symbol, value) if isinstance(value, Read) else value
    return value if isinstance(value, Load) and value.tensor not in stored else None


def _at(node: Node, begin: Expression, step: Expression, place: Expression) -> Node:
    """Return a sum of where a row begins and a step from there as one of the place, and others as they are."""
    found = sum_of(node) if isinstance(node, Apply) else None
    if found is None or not {(begin, 1), (step, 1)} <= {*found.terms}:
        return node
    return found.plus(Sum(((begin, -1), (step, -1), (place, 1)))).expression()
