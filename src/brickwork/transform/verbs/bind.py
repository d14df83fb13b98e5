"""Binds a loop to a level: threads of the pool, a grid, a block, threads of a block, or lanes.

A loop of a grid may have lanes, too: a thread takes so many neighbouring iterations. A loop that runs in lanes already
is the short version of another, and stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir.nodes import Block, For, Role, Statement
from brickwork.ir.walk import rewrite_statements
from brickwork.transform.schedule.schedule import Bind, Level
from brickwork.transform.verbs.context import Context

ROLES = {
    Level.POOL: Role.PARALLEL,
    Level.GRID: Role.PARALLEL,
    Level.BLOCK: Role.BLOCK,
    Level.THREAD: Role.THREAD,
    Level.LANE: Role.VECTOR,
}
"""How a loop runs that is bound to a level alone."""


def apply(block: Block, verb: Bind, context: Context) -> Block:
    """Return the block with a loop bound to a level."""

    def visit(statement: Statement) -> Block:
        if isinstance(statement, For) and statement.index == verb.loop:
            statement = replace(
                bound(statement, verb.level, verb.width, context), across=verb.beside or statement.across
            )
        return (statement,)

    return rewrite_statements(block, visit)


def bound(loop: For, level: Level, width: int, context: Context) -> For:
    """Return a loop bound to a level, with what it accumulates."""
    if loop.role is Role.VECTOR:
        return loop
    role = ROLES[level] if loop.role is Role.SEQUENTIAL else loop.role
    return replace(loop, role=role, width=max(width, loop.width), reductions=context.verdict(loop.index).reductions)
