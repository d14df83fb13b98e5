"""Expressions of which equal ones are one object: what stands in a chain of definitions is kept once, not twice a step.

    b = a * a + a;  c = b * b + b;  ...          written out, c has a nine times, the next one 27 times

Such an expression is to be gone through with what stands here: a walk of the tree would never end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from typing import cast

from brickwork.ir.nodes import Expression, Node
from brickwork.ir.walk import children, rebuild


class Interned:
    """A table of expressions."""

    def __init__(self) -> None:
        """Begin without any."""
        self._known: dict[tuple[object, ...], Expression] = {}

    def rewritten(self, node: Expression, change: Callable[[Expression], Expression]) -> Expression:
        """Return an expression with `change` applied to each in it once, children first; equal ones are identical.

        What `change` returns is changed no more, and is of this table or holds nothing that is not.
        """
        done: dict[int, Expression] = {}

        def visit(each: Node) -> Expression:
            if id(each) not in done:
                made = change(cast("Expression", rebuild(each, visit)))
                done[id(each)] = self._known.setdefault(_key(made), made)
            return done[id(each)]

        return visit(node)


def parts(root: Node) -> Iterator[Node]:
    """Yield an expression and those in it, each where it is first met, in source order."""
    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending += [*children(node)][::-1]


def _key(node: Node) -> tuple[object, ...]:
    own = (getattr(node, name) for name in _compared(type(node)))
    return (type(node), *map(id, children(node)), *own)


@cache
def _compared(kind: type[Node]) -> tuple[str, ...]:
    """Return the fields of a class in which its nodes differ, besides those with nodes in them."""
    return tuple(each.name for each in fields(kind) if each.compare and "Expression" not in str(each.type))
