"""Parts of a nest that are freer than all of it: nests of their own, with scratch tensors in between, on a grid.

    for y in range(h):                            for y in range(h):                  (independent)
        row = 0.0                                     row = 0.0
        for x in range(w):                            for x in range(w):
            row += a[y, x]                 ->             row += a[y, x]
            s[y + 1, x] = s[y, x] + row                   kept[y, x] = row
                                                  for y in range(h):
                                                      for x in range(w):              (independent)
                                                          s[y + 1, x] = s[y, x] + kept[y, x]

A loop in order is cut where iterations of a part of it are independent, and do at least as much as the others: what is
computed of a step before it, as whether a place is a peak, is computed for all steps at once. Where the iterations of a
nest are for a thread each, as columns are, and there are few, each loop in it is a nest: norms of columns are sums, and
a map over rows and columns. Legal where all iterations of a part may run before all of the next one (`nest_parts.py`).
Invariant: such nests run where threads are few without them, and have more to do than launches take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from itertools import accumulate, chain, pairwise

from brickwork.analysis.carrying_loops import carrying_loops
from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Constant, Expression, For, Launch, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, statements
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.columns import has_nests
from brickwork.transform.distribute import is_independent, may_have_parts
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nest_parts import NestCutter, UncutError, asked
from brickwork.transform.nests_apart import Changed, Place, each_launch, launches
from brickwork.transform.persistent import few_iterations
from brickwork.transform.schedule.grid import GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.shared_loops import SHORT
from brickwork.transform.scratch import Names
from brickwork.transform.without_continue import without_continue

FREE = "_parts"
"""Ends the name of a kernel with a nest for each part."""
REMARK = "where parts of a loop are for more threads than all of it, and there is room for what passes between them"
"""What `explain` says of it."""


@each_launch("grid")
def with_free_parts(launch: Launch, names: Names, target: Target) -> Changed | None:
    """Return launches of a kernel's nests that are cut, and of what stands between them, and remarks on those."""
    kernel = replace(launch.kernel, body=without_continue(launch.kernel.body))
    if not any(has_nests(node) for node in statements(kernel.body) if isinstance(node, For)):
        return None
    if kernel.body == launch.kernel.body:
        kernel = launch.kernel
    found = _Cutter.of(kernel, names, target).all_cut(kernel.body)
    return (
        launches(replace(launch, kernel=kernel), found, FREE, REMARK, most=target.scratch_bytes) if any(found) else None
    )


@dataclass(slots=True)
class _Cutter(NestCutter):
    """Cuts the nests of one kernel where parts are freer than all of them.

    A cut of the loops `whole` would gain nothing. The iterations of the nest at hand are for a thread each if
    `by_threads`, or for a block in which one thread has most to do.
    """

    whole: set[Symbol] = field(default_factory=set[Symbol])
    by_threads: bool = False

    @property
    def carrying(self) -> Collection[Symbol]:
        """The indices of the recurrences of the kernel."""
        return carrying_loops(self.kernel, self.analysis).keys()

    def loops(self, loop: For, place: Place) -> list[Statement]:
        """Return a nest as one for each part, and note what makes these worth their launches."""
        if not self.analysis.loops[loop.index].is_free:
            return [loop]
        planner = GridPlanner(self.analysis, self.target, lengths_in((loop,)))
        band = [*planner.band(loop)]
        shared = {each.index for each in planner.for_blocks(band)}
        self.by_threads = not shared or self.is_alone(band[-1].body, shared)
        parts = self.parted_in_order(loop, place)
        if len(parts) > 1:
            self.worth += self.is_worth_it(band, len(parts))
        return parts

    def is_alone(self, body: Block, shared: set[Symbol]) -> bool:
        """Whether a recurrence in a body, with none of the `shared` loops, would keep a block waiting for a thread."""
        loops = (item for item in body if isinstance(item, For) and item.index in self.carrying)
        return any(shared.isdisjoint({item.index} | assigned_symbols(item.body)) for item in loops)

    def parted_in_order(self, loop: For, place: Place) -> list[Statement]:
        """Return a loop as one for each part; loops inside stay whole where their parts stay together."""
        while True:
            kept, worth = len(self.kept), len(self.worth)
            parts, together = self.tried(loop, place)
            if not together:
                return parts
            self.whole |= together
            del self.kept[kept:], self.worth[worth:]

    def tried(self, loop: For, place: Place) -> tuple[list[Statement], set[Symbol]]:
        """Return a loop as one for each part, and the loops inside that were cut for nothing."""
        inside = place.inside(loop)
        condition, body = asked(loop.body)
        if not body or loop.index in self.whole or not may_have_parts(loop):
            return [loop], set()
        pieces, origins = list[Block](), list[Symbol | None]()
        for statement in body:
            cut = self.parted_in_order(statement, inside) if isinstance(statement, For) else [statement]
            pieces += [(item,) for item in cut]
            origins += [statement.index if isinstance(statement, For) and len(cut) > 1 else None] * len(cut)
        free = self.analysis.loops[loop.index].is_free
        parts = self.at_loops(pieces, any(origins)) if free else self.in_order(loop, pieces, place)
        ends = {*accumulate(map(len, parts))}
        apart = {one for n, (one, other) in enumerate(pairwise(origins), 1) if one == other and n in ends}
        together = {item for item in origins if item is not None} - apart
        if together or len(parts) == 1:
            return [loop], together
        if not self.may_be_parted(loop, parts):
            raise UncutError
        return [*self.parted(loop, parts, condition, inside)], set()

    # ------------------------------------------------------------ use

    def at_loops(self, pieces: Sequence[Block], are_cut: bool) -> list[Block]:
        """Return the body of an independent loop in parts that end with a loop and what belongs to it.

        That is of use where some loops in it were cut, or one of several is for more threads than the nest is.
        """
        long = [piece for piece in pieces if self.is_long(piece)]
        wide = self.by_threads and len(long) > 1 and self.are_wide(long)
        parts = [pieces[0]]
        for piece in pieces[1:]:
            if (are_cut or wide) and self.is_long(piece) and self.is_long(parts[-1]):
                parts.append(piece)
            else:
                parts[-1] = (*parts[-1], *piece)
        return parts

    def is_long(self, block: Block) -> bool:
        """Whether a block has a loop, of more iterations than a thread does at once."""
        most = map(lengths_in(block).most, (node for node in statements(block) if isinstance(node, For)))
        return effects(block).loops and not all(isinstance(item, Constant) and item.value < SHORT for item in most)

    def are_wide(self, blocks: Sequence[Block]) -> bool:
        """Whether one of several loops is for threads by itself, or passes on what chunks of it may begin with."""
        loops = [item.index for block in blocks for item in block if isinstance(item, For)]
        carrying = () if any(self.analysis.loops[index].independent for index in loops) else self.carrying
        return any(self.analysis.loops[index].independent or index in carrying for index in loops)

    def in_order(self, loop: For, pieces: Sequence[Block], place: Place) -> list[Block]:
        """Return the body of a loop in order in parts whose iterations are independent, and others.

        A part without loops is worth it where a loop in order around may be cut then.
        """
        least = 0 if place.loops and not self.analysis.loops[place.loops[-1].index].is_free else 1
        parts, free = [pieces[0]], list[bool]()
        for number, piece in enumerate(pieces[1:], 1):
            before, after = ((*chain(*side),) for side in (pieces[:number], pieces[number:]))
            if self.may_be_parted(loop, (before, after)):
                parts.append(piece)
            else:
                parts[-1] = (*parts[-1], *piece)
        result = list[Block]()
        for number, part in enumerate(parts):
            before, after = ((*chain(*side),) for side in (parts[:number], parts[number + 1 :]))
            free_part = self.is_free_part(loop, part, before, after)
            if result and not (free_part != free[-1] and self.is_worth_a_loop(free_part, result[-1], part, least)):
                result[-1] = (*result[-1], *part)
                free[-1] = free[-1] and free_part
            else:
                result.append(part)
                free.append(free_part)
        return result

    def is_free_part(self, loop: For, part: Block, before: Block, after: Block) -> bool:
        """Whether iterations of a part of a loop, which is given what earlier parts assign, are independent.

        What it passes from one iteration to the next is no sum that later parts read on the way.
        """
        live = live_before(part, NONE)
        given = live & assigned_symbols(before)
        if (live - given) & assigned_symbols(part) & read_symbols(after):
            return False
        ahead = sorted(given, key=lambda item: item.number)
        first = tuple(Assign(symbol=item, value=build.constant(0, item.dtype)) for item in ahead)
        alone = replace(loop, body=(*first, *part))
        return is_independent(alone, self.model_of(loop), self.facts, self.live[loop.index])

    def is_worth_a_loop(self, second: bool, one: Block, other: Block, least: int) -> bool:
        """Whether of two parts the one whose iterations are independent, the `second` or not, does as much at least.

        What reads no element, as the distance from a diagonal, had better be computed where it is wanted.
        """
        own, rest = map(effects, (other, one) if second else (one, other))
        return own.depth >= max(rest.depth, least) and bool(own.loads or own.loops or own.draws)

    def is_worth_it(self, band: Sequence[For], count: int) -> Iterator[Expression]:
        """Yield what must hold so that so many launches are worth it: a band of few iterations has more to do.

        A thread takes as long for a step as a block does for one of all its threads.
        """
        around = Place((), self.known).total(band)
        ranges = self.known
        for level in band:
            ranges = ranges.inside(level)
        if around is None:
            raise UncutError
        each = 1 if self.by_threads else self.target.block_threads
        least = count * few_iterations(self.target) * each // self.target.block_threads
        yield build.apply("le", build.mul(around, build.integer(2 * each)), build.integer(self.target.threads))
        yield build.apply("ge", self.steps(band[-1].body, ranges), build.integer(least))

    def steps(self, block: Block, ranges: Ranges) -> Expression:
        """Return how many iterations of innermost loops a block has at most, as far as that is known."""
        total: Expression = build.integer(0)
        for loop in (item for item in block if isinstance(item, For)):
            inside = self.steps(loop.body, ranges.inside(loop)) if effects(loop.body).loops else build.integer(1)
            total = build.add(total, build.mul(inside, ranges.iterations(loop) or build.integer(1)))
        return total
