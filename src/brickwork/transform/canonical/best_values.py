"""Searches that keep the place of their best value alone keep the value, too, as others do.

    for j in range(n):                        if n > 0: best = x[at]
        if x[j] < x[at]: at = j               for j in range(n):
                                   ->             value = x[j]
                                                  if value < best: at = j; best = value

So do those that compare what is made of their best value, before the outermost loop that finds it.

    for j in range(n):                                if n > 0: best = abs(peak)
        if abs(x[j]) > abs(peak): peak = x[j]         for j in range(n):
                                               ->         value = abs(x[j])
                                                          if value > best: best = value; peak = x[j]

What is kept is then a reduction, and no iteration waits for an element whose place the one before has found.
Invariant: `best` is the element at the place, or what is made of the value, wherever they are compared. An element is
read before the first iteration only where there is one, which reads it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from brickwork.analysis.searches import MIRRORED, same
from brickwork.analysis.symbolic import as_written
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Block, Expression, For, If, Load, Node, Read, Statement, Symbol
from brickwork.ir.walk import (
    assigned_symbols,
    blocks_in,
    operands_of,
    rewrite,
    rewrite_statements,
    statements,
    substitute,
    with_blocks,
)
from brickwork.legality import legality
from brickwork.transform.scratch import Names

Compared: TypeAlias = tuple[Apply, Expression, Expression]
"""A comparison, the value of an iteration in it, and what is kept of the best one."""
Search: TypeAlias = tuple[If, Symbol, Compared]
"""A branch, what it notes where it is taken, and what it compares."""


def with_best_values(block: Block, names: Names) -> Block:
    """Return the block with the values of searches kept beside their places, or beside what they are made of."""

    def visit(statement: Statement) -> Block:
        return _kept(statement, names) if isinstance(statement, For) else (statement,)

    return rewrite_statements(_with_keys(block, names), visit)


def _with_keys(block: Block, names: Names) -> Block:
    """Return the block with what searches compare of their best values kept, before the outermost loops that may."""
    made: list[Statement] = []
    for statement in block:
        inside = statement
        while isinstance(inside, For) and (found := next(_keyed(inside), None)):
            *before, inside = _with_best(inside, found, names)
            made += before
        made.append(with_blocks(inside, lambda inner: _with_keys(inner, names)))
    return tuple(made)


@legality
def _keyed(loop: For) -> Iterator[Search]:
    """Yield a branch that compares what is made of a value, which it alone assigns in the loop, with the same of it."""
    changing = assigned_symbols(loop)
    for block in _blocks(loop.body):
        values: dict[Symbol, Expression] = {}
        for item in block:
            if isinstance(item, Assign):
                values[item.symbol] = substitute(item.value, values)
                continue
            if not isinstance(item, If):
                values = {}
                continue
            for part, value, kept in _comparisons(item):
                element, found = substitute(kept, values), substitute(value, values)
                if isinstance(element, Read) or not effects(element).plain:
                    continue
                own = effects(element).reads & changing
                for best in own:
                    given = _given(loop, item, best)
                    if given is None or len(own) != 1:
                        continue
                    if same(_as_written(substitute(element, {best: substitute(given, values)})), _as_written(found)):
                        yield item, best, (part, value, element)
            values = {}


def _blocks(block: Block) -> Iterator[Block]:
    """Yield a block and all inside it."""
    yield block
    for statement in block:
        yield from (inner for each in blocks_in(statement) for inner in _blocks(each))


@legality
def _given(loop: For, choice: If, best: Symbol) -> Expression | None:
    """Return what a branch gives a variable, if nothing else in the loop does, as it is where the branch is taken."""
    given = [item.value for item in choice.then if isinstance(item, Assign) and item.symbol == best]
    if sum(isinstance(node, Assign) and node.symbol == best for node in statements(loop.body)) != 1 or not given:
        return None
    asks, inside = effects(given), effects(choice.then)
    return None if asks.reads & inside.assigns or asks.loads & inside.changes else given[0]


def _comparisons(choice: If) -> Iterator[Compared]:
    """Yield what a branch compares, either way round."""
    for part in operands_of(choice.condition, "logical_and"):
        if isinstance(part, Apply) and part.operator.name in MIRRORED:
            one, other = part.operands
            yield part, one, other
            yield part, other, one


def _kept(loop: For, names: Names) -> Block:
    """Return a loop that keeps what its first branch seeks, and before it what gives that a value."""
    values: dict[Symbol, Expression] = {}
    for item in loop.body:
        if isinstance(item, If):
            return next(_sought(loop, item, values, names), (loop,))
        if not isinstance(item, Assign):
            break
        values[item.symbol] = substitute(item.value, values)
    return (loop,)


@legality
def _sought(loop: For, choice: If, values: Mapping[Symbol, Expression], names: Names) -> Iterator[Block]:
    """Yield a loop that keeps the value which a branch compares with another one, at the place that it notes."""
    index, changing = build.read(loop.index), assigned_symbols(loop)
    noted = [item.symbol for item in choice.then if isinstance(item, Assign) and item.value == index]
    for (part, value, kept), at in product(_comparisons(choice), noted):
        element, found = substitute(kept, values), substitute(value, values)
        asks = effects(element)
        if (
            asks.reads & changing != frozenset((at,))
            or value.dtype is BOOL
            or asks.loads & effects(loop.body).changes
            or not asks.loads
        ):
            continue
        alone = sum(isinstance(node, Assign) and node.symbol == at for node in statements(loop.body)) == 1
        if alone and same(_as_written(substitute(element, {at: index})), _as_written(found)):
            yield _with_best(loop, (choice, at, (part, value, element)), names)


def _as_written(value: Expression) -> Expression:
    """Return an expression with its indices as the user wrote them: what is never negative wraps nowhere."""

    def visit(node: Node) -> Node:
        return replace(node, indices=tuple(as_written(node))) if isinstance(node, Load) else node

    return rewrite(value, visit)


def _with_best(loop: For, search: Search, names: Names) -> Block:
    """Return the loop with a value that is kept in place of the other that is compared, which is there before it."""
    choice, noted, (part, value, element) = search
    best, new = names.symbol("best", value.dtype), names.symbol("value", value.dtype)
    sides = tuple(build.read(new if side is value else best) for side in part.operands)
    better = replace(part, operands=sides)
    condition = rewrite(choice.condition, lambda node: better if node == part else node)
    keeps = Assign(symbol=best, value=build.read(new), loc=choice.loc)
    # Together: the branch may leave before that, or after it.
    place = next(place for place, item in enumerate(choice.then) if isinstance(item, Assign) and item.symbol == noted)
    then = (*choice.then[:place], keeps, *choice.then[place:])
    kept = (
        Assign(symbol=new, value=value, loc=choice.loc),
        replace(choice, condition=condition, then=then),
    )
    some = build.apply("lt", loop.start, loop.stop)
    return (
        Assign(symbol=best, value=build.constant(0, value.dtype), loc=loop.loc),
        If(condition=some, then=(replace(keeps, value=element),), loc=loop.loc),
        replace(loop, body=rewrite_statements(loop.body, lambda item: kept if item == choice else (item,))),
    )
