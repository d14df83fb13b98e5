"""Copy propagation: a variable that is a literal, a size, a size by a literal or another variable is read as that.

    i = i0
    p = 0                      for j in range(m):
    for j in range(m):   ->        x[i0, j] = y[j]
        x[i, j] = y[p + j]

Invariant: what is put in a variable's place has its value there, on every way that leads there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Node,
    Read,
    Select,
    Size,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import NodeType, assigned_symbols, rewrite
from brickwork.legality import legality

Copies = Mapping[Symbol, Expression]


def propagate_copies(block: Block) -> Block:
    """Return the block with what variables are copies of in their place."""
    return _block(block, {})[0]


def _block(block: Block, known: Copies) -> tuple[Block, Copies]:
    """Return a block and what is known where it ends."""
    result: list[Statement] = []
    for statement in block:
        changed, known = _statement(statement, known)
        result.append(changed)
    same = all(new is old for new, old in zip(result, block, strict=True))
    return (block if same else tuple(result)), known


def _statement(statement: Statement, known: Copies) -> tuple[Statement, Copies]:
    """Return a statement, and what is known after it."""
    match statement:
        case Assign(symbol=symbol, value=value):
            value = substituted(value, known)
            changed = statement if value is statement.value else replace(statement, value=value)
            return changed, _noted(symbol, value, _without(known, frozenset((symbol,))))
        case If(condition=condition):
            then, first = _block(statement.then, known)
            otherwise, second = _block(statement.otherwise, known)
            both = {symbol: value for symbol, value in first.items() if second.get(symbol) == value}
            condition = substituted(condition, known)
            return with_parts(statement, condition=condition, then=then, otherwise=otherwise), both
        case For(start=start, stop=stop):
            inside = _without(known, assigned_symbols(statement))
            # Bounds read nothing that the loop assigns, so a copy that was made for them stays.
            start, stop = substituted(start, inside), substituted(stop, inside)
            return with_parts(statement, start=start, stop=stop, body=_block(statement.body, inside)[0]), inside
        case While():
            inside = _without(known, assigned_symbols(statement))
            prelude, known = _block(statement.prelude, inside)
            condition = substituted(statement.condition, known)
            body = _block(statement.body, known)[0]
            return with_parts(statement, prelude=prelude, condition=condition, body=body), inside
        case _:
            return substituted(statement, known), known


def _noted(symbol: Symbol, value: Expression, known: Copies) -> Copies:
    match value:
        case Constant() | Size():
            return {**known, symbol: value}
        case Apply(operator=operator, operands=(Size(), Constant(value=int(by)))) if operator.name == "floordiv" and by:
            return {**known, symbol: value}
        case Read(symbol=source) if source != symbol:
            return {**known, symbol: value}
        case _:
            return known


@legality
def _without(known: Copies, assigned: frozenset[Symbol]) -> Copies:
    """Return what is known after some variables were assigned."""
    return {
        symbol: value
        for symbol, value in known.items()
        if symbol not in assigned and not (isinstance(value, Read) and value.symbol in assigned)
    }


def with_parts(statement: NodeType, **parts: object) -> NodeType:
    """Return a statement with other parts; itself if they are the same ones."""
    same = all(getattr(statement, name) is value for name, value in parts.items())
    return statement if same else replace(statement, **parts)


def substituted(node: NodeType, values: Copies) -> NodeType:
    """Return a tree with these expressions in place of variables, integers folded again."""
    if not values:
        return node

    def visit(child: Node) -> Node:
        match child:
            case Read(symbol=symbol) if symbol in values:
                return replace(values[symbol], loc=child.loc)
            case Apply(operator=operator, operands=[first, *rest]) if first.dtype.is_integer:
                return build.apply(operator.name, first, *rest, loc=child.loc)
            case Select(condition=Constant()):
                return build.select(child.condition, child.then, child.otherwise, loc=child.loc)
            case _:
                return child

    return rewrite(node, visit)
