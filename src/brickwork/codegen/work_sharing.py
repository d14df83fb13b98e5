"""Work-sharing in a thread block: loops whose iterations its threads divide, and stores by one of them.

All threads run the code around such loops, in lockstep and with the same values. Neighbouring threads take neighbouring
iterations. Reductions are joined in a fixed order: lanes, then the threads of a warp by shuffles, then warps through
shared memory; every thread has the result. Barriers keep what one thread stores apart from what others load: one before
a shared loop and one after it, or where warps join their results, which is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

from brickwork.codegen.builder import ANYTHING, FunctionWriter, Known
from brickwork.codegen.emitter_state import EmitBlock, Frame, Slot, State, Team
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.grid import nest_of
from brickwork.codegen.joins import Group, identity, joined
from brickwork.codegen.lane_values import Uniform, scalar_type
from brickwork.codegen.odometer import Odometer
from brickwork.codegen.shuffles import shuffled
from brickwork.codegen.teams import (
    YES,
    barrier,
    block_barrier,
    fold,
    fold_team,
    part_of_warp,
    warp_barrier,
)
from brickwork.codegen.thread_iterations import one_by_one
from brickwork.codegen.variables import private_symbols, statement_count
from brickwork.codegen.vectors import accumulate, emit_lanes, fold_lanes, lane_state, reduction_slot
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import For, Kernel, Load, Reduction, Role, Store, Tensor, While, joined_together
from brickwork.ir.walk import statements, walk
from brickwork.legality import hazard, legality
from brickwork.target.target import WARP
from brickwork.transform.schedule.grid import UNROLLED_TOGETHER
from brickwork.transform.schedule.planner import LARGE_BODY

UNROLLED = UNROLLED_TOGETHER
"""Steps of a thread that are written out, so that it waits for what all of them load at once."""


def in_repeated_code(state: State) -> State:
    """Return the state of code that may run more than once."""
    return state if state.team is None else replace(state, team=replace(state.team, repeated=True))


@contextmanager
def by_one_thread(state: State, store: Store) -> Generator[None]:
    """Write the body, a store, for the first thread of a team; for all outside of teams, and for what each has."""
    team = state.team
    if team is None or team.alone or store.tensor.is_local:
        yield
        return
    crossed = store.tensor in state.crossed
    if crossed:
        barrier(state, team)
    with state.writer.when(state.writer.emit(f"icmp eq i64 {team.thread}, 0")):
        yield
    if crossed:
        barrier(state, team)


def crossed_tensors(kernel: Kernel) -> frozenset[Tensor]:
    """Return the tensors of which what a kernel stores at one place may be loaded or stored at another."""
    stores = Counter(node.tensor for node in statements(kernel.body) if isinstance(node, Store))
    loads = effects(kernel.body).loads
    return frozenset(item for item in kernel.tensors if _is_crossed(kernel, stores[item], loaded=item in loads))


@hazard
def _is_crossed(kernel: Kernel, stores: int, *, loaded: bool) -> bool:
    """Whether what one of so many stores into a tensor writes may be accessed at another place."""
    return kernel.may_alias or stores > 1 or (stores > 0 and loaded)


@hazard
def _meets_others(state: State, team: Team, loop: For) -> bool:
    """Return whether code before or after a shared loop may touch what it stores, or store what it loads."""
    for node in walk(loop):
        if isinstance(node, Load) and node.tensor in state.crossed:
            return True
        if isinstance(node, Store) and not node.tensor.is_local and (team.repeated or node.tensor in state.crossed):
            return True
    return False


def emit_work_sharing(state: State, team: Team, loop: For, emit_block: EmitBlock) -> None:
    """Emit a loop whose iterations the threads of a team share out; one with nothing in it is a barrier."""
    if not loop.body:
        barrier(state, team)
        return
    levels = nest_of(loop)
    last = replace(levels[-1], reductions=loop.reductions)
    part, runs = replace(team, alone=True), team
    if loop.role is Role.WARP:
        part, runs = part_of_warp(state, team, _count(state, levels))
    single = _private(replace(state.inner(), team=part), loop)
    wide = lane_state(single, last) if last.width > 1 else single
    for each in (single, wide) if last.width > 1 else (single,):
        _begin_reductions(each, loop)
    apart = _meets_others(state, team, loop)
    if apart:
        barrier(state, team)
    if len(levels) > 1:
        _emit_nest((single, wide), runs, (*levels[:-1], last), emit_block)
    else:
        _emit_loop((single, wide), runs, last, emit_block)
    totals = [_joined((state, single, wide), team, last, group) for group in joined_together(loop.reductions)]
    _finish(state, team, loop, totals, apart=apart)
    # The barrier that warps join their results at parts the loop from what follows, too; and the one before the loop
    # keeps results in shared memory until all have read them. Where there is none, this one does.
    if (team.repeated and not apart) if loop.reductions else apart:
        barrier(state, team)


def _count(state: State, levels: tuple[For, ...]) -> str:
    """Return the iterations of a nest, as i64."""
    emit, total = state.writer.emit, "1"
    for loop in levels:
        length = emit(f"sub i64 {emit_scalar(state, loop.stop)}, {emit_scalar(state, loop.start)}")
        total = emit(f"mul i64 {total}, {emit(f'call i64 @llvm.smax.i64(i64 {length}, i64 0)')}")
    return total


def _emit_loop(states: tuple[State, State], team: Team, loop: For, emit_block: EmitBlock) -> None:
    """Emit a thread's iterations of a loop; the states are those of one iteration, and of one in each lane."""
    single, wide = states
    writer = single.writer
    start, stop = emit_scalar(single, loop.start), emit_scalar(single, loop.stop)
    place = _emit_steps(wide, team, loop, (start, stop), emit_block)
    if loop.width > 1 and not _whole(writer, start, stop, loop.width):
        # Fewer than lanes are left, and for one thread at most.
        one_by_one(single, loop, (place, stop), replace(writer.known(place), multiple=1), emit_block)


def _emit_nest(states: tuple[State, State], team: Team, levels: tuple[For, ...], emit_block: EmitBlock) -> None:
    """Emit a thread's iterations of a nest, whose steps are counted level by level; the states as for one loop."""
    (single, wide), last = states, levels[-1]
    writer = single.writer
    odometer = Odometer.begin(single, team, levels, UNROLLED)
    for many in dict.fromkeys((_at_once(last), 1)):
        head, body, rest = (writer.label(stem) for stem in ("share", "steps", "rest"))
        writer.place(head)
        places = [odometer.read()]
        while len(places) < many:
            places.append(odometer.after(places[-1]))
        writer.branch_if(odometer.is_inside(places[-1]), body, rest)
        writer.place(body)
        for each in places:
            latch = writer.label("next")
            here, alone = (odometer.at(state, each) for state in (wide, single))
            index = odometer.index(len(levels) - 1, each)
            if last.width > 1 and not _whole(writer, odometer.starts[-1], odometer.stops[-1], last.width):
                _emit_end(here, alone, last, (index, odometer.stops[-1]), latch, emit_block)
            else:
                _emit_body(here, last, index, latch, emit_block)
            writer.place(latch)
        odometer.write(odometer.after(places[-1]))
        writer.branch(head)
        writer.place(rest)


def _emit_end(
    wide: State, single: State, loop: For, bounds: tuple[str, str], latch: str, emit_block: EmitBlock
) -> None:
    """Emit a step of lanes, or one by one the iterations of which fewer are left in a row."""
    writer, (index, stop) = wide.writer, bounds
    full, few = writer.label("full"), writer.label("few")
    end = writer.emit(f"add i64 {index}, {loop.width}")
    writer.branch_if(writer.emit(f"icmp sle i64 {end}, {stop}"), full, few)
    writer.place(few)
    one_by_one(single, loop, bounds, replace(writer.known(index), multiple=1), emit_block)
    writer.branch(latch)
    writer.place(full)
    emit_lanes(wide, loop, index, latch, emit_block)


def _emit_steps(state: State, team: Team, loop: For, bounds: tuple[str, str], emit_block: EmitBlock) -> str:
    """Emit a thread's steps of `width` iterations, several at once as long as there are; return where it ends."""
    writer, stop = state.writer, bounds[1]
    start = _not_far_behind(writer, *bounds)
    counter = writer.alloca("i64")
    first = writer.emit(f"add i64 {start}, {writer.emit(f'mul i64 {team.thread}, {loop.width}')}")
    writer.store("i64", first, counter)
    step = writer.emit(f"mul i64 {team.size}, {loop.width}")
    highest = max(writer.known(start).high, writer.known(stop).high)
    highest = min(highest + team.most * loop.width * UNROLLED, ANYTHING.high)
    known = Known(writer.known(start).low, highest, writer.known(first).multiple)
    place = ""
    for many in dict.fromkeys((_at_once(loop), 1)):
        head, body, rest = (writer.label(stem) for stem in ("share", "steps", "rest"))
        writer.place(head)
        place = writer.load("i64", counter)
        writer.learn(place, known)
        here = [place]
        while len(here) < many:
            here.append(writer.emit(f"add i64 {here[-1]}, {step}"))
            writer.learn(here[-1], known)
        last = writer.emit(f"add i64 {here[-1]}, {loop.width - 1}") if loop.width > 1 else here[-1]
        writer.branch_if(writer.emit(f"icmp slt i64 {last}, {stop}"), body, rest)
        writer.place(body)
        for each in here:
            latch = writer.label("next")
            _emit_body(state, loop, each, latch, emit_block)
            writer.place(latch)
        writer.store("i64", writer.emit(f"add i64 {here[-1]}, {step}"), counter)
        writer.branch(head)
        writer.place(rest)
    return place


def _not_far_behind(writer: FunctionWriter, start: str, stop: str) -> str:
    """Return the start of a loop, or where that is far behind its stop another one that is not before it.

    What a thread counts from there stays near the stop, so that 32 bits are enough where they are for the stop. A start
    that may be far before zero is left alone: 64 bits are used for it.
    """
    known, most = writer.known(start), writer.known(stop).high
    limit = -(-most // known.multiple) * known.multiple
    if known.low == ANYTHING.low or known.high <= limit or limit > ANYTHING.high:
        return start
    return writer.emit(f"call i64 @llvm.smin.i64(i64 {start}, i64 {limit})")


def _at_once(loop: For) -> int:
    """Return how many steps of a loop are written out."""
    if any(isinstance(node, For | While) for node in statements(loop.body)):
        return 1
    many = UNROLLED
    while many > 1 and many * statement_count(loop.body) >= LARGE_BODY:
        many //= 2
    return many


def _private(state: State, loop: For) -> State:
    for symbol in private_symbols(loop) - state.bound:
        kind = scalar_type(symbol.dtype)
        state.slots[symbol] = Slot(state.writer.alloca(kind), symbol.dtype, varying=False)
        state.values.pop(symbol, None)
    return state


def _begin_reductions(state: State, loop: For) -> None:
    for item in loop.reductions:
        state.slots[item.symbol] = reduction_slot(state, item)
        state.values.pop(item.symbol, None)


@legality
def _whole(writer: FunctionWriter, start: str, stop: str, width: int) -> bool:
    """Return whether a loop is known to have a multiple of `width` iterations."""
    return all(writer.known(text).multiple % width == 0 for text in (start, stop))


def _emit_body(state: State, loop: For, place: str, latch: str, emit_block: EmitBlock) -> None:
    if loop.width > 1:
        emit_lanes(state, loop, place, latch, emit_block)
        return
    inner = replace(state.inner(), frame=Frame(latch, latch, None))
    inner.values[loop.index] = Uniform(place, INT64)
    emit_block(inner, loop.body)


def _joined(states: tuple[State, State, State], team: Team, loop: For, group: Group) -> list[str]:
    """Return the partial results of reductions over this thread's iterations and its warp's: see `fold_team`."""
    (state, single, wide), part = states, states[1].team
    kinds = [scalar_type(item.symbol.dtype) for item in group]
    slots = [single.slots[item.symbol].address for item in group]
    texts = [state.writer.load(kind, slot) for kind, slot in zip(kinds, slots, strict=True)]
    if loop.width > 1:
        texts = joined(state, group, fold_lanes(state, wide, group), texts)
    if loop.role is Role.WARP and part is not None:  # All threads of a part of a warp have the same.
        first = state.writer.emit(f"icmp eq i64 {part.thread}, 0")
        found = zip(kinds, texts, map(identity, group), strict=True)
        texts = [state.writer.emit(f"select i1 {first}, {kind} {text}, {kind} {other}") for kind, text, other in found]
    return fold_team(state, team, group, texts)


def _finish(state: State, team: Team, loop: For, totals: list[list[str]], *, apart: bool) -> None:
    """Join the warps' results and give them to all threads, which have met by then; those of one warp if `apart`."""
    if not loop.reductions:
        return
    writer, kinds = state.writer, [scalar_type(item.symbol.dtype) for item in loop.reductions]
    results = [writer.alloca(kind) for kind in kinds]
    if team.warp == YES:
        _keep(state, team, zip(kinds, chain.from_iterable(totals), results, strict=True), apart=apart)
        _accumulate(state, loop, zip(kinds, results, strict=True))
        return
    one, several, met = (writer.label(stem) for stem in ("one", "several", "joined"))
    writer.branch_if(team.warp, one, several)
    writer.place(one)
    _keep(state, team, zip(kinds, chain.from_iterable(totals), results, strict=True), apart=apart)
    writer.branch(met)
    writer.place(several)
    for kind, total, result in zip(kinds, _across_warps(state, team, loop, totals), results, strict=True):
        writer.store(kind, total, result)
    writer.place(met)
    _accumulate(state, loop, zip(kinds, results, strict=True))


def _keep(state: State, team: Team, totals: Iterable[tuple[str, str, str]], *, apart: bool) -> None:
    """Keep the results of a team in a warp, whose threads meet if `apart`."""
    if apart:
        warp_barrier(state, team)
    for kind, total, result in totals:
        state.writer.store(kind, total, result)


def _accumulate(state: State, loop: For, results: Iterator[tuple[str, str]]) -> None:
    for group in joined_together(loop.reductions):
        accumulate(state, group, [state.writer.load(*next(results)) for _ in group])


def _across_warps(state: State, team: Team, loop: For, totals: list[list[str]]) -> list[str]:
    """Return what all threads have of the results of the warps of a block."""
    writer = state.writer
    lane = writer.emit(f"and i64 {team.thread}, {WARP - 1}")
    warp = writer.emit(f"udiv i64 {team.thread}, {WARP}")
    most = team.most // WARP
    places = [_shared(state, item, most) for item in loop.reductions]
    with writer.when(writer.emit(f"icmp eq i64 {lane}, 0")):
        for item, total, place in zip(loop.reductions, chain.from_iterable(totals), places, strict=True):
            kind = _word(item)
            value = total if kind == scalar_type(item.symbol.dtype) else writer.emit(f"zext i1 {total} to i8")
            address = writer.emit(f"getelementptr {kind}, ptr addrspace(3) {place}, i64 {warp}")
            writer.effect(f"store {kind} {value}, ptr addrspace(3) {address}")
    block_barrier(state)
    warps = writer.emit(f"udiv i64 {team.size}, {WARP}")
    active = writer.emit(f"icmp slt i64 {lane}, {warps}")
    near = writer.emit(f"and i64 {lane}, {most - 1}")
    rest = (_of_warp(state, item, place, near, active) for item, place in zip(loop.reductions, places, strict=True))
    found: list[str] = []
    for group in joined_together(loop.reductions):
        texts = fold(state, group, [next(rest) for _ in group], most // 2)
        kinds = (scalar_type(item.symbol.dtype) for item in group)
        found += [shuffled(state, kind, text, "idx", 0) for kind, text in zip(kinds, texts, strict=True)]
    return found


def _of_warp(state: State, item: Reduction, place: str, warp: str, active: str) -> str:
    """Return the result of a warp, or where there is none what a reduction starts from."""
    writer, kind, word = state.writer, scalar_type(item.symbol.dtype), _word(item)
    address = writer.emit(f"getelementptr {word}, ptr addrspace(3) {place}, i64 {warp}")
    text = writer.emit(f"load {word}, ptr addrspace(3) {address}")
    if word != kind:
        text = writer.emit(f"trunc i8 {text} to i1")
    return writer.emit(f"select i1 {active}, {kind} {text}, {kind} {identity(item)}")


def _word(item: Reduction) -> str:
    kind = scalar_type(item.symbol.dtype)
    return "i8" if kind == "i1" else kind


def _shared(state: State, item: Reduction, warps: int) -> str:
    """Return the address of shared memory for a result of each of the warps; each reduction has its own."""
    name = state.module.fresh("bw_warps").replace(".", "_")
    kind = f"[{warps} x {_word(item)}]"
    state.module.globals[name] = f"@{name} = internal addrspace(3) global {kind} poison, align 8"
    return f"@{name}"
