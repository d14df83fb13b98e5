"""Where a loop stands in a block that some verbs have changed: more than once where there are versions of it."""

from __future__ import annotations

from collections.abc import Iterator

from brickwork.ir.nodes import Block, For, Role, Statement, Symbol
from brickwork.ir.walk import blocks_in, statements
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A loop, and the statements around it, outermost first."""

    loop: For
    around: tuple[Statement, ...]

    @property
    def inside(self) -> tuple[For, ...]:
        """The loops inside of it."""
        return tuple(node for node in statements(self.loop.body) if isinstance(node, For))

    @property
    def lanes(self) -> tuple[For, ...]:
        """The loops around it, and inside of it, that run in lanes."""
        loops = (*(node for node in self.around if isinstance(node, For)), *self.inside)
        return tuple(node for node in loops if node.role is Role.VECTOR)

    @property
    def shared(self) -> tuple[For, ...]:
        """The loops around it, and inside of it, that run in parallel, but for those that make up one range with it."""
        nest = {item.index for item in self._nest()}
        loops = (*(node for node in self.around if isinstance(node, For)), *self.inside)
        return tuple(node for node in loops if node.role is Role.PARALLEL and node.index not in nest)

    def _nest(self) -> Iterator[For]:
        """Yield the loops that stand directly in one another, with this one among them."""
        inner: Statement = self.loop
        for node in reversed(self.around):
            if not isinstance(node, For) or node.body != (inner,):
                break
            yield node
            inner = node
        body: Block = self.loop.body
        while len(body) == 1 and isinstance(found := body[0], For):
            yield found
            body = found.body


def places(block: Block, index: Symbol, around: tuple[Statement, ...] = ()) -> Iterator[Place]:
    """Yield where the loop over an index stands."""
    for statement in block:
        if isinstance(statement, For) and statement.index == index:
            yield Place(statement, around)
        for inner in blocks_in(statement):
            yield from places(inner, index, (*around, statement))
