"""Loop permutation of perfect nests: legal where all loops are independent and their bounds fixed outside."""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir.nodes import Block, For, Symbol


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
