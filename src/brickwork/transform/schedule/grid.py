"""The schedule of a kernel for targets with a grid of threads, chosen by rules from what the analysis proved.

Independent loops are one range of threads, each of which may run a few neighbouring iterations as lanes, so that it
reads and writes as many bytes at once as the target can. Where the loops inside run along memory, each iteration gets a
block of threads that share those out. Loops that accumulate at the top run in blocks, whose number depends on the
sizes alone. Invariant: a schedule depends on no machine of the kind; sizes choose between bodies, in conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.polynomial import IndexAtom, Polynomial
from brickwork.analysis.verdicts import Analysis
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Block,
    Break,
    Check,
    Constant,
    Continue,
    For,
    If,
    Load,
    Random,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, loop_of, read_symbols, statements, straight, walk
from brickwork.records import dataclass
from brickwork.target.target import BLOCK_THREADS, WARP, Target
from brickwork.transform.rectangle import is_rectangle
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.schedule.planner import (
    DEPTH_WEIGHT,
    JAMMED,
    LARGE_BODY,
    NEIGHBOUR,
    Planner,
    access_cost,
    is_long_computation,
    moved_axes,
    setting_out,
    slope_of,
    trip_count,
    varies_with,
)
from brickwork.transform.schedule.schedule import (
    Bind,
    Fuse,
    Level,
    Reorder,
    Rfactor,
    Schedule,
    Unroll,
    Verb,
    planned,
)
from brickwork.transform.schedule.shared_loops import SHORT, SharingPlanner, are_short
from brickwork.transform.schedule.tile import find_across, is_cheap
from brickwork.transform.verbs.fuse import find_flat

DRAWN_LANES = 4
"""Numbers that one block of the random generator makes."""
UNROLLED = 8
"""Turns of an accumulating loop that are written out where they read neighbours."""
UNROLLED_TOGETHER = UNROLLED // 2
"""The same where iterations run together: they need registers, too."""
MOST_LANES = UNROLLED
"""Iterations that a thread runs in lanes, which are written out, too."""
LIGHT_PIECE = UNROLLED_TOGETHER * BLOCK_THREADS
"""Least iterations for a block of threads that accumulates: some for each of its threads."""


@dataclass(frozen=True, slots=True)
class Tile:
    """How a block of threads is laid over two loops of a nest: the innermost one and another.

    A thread takes `factor` neighbouring iterations of `across`, and `lanes` of the innermost loop, over which `threads`
    of the block are laid.
    """

    across: For
    factor: int
    lanes: int
    threads: int = 8


@dataclass(frozen=True, slots=True)
class GridPlanner(SharingPlanner):
    """Chooses how the nests of a kernel are run on a grid. If not `flat` and `wide`, fewer conditions are needed."""

    flat: bool = True
    wide: bool = True

    def block(self, block: Block, *, inside: bool = False) -> Iterator[Verb]:
        """Schedule the loops of a block that stands in no parallel loop; `inside` one that runs in order or not."""
        for statement in straight(block):
            if isinstance(statement, For):
                yield from self.nest(statement, inside=inside)
            elif isinstance(statement, While):
                yield from self.block((*statement.prelude, *statement.body), inside=True)

    def nest(self, loop: For, *, inside: bool) -> Iterator[Verb]:
        """Schedule a loop that stands in no parallel one."""
        verdict = self.analysis.loops[loop.index]
        if verdict.independent:
            yield from self.updates(loop)
        flat = find_flat(loop, self.analysis) if self.flat else None
        if flat is not None:
            yield Fuse(loop.index, flat.loops[1:])
            if verdict.reductions:
                yield Rfactor(loop.index, Level.BLOCK, LIGHT_PIECE)
            give = self.shared if verdict.reductions else self.threads
            yield from give(loop, self.width(loop_of(loop, flat.loops[-1])))
        elif not verdict.independent:
            yield from self.block(loop.body, inside=True)
        elif verdict.reductions:
            yield from self.reduction(loop)
        else:
            yield from self.independent(loop, inside=inside)

    # ------------------------------------------------------------ independent loops

    def independent(self, loop: For, *, inside: bool) -> Iterator[Verb]:
        """Schedule a band of loops: its iterations are for threads, or for blocks of them."""
        band = [*self.rectangle(loop)]
        if inside and are_short(band):
            return
        if chosen := self.for_blocks(band):
            yield from (Bind(node.index, Level.BLOCK) for node in band)
            yield from self.by_blocks(chosen, band[-1])
            yield from self.split(band[-1])
            return
        yield from self.spread(band)

    def by_blocks(self, chosen: Sequence[For], last: For) -> Iterator[Verb]:
        """Share loops inside of the last one of a band out among the threads of a block."""
        yield from (self.at_level(node, Level.WARP) for node in self.by_warps(chosen, last))
        for node in chosen:
            yield from (self.at_level(around, Level.THREAD) for around in self.nest_to(node, last)[:-1])
            yield from self.shared(node, self.width(node))

    def for_blocks(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops inside a band that blocks of threads share out, if its iterations are for blocks."""
        chosen = self.lanes(band)
        shares = chosen and chosen[0] not in band and self.fills_blocks(band[-1], chosen)
        return chosen if shares and not self.meets_again(band, chosen) else ()

    def spread(self, band: list[For]) -> Iterator[Verb]:
        """Give the iterations of a band to threads."""
        innermost = self.innermost(band)
        # Neighbours do not go together where a condition says what an iteration does, nor where that is much code.
        apart = any(is_rectangle(node, self.analysis) for node in band) or self.has_costly_terms(band[-1])
        sharing = self.sharing(band, innermost) if self.wide and not apart else None
        across = None if self.adds_together(innermost) else find_across(self.inside(innermost), band, innermost)
        order = [*(node for node in band if node is not innermost), innermost]
        rows = self.rows(sharing, innermost) if across is None else None
        jammed = rows is None and sharing is order[0] and (across is None or order == band)
        alone = apart or (not jammed and self.slides(innermost, band[-1]) and not self.widens(innermost, band[-1]))
        width = 1 if alone else self.width(innermost, band[-1], across)
        # Where a condition stands around what accumulates, tiles of threads need more registers than they gain.
        tiled = jammed and across is None and not any(isinstance(node, If) for node in walk(band[-1].body))
        if across is not None:
            yield from self.tile(band, order, Tile(across, min(width, JAMMED), width))
        elif rows is not None or tiled:
            yield from self.tile(band, order, Tile(rows or order[0], JAMMED, width))
        else:
            if order != band:
                yield Reorder(tuple(node.index for node in order))
            if jammed:
                yield Unroll(order[0].index, JAMMED, jam=True)
            yield from (Bind(node.index, Level.GRID) for node in order[:-1])
            yield from self.threads(innermost, width)
        together = jammed or rows is not None
        if width > 1 or together:
            yield from self.unrolled(band[-1], UNROLLED_TOGETHER if together else UNROLLED)
        outer = [*self.split(band[-1])]
        while outer:
            yield from outer
            inside = () if sharing is not None else (self.loop_of(each) for each in outer)
            outer = [item for each in inside for item in self.split(each)]
        yield from self.steps(band[-1])

    def tile(self, band: Sequence[For], order: Sequence[For], tile: Tile) -> Iterator[Verb]:
        """Lay the threads of a block over the last loop of an order and the one of a tile, which stands around it."""
        last = order[-1]
        nest = [*(node for node in order[:-1] if node is not tile.across), tile.across, last]
        if nest != [*band]:
            yield Reorder(tuple(node.index for node in nest))
        yield from (Bind(node.index, Level.GRID) for node in nest[:-1])
        yield from self.threads(last, tile.lanes, tile.threads)
        if tile.factor > 1:
            yield Unroll(tile.across.index, tile.factor, jam=True)

    def adds_together(self, innermost: For) -> bool:
        """Whether neighbouring iterations update the same element, which a warp of them does once for all."""
        met = self.analysis.loops[innermost.index].updates
        stores = (item for item in self.inside(innermost) if item.store and item.tensor in met)
        return any(not varies_with(item, innermost.index) for item in stores)

    def steps(self, last: For) -> Iterator[Verb]:
        """Write steps of recurrences out, so that a thread asks for what later ones read before it needs that."""
        stored = {node.tensor for node in walk(last.body) if isinstance(node, Store)}
        for loop in (node for node in walk(last.body) if isinstance(node, For)):
            reads = {item.tensor for item in self.inside(loop) if not item.store and varies_with(item, loop.index)}
            if not self.analysis.loops[loop.index].independent and reads - stored and self.is_step(loop):
                yield Unroll(loop.index, UNROLLED_TOGETHER)

    def is_step(self, loop: For) -> bool:
        """Whether an iteration is little code, and runs to its end."""
        inside = [*walk(loop.body)]
        if any(isinstance(node, Check | While | Break | Continue | Random) for node in inside):
            return False
        counts = [trip_count(node) or LARGE_BODY for node in inside if isinstance(node, For)]
        return len(inside) * prod(counts) <= LARGE_BODY

    def access_cost(self, access: Access, vectors: set[Symbol]) -> float:
        """Return about how long neighbouring threads take for an access: each for its own where they set out apart."""
        scale = 2.0 if access.store else 1.0
        cost = access_cost(access, vectors, self.analysis.model)
        moving = (around.atom for around in access.loops if around.node.index in vectors)
        if cost == scale / 2 and self.is_near(access, next(moving)):
            cost = scale * NEIGHBOUR
        for loop, distance in setting_out(access, vectors):
            if distance is None or not distance.is_constant or self.lengths.comes_from_data(loop):
                return scale
            # Where limits say where they begin, neighbours do so at neighbours for the most part.
            atom = next(around.atom for around in access.loops if around.node is loop)
            moved = moved_axes(access, atom)
            if moved != [access.tensor.type.neighbours]:
                return scale
            step = access.axes[moved[0]].modular.factor((atom,)) * (distance.constant or 1)
            cost = max(cost, scale * NEIGHBOUR if abs(step) == 1 else scale / 2)
        return cost

    def shared_cost(self, access: Access, vectors: set[Symbol]) -> float:
        """Return about how long an access takes if threads of a block share these loops out."""
        near = min((self.nearness(access, each.atom) for each in access.loops if each.node.index in vectors), default=1)
        return min(self.access_cost(access, vectors), 2.0 * near if access.store else near)

    def is_near(self, access: Access, atom: IndexAtom) -> bool:
        """Whether neighbours go to neighbours in a row, or to the same, but for where quotients or limits change."""
        unit = access.tensor.type.neighbours
        slope = None if unit is None else slope_of(access.axes[unit].modular, atom, self.analysis.model)
        return slope is not None and abs(slope) <= 1

    def nearness(self, access: Access, atom: IndexAtom) -> float:
        """Return what a read costs whose places remainders say, or that is one of a few in rows of literal places."""
        unit = access.tensor.type.neighbours
        varying = moved_axes(access, atom, self.analysis.model)
        if unit is None or len(varying) != 1:
            return 1.0
        if varying[0] != unit:
            return 1 / 2 if all(axis.value.is_constant for axis in access.axes[varying[0] + 1 :]) else 1.0
        return NEIGHBOUR if self.is_near(access, atom) else 1.0

    def goes_along(self, access: Access, loop: For) -> bool:
        """Whether an iteration goes along memory, so that what comes with an element is of use to its thread."""
        depth = next(around.atom.depth for around in access.loops if around.node.index == loop.index)
        unit = access.tensor.type.neighbours
        if unit is None:
            return False
        inner = [around for around in access.loops if around.atom.depth > depth]
        own = [around.atom for around in inner if not self.analysis.loops[around.node.index].is_free]
        return any(abs(access.axes[unit].modular.factor((item,))) == 1 for item in own)

    def cost(self, loop: For, vectors: tuple[For, ...]) -> float:
        """Return about how long a nest takes if these loops run in lanes; short loops run as often as they do."""
        chosen = {node.index for node in vectors}
        return sum(self.shared_cost(access, chosen) * self.often(access) for access in self.inside(loop))

    def often(self, access: Access) -> float:
        """Return about how often an access is made."""
        return self.turns(around.node for around in access.loops)

    def turns(self, loops: Iterable[For]) -> float:
        """Return about how often the body of loops in one another runs."""
        counts = map(self.count, loops)
        return prod(DEPTH_WEIGHT if count is None else min(count, DEPTH_WEIGHT) for count in counts)

    def is_read_again(self, access: Access, loop: For) -> bool:
        """Whether each turn of a loop around makes an access: steps of a recurrence keep what is the same for all."""
        return self.analysis.loops[loop.index].independent or varies_with(access, loop.index)

    def neighbours_cost(self, loop: For) -> float:
        """Return about how long a nest takes if neighbouring iterations of this loop are for neighbouring threads."""
        total = 0.0
        for access in self.inside(loop):
            cost = self.access_cost(access, {loop.index})
            often = self.turns(each.node for each in access.loops if self.is_read_again(access, each.node))
            total += often * (cost / 2 if cost >= 1 and self.goes_along(access, loop) else cost)
        return total

    def inner_lanes(self, block: Block) -> Iterator[For]:
        """Yield the loops in a block that threads could share out; in a `while`, too, which all of a block run."""
        yield from SharingPlanner.inner_lanes(self, block)
        for loop in (node for node in straight(block) if isinstance(node, While)):
            yield from self.inner_lanes((*loop.prelude, *loop.body))

    def worth_lanes(self, loop: For) -> bool:
        """Whether an accumulating loop is worth threads of its own: what it holds is as long for all of them."""
        if not self.is_along(loop) or any(isinstance(node, While) for node in statements(loop.body)):
            return False
        inner = [node for node in statements(loop.body) if isinstance(node, For)]
        if all(self.count(node) is not None for node in inner):
            return True
        varying = assigned_symbols(loop.body) | {loop.index}
        as_long = all(read_symbols((node.start, node.stop)).isdisjoint(varying) for node in inner)
        return as_long and not any(self.inner_lanes(loop.body))

    def is_along(self, loop: For) -> bool:
        """Whether a loop goes along an axis, or along a part of one that elements, arguments or a long literal say."""
        if self.lengths.comes_from_data(loop) or Planner.is_along(self, loop) or self.lengths.has_sizes(loop):
            return True
        most = self.lengths.most(loop)
        if most is None or (isinstance(most, Constant) and most.value < SHORT):
            return False
        return any(access_cost(item, {loop.index}) == NEIGHBOUR for item in self.inside(loop) if not item.store)

    def innermost(self, band: Sequence[For]) -> For:
        """Return the loop of a band whose neighbouring iterations are for neighbouring threads."""
        return min(reversed(band), key=self.neighbours_cost)

    def rows(self, sharing: For | None, innermost: For) -> For | None:
        """Return the loop over which tiles of threads lie, too, if neighbours along the innermost one read far apart.

        It is the loop whose iterations share what those read, as all rows of `x` do for `x @ w.T`.
        """
        return sharing if self.apart(innermost) else None

    def apart(self, innermost: For) -> list[Access]:
        """Return what neighbours along the innermost loop read far apart."""
        reads = [item for item in self.inside(innermost) if not item.store and varies_with(item, innermost.index)]
        return [item for item in reads if not is_cheap(item, (innermost,))]

    def sharing(self, band: list[For], vector: For) -> For | None:
        """Return the outer loop whose iterations read the same, and bring no lines of their own that lie apart.

        Channels do that which are read at places that data say: threads along both loops would find no line twice.
        """
        found = Planner.sharing(self, band, vector)
        return None if found is not None and any(varies_with(i, found.index) for i in self.apart(vector)) else found

    def split(self, last: For) -> Iterator[Verb]:
        """Name the loops in a band that accumulate, if all of them do, and the same."""
        inner = [node for node in straight(last.body) if isinstance(node, For)]
        verdicts = [self.analysis.loops[node.index] for node in inner]
        alike = len({verdict.reductions for verdict in verdicts}) == 1 and all(item.independent for item in verdicts)
        if alike and verdicts[0].reductions and not any(isinstance(node, Check | Random) for node in walk(last.body)):
            yield from (Rfactor(node.index, Level.GRID) for node in inner)

    def loop_of(self, verb: Verb) -> For:
        """Return the loop that a verb is about."""
        return next(item.node for item in self.analysis.model.loops if item.node.index == verb.loop)

    def unrolled(self, last: For, turns: int) -> Iterator[Verb]:
        """Write turns of accumulating loops out where they read neighbours, which a thread then reads at once."""
        for node in walk(last.body):
            if isinstance(node, For) and self.analysis.loops[node.index].reductions and self.reads_neighbours(node):
                yield Unroll(node.index, turns)

    def reads_neighbours(self, loop: For) -> bool:
        """Whether the turns of a loop that does nothing else read neighbours of some tensor, from a known place on."""
        count = trip_count(loop)
        if any(isinstance(node, Check | For | If | While) for node in walk(loop.body)):
            return False
        if not isinstance(loop.start, Constant) or int(loop.start.value) % UNROLLED:
            return False
        if count is not None and count < UNROLLED:
            return False
        reads = (item for item in self.inside(loop) if not item.store and item.tensor.type.contiguous)
        return any(read.axes and access_cost(read, {loop.index}) == NEIGHBOUR for read in reads)

    def threads(self, loop: For, width: int, beside: int = 0) -> Iterator[Verb]:
        """Give each iteration, or `width` neighbours, to a thread; `beside` as in `Bind`."""
        yield Bind(loop.index, Level.GRID, beside=beside)
        if width > 1:
            yield Bind(loop.index, Level.LANE, width)

    def shared(self, loop: For, width: int) -> Iterator[Verb]:
        """Share iterations, or groups of `width` neighbours, out among the threads of a block."""
        adds = bool(self.analysis.loops[loop.index].reductions)
        yield self.at_level(loop, Level.THREAD)
        if width > 1 and isinstance(loop.start, Constant) and int(loop.start.value) % width == 0:
            yield Rfactor(loop.index, Level.LANE, width) if adds else Bind(loop.index, Level.LANE, width)

    def at_level(self, loop: For, level: Level) -> Verb:
        """Return the verb that runs a loop at a level, and joins there what it accumulates."""
        adds = bool(self.analysis.loops[loop.index].reductions)
        return Rfactor(loop.index, level) if adds else Bind(loop.index, level)

    def meets_again(self, band: Sequence[For], chosen: Sequence[For]) -> bool:
        """Whether all that is read along the loops inside a band of several is read by other iterations of it again.

        Such iterations (those of a matrix product) are many for what they read: a thread takes one, and finds in the
        caches what its neighbours read.
        """
        inner = {node.index for node in chosen}
        along = [
            access
            for access in self.analysis.accesses
            if not access.store and any(varies_with(access, index) for index in inner)
        ]
        return len(band) > 1 and all(any(self.reads_again(each, node) for node in band) for each in along)

    def reads_again(self, access: Access, loop: For) -> bool:
        """Whether other iterations of a loop read the same: no part of an axis is each one's own."""
        return not varies_with(access, loop.index) and not any(
            distance is not None and self.is_apart(inner, distance)
            for inner, distance in setting_out(access, {loop.index})
        )

    def is_apart(self, loop: For, distance: Polynomial) -> bool:
        """Whether a loop is no longer than the distance of the places at which it begins, as far as that is known."""
        if not distance.is_constant:
            return True
        most = self.lengths.most(loop)
        return isinstance(most, Constant) and 0 < int(most.value) <= abs(distance.constant)

    # ------------------------------------------------------------ lanes

    def slides(self, loop: For, last: For) -> bool:
        """Whether all that neighbouring iterations read is other elements, at places that loops inside move on.

        Such reads begin anywhere, and lanes would make them one by one, each far from those of the next thread.
        `last` is the last loop of the perfect nest that the loop stands in.
        """
        inner = {node.index for node in statements(last.body) if isinstance(node, For)}
        reads = [access for access in self.inside(loop) if not access.store and varies_with(access, loop.index)]
        return bool(reads) and all(self.moves_on(access, loop, inner) for access in reads)

    def widens(self, loop: For, last: For) -> bool:
        """Whether a loop inside, whose turns are written out, runs along as many elements as the loop has come to.

        It is long then, and what slides is read in chunks that neighbours have in common.
        """
        return any(
            not self.leans_little(node, loop, 0) and self.leans_little(node, loop)
            for node in walk(last.body)
            if isinstance(node, For) and self.analysis.loops[node.index].reductions and self.reads_neighbours(node)
        )

    def moves_on(self, access: Access, loop: For, inner: set[Symbol]) -> bool:
        """Whether the axis along which a loop reads is moved along by a loop inside, too."""
        atoms = {around.node.index: around.atom for around in access.loops}
        axes = [axis.value.atoms() for axis in access.axes if atoms[loop.index] in axis.value.atoms()]
        return any(atoms[index] in axis for axis in axes for index in inner if index in atoms)

    def width(self, loop: For, last: For | None = None, across: For | None = None) -> int:
        """Return how many neighbouring iterations of a loop a thread runs.

        `last` is the last loop of the perfect nest that it stands in, and `across` the other loop of a tile.
        """
        draws = any(isinstance(node, Random) for node in walk(loop.body))
        if (not self.wide and not draws) or not self.takes_lanes(loop, last or loop, across):
            return 1
        elements = [item.tensor.type for item in self.inside(loop)]
        widest = max((kind.dtype.size for kind in elements if kind.rank), default=4)
        width = min(self.target.access_bytes // widest, MOST_LANES)
        if draws:
            width = max(width, DRAWN_LANES)
        count = trip_count(loop)
        while count is not None and width > count:
            width //= 2
        return max(width, 1)

    def takes_lanes(self, loop: For, last: For, across: For | None) -> bool:
        """Whether neighbouring iterations do the same, on neighbouring elements for the most part."""
        for node in walk(last.body):
            if isinstance(node, While) or (isinstance(node, For) and not self.analysis.loops[node.index].reductions):
                return False
        inside = self.inside(loop)
        if self.parts_ways(loop, last) or self.updates_neighbours(loop, inside) or self.is_masked(loop, last):
            return False
        if any(self.sets_out_anywhere(access, loop) or self.leaves_gaps(access, loop) for access in inside):
            return False
        along = (loop,) if across is None else (loop, across)
        cost = sum(min(self.access_cost(access, {node.index}) for node in along) for access in inside)
        return 2 * cost <= sum(2.0 if access.store else 1.0 for access in inside)

    def parts_ways(self, loop: For, last: For) -> bool:
        """Whether neighbouring iterations may take branches with long computations: lanes would take both ways."""
        varying = {loop.index} | assigned_symbols(last.body)
        for choice in (node for node in walk(last.body) if isinstance(node, If)):
            long = any(map(is_long_computation, walk((*choice.then, *choice.otherwise))))
            if long and (read_symbols(choice.condition) & varying or effects(choice.condition).loads):
                return True
        return False

    def leaves_gaps(self, access: Access, loop: For) -> bool:
        """Whether neighbouring iterations store elements of one row that are not next to one another.

        Lanes would store each by itself, far from those of the next thread: for each of them a warp would store into
        as many sectors of memory as it has threads.
        """
        atom = next((around.atom for around in access.loops if around.node.index == loop.index), None)
        unit = access.tensor.type.neighbours
        if atom is None or unit is None or not access.store:
            return False
        return abs(access.axes[unit].modular.factor((atom,))) > 1

    def is_masked(self, loop: For, last: For) -> bool:
        """Whether neighbouring iterations touch all elements of their own in branches that they may take or not.

        Lanes would make each of these accesses by itself, four elements away from that of the next thread.
        """
        choices = (
            node for node in walk(last.body) if isinstance(node, If) and loop.index in read_symbols(node.condition)
        )
        masked = {
            node.access
            for choice in choices
            for node in walk((*choice.then, *choice.otherwise))
            if isinstance(node, Load | Store)
        }
        own = [item for item in self.inside(loop) if varies_with(item, loop.index)]
        return bool(masked) and all(item.number in masked for item in own)

    def updates_neighbours(self, loop: For, inside: Sequence[Access]) -> bool:
        """Whether iterations update neighbouring elements atomically, which a warp does at once for its threads."""
        verdicts = self.analysis.loops
        stores = [item for item in inside if item.store and self.access_cost(item, {loop.index}) < 1]
        stores = [item for item in stores if varies_with(item, loop.index)]
        return any(item.tensor in verdicts[around.node.index].updates for item in stores for around in item.loops)

    def sets_out_anywhere(self, access: Access, loop: For) -> bool:
        """Whether neighbouring iterations begin a loop inside, along which an access goes, where elements say."""
        return any(self.lengths.comes_from_data(inner) for inner, _ in setting_out(access, {loop.index}))

    def inside(self, loop: For) -> Sequence[Access]:
        """Return the accesses of a loop."""
        return self.analysis.inside(loop.index)

    def is_short(self, loop: For) -> bool:
        """Whether literals say that a loop has few iterations."""
        return are_short([loop])

    # ------------------------------------------------------------ accumulating loops

    def reduction(self, loop: For) -> Iterator[Verb]:
        """Schedule a loop that accumulates and stands in no parallel one: a block makes terms that are sums in turn."""
        terms = () if isinstance(loop.body[0], For) else self.for_blocks([loop])
        if self.fills_blocks(replace(loop, body=(loop,)), terms):
            yield Rfactor(loop.index, Level.BLOCK, 1)
            yield from self.by_blocks(terms, loop)
            return
        symbols = {reduction.symbol for reduction in self.analysis.loops[loop.index].reductions}
        chain = [loop]
        while len(chain[-1].body) == 1 and isinstance(inner := chain[-1].body[0], For):
            if not self.accumulates(inner, symbols):
                break
            chain.append(inner)
        shared = min(reversed(chain), key=lambda node: self.cost(loop, (node,)))
        if not runs_in_lockstep((loop,), frozenset({shared.index})):
            yield from self.block(loop.body, inside=True)
            return
        # Iterations with loops inside are worth more threads than blocks are worth joining.
        piece = 1 if shared is not loop else WARP if effects(loop.body).loops else LIGHT_PIECE
        yield Rfactor(loop.index, Level.BLOCK, piece)
        nest = self.nest_to(shared, replace(loop, body=(loop,)))
        long = next((place for place in range(len(nest) - 1, 0, -1) if not self.is_short(nest[place])), 0)
        yield from (self.at_level(around, Level.THREAD) for around in nest[long:-1])
        yield from self.shared(shared, self.width(shared))


def grid_schedule(
    block: Block, analysis: Analysis, target: Target, *, flat: bool = True, wide: bool = True
) -> Schedule:
    """Return the schedule of a kernel's body on a grid; if `flat`, nests over whole tensors are run as one loop."""
    planner = GridPlanner(analysis, target, lengths_in(block), flat, wide)
    return planned(planner.block(block))
