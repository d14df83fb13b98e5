"""Short rows: nests whose iterations go along few elements each, as windows do, on a grid.

    for i in range(n):                        a thread takes an i, and goes along k alone: a block of them for three
        for k in range(w.shape[0]):           products would be idle but for three threads, and wait for these
            y[i] += x[i + k] * w[k]

Where the loops inside an iteration are as long as rows, a block of threads shares them out (`grid.py`). Sizes tell at
run time, also where there are too few such threads for what each of them goes along:

    for i in range(n):                        of 8,192 points each has a block that shares out j,
        for j in range(m):                    and goes along k in each thread
            for k in range(3): d += (x[i, k] - y[j, k]) ** 2
            most = max(most, -d)
        for j in range(m): ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import ceil

from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.nodes import Block, Expression, For, Size, Symbol, While
from brickwork.ir.walk import read_symbols, statements
from brickwork.records import dataclass
from brickwork.target.target import LEAST_TEAM, WARP, Target
from brickwork.transform.carried_rows import carried_rows
from brickwork.transform.guard import conjunction
from brickwork.transform.register_lists import MOST
from brickwork.transform.schedule.grid import SHORT, GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.planner import NEIGHBOUR, access_cost, has_fixed_bounds, varies_with
from brickwork.transform.schedule.register_tile import outermost
from brickwork.transform.schedule.schedule import Level, Rfactor, Schedule, Verb, planned

SHORT_ROWS = "short rows"
"""The version for rows that are shorter than they are taken to be."""
SHORT_LANES = "short"
"""The same with lanes, or with nests that are run as one loop."""
FEW_ROWS = "few rows"
"""The version that shares rows out among the threads of a block which threads would each go along, but are too few."""
SHORT_APART = SHORT // 2
"""The same where each thread reads a row of its own: of 8, it is 4 x as fast as a block, of 31 a quarter as fast."""


@dataclass(frozen=True, slots=True)
class ShortPlanner(GridPlanner):
    """Schedules as a `GridPlanner` does, but that some loops are known to be `short`."""

    short: frozenset[Symbol] = frozenset()
    carried: frozenset[Symbol] = frozenset()
    """The loops along rows that a loop around them carries: a thread has such rows in registers."""
    few: bool = False
    """Whether iterations are too few for threads: loops inside are shared out where these read neighbours, too."""

    def for_blocks(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops inside a band that blocks of threads share out; if it has few iterations, whatever may be.

        Loops that accumulate alone in an iteration have pieces of their own then.
        """
        found = GridPlanner.for_blocks(self, band)
        inner = (*self.inner_lanes(band[-1].body),) if self.few and not found else ()
        sums = [self.loop_of(verb) for verb in self.split(band[-1])] if inner else []
        pieces = any(has_fixed_bounds(loop, band) for loop in sums) or (bool(sums) and self.meets_again(band, inner))
        if not inner or pieces or not self.fills_blocks(band[-1], inner):
            return found
        return inner if self.slowdown(band, inner) <= WARP else found

    def slowdown(self, band: Sequence[For], inner: Sequence[For]) -> int:
        """Return how many times as long accesses take where loops inside of a band are shared out."""
        alone = min(self.cost(band[0], (node,)) for node in band)
        return max(ceil(self.cost(band[0], tuple(inner)) / alone - NEIGHBOUR), 1) if alone else 1

    def fills_blocks(self, last: For, chosen: Sequence[For]) -> bool:
        """Whether loops inside of a band can be shared out among the threads of a block, and are long enough."""
        long = any(node.index not in self.short for node in chosen)
        return long and GridPlanner.fills_blocks(self, last, chosen)

    def is_short(self, loop: For) -> bool:
        """Whether literals or sizes say that a loop has few iterations."""
        return loop.index in self.short or GridPlanner.is_short(self, loop)

    def worth_lanes(self, loop: For) -> bool:
        """Whether a loop is worth threads of its own: short ones in it are about as long for all of them."""
        inner = [node for node in statements(loop.body) if isinstance(node, For | While)]
        even = all(isinstance(node, For) and node.index in self.short for node in inner)
        return GridPlanner.worth_lanes(self, loop) or (bool(inner) and even and self.is_along(loop))

    def limit(self, row: For) -> int:
        """Return how many iterations are too many for a thread: fewer where neighbouring threads read far apart."""
        if row.index in self.carried:
            return MOST + 1
        reads = [item for item in self.inside(row) if not item.store and varies_with(item, row.index)]
        return SHORT if all(map(_is_near, reads)) else SHORT_APART

    def split(self, last: For) -> Iterator[Verb]:
        """Name the loop in a band that accumulates, if it is one that pieces can be made of."""
        found = GridPlanner.split(self, last)
        return (item for item in found if not (_is_in_pieces(item) and item.loop in self.short))


def _is_in_pieces(verb: Verb) -> bool:
    return isinstance(verb, Rfactor) and verb.level is Level.GRID


def _is_near(access: Access) -> bool:
    """Whether neighbouring iterations of some loop read neighbours."""
    return any(access_cost(access, {around.node.index}) < 1 for around in access.loops[:-1])


def short_schedules(
    block: Block, analysis: Analysis, target: Target, plain: Schedule, *, wide: bool
) -> Iterator[tuple[Schedule, tuple[Expression, ...]]]:
    """Yield the schedules for short rows, and what must hold so that they are: for a row in rows, more of it each time.

    If not `wide`, they have no lanes, nor nests that are run as one loop, and nothing else is needed.
    """
    found = _short_schedules(_planner(block, analysis, target, wide=wide), block, plain)
    return ((schedule, needed) for _, schedule, needed in found)


def few_schedules(
    block: Block, analysis: Analysis, target: Target, plain: Schedule
) -> Iterator[tuple[Schedule, tuple[Expression, ...]]]:
    """Yield the schedules that share out what few threads would each go along, and what must hold for them."""
    planner = _planner(block, analysis, target, wide=True)
    for each, schedule, needed in ((planner, plain, ()), *_short_schedules(planner, block, plain)):
        few = planned(replace(each, few=True).block(block))
        nests = [node for node in outermost(block, few) if few.blocks(node.index) and not schedule.blocks(node.index)]
        asked = [_few(nest, few, planner) for nest in nests]
        if asked and None not in asked:
            yield few, tuple(dict.fromkeys((*needed, *(item for items in asked for item in items or ()))))


def _few(nest: For, few: Schedule, planner: ShortPlanner) -> tuple[Expression, ...] | None:
    """Return what must hold so that blocks share out the iterations of a nest: these are few, and each one is long."""
    band = [node for node in (nest, *statements(nest.body)) if isinstance(node, For) and few.blocks(node.index)]
    counts = [build.iterations(node.start, node.stop) for node in band]
    shared = [loop[-1] for loop in _shared(nest.body, few)]
    rows = [row for row in dict.fromkeys(map(planner.lengths.most, shared)) if row is not None]
    if not rows or read_symbols(counts) & planner.lengths.changing:
        return None
    longest = reduce(lambda one, other: build.apply("maximum", one, other), rows)
    threads = planner.target.threads // 2 // planner.slowdown(band, shared)
    few_threads = build.apply("lt", build.product(counts), build.integer(threads))
    return few_threads, build.apply("ge", longest, build.integer(planner.target.block_threads // 4))


def _planner(block: Block, analysis: Analysis, target: Target, *, wide: bool) -> ShortPlanner:
    lengths = lengths_in(block)
    carried = frozenset(
        along
        for loop in statements(block)
        if isinstance(loop, For)
        for row in carried_rows(loop)
        for along in row.loops
    )
    return ShortPlanner(analysis, target, lengths, flat=wide, wide=wide, carried=carried)


def _short_schedules(
    planner: ShortPlanner, block: Block, plain: Schedule
) -> Iterator[tuple[ShortPlanner, Schedule, tuple[Expression, ...]]]:
    """Yield the schedules for short rows, with the planner that each is by."""
    needed = dict[Expression, None]()
    while True:
        nests = [node for node in outermost(block, plain) if plain.in_blocks(node.index)]
        found = [_row(loops, nest, planner, plain) for nest in nests for loops in _shared(nest.body, plain)]
        rows = [row for row in dict.fromkeys(found) if row.length is not None or row.around is not None]
        planner = replace(planner, short=planner.short | {level.index for row in rows for level in row.levels})
        schedule = planned(planner.block(block))
        if not rows or schedule == plain:
            return
        needed |= dict.fromkeys(_condition(row, planner) for row in rows)
        yield planner, schedule, tuple(needed)
        plain = schedule


@dataclass(frozen=True, slots=True)
class _Row:
    """What a block shares out: a loop, or several as one range, outermost first.

    Known before are its most iterations, and those of the loops around it, or one of them. Of the latter so many as
    `enough` says take no longer in a thread each than in a block each.
    """

    levels: tuple[For, ...]
    length: Expression | None
    around: Expression | None
    enough: int = 0

    @property
    def loop(self) -> For:
        """The innermost loop."""
        return self.levels[-1]


def _condition(row: _Row, planner: ShortPlanner) -> Expression:
    """Return what must hold so that a row is for one thread: it is short, or there are threads enough in any case."""
    ways: list[Expression] = []
    if row.length is not None:
        ways.append(build.apply("lt", row.length, build.integer(planner.limit(row.loop))))
    if row.around is not None:
        many = [build.apply("ge", row.around, build.integer(row.enough))]
        if planner.lengths.comes_from_data(row.loop):
            # Rows that are parts of an axis, as those of a sparse matrix are, have on average what it holds for each.
            held = build.mul(row.around, build.integer(SHORT_APART))
            many += [build.apply("lt", size, held) for size in dict.fromkeys(_divided(row.loop, planner))]
        ways.append(conjunction(many))
    if (rows := planner.lengths.rows_of(row.loop)) is not None and (sizes := [*_divided(row.loop, planner)]):
        # The least team of threads has a step each, and then joins what came of it.
        held = build.mul(rows, build.integer(LEAST_TEAM))
        ways.append(conjunction([build.apply("le", size, held) for size in dict.fromkeys(sizes)]))
    return reduce(lambda one, other: build.apply("logical_or", one, other), ways)


def _divided(row: For, planner: ShortPlanner) -> Iterator[Size]:
    """Yield the sizes of the axes along which a row goes."""
    for access in planner.inside(row):
        atom = next(around.atom for around in access.loops if around.node.index == row.index)
        for place, axis in enumerate(access.axes):
            if not access.tensor.is_local and abs(axis.value.factor((atom,))) == 1:
                yield Size(tensor=access.tensor, axis=place)


def _shared(block: Block, plain: Schedule) -> Iterator[tuple[For, ...]]:
    """Yield the loops in a block that threads share out, outermost first: several of them are one range."""
    inside = set[Symbol]()
    for loop in (node for node in statements(block) if isinstance(node, For) and plain.threads(node.index)):
        if loop.index not in inside:
            levels = [loop]
            while len(levels[-1].body) == 1 and isinstance(inner := levels[-1].body[0], For):
                if not plain.threads(inner.index):
                    break
                levels.append(inner)
            inside |= {level.index for level in levels}
            yield tuple(levels)


def _row(levels: tuple[For, ...], nest: For, planner: ShortPlanner, plain: Schedule) -> _Row:
    """Return what is known of a row."""
    lengths, shared = planner.lengths, [loop[-1] for loop in _shared(nest.body, plain)]
    most = [length for level in levels if (length := lengths.most(level)) is not None]
    length = build.product(most) if len(most) == len(levels) else None
    data = any(map(lengths.comes_from_data, levels))
    band = [node for node in (nest, *statements(nest.body)) if isinstance(node, For) and plain.in_blocks(node.index)]
    # Where neighbouring threads read neighbours, and those of a block would not, fewer are as fast.
    one, other = min(planner.cost(nest, (node,)) for node in band), planner.cost(nest, tuple(shared))
    enough = int(planner.target.threads // 2 * min(one / other, 1)) if other else 0
    if any(map(lengths.leans, levels)) if length is None else not data and one >= other:
        return _Row(levels, length, None)
    counts = [build.iterations(node.start, node.stop) for node in band]
    known = not read_symbols(counts) & lengths.changing
    return _Row(levels, length, build.product(counts) if known else None, enough)
