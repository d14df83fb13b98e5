"""Folds sums that begin with 0: `s = 0` and then `s = s + e` becomes `s = e`.

Reverse mode writes adjoints so. For floats it is an addition that is left out: a sum of -0 alone stays -0.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.nodes import Apply, Assign, Block, Expression, Read, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_blocks
from brickwork.legality import legality


def fold_zero_sums(block: Block) -> Block:
    """Return a block in which no sum of one statement begins with 0."""
    return rewrite_blocks(block, _folded)


def _folded(block: Block) -> Block:
    zeros: dict[Symbol, int] = {}
    result: list[Statement | None] = []
    for statement in block:
        changed = statement
        if isinstance(changed, Assign) and changed.symbol in zeros and (added := _added(changed)) is not None:
            result[zeros.pop(changed.symbol)] = None
            changed = replace(changed, value=added)
        for symbol in [item for item in zeros if item in read_symbols(changed) | assigned_symbols(changed)]:
            del zeros[symbol]
        if isinstance(changed, Assign) and changed.symbol.dtype.is_float and build.is_constant(changed.value, 0):
            zeros[changed.symbol] = len(result)
        result.append(changed)
    return tuple(statement for statement in result if statement is not None)


@legality
def _added(statement: Assign) -> Expression | None:
    """Return e of `s = s + e`, where e does not read s."""
    match statement.value:
        case Apply(operator=operator, operands=(Read(symbol=symbol), added)) if operator.name == "add":
            own = symbol == statement.symbol and symbol not in read_symbols(added)
            return added if own else None
        case _:
            return None
