"""A `continue` that ends a branch becomes the other branch of what follows, so that iterations have one end.

    if y < 0: continue        ->        if not y < 0: s += x[y]
    s += x[y]

A `continue` that stands elsewhere stays.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Block, Continue, For, If, Statement, While
from brickwork.ir.walk import rewrite_statements
from brickwork.transform.canonical.choices import negated


def without_continue(block: Block) -> Block:
    """Return a block with the loops in it rewritten."""

    def change(statement: Statement) -> Block:
        if not isinstance(statement, For | While) or (body := to_the_end(statement.body)) == statement.body:
            return (statement,)
        return (replace(statement, body=body),)

    return rewrite_statements(block, change)


def to_the_end(body: Block) -> Block:
    """Return the body of a loop, or the end of it, where what follows a branch that skips it is in the other one."""
    for place, statement in enumerate(body):
        before, rest = body[:place], body[place + 1 :]
        if isinstance(statement, Continue):
            return before
        if not isinstance(statement, If):
            continue
        if _skips(statement.then):
            return (*before, *_either(statement, statement.then[:-1], (*statement.otherwise, *rest)))
        if _skips(statement.otherwise):
            return (*before, *_either(statement, (*statement.then, *rest), statement.otherwise[:-1]))
        if not rest:
            return (*before, *_either(statement, statement.then, statement.otherwise))
    return body


def _skips(block: Block) -> bool:
    return bool(block) and isinstance(block[-1], Continue)


def _either(branch: If, then: Block, otherwise: Block) -> Block:
    """Return a branch with which its iteration ends, but none that does nothing: a read that may fail is something."""
    first, second = to_the_end(then), to_the_end(otherwise)
    if not first and not second and not effects(branch.condition).loads:
        return ()
    if first or not second:
        return (replace(branch, then=first, otherwise=second),)
    return (replace(branch, condition=negated(branch.condition), then=second, otherwise=()),)
