"""Searches that keep the place of their best value alone keep the value, too, as others do.

    for j in range(n):                        if n > 0: best = x[at]
        if x[j] < x[at]: at = j               for j in range(n):
                                   ->             value = x[j]
                                                  if value < best: at = j; best = value

What is kept is then a reduction, and no iteration waits for an element whose place the one before has found.
Invariant: `best` is the element at the place in each iteration. It is read before the first one only where there is
one, which reads it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from brickwork.analysis.searches import MIRRORED, same
from brickwork.analysis.symbolic import as_written
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Block, Expression, For, If, Load, Node, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, operands_of, rewrite, rewrite_statements, statements, substitute
from brickwork.legality import legality
from brickwork.transform.scratch import Names


def with_best_values(block: Block, names: Names) -> Block:
    """Return the block with the values of searches kept beside their places."""

    def visit(statement: Statement) -> Block:
        return _kept(statement, names) if isinstance(statement, For) else (statement,)

    return rewrite_statements(block, visit)


def _kept(loop: For, names: Names) -> Block:
    """Return a loop that keeps what its first branch seeks, and before it what gives that a value."""
    values: dict[Symbol, Expression] = {}
    for place, item in enumerate(loop.body):
        if isinstance(item, If):
            return next(_sought(loop, place, item, values, names), (loop,))
        if not isinstance(item, Assign):
            break
        values[item.symbol] = substitute(item.value, values)
    return (loop,)


@legality
def _sought(loop: For, place: int, choice: If, values: Mapping[Symbol, Expression], names: Names) -> Iterator[Block]:
    """Yield a loop that keeps the value which a branch compares with another one, at the place that it notes."""
    index, changing = build.read(loop.index), assigned_symbols(loop.body) | {loop.index}
    noted = [item for item in choice.then if isinstance(item, Assign) and item.value == index]
    for part in operands_of(choice.condition, "logical_and"):
        if not isinstance(part, Apply) or part.operator.name not in MIRRORED:
            continue
        for value, kept in (part.operands, part.operands[::-1]):
            element, found = substitute(kept, values), substitute(value, values)
            asks = effects(element)
            own = asks.reads & changing
            note = next((item for item in noted if {*own} == {item.symbol}), None)
            if note is None or value.dtype is BOOL or asks.loads & effects(loop.body).changes or not asks.loads:
                continue
            alone = sum(isinstance(node, Assign) and node.symbol == note.symbol for node in statements(loop.body)) == 1
            if alone and same(_as_written(substitute(element, {note.symbol: index})), _as_written(found)):
                yield _with_best(loop, (place, choice, note), (part, value, element), names)


def _as_written(value: Expression) -> Expression:
    """Return an expression with its indices as the user wrote them: what is never negative wraps nowhere."""

    def visit(node: Node) -> Node:
        return replace(node, indices=tuple(as_written(node))) if isinstance(node, Load) else node

    return rewrite(value, visit)


def _with_best(
    loop: For, noted: tuple[int, If, Assign], compared: tuple[Apply, Expression, Expression], names: Names
) -> Block:
    """Return the loop with a value that is kept in place of the element, which is read before it."""
    (place, choice, note), (part, value, element) = noted, compared
    best, new = names.symbol("best", value.dtype), names.symbol("value", value.dtype)
    sides = tuple(build.read(new if side is value else best) for side in part.operands)
    better = replace(part, operands=sides)
    condition = rewrite(choice.condition, lambda node: better if node == part else node)
    keeps = Assign(symbol=best, value=build.read(new), loc=choice.loc)
    # At once: what follows in the branch may go on with the next iteration.
    then = tuple(each for item in choice.then for each in ((item, keeps) if item is note else (item,)))
    body = (
        *loop.body[:place],
        Assign(symbol=new, value=value, loc=choice.loc),
        replace(choice, condition=condition, then=then),
        *loop.body[place + 1 :],
    )
    some = build.apply("lt", loop.start, loop.stop)
    return (
        Assign(symbol=best, value=build.constant(0, value.dtype), loc=loop.loc),
        If(condition=some, then=(replace(keeps, value=element),), loc=loop.loc),
        replace(loop, body=body),
    )
