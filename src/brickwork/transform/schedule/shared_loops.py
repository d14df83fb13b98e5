"""Which loops the threads of a block share out, and which of those around them are for its warps, or parts of these.

    for t in order:                              a block, in order:
        for d in range(n):                       parts of its warps take a d each,
            s = 0.0
            for e in range(m):                   and the threads of a part share e out
                s += r[d, e] * h[e]
            g[d] = f(s)

What stands between such loops all threads of a block do alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from brickwork.ir.nodes import Block, Constant, For, Node, Symbol
from brickwork.ir.walk import assigned_symbols, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import WARP, Target
from brickwork.transform.schedule.lengths import Lengths
from brickwork.transform.schedule.lockstep import may_run_in_lockstep, runs_in_lockstep
from brickwork.transform.schedule.planner import FEW, NEIGHBOUR, Planner, has_fixed_bounds, trip_count

SHORT = WARP
"""Loops of fewer iterations (where that is known) are not worth threads."""


@dataclass(frozen=True, slots=True)
class SharingPlanner(Planner):
    """Answers about the loops in an iteration that is for a block of threads."""

    target: Target
    lengths: Lengths

    def count(self, loop: For) -> int | None:
        """Return how many iterations a loop has at most, if that is a literal."""
        most = self.lengths.most(loop)
        return max(int(most.value), 0) if isinstance(most, Constant) else None

    def lanes(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops to share out: those inside of loops in order, where a thread would do all of each step.

        Sizes say where there are threads enough for the band in any case (`short_rows.py`).
        """
        inner = (*self.inner_lanes(band[-1].body),)
        steps = [node for node in statements(band[-1].body) if self.is_step_around(node, inner)]
        return inner if steps else Planner.lanes(self, band)

    def lanes_inside(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops to share out: those inside where others cost as much or about, as they leave those to warps.

        All of a block's iteration is shared out then, and no thread goes along loops of its own.
        """
        inner, chosen = (*self.inner_lanes(band[-1].body),), self.lanes(band)
        if not inner or self.cost(band[0], inner) > self.cost(band[0], chosen) * (1 + NEIGHBOUR):
            return chosen
        return inner

    def is_step_around(self, node: Node, inner: Sequence[For]) -> bool:
        """Whether a statement is a loop in order around others."""
        if not isinstance(node, For) or self.analysis.loops[node.index].independent:
            return False
        inside = assigned_symbols(node)
        return any(each.index in inside and each.index != node.index for each in inner)

    def fills_blocks(self, last: For, chosen: Sequence[For]) -> bool:
        """Whether loops inside of a band can be shared out among the threads of a block."""
        nests = [self.nest_to(node, last) for node in chosen]
        counts = [[self.count(node) for node in nest] for nest in nests]
        if all(None not in nest and prod(count or 0 for count in nest) < SHORT for nest in counts):
            return False
        return may_run_in_lockstep(last.body, frozenset(node.index for nest in nests for node in nest))

    @legality
    def nest_to(self, last: For, around: For) -> list[For]:
        """Return the loops in `around` that a block shares out as one range with `last`, outermost first."""
        nest = [last]
        sums = self.analysis.loops[last.index].reductions
        for loop in reversed([*_loops_to(around.body, last)]):
            verdict = self.analysis.loops[loop.index]
            if loop.body != (nest[0],) or not verdict.independent:
                break
            if verdict.reductions != sums or any(item.along is not None for item in sums):
                break
            if not all(has_fixed_bounds(node, (loop,)) for node in nest):
                break
            nest.insert(0, loop)
        return nest

    @legality
    def by_warps(self, chosen: Sequence[For], last: For) -> Sequence[For]:
        """Return the loops in a block around those that its threads share out whose iterations are for warps.

        Each warp, or part of one, then shares out what an iteration holds, and meets no other: as rows of a matrix that
        are multiplied by a vector, step after step.
        """
        found: dict[Symbol, For] = {}
        for node in chosen:
            inside = {level.index for level in self.nest_to(node, last)}
            around = [loop for loop in _loops_to(last.body, node) if loop.index not in inside]
            rows = next((loop for loop in reversed(around) if self.is_for_warps(loop, chosen)), None)
            if rows is not None:
                found |= {level.index: level for level in self.nest_to(rows, last)}
        shared = frozenset((*found, *(node.index for node in chosen)))
        return (*found.values(),) if runs_in_lockstep(last.body, shared) else ()

    @legality
    def is_for_warps(self, loop: For, chosen: Sequence[For]) -> bool:
        """Whether parts of warps may each take iterations of a loop, and share out what these hold of the `chosen`."""
        count = self.count(loop)
        if not self.analysis.loops[loop.index].independent or (count is not None and count <= FEW):
            return False
        return runs_in_lockstep(loop.body, frozenset(node.index for node in chosen))


def _loops_to(block: Block, last: For) -> Iterator[For]:
    """Yield the loops of a block that another one stands in, outermost first."""
    reaching = [each for each in block if last.index in assigned_symbols(each)]
    for loop in statements(reaching):
        if isinstance(loop, For) and loop.index != last.index and last.index in assigned_symbols(loop):
            yield loop


def are_short(loops: Sequence[For]) -> bool:
    """Whether loops have few iterations together, as many as literals say."""
    counts = [trip_count(loop) for loop in loops]
    return None not in counts and prod(count or 0 for count in counts) < SHORT
