"""Runs a perfect nest of loops in another order: legal where all are independent and their bounds fixed outside."""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir.nodes import Block, For, Statement, Symbol
from brickwork.ir.walk import rewrite_statements
from brickwork.transform.schedule.schedule import Reorder
from brickwork.transform.verbs.context import Context


def apply(block: Block, verb: Reorder, context: Context) -> Block:  # noqa: ARG001  # as of all verbs
    """Return the block with its nests of these loops in this order."""

    def visit(statement: Statement) -> Block:
        return (
            (permute(statement, verb.order),)
            if isinstance(statement, For) and is_nest(statement, verb)
            else (statement,)
        )

    return rewrite_statements(block, visit)


def is_nest(loop: For, verb: Reorder) -> bool:
    """Whether a loop is the outermost of a perfect nest of just these loops."""
    left = {*verb.order}
    body: Block = (loop,)
    while left and len(body) == 1 and isinstance(inner := body[0], For) and inner.index in left:
        left.remove(inner.index)
        body = inner.body
    return not left


def permute(loop: For, order: tuple[Symbol, ...]) -> For:
    """Return the nest that begins with `loop` with its loops in the given order, outermost first."""
    heads: dict[Symbol, For] = {}
    body: Block = (loop,)
    while len(heads) < len(order):
        (head,) = body
        if not isinstance(head, For) or head.index not in order:
            raise TypeError("the loops of a nest stand directly in one another")
        heads[head.index] = head
        body = head.body
    for index in reversed(order):
        body = (replace(heads[index], body=body),)
    (result,) = body
    if not isinstance(result, For):
        raise TypeError("a nest has a loop")
    return result
