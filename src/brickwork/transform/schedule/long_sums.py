"""Long sums: nests of few iterations, of which each accumulates for long, as `x @ w.T` of few rows, on a grid.

    for i in range(n): for j in range(m): s = 0.0         a block of threads takes four i of a j, and shares k out: its
        for k in range(p): s += x[i, k] * w[j, k]         threads read neighbours of `w` once for the four, and join
        y[i, j] = s                                       their sums

Where all loops of a nest share what they read, as these do, each iteration is for a thread otherwise (`grid.py`): many
of them find in the caches what others read, and few leave a GPU waiting. Sizes tell at run time: `sum_conditions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.nodes import Block, Expression, For, If, While
from brickwork.ir.walk import assigned_symbols, read_symbols, statements
from brickwork.records import dataclass
from brickwork.target.target import WARP, Target
from brickwork.transform.schedule.grid import UNROLLED, GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.planner import JAMMED, NEIGHBOUR, access_cost, varies_with
from brickwork.transform.schedule.register_tile import busy_threads, outermost
from brickwork.transform.schedule.schedule import Bind, Level, Reorder, Schedule, Unroll, Verb, planned

LONG = UNROLLED * WARP
"""Iterations of an accumulating loop for a block of threads: those of a warp, as many as are written out each."""


@dataclass(frozen=True, slots=True)
class SumPlanner(GridPlanner):
    """Shares long sums out, one after the other, and schedules the rest as a `GridPlanner` does."""

    def independent(self, loop: For, *, inside: bool) -> Iterator[Verb]:
        """Schedule a band of loops: if its iterations are sums of what they share, those are for blocks of threads."""
        band = [*self.rectangle(loop)]
        summing = self.summing(band)
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

    def together(self, band: Sequence[For], summing: For) -> For:
        """Return the loop of a band of which several iterations read the same along the accumulating one."""
        along = [access for access in self.inside(summing) if varies_with(access, summing.index)]
        return next(node for node in band if any(not varies_with(access, node.index) for access in along))


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
        bounds = [bound for node in (*band, *summing) for bound in (node.start, node.stop)]
        if read_symbols(bounds) & inner:
            return None
        total = build.product([build.sub(node.stop, node.start) for node in band])
        found[build.apply("le", total, build.integer(busy_threads(target)))] = None
        for node in summing:
            found[build.apply("ge", build.sub(node.stop, node.start), build.integer(LONG))] = None
    return tuple(found)
