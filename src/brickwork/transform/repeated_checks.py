"""Checks that hold since the same one was made before them go: on a grid each is instructions, and a point to meet.

    check 0 <= i < n; s += x[i]; check 0 <= i < n; s += y[i]    ->    check 0 <= i < n; s += x[i]; s += y[i]

LLVM sees the same, but for checks in loops with branches, after which it takes it that threads go on
(`codegen/failures.py`).
"""

from __future__ import annotations

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Block, Check, Expression, For, Role, Statement, While
from brickwork.ir.walk import assigned_symbols, read_symbols, with_blocks
from brickwork.legality import legality


def without_repeated(block: Block) -> Block:
    """Return the block without checks whose conditions are known to hold."""
    return _without(block, frozenset())


def _without(block: Block, known: frozenset[Expression]) -> Block:
    result: list[Statement] = []
    for statement in block:
        if isinstance(statement, Check):
            result += [] if statement.condition in known else [statement]
            known |= _lasting(statement.condition)
        else:
            result.append(_within(statement, known))
            known = _still(known, statement)
    return tuple(result)


def _within(statement: Statement, known: frozenset[Expression]) -> Statement:
    """Return a statement without the checks in it that are known to hold when it begins, and while it runs."""
    if isinstance(statement, For | While):
        known = _inside(statement, known)
    return with_blocks(statement, lambda block: _without(block, known))


@legality
def _lasting(condition: Expression) -> frozenset[Expression]:
    """Return a condition if it holds as long as its variables keep their values: it reads no elements."""
    return frozenset([condition] if effects(condition).plain else [])


@legality
def _inside(loop: For | While, known: frozenset[Expression]) -> frozenset[Expression]:
    """Return what is known in a loop: nothing in one that is shared out, as other threads may have made the checks."""
    return _still(known, loop) if isinstance(loop, While) or loop.role is Role.SEQUENTIAL else frozenset()


@legality
def _still(known: frozenset[Expression], statement: Statement) -> frozenset[Expression]:
    """Return the conditions that hold while a statement runs and after it: no variable in them is another.

    Tensors that change places in a kernel have equal sizes.
    """
    changed = assigned_symbols(statement)
    return frozenset(each for each in known if not read_symbols(each) & changed)
