"""Long sums: nests of few iterations, of which each accumulates for long, as `x @ w.T` of few rows, on a grid.

    for i in range(n): for j in range(m): s = 0.0         a block of threads takes four i of a j, and shares k out: its
        for k in range(p): s += x[i, k] * w[j, k]         threads read neighbours of `w` once for the four, and join
        y[i, j] = s                                       their sums

Where all loops of a nest share what they read, as these do, each iteration is for a thread otherwise (`grid.py`): many
of them find in the caches what others read, and few leave a GPU waiting. Sizes tell at run time: `sum_conditions`.

    for c in range(C): for v in range(3):               a block of threads takes a c and a v, and its threads share the
        s = 0.0                                         range of all b and j out, along memory: of a thread for each
        for b in range(B):                              c and v, few neighbours would read neighbours
            for j in range(n - v):
                s += g[b, c, j + v] * x[b, c, j]
        w_gradient[c, v] = s

So is the gradient of a small parameter summed. Nests with conditions between their loops stay: asked for each element,
these took longer (the gradient of a 3 x 3 convolution of each channel 0.52 ms on an H200, not 0.32).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Expression, For, If, Store, While
from brickwork.ir.walk import assigned_symbols, read_symbols, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import SECTOR_BYTES, WARP, Target
from brickwork.transform.schedule.contract_loops import longest
from brickwork.transform.schedule.grid import UNROLLED, GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.planner import (
    JAMMED,
    NEIGHBOUR,
    access_cost,
    has_fixed_bounds,
    varies_with,
)
from brickwork.transform.schedule.register_tile import busy_threads, outermost
from brickwork.transform.schedule.schedule import Bind, Level, Reorder, Schedule, Unroll, Verb, planned

LONG = UNROLLED * WARP
"""Iterations of an accumulating loop for a block of threads: those of a warp, as many as are written out each."""
SECTOR = SECTOR_BYTES // FLOAT32.size
"""Neighbouring threads that read all of a sector: from so many on, a block for each sum gained nothing (H200)."""


@dataclass(frozen=True, slots=True)
class SumPlanner(GridPlanner):
    """Shares long sums out, one after the other, and schedules the rest as a `GridPlanner` does."""

    def independent(self, loop: For, *, inside: bool) -> Iterator[Verb]:
        """Schedule a band of loops: if its iterations are sums of what they share, those are for blocks of threads."""
        band = [*self.rectangle(loop)]
        summing = self.summing(band)
        if summing is None and not inside and (nest := self.summed_nest(band)):
            yield from (Bind(node.index, Level.BLOCK) for node in band)
            yield from (self.at_level(node, Level.THREAD) for node in nest[:-1])
            yield from self.shared(nest[-1], 1 if _asks(nest[0]) else self.width(nest[-1]))
            yield from self.split(band[-1])
            return
        if summing is None:
            yield from GridPlanner.independent(self, loop, inside=inside)
            return
        together = self.together(band, summing)
        order = [*(node for node in band if node is not together), together]
        if order != band:
            yield Reorder(tuple(node.index for node in order))
        yield from (Bind(node.index, Level.BLOCK) for node in order)
        yield Unroll(together.index, JAMMED, jam=True)
        yield from self.shared(summing, self.width(summing))

    def summing(self, band: list[For]) -> For | None:
        """Return the loop that accumulates in a band, if it is the only one in it and runs along memory for all."""
        inner = [node for node in statements(band[-1].body) if isinstance(node, For | If | While)]
        if len(inner) != 1 or not isinstance(loop := inner[0], For) or not self.fills_blocks(band[-1], (loop,)):
            return None
        verdict = self.analysis.loops[loop.index]
        if not (verdict.independent and verdict.reductions and self.meets_again(band, (loop,))):
            return None
        reads = [access for access in self.inside(loop) if not access.store]
        along = all(access_cost(access, {loop.index}) <= NEIGHBOUR for access in reads)
        return loop if along and any(varies_with(access, loop.index) for access in reads) else None

    def summed_nest(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops that accumulate in a band, if what they read is along the last one; outermost first.

        Threads along the band may read far apart then: along its last loop, too, where that has few iterations.
        """
        nest = nest_of_sums(band[-1].body)
        if not nest or self.innermost(band) is not band[-1] or self.for_blocks(band):
            return ()
        sums = self.analysis.loops[nest[0].index].reductions
        verdicts = [self.analysis.loops[node.index] for node in nest]
        if not sums or any(item.along is not None for item in sums):
            return ()
        if not all(item.independent and item.reductions == sums for item in verdicts):
            return ()
        last, reads = nest[-1], [access for access in self.inside(nest[-1]) if not access.store]
        along = all(access_cost(access, {last.index}) <= NEIGHBOUR for access in reads)
        apart = any(varies_with(access, last.index) for access in reads) and not self.meets_again(band, nest)
        return nest if along and apart and self.fills_blocks(band[-1], (last,)) else ()

    def together(self, band: Sequence[For], summing: For) -> For:
        """Return the loop of a band of which several iterations read the same along the accumulating one."""
        along = [access for access in self.inside(summing) if varies_with(access, summing.index)]
        return next(node for node in band if any(not varies_with(access, node.index) for access in along))


@legality
def nest_of_sums(block: Block) -> tuple[For, ...]:
    """Return the loops in a block that may be one range for threads, outermost first: all loops that there are.

    Each is all there is in the one before.
    """
    inner = [node for node in block if not isinstance(node, Assign | Store)]
    match inner:
        case [For() as loop]:
            return _nest(loop, ())
        case [If(then=then, otherwise=())]:
            return nest_of_sums(then)
        case _:
            return ()


@legality
def _nest(loop: For, around: tuple[For, ...]) -> tuple[For, ...]:
    """Return a loop and those in it that are one range with it and the loops around it, if all loops in it are."""
    if not has_fixed_bounds(loop, around):
        return ()
    found = (*around, loop)
    match loop.body:
        case (For() as inner,):
            return _nest(inner, found)
        case body:
            return () if effects(body).loops else found


def _asks(loop: For) -> bool:
    """Whether there are conditions in a loop."""
    return any(isinstance(node, If) for node in statements(loop.body))


def has_nests_of_sums(block: Block, analysis: Analysis, target: Target) -> bool:
    """Whether sizes may tell that a nest of a kernel's body is one whose sums blocks of threads share out."""
    planner = SumPlanner(analysis, target, lengths_in(block))
    nests = (node for node in statements(block) if isinstance(node, For) and analysis.loops[node.index].independent)
    return target.grid and any(planner.summed_nest([*planner.rectangle(node)]) for node in nests)


def sum_schedule(
    block: Block, analysis: Analysis, target: Target, plain: Schedule, *, wide: bool = True
) -> Schedule | None:
    """Return the schedule of a kernel's body that shares long sums out, where that is another one than `plain`.

    If it is not `wide`, threads read element by element, wherever rows begin.
    """
    schedule = planned(SumPlanner(analysis, target, lengths_in(block), wide=wide).block(block))
    return None if schedule == plain else schedule


def sum_conditions(block: Block, schedule: Schedule, plain: Schedule, target: Target) -> tuple[Expression, ...] | None:
    """Return what must hold so that the sums which are shared out are few and long; None if that is not known.

    They are few where threads with one each, or with a tile, would leave a GPU waiting.
    """
    inner = assigned_symbols(block)
    found: dict[Expression, None] = {}
    for nest in outermost(block, schedule):
        loops = [node for node in statements(nest) if isinstance(node, For)]
        band = [node for node in loops if schedule.blocks(node.index)]
        summing = [node for node in loops if schedule.threads(node.index)]
        if not band or plain.blocks(nest.index):
            continue
        jammed = any(schedule.jam(node.index) for node in band)
        lengths = [build.sub(node.stop, node.start) if jammed else longest(node, band) for node in summing]
        if read_symbols([*lengths, *(bound for node in band for bound in (node.start, node.stop))]) & inner:
            return None
        if not jammed:
            # Threads along the last loop would use parts of sectors alone where it is shorter than these.
            found[build.apply("lt", build.iterations(band[-1].start, band[-1].stop), build.integer(SECTOR))] = None
            found[build.apply("ge", build.product(lengths), build.integer(LONG))] = None
            continue
        total = build.product([build.sub(node.stop, node.start) for node in band])
        found[build.apply("le", total, build.integer(busy_threads(target)))] = None
        found |= dict.fromkeys(build.apply("ge", length, build.integer(LONG)) for length in lengths)
    return tuple(found)
