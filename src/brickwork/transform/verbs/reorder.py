"""Runs a perfect nest of loops in another order: legal where all are independent and their bounds fixed outside."""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir.nodes import Block, For, Role, Symbol
from brickwork.ir.walk import read_symbols, rewrite_loops, statements
from brickwork.legality import hazard, legality
from brickwork.transform.schedule.schedule import Reorder
from brickwork.transform.verbs.context import Context


def apply(block: Block, verb: Reorder, context: Context) -> Block:  # noqa: ARG001  # as of all verbs
    """Return the block with its nests of these loops in this order."""
    return rewrite_loops(block, {*verb.order}, lambda loop: (reordered(loop, verb),))


def reordered(loop: For, verb: Reorder) -> For:
    """Return a nest of these loops in this order, and any other loop as it is."""
    return permute(loop, verb.order) if is_nest(loop, verb) else loop


@hazard
def refusal(block: Block, verb: Reorder, context: Context) -> str | None:  # noqa: ARG001  # as of all verbs
    """Return why independent loops cannot change places, if they cannot.

    Where a loop of a nest is not independent, `interchange.immovable` is asked before the program is analysed.
    """
    heads = heads_of(block, verb)
    if not heads:
        return "these loops do not stand directly in one another, and in nothing else"
    return next((why for head in heads if (why := unordered(head, verb.order))), None)


@hazard
def unordered(head: For, order: tuple[Symbol, ...]) -> str | None:
    """Return why loops of a nest cannot stand in an order whatever they do: a bound needs the index of another."""
    nest = {node.index: node for node in (head, *statements(head.body)) if isinstance(node, For)}
    if any(nest[index].role is not Role.SEQUENTIAL for index in order):
        return "a loop of the nest is bound already: reorder it before"
    for place, index in enumerate(order):
        for later in order[place + 1 :]:
            if later in read_symbols((nest[index].start, nest[index].stop)):
                return f"the bounds of '{index.name}' need '{later.name}', which must stand around it"
    return None


def heads_of(block: Block, verb: Reorder) -> list[For]:
    """Return the outermost loops of the perfect nests of just these loops."""
    return [node for node in statements(block) if isinstance(node, For) and is_nest(node, verb)]


@legality
def is_nest(loop: For, verb: Reorder) -> bool:
    """Whether a loop is the outermost of a perfect nest of just these loops."""
    left = {*verb.order}
    body: Block = (loop,)
    while len(body) == 1 and isinstance(inner := body[0], For) and inner.index in left:
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
