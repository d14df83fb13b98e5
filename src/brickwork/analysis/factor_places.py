"""Places of elements in factors of a sum that are there: for all that loops say, under conditions, or clipped.

Invariant: an access that is in range is as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.nodes import Apply, Expression, For, Load, Node, Read, Size
from brickwork.ir.walk import rewrite, walk
from brickwork.legality import legality


def in_range(value: Expression, loops: Sequence[For], facts: Sequence[Expression]) -> Iterator[Expression]:
    """Yield what must hold so that accesses are in range, but for what loops over sizes say.

    An access that a mask of the other factor guards is made without that mask.
    """
    for load in (node for node in walk(value) if isinstance(node, Load)):
        for axis in _beyond(load, loops, facts):
            yield build.apply("ge", load.indices[axis], build.integer(0))
            yield build.apply("lt", load.indices[axis], Size(tensor=load.tensor, axis=axis))


def _beyond(load: Load, loops: Sequence[For], facts: Sequence[Expression]) -> Iterator[int]:
    """Yield the axes along which an access may be out of range, for all that loops over sizes say."""
    for axis, index in enumerate(load.indices):
        same = [*_equal(Size(tensor=load.tensor, axis=axis), facts)]
        if not any(_goes_over(loop, index, size) for loop in loops for size in same):
            yield axis


@legality
def clipped(value: Expression, loops: Sequence[For], facts: Sequence[Expression]) -> Expression:
    """Return what scales a sum, with places that are there: it is read where nothing is summed up, too."""

    def visit(node: Node) -> Node:
        if not isinstance(node, Load):
            return node
        indices = [*node.indices]
        for axis in _beyond(node, loops, facts):
            last = build.sub(Size(tensor=node.tensor, axis=axis), build.integer(1))
            indices[axis] = build.apply("minimum", build.apply("maximum", indices[axis], build.integer(0)), last)
        return replace(node, indices=tuple(indices))

    return rewrite(value, visit)


@legality
def _equal(size: Size, facts: Sequence[Expression]) -> Iterator[Size]:
    """Yield a size and those that facts say to be the same, by way of another at most."""
    found = {size}
    for fact in (*facts, *facts):
        match fact:
            case Apply(operator=operator, operands=(Size() as left, Size() as right)) if operator.name == "eq":
                if found & {left, right}:
                    found |= {left, right}
            case _:
                pass
    yield from found


@legality
def _goes_over(loop: For, index: Expression, size: Size) -> bool:
    """Whether an index is that of a loop over a size, or over a tile of it."""
    if index != Read(symbol=loop.index):
        return False
    if build.is_constant(loop.start, 0) and loop.stop == size:
        return True
    match loop.stop:
        case Apply(operator=operator, operands=operands):
            return loop.role.is_tile and operator.name == "minimum" and size in operands
        case _:
            return False
