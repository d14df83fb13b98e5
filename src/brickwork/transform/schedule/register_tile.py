"""Register tiles: threads of a grid that take so many iterations that they compute more often than they read.

    for b in range(B):                          a thread takes 2 b and 16 t: of each 16 bytes of `w` and of `k` that it
        for c in range(C):                      reads it computes tens of products, where a thread with one t computes
            for t in range(T): s = 0.0          four. Lines of `w` are shared by neighbours along t, which read on
                for u in range(t + 1):          where others began; those of `k` by all of them.
                    s += w[c, T - 1 - t + u] * k[b, c, u]

Nests of loops that accumulate have such tiles where they have enough iterations for all threads of a GPU, and rows are
multiples of a tile: `tile_conditions` says when. Other sizes have the schedule of `grid.py`. What a nest computes, and
in which order, is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT16, FLOAT32
from brickwork.ir.nodes import Block, Check, Constant, Expression, For, If, Load, Local, Random, Size, Store, While
from brickwork.ir.signature import ALIGNMENT
from brickwork.ir.walk import assigned_symbols, blocks_in, read_symbols, statements, walk
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.rectangle import is_rectangle
from brickwork.transform.schedule.grid import MOST_LANES, GridPlanner, Tile
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.planner import JAMMED, trip_count
from brickwork.transform.schedule.schedule import Schedule, Unroll, Verb, planned
from brickwork.transform.schedule.tile import tile_of

UNROLLED = 2 * MOST_LANES
"""Iterations of an accumulating loop that are written out."""
BYTES = frozenset({FLOAT16.size, FLOAT32.size})
"""Sizes of elements: larger ones would need more registers than a thread has, and of smaller ones a read has many."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The iterations of a thread: `rows` of a loop whose iterations share what they read, `lanes` of the innermost.

    `threads` of a block lie along the innermost loop.
    """

    rows: int
    lanes: int
    threads: int = 4


SHARING = Shape(JAMMED, MOST_LANES)
"""Where a loop around has iterations that share what they read."""
SLIDING = Shape(SHARING.rows // 2, 2 * SHARING.lanes)
"""Where neighbours read on where others began, more of them cost little."""
ALONE = replace(SLIDING, rows=SLIDING.rows // 2)
"""Where no loop around has iterations that share what they read."""
DEEPEST = JAMMED
"""Iterations of a loop around the accumulating one that are a piece for a thread (`transform/split_reductions.py`)."""


@dataclass(frozen=True, slots=True)
class TilePlanner(GridPlanner):
    """Chooses register tiles where a nest is worth them, and for the rest what a `GridPlanner` chooses."""

    def spread(self, band: list[For]) -> Iterator[Verb]:
        """Give tiles of a band to threads, or its iterations."""
        innermost = self.innermost(band)
        sharing = self.sharing(band, innermost)
        shape = self.shape(band, innermost, sharing)
        if shape is None:
            yield from GridPlanner.spread(self, band)
            return
        order = [*(node for node in band if node is not innermost), innermost]
        if len(order) > 1:
            yield from self.tile(band, order, Tile(sharing or order[-2], shape.rows, shape.lanes, shape.threads))
        else:
            yield from self.threads(innermost, shape.lanes)
        yield from (Unroll(node.index, UNROLLED) for node in self.accumulating(band[-1]))
        if sharing is None:
            yield from self.split(band[-1])

    def shape(self, band: Sequence[For], innermost: For, sharing: For | None) -> Shape | None:
        """Return the tile of a thread, if the nest is worth one."""
        last = band[-1]
        inside = [*walk(last.body)]
        if any(is_rectangle(node, self.analysis) for node in band):
            return None
        if any(isinstance(node, Check | If | Local | Random | While) for node in inside):
            return None
        if next(self.accumulating(last), None) is None or self.has_costly_terms(last):
            return None
        elements = [node.tensor.type for node in inside if isinstance(node, Load | Store)]
        if any(kind.rank and kind.dtype.size not in BYTES for kind in elements):
            return None
        if not self.takes_lanes(innermost, last, None) or self.rows(sharing, innermost) is not None:
            return None
        sliding = self.slides(innermost, last)
        if sliding and not self.widens(innermost, last):
            return None
        if sharing is not None:
            return SLIDING if sliding else SHARING
        return ALONE if sliding else None

    def accumulating(self, last: For) -> Iterator[For]:
        """Yield the loops in a nest that are to be unrolled."""
        for node in walk(last.body):
            if isinstance(node, For) and self.analysis.loops[node.index].reductions and self.reads_neighbours(node):
                count, start = trip_count(node), node.start
                aligned = isinstance(start, Constant) and int(start.value) % UNROLLED == 0
                if aligned and (count is None or count >= 2 * UNROLLED):
                    yield node


def tile_schedule(block: Block, analysis: Analysis, target: Target, plain: Schedule) -> Schedule | None:
    """Return the schedule of a kernel's body with register tiles, where that is another one than `plain`."""
    schedule = planned(TilePlanner(analysis, target, lengths_in(block)).block(block))
    return None if schedule == plain else schedule


def busy_threads(target: Target) -> int:
    """Return how many threads with a tile each keep a GPU busy: the registers of a tile leave room for so many."""
    return target.threads // 4


def tile_conditions(block: Block, schedule: Schedule, target: Target) -> tuple[Expression, ...] | None:
    """Return what must hold so that nests with tiles have enough of them, and read 16 bytes at once.

    None if that cannot be told before they are run.
    """
    inner = assigned_symbols(block)
    found: dict[Expression, None] = {}
    for nest in outermost(block, schedule):
        loops = [node for node in statements(nest) if isinstance(node, For)]
        unrolled = [node for node in loops if schedule.unrolled(node.index) >= UNROLLED]
        if not unrolled:
            continue
        band = [node for node in loops if schedule.parallel(node.index)]
        bounds = [bound for node in band for bound in (node.start, node.stop)]
        if read_symbols(bounds) & inner:
            return None
        taken = max(schedule.width(node.index) for node in band) * max(tile_of(nest, schedule).values(), default=1)
        total = reduce(build.mul, (build.sub(node.stop, node.start) for node in band))
        for node in loops:
            if schedule.pieces(node.index) and node not in unrolled:
                taken, total = taken * DEEPEST, build.mul(total, build.sub(node.stop, node.start))
        found[build.apply("ge", total, build.integer(taken * busy_threads(target)))] = None
        found.update(dict.fromkeys(_whole_rows(unrolled)))
    return tuple(found)


def _whole_rows(loops: Sequence[For]) -> Iterator[Expression]:
    """Yield what says that rows that are read in loops are multiples of 16 bytes."""
    reads = dict.fromkeys(node.tensor for loop in loops for node in walk(loop.body) if isinstance(node, Load))
    for tensor in reads:
        kind = tensor.type
        if kind.rank and kind.contiguous and not tensor.is_local:
            row, whole = Size(tensor=tensor, axis=kind.rank - 1), build.integer(ALIGNMENT // kind.dtype.size)
            yield build.apply("eq", build.apply("mod", row, whole), build.integer(0))


def outermost(block: Block, schedule: Schedule) -> Iterator[For]:
    """Yield the loops for threads, or blocks of them, that stand in no other one."""
    for statement in block:
        if isinstance(statement, For) and (schedule.parallel(statement.index) or schedule.in_blocks(statement.index)):
            yield statement
            continue
        for inner in blocks_in(statement):
            yield from outermost(inner, schedule)
