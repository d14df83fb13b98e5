"""Cache tiling on processors: for nests that run along memory in one loop for some tensors, in another for the rest.

    for j in range(m):                      for a in range((m + 255) // 256): for b in range((n + 15) // 16):
        for i in range(n):           ->         for j in range(256 * a, min(256 * a + 256, m)):
            y[j, i] = x[i, j]                       for i in range(16 * b, min(16 * b + 16, n)):
                                                        y[j, i] = x[i, j]

So a line of x is still in a cache when the next j wants its next element, and a line of y is written as a whole. Where
m is small, a tile has more iterations of i: about as many in all.
The loops of the nest are independent and have fixed bounds: every order of their iterations is right then.
How the threads of a grid share such a nest is in `tile.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir.nodes import Break, Check, Continue, For, While
from brickwork.ir.walk import statements
from brickwork.target.target import Target
from brickwork.transform.schedule.planner import trip_count, varies_with
from brickwork.transform.schedule.schedule import Bind, Level, Reorder, Split, Verb, chunk_of
from brickwork.transform.schedule.tile import is_cheap

CACHED_ROWS = 64
"""Iterations of the loop with the lanes that is known to have no more: caches hold its lines without tiles."""


def find_tile(
    nest: Sequence[For], along: For, width: int, analysis: Analysis, target: Target
) -> tuple[Verb, ...] | None:
    """Return tiles for a nest with lanes along a loop which jumps for a tensor that another loop runs through.

    A tile has so many iterations of the other loop that a line for each fits one half of the nearest cache; the other
    half is for what is written. Of the loop with the lanes it has no fewer than a line holds.
    A nest with iterations that could fail has none: the order in which failures are met stays that of the source. Nor
    has a body with loops of its own: what those read is what counts.
    """
    inside = analysis.inside(nest[-1].index)
    if along not in nest or _may_fail(nest[-1], inside, analysis):
        return None
    jumps = [item for item in inside if not is_cheap(item, (along,))]
    found = [node for node in nest if any(varies_with(item, node.index) and is_cheap(item, (node,)) for item in jumps)]
    if not found or _has_at_most(along, CACHED_ROWS):
        return None
    least = min(item.tensor.type.dtype.size for item in inside)
    if _has_at_most(found[-1], target.line_bytes // least):
        return None  # Less of each line would be used.
    across, rest = found[-1], tuple(node.index for node in nest if node not in (along, found[-1]))
    tiles = chunk_of(across.index), chunk_of(along.index)
    return (
        Split(along.index, max(width, target.line_bytes // least), across.index),
        Split(across.index, target.cache_bytes // target.line_bytes // 2),
        Reorder((*rest, *tiles, across.index, along.index)),
        *(Bind(index, Level.POOL) for index in (*rest, *tiles)),
    )


def _may_fail(innermost: For, accesses: Sequence[Access], analysis: Analysis) -> bool:
    """Whether an iteration could fail or end early, or holds a loop."""
    if any(isinstance(node, Break | Check | Continue | For | While) for node in statements(innermost.body)):
        return True
    places = [(item.number, axis) for item in accesses for axis in range(len(item.axes))]
    return any(analysis.bounds[place].bound is Bound.CHECKED for place in places)


def _has_at_most(loop: For, most: int) -> bool:
    count = trip_count(loop)
    return count is not None and count <= most
