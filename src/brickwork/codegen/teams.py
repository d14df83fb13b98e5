"""Teams: the threads that run an iteration together, and how they wait for one another and join what each has.

A team is a cluster of blocks, a block, a warp, or a part of a warp: a power of two of threads that lie beside one
another. Invariant: all threads of a team come to each of its barriers and exchanges; those of the other parts of a
warp need not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brickwork.codegen.builder import Known
from brickwork.codegen.emitter_state import State, Team
from brickwork.codegen.grid import TEAM_THREADS, Grid
from brickwork.codegen.joins import Group, joined
from brickwork.codegen.lane_values import scalar_type
from brickwork.codegen.shuffles import active_lanes, lane_number, shuffled
from brickwork.codegen.thread_iterations import register
from brickwork.codegen.tile_cluster import cluster_barrier, part
from brickwork.target.target import LEAST_TEAM, WARP

_BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
_WARP_BARRIER = "llvm.nvvm.bar.warp.sync"
YES = "true"


def team_of_grid(state: State, grid: Grid) -> tuple[Team, str, str]:
    """Return the team of a thread, its number among those of the block, and how many these are, as i64."""
    writer, emit = state.writer, state.writer.emit
    rows, row = (emit(f"zext i32 {register(state, name)} to i64") for name in ("ntid.y", "tid.y"))
    most = TEAM_THREADS // LEAST_TEAM
    writer.learn(rows, Known(1, most))
    writer.learn(row, Known(0, most - 1))
    thread, size = (emit(f"zext i32 {register(state, name)} to i64") for name in ("tid.x", "ntid.x"))
    writer.learn(thread, Known(0, grid.threads - 1))
    writer.learn(size, Known(LEAST_TEAM, grid.threads, LEAST_TEAM))
    warp = emit(f"icmp ule i64 {size}, {WARP}")
    first, mask = _lanes(state, size)
    if state.target.cluster == 1 or grid.cluster == 1:
        return Team(thread, size, warp, grid.threads, first, mask), row, rows
    number, blocks = (emit(f"zext i32 {text} to i64") for text in part(state))
    writer.learn(number, Known(0, grid.cluster - 1))
    writer.learn(blocks, Known(1, grid.cluster))
    thread = emit(f"add i64 {emit(f'mul i64 {number}, {size}')}, {thread}")
    size, most = emit(f"mul i64 {blocks}, {size}"), grid.cluster * grid.threads
    writer.learn(thread, Known(0, most - 1))
    writer.learn(size, Known(LEAST_TEAM, most, LEAST_TEAM))
    return Team(thread, size, warp, most, first, mask, blocks=blocks), row, rows


def part_of_warp(state: State, team: Team, count: str) -> tuple[Team, Team]:
    """Return the part of a warp that a thread is in where a team runs `count` iterations, each by one of them.

    Last come these parts, as threads of which each runs an iteration.
    """
    writer, emit = state.writer, state.writer.emit
    each = emit(f"udiv i64 {team.size}, {emit(f'call i64 @llvm.umax.i64(i64 {count}, i64 1)')}")
    each = emit(f"call i64 @llvm.umax.i64(i64 {each}, i64 {LEAST_TEAM})")
    for most in (team.size, str(WARP)):
        each = emit(f"call i64 @llvm.umin.i64(i64 {each}, i64 {most})")
    # A power of two.
    bits = emit(f"sub i64 63, {emit(f'call i64 @llvm.ctlz.i64(i64 {each}, i1 true)')}")
    size = emit(f"shl i64 1, {bits}")
    writer.learn(size, Known(LEAST_TEAM, WARP, LEAST_TEAM))
    thread = emit(f"and i64 {team.thread}, {emit(f'sub i64 {size}, 1')}")
    writer.learn(thread, Known(0, WARP - 1))
    number, parts = (emit(f"lshr i64 {text}, {bits}") for text in (team.thread, team.size))
    most = max(team.most // LEAST_TEAM, 1)
    writer.learn(number, Known(0, most - 1))
    writer.learn(parts, Known(1, most))
    first, mask = _lanes(state, size)
    return Team(thread, size, YES, WARP, first, mask, repeated=True), replace(
        team, thread=number, size=parts, most=most
    )


def _lanes(state: State, size: str) -> tuple[str, str]:
    """Return the first lane of a part of a warp of so many threads, and the mask of its lanes, as i32."""
    emit = state.writer.emit
    few = emit(f"trunc i64 {emit(f'call i64 @llvm.umin.i64(i64 {size}, i64 {WARP})')} to i32")
    first = emit(f"and i32 {lane_number(state)}, {emit(f'sub i32 0, {few}')}")
    bits = emit(f"lshr i32 -1, {emit(f'sub i32 {WARP}, {few}')}")
    return first, emit(f"shl i32 {bits}, {first}")


def barrier(state: State, team: Team) -> None:
    """Wait for all threads of the team."""
    if team.warp == YES:
        warp_barrier(state, team)
        return
    writer, after = state.writer, state.writer.label("met")
    warp, block = writer.label("warp"), writer.label("block")
    writer.branch_if(team.warp, warp, block)
    writer.place(warp)
    warp_barrier(state, team)
    writer.branch(after)
    writer.place(block)
    if team.blocks == "1":
        block_barrier(state)
    else:
        several, single = writer.label("blocks"), writer.label("single")
        writer.branch_if(writer.emit(f"icmp ugt i64 {team.blocks}, 1"), several, single)
        writer.place(several)
        cluster_barrier(state)
        writer.branch(after)
        writer.place(single)
        block_barrier(state)
    writer.place(after)


def warp_barrier(state: State, team: Team) -> None:
    """Wait for all threads of a team that is in a warp."""
    state.module.declare(_WARP_BARRIER, "void", ("i32",), "convergent nocallback nounwind")
    for mask in _masks(state, team):
        state.writer.effect(f"call void @{_WARP_BARRIER}(i32 {mask})")


def whole_warp_barrier(state: State) -> None:
    """Wait for all threads of a warp, which come here."""
    state.module.declare(_WARP_BARRIER, "void", ("i32",), "convergent nocallback nounwind")
    state.writer.effect(f"call void @{_WARP_BARRIER}(i32 -1)")


def block_barrier(state: State) -> None:
    """Wait for all threads of the block."""
    state.module.declare(_BARRIER, "void", ("i32",), "convergent nocallback nounwind")
    state.writer.effect(f"call void @{_BARRIER}(i32 0)")


def fold_team(state: State, team: Team, group: Group, texts: list[str]) -> list[str]:
    """Return the partial results of a team in a warp, joined, in all its threads; those of each warp of a block in one.

    That one is the warp's first thread.
    """
    writer, kinds = state.writer, [scalar_type(item.symbol.dtype) for item in group]
    slots = [writer.alloca(kind) for kind in kinds]

    def write(values: list[str]) -> None:
        for kind, text, slot in zip(kinds, values, slots, strict=True):
            writer.store(kind, text, slot)

    def read() -> list[str]:
        return [writer.load(kind, slot) for kind, slot in zip(kinds, slots, strict=True)]

    write(texts)
    distances = [WARP >> bit for bit in range(1, WARP.bit_length())]
    for mask in _masks(state, team):
        steps = [writer.label(f"fold{distance}") for distance in distances]
        for distance, step in zip(distances[:-1], steps, strict=False):
            fewer = writer.label("fewer")
            writer.branch_if(writer.emit(f"icmp ugt i64 {team.size}, {distance}"), step, fewer)
            writer.place(fewer)
        writer.branch(steps[-1])
        for distance, step in zip(distances, steps, strict=True):
            writer.place(step)
            write(fold(state, group, read(), distance, mask, last=distance))
        with writer.when(team.warp):
            write(
                [shuffled(state, kind, text, "idx", team.first, mask) for kind, text in zip(kinds, read(), strict=True)]
            )
    return read()


def fold(state: State, group: Group, texts: list[str], distance: int, mask: str = "-1", last: int = 1) -> list[str]:
    """Return partial results joined with those of threads `distance` further, then half of that, down to `last`."""
    kinds = [scalar_type(item.symbol.dtype) for item in group]
    while distance >= last:
        pairs = zip(kinds, texts, strict=True)
        texts = joined(
            state, group, texts, [shuffled(state, kind, text, "down", distance, mask) for kind, text in pairs]
        )
        distance //= 2
    return texts


def _masks(state: State, team: Team) -> Iterator[str]:
    """Write what follows twice: for threads of a warp that are all here, and for those of a part of one; give a mask.

    Where a mask is no constant, the assembler looks at each place for who is here, which takes as long as an exchange.
    """
    writer = state.writer
    whole, part, after = (writer.label(stem) for stem in ("whole", "part", "after"))
    writer.branch_if(writer.emit(f"icmp eq i32 {active_lanes(state)}, -1"), whole, part)
    writer.place(whole)
    yield "-1"
    writer.branch(after)
    writer.place(part)
    yield team.mask
    writer.place(after)
