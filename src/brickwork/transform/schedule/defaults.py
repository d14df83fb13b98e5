"""The schedule of a kernel for processors, chosen by rules from what the analysis proved; nothing is tuned.

The outermost independent loops are shared out among threads, and loops inside them run in vector lanes: those with
which most accesses are to neighbouring elements. Invariant: a schedule depends on neither thread count nor sizes. Loops
that accumulate run in chunks only outside of parallel loops, and their chunks and lanes are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, isinf
from typing import ClassVar

from brickwork.analysis.atomic_updates import update_operator
from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.polynomial import UnknownAtom
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    Load,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, local_bytes, read_symbols, statements, straight, walk
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.privatise_reductions import may_privatise
from brickwork.transform.schedule.cache_tile import find_tile
from brickwork.transform.schedule.grid import grid_schedule
from brickwork.transform.schedule.lane_costs import lanes_pay, strays
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.planner import (
    DEPTH_WEIGHT,
    JAMMED,
    SHARE,
    Planner,
    access_cost,
    drifts,
    is_long_computation,
    trip_count,
    value_bytes,
    varies_with,
)
from brickwork.transform.schedule.schedule import (
    LANES_LIMIT,
    Bind,
    Fuse,
    Level,
    Reorder,
    Rfactor,
    Schedule,
    Split,
    Unroll,
    Verb,
    chunk_of,
    planned,
)
from brickwork.transform.strips import computes_ahead, is_strip
from brickwork.transform.verbs.fuse import find_flat
from brickwork.transform.verbs.reorder import permute

REDUCTION_LANES = 32
"""Lanes of an accumulating loop: the same on every machine, so that results are."""
FEW_ITERATIONS = REDUCTION_LANES // 2
"""Fewer iterations of a window than these run in order, while lanes run what is around it."""
ACCUMULATORS = 4
"""Vectors a lane set spans where an inner loop accumulates, to hide the latency of a multiply-add."""
JAMMED_ACCUMULATORS = ACCUMULATORS // 2
"""Vectors a lane set spans then: with `JAMMED` iterations, as many as hide the latency and fit the registers.

So many, too, where functions of floats or random numbers are computed: they have results underway themselves."""
RAGGED_LANES = REDUCTION_LANES // ACCUMULATORS
"""Lanes of an accumulating loop that data begin or end, which is often short (the row of a sparse matrix)."""
LIGHT_CHUNK = 4096
"""Iterations a chunk of a loop without inner loops."""
HEAVY_CHUNK = LIGHT_CHUNK // int(DEPTH_WEIGHT)
"""Iterations a chunk of a loop with inner loops."""
APART_CHUNK = 8 * SHARE
"""Iterations a chunk of a loop that only moves elements apart: it waits for memory, so a second thread gains little."""


@dataclass(frozen=True, slots=True)
class _Processor(Planner):
    """Chooses verbs for processors; `flat` says that nests may be flattened."""

    target: Target
    flat: bool
    short: frozenset[Symbol] = frozenset()
    """Loops that are known to be too short for lanes."""
    deepest: ClassVar[int] = 4

    def block(self, block: Block) -> Iterator[Verb]:
        for statement in straight(block):
            if isinstance(statement, For):
                yield from self.nest(statement)
            elif isinstance(statement, While):
                yield from self.block((*statement.prelude, *statement.body))

    def nest(self, loop: For) -> Iterator[Verb]:
        """Schedule a loop that stands in no parallel one."""
        if self.analysis.loops[loop.index].independent:
            yield from self.updates(loop)
        flat = find_flat(loop, self.analysis) if self.flat else None
        if flat is not None:
            yield Fuse(loop.index, flat.loops[1:])
            yield from self.chunks(loop, LIGHT_CHUNK)
            yield self.in_lanes(loop, self.width(loop))
        elif not self.analysis.loops[loop.index].independent:
            yield from self.copied(loop)
            yield from self.block(loop.body)
        elif self.analysis.loops[loop.index].reductions:
            yield from self.reduction(loop)
        else:
            yield from self.independent(loop)

    def updates(self, loop: For) -> Iterator[Verb]:
        """Make the updates indivisible on which iterations that run at once may meet: those of claimed loops."""
        for node in (loop, *statements(loop.body)):
            if isinstance(node, For) and self.analysis.loops[node.index].independent:
                yield from (Rfactor(node.index, None, tensor=item) for item in self.analysis.loops[node.index].updates)

    def copied(self, loop: For) -> Iterator[Verb]:
        """Give pieces of a loop that only updates keep in order their own copies of what they update."""
        verdict = self.analysis.loops[loop.index]
        joined = all(may_privatise(tensor, update_operator(loop, tensor)) for tensor in verdict.updates)
        claimed = any(isinstance(node, For) and node.claimed for node in statements(loop))
        if joined and not claimed and not verdict.reductions:
            yield from (Rfactor(loop.index, Level.POOL, tensor=tensor) for tensor in verdict.updates)

    def independent(self, loop: For) -> Iterator[Verb]:
        band = [*self.band(loop)]
        chosen = self.lanes(band)
        if not self.around_pays(band, chosen):
            chosen = (*self.inner_lanes(band[-1].body),)
        if isinf(self.cost(loop, chosen)):
            chosen = ()
        rows = self.rows(band, chosen) if self.target.vector_bytes else 0
        if rows:
            yield self.jam(loop, rows)
            yield from (Bind(node.index, Level.POOL) for node in self.rectangle(loop))
            yield from (self.in_lanes(node, self.width(node)) for node in chosen)
            return
        if not chosen or chosen[0] not in band:
            shared = [node for node in chosen if self.sharing(band, node) is band[-1]]
            if shared:
                yield self.jam(band[-1])
            yield from (Bind(node.index, Level.POOL) for node in band)
            for node in chosen:
                width = self.width(node, JAMMED_ACCUMULATORS if node in shared else ACCUMULATORS)
                if self.pay(node, width):
                    yield self.in_lanes(node, width)
            return
        fixed = [*self.rectangle(loop)]
        tile = find_tile(fixed, chosen[0], self.width(chosen[0]), self.analysis, self.target)
        if tile is not None:
            yield from tile
            yield self.in_lanes(chosen[0], self.width(chosen[0]))
            return
        order = self.order(band, chosen[0])
        if order and lanes_pay(chosen[0], self.width(chosen[0]), self.analysis, band[-1]):
            yield Reorder(order)
            band = [*self.band(permute(loop, order))]
        vector = next(node for node in band if node.index == chosen[0].index)
        sharing = self.sharing(band, vector)
        width = self.width(vector, JAMMED_ACCUMULATORS if sharing else ACCUMULATORS)
        if sharing:
            yield self.jam(sharing)
        outer = band[: band.index(vector)]
        yield from (Bind(node.index, Level.POOL) for node in outer)
        if not {node.index for node in outer} & _read_in_bounds(vector):
            yield from self.chunks(vector, self.chunk(vector) if outer else self.piece(vector, width))
        if self.pay(vector, width):
            yield self.in_lanes(vector, width)

    def lanes(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops of a band to run in lanes: those inside it, if they compute what is stored in order."""
        inner = (*self.inner_lanes(band[-1].body),)
        return inner if any(map(computes_ahead, inner)) else Planner.lanes(self, band)

    def lanes_inside(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops of a band inside another loop to run in lanes."""
        return (band[0],) if computes_ahead(band[0]) else self.lanes(band)

    def in_lanes(self, loop: For, width: int) -> Verb:
        """Run a loop in lanes, each with partial results of what it accumulates."""
        if self.analysis.loops[loop.index].reductions:
            return Rfactor(loop.index, Level.LANE, width)
        return Bind(loop.index, Level.LANE, width)

    def chunks(self, loop: For, size: int) -> Iterator[Verb]:
        """Share chunks of a loop out among threads, each with partial results of what it accumulates."""
        if self.analysis.loops[loop.index].reductions:
            yield Rfactor(loop.index, Level.POOL, size)
        elif not is_strip(loop):
            yield Split(loop.index, size)
            yield Bind(chunk_of(loop.index), Level.POOL)

    def pay(self, loop: For, width: int) -> bool:
        """Whether lanes of a loop pay; those of a sum are the same on every machine, and for every work."""
        return bool(self.analysis.loops[loop.index].reductions) or lanes_pay(loop, width, self.analysis)

    def around_pays(self, band: list[For], chosen: tuple[For, ...]) -> bool:
        """Whether lanes pay, if they are those of a loop around others that may have lanes instead."""
        around = chosen == (band[-1],) and any(isinstance(node, For) for node in statements(band[-1].body))
        return not around or self.pay(band[-1], self.width(band[-1]))

    def sharing(self, band: list[For], vector: For) -> For | None:
        """Return the outer loop worth running in jam: its iterations run mostly the same ones of the loops inside."""
        outer = Planner.sharing(self, band, vector) if self.target.vector_bytes else None
        if outer is None:
            return None
        inner = [node for node in statements(outer.body) if isinstance(node, For)]
        bounds = [bound for node in inner for bound in (node.start, node.stop)]
        changing = assigned_symbols(outer.body) - {node.index for node in inner}
        steady = not read_symbols(bounds) & changing
        return outer if steady and all(self.leans_little(node, outer) for node in inner) else None

    def jam(self, loop: For, factor: int = JAMMED) -> Verb:
        """Run iterations of a loop in jam; those of the rest too, but where that would be much code.

        That is where rows have ends of their own, and where they accumulate over several axes.
        """
        inside = [node for node in statements(loop.body) if isinstance(node, For)]
        bounds = [bound for node in inside for bound in (node.start, node.stop)]
        accumulating = sum(bool(self.analysis.loops[node.index].reductions) for node in inside)
        much = loop.index in read_symbols(bounds) or accumulating > 1
        return Unroll(loop.index, factor, jam=True, then=0 if much or factor < JAMMED else factor // 2)

    def rows(self, band: list[For], chosen: tuple[For, ...]) -> int:
        """Return how many iterations of a nest's first loop run in jam, so that they share rows that lanes run along.

        Such rows are those that the second loop goes through, as in `a[i, k] * a[j, k]`: each time they come from far.
        """
        if len(band) != 2 or len(chosen) != 1 or not self.analysis.loops[chosen[0].index].reductions:
            return 0
        (outer, inner), (vector,) = band, chosen
        if not self.leans_little(inner, outer) or not self.leans_little(vector, outer):
            return 0
        reads = [item for item in self.analysis.accesses if item.loops and item.loops[-1].node.index == vector.index]
        along = [item for item in reads if not item.store and varies_with(item, vector.index)]
        shared = [item for item in along if not varies_with(item, outer.index) and varies_with(item, inner.index)]
        if not shared or len(shared) == len(along):
            return 0
        # Each iteration has accumulators of its own, which stay in registers beside what is read.
        summed = sum(item.symbol.dtype.size for item in self.analysis.loops[vector.index].reductions)
        registers = REDUCTION_LANES * summed // self.target.vector_bytes
        most = 3 * self.target.vector_registers // 4
        fitting = (factor for factor in (JAMMED, JAMMED // 2) if factor * registers <= most)
        return next(fitting, 0)

    def order(self, band: list[For], vector: For) -> tuple[Symbol, ...]:
        """Return an order of a band in which the loop that runs in lanes is innermost; empty if it is, or cannot be."""
        fixed = [*self.rectangle(band[0])]
        if vector not in fixed[:-1]:
            return ()
        return tuple(node.index for node in (*(node for node in fixed if node is not vector), vector))

    def reduction(self, loop: For) -> Iterator[Verb]:
        """Schedule a loop that accumulates: chunks are joined in order; lanes are its own, or those of loops inside."""
        symbols = {reduction.symbol for reduction in self.analysis.loops[loop.index].reductions}
        yield from self.chunks(loop, self.chunk(loop))
        inner = loop
        while len(inner.body) == 1 and isinstance(inner.body[0], For) and self.accumulates(inner.body[0], symbols):
            inner = inner.body[0]
        if self.worth_lanes(inner):
            yield self.in_lanes(inner, REDUCTION_LANES)
            return
        chosen = (*self.inner_lanes(inner.body),)
        if chosen and self.cost(loop, (inner,)) < self.cost(loop, chosen):
            yield self.in_lanes(inner, REDUCTION_LANES)
        elif not isinf(self.cost(loop, chosen)):
            yield from (self.in_lanes(node, self.width(node)) for node in chosen)

    def worth_lanes(self, loop: For) -> bool:
        """Whether an accumulating loop is worth lanes of its own: it may be long, and holds none that may be."""
        inside = [node for node in statements(loop.body) if isinstance(node, For | While)]
        if loop.index in self.short:
            return False
        return not _is_short(loop) and all(isinstance(node, For) and _is_short(node) for node in inside)

    def cost(self, loop: For, vectors: tuple[For, ...]) -> float:
        """Return about how long a nest takes if these loops run in lanes; infinite where lanes are never worth it."""
        inside = (inner for node in vectors for inner in statements(node.body))
        astray = any(isinstance(inner, While) and strays(inner) for inner in inside)
        return inf if astray else Planner.cost(self, loop, vectors)

    def access_cost(self, access: Access, vectors: set[Symbol]) -> float:
        """Return about how long an access takes in lanes: one by one where they drift apart."""
        if drifts(access, vectors):
            return 2.0 if access.store else 1.0
        return access_cost(access, vectors)

    def width(self, loop: For, accumulators: int = ACCUMULATORS) -> int:
        """Return the lanes of a loop: those of the registers for its widest values, more if loops in it sum.

        They are fewer where the lists of all lanes would take too much memory.
        """
        lanes, own = self._wanted_lanes(loop, accumulators), local_bytes(loop.body)
        while lanes > 1 and lanes * own > self.target.stack_bytes // 4:
            lanes //= 2
        return lanes

    def _wanted_lanes(self, loop: For, accumulators: int) -> int:
        if self.analysis.loops[loop.index].reductions:
            return RAGGED_LANES if self.is_ragged(loop) else REDUCTION_LANES
        widest = max((value_bytes(node) for node in walk(loop.body) if isinstance(node, Load | Store)), default=4)
        lanes = max(self.target.vector_bytes // widest, 1)
        if any(isinstance(node, For) and self.analysis.loops[node.index].reductions for node in statements(loop.body)):
            lanes = self.in_registers(loop, lanes, lanes * accumulators)
        elif any(is_long_computation(node) for node in walk(loop.body)):
            lanes *= JAMMED_ACCUMULATORS
        count = trip_count(loop)
        while count is not None and lanes > count:
            lanes //= 2
        return max(min(lanes, LANES_LIMIT), 1)

    def in_registers(self, loop: For, least: int, most: int) -> int:
        """Return as many lanes of a loop as have the variables that it assigns in registers, within limits."""
        room = self.target.vector_registers * self.target.vector_bytes
        variables = {node.symbol for node in statements(loop.body) if isinstance(node, Assign)}
        lane = sum(symbol.dtype.size for symbol in variables)
        while most > least and most * lane > room:
            most //= 2
        return most

    def is_ragged(self, loop: For) -> bool:
        """Whether a bound of a loop comes from data."""
        around = next((item for item in self.analysis.model.loops if item.node.index == loop.index), None)
        return around is not None and any(
            isinstance(atom, UnknownAtom) for bound in (around.start, around.stop) for atom in bound.atoms()
        )

    def piece(self, loop: For, width: int) -> int:
        """Return how many iterations of an independent loop in no other make up a piece of work.

        If they have loops inside, a few are worth a thread: it is told at run time whether pieces are.
        """
        size = self.chunk(loop)
        return size if size != HEAVY_CHUNK else max(width, REDUCTION_LANES)

    def chunk(self, loop: For) -> int:
        """Return how many iterations make up a piece of work."""
        if self.only_moves_apart(loop):
            return APART_CHUNK
        return HEAVY_CHUNK if any(isinstance(node, For | While) for node in statements(loop.body)) else LIGHT_CHUNK


def default_schedule(
    block: Block, analysis: Analysis, target: Target, *, flat: bool = True, short: frozenset[Symbol] = frozenset()
) -> Schedule:
    """Return the schedule of a kernel's body; if `flat`, nests over whole tensors are run as one loop.

    For a processor, `short` are loops that are known to be too short for lanes.
    """
    if target.grid:
        return grid_schedule(block, analysis, target, flat=flat, wide=flat)
    return planned(_Processor(analysis, target, flat, short).block(block))


def find_windows(block: Block, analysis: Analysis, schedule: Schedule) -> tuple[For, ...]:
    """Return the accumulating loops in lanes that are often short, as windows are.

    They move a place along an axis together with a parallel loop around, or end by a number that is no size. Those are
    left out whose length is not known before the kernel's loops.
    """
    changing, lengths = assigned_symbols(block), lengths_in(block)
    lanes = [node for node in statements(block) if isinstance(node, For) and schedule.width(node.index) > 1]
    summing = [node for node in lanes if analysis.loops[node.index].reductions and not _is_short(node)]
    known = [node for node in summing if not _read_in_bounds(node) & changing]
    return tuple(
        node
        for node in known
        if not (lengths.has_sizes(node) or _read_in_bounds(node) & analysis.sizes)
        or any(_slides(access, node.index, schedule) for access in analysis.accesses)
    )


def few_iterations(loops: Iterable[For]) -> Iterator[Expression]:
    """Yield the conditions under which loops are too short for the lanes of an accumulating loop."""
    for loop in loops:
        yield build.apply("lt", build.sub(loop.stop, loop.start), build.integer(FEW_ITERATIONS))


def _slides(access: Access, window: Symbol, schedule: Schedule) -> bool:
    """Whether the place of an access along an axis depends on both a loop and a parallel one around it."""
    atoms = {around.node.index: around.atom for around in access.loops}
    shared = [atom for index, atom in atoms.items() if schedule.parallel(index)]
    return window in atoms and any(
        atoms[window] in reached and any(atom in reached for atom in shared)
        for reached in (frozenset(axis.value.atoms()) for axis in access.axes)
    )


def flat_conditions(block: Block, analysis: Analysis, schedule: Schedule) -> tuple[Expression, ...]:
    """Return what must hold for the nests that a schedule runs as one loop."""
    loops = [node for node in statements(block) if isinstance(node, For) and schedule.flat(node.index)]
    found = [flat for loop in loops if (flat := find_flat(loop, analysis)) is not None]
    return tuple(dict.fromkeys(condition for flat in found for condition in flat.conditions))


def _is_short(loop: For) -> bool:
    last = _most(loop.stop)
    return isinstance(loop.start, Constant) and last is not None and last - loop.start.value < REDUCTION_LANES


def _most(stop: Expression) -> float | None:
    """Return what a bound is at most: that of a window is the least of its length and of what it reaches."""
    match stop:
        case Constant(value=value):
            return value
        case Apply(operator=operator, operands=operands) if operator.name == "minimum":
            return min((most for operand in operands if (most := _most(operand)) is not None), default=None)
        case _:
            return None


def _read_in_bounds(loop: For) -> frozenset[Symbol]:
    return read_symbols((loop.start, loop.stop))
