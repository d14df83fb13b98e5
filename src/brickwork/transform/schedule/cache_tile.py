"""Cache tiling on processors: for nests that run along memory in one loop for some tensors, in another for the rest.

    for j in range(m):                      for a in range((m + 255) // 256): for b in range((n + 15) // 16):
        for i in range(n):           ->         for j in range(256 * a, min(256 * a + 256, m)):
            y[j, i] = x[i, j]                       for i in range(16 * b, min(16 * b + 16, n)):
                                                        y[j, i] = x[i, j]

So a line of x is still in a cache when the next j wants its next element, and a line of y is written as a whole. Where
m is small, a tile has more iterations of i: about as many in all.
Legal where the loops of the nest are independent and have fixed bounds: every order of their iterations is right then.
Which nests are worth it is decided in `defaults.py`; how the threads of a grid share such a nest is in `tile.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Block, Break, Check, Continue, Expression, For, Role, Symbol, While
from brickwork.ir.walk import statements
from brickwork.transform.schedule.planner import trip_count, varies_with
from brickwork.transform.schedule.schedule import CacheTile
from brickwork.transform.schedule.tile import is_cheap

LENGTH = 256
"""Iterations that a tile has of the loop that is not in lanes: as many lines fit the nearest cache."""
LINE_BYTES = 64
"""Bytes that a cache loads at once; a tile writes no less of a row."""
FEWEST_ROWS = 16
"""Iterations of a loop that is known to have no more: less of each line would be used."""
CACHED_ROWS = 64
"""Iterations of the loop with the lanes that is known to have no more: caches hold its lines without tiles."""


def find_tile(nest: Sequence[For], along: For, width: int, analysis: Analysis) -> CacheTile | None:
    """Return tiles for a nest with lanes along a loop which jumps for a tensor that another loop runs through.

    A nest with iterations that could fail has none: the order in which failures are met stays that of the source. Nor
    has a body with loops of its own: what those read is what counts.
    """
    inside = [item for item in analysis.accesses if any(each.node.index == nest[-1].index for each in item.loops)]
    if along not in nest or _may_fail(nest[-1], inside, analysis):
        return None
    jumps = [item for item in inside if not is_cheap(item, (along,))]
    found = [node for node in nest if any(varies_with(item, node.index) and is_cheap(item, (node,)) for item in jumps)]
    if not found or _has_at_most(found[-1], FEWEST_ROWS) or _has_at_most(along, CACHED_ROWS):
        return None
    least = min(item.tensor.type.dtype.size for item in inside)
    return CacheTile(nest[0].index, found[-1].index, LENGTH, along.index, max(width, LINE_BYTES // least))


def _may_fail(innermost: For, accesses: Sequence[Access], analysis: Analysis) -> bool:
    """Whether an iteration could fail or end early, or holds a loop."""
    if any(isinstance(node, Break | Check | Continue | For | While) for node in statements(innermost.body)):
        return True
    places = [(item.number, axis) for item in accesses for axis in range(len(item.axes))]
    return any(analysis.bounds[place].bound is Bound.CHECKED for place in places)


def _has_at_most(loop: For, most: int) -> bool:
    count = trip_count(loop)
    return count is not None and count <= most


def cut_into_tiles(loop: For, tile: CacheTile, numbers: Iterator[int]) -> For:
    """Return the nest that begins with `loop` in tiles; `numbers` yields symbol numbers that are not in use."""
    heads: dict[Symbol, For] = {}
    body: Block = (loop,)
    while not {tile.across, tile.along} <= heads.keys():
        (head,) = body
        if not isinstance(head, For):
            raise TypeError("the loops of a nest stand directly in one another")
        heads[head.index] = head
        body = head.body
    across, along = heads.pop(tile.across), heads.pop(tile.along)
    rows, outer = _cut(replace(across, role=Role.SEQUENTIAL), build.integer(tile.length), numbers)
    lanes = Role.VECTOR if along.width > 1 else Role.SEQUENTIAL
    columns, inner = _cut(replace(along, role=lanes), _breadth(across, tile), numbers)
    for head in (inner, outer, columns, rows, *reversed(heads.values())):
        body = (replace(head, body=body),)
    (result,) = body
    if not isinstance(result, For):
        raise TypeError("a nest has a loop")
    return result


def _breadth(across: For, tile: CacheTile) -> Expression:
    """Return the iterations that a tile has of its inner loop: more where the outer one has few."""
    rows = build.apply("maximum", build.sub(across.stop, across.start), build.integer(1))
    times = build.apply("maximum", build.apply("floordiv", build.integer(tile.length), rows), build.integer(1))
    return build.mul(times, build.integer(tile.breadth))


def _cut(loop: For, size: Expression, numbers: Iterator[int]) -> tuple[For, For]:
    """Return the loop over pieces of `size` iterations, and the loop over those of a piece."""
    piece = Symbol(f"{loop.index.name}_tile", next(numbers), INT64)
    length = build.sub(loop.stop, loop.start)
    count = build.apply("floordiv", build.add(length, build.sub(size, build.integer(1))), size)
    start = build.add(loop.start, build.mul(build.read(piece), size))
    stop = build.apply("minimum", build.add(start, size), loop.stop)
    pieces = replace(loop, index=piece, start=build.integer(0), stop=count, role=Role.PARALLEL, width=1)
    return pieces, replace(loop, start=start, stop=stop)
