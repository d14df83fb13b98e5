"""Binds a loop to a level: threads of the pool, a grid, a block, threads of a block, or lanes.

A loop of a grid may have lanes, too: a thread takes so many neighbouring iterations. A loop that runs in lanes already
is the short version of another, and stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.verdicts import LoopVerdict
from brickwork.ir.nodes import Block, For, Role, Symbol
from brickwork.ir.walk import rewrite_loops
from brickwork.legality import hazard
from brickwork.transform.schedule.schedule import LANES_LIMIT, Bind, Level, level_name
from brickwork.transform.verbs.context import Context
from brickwork.transform.verbs.places import Place, places

GONE = "there is no such loop here: none was split off, or a verb before this one has made it a part of another"
"""Why nothing can be done with a loop that an earlier verb has taken apart."""
ROLES = {
    Level.POOL: Role.PARALLEL,
    Level.GRID: Role.PARALLEL,
    Level.BLOCK: Role.BLOCK,
    Level.WARP: Role.WARP,
    Level.THREAD: Role.THREAD,
    Level.LANE: Role.VECTOR,
}
"""How a loop runs that is bound to a level alone."""


def apply(block: Block, verb: Bind, context: Context) -> Block:
    """Return the block with a loop bound to a level."""

    def change(loop: For) -> Block:
        return (replace(bound(loop, verb.level, verb.width, context), across=verb.beside or loop.across),)

    return rewrite_loops(block, {verb.loop}, change)


@hazard
def refusal(block: Block, verb: Bind, context: Context) -> str | None:
    """Return why a loop of a processor cannot be bound to a level, if it cannot."""
    verdict = context.verdict(verb.loop)
    if verdict.reductions:
        return f"it accumulates {_sums(verdict)}: write rfactor({verb.loop.name}, {verb.level.value}, ...)"
    if not verdict.independent:
        return in_the_way(verdict)
    factored = context.schedule.updates(verb.loop)
    if open_updates := [tensor for tensor in verdict.updates if tensor not in factored]:
        name = open_updates[0].name
        return (
            f"its iterations may update one element of '{name}': write rfactor({verb.loop.name}, atomic, {name}) before"
        )
    return misplaced(block, verb.loop, verb.level, verb.width)


def _sums(verdict: LoopVerdict) -> str:
    return " and ".join(f"'{item.symbol.name}'" for item in verdict.reductions if item.along is None)


def in_the_way(verdict: LoopVerdict) -> str:
    """Return what keeps the iterations of a loop in order, in words."""
    return (
        f"its iterations depend on one another: {verdict.conflict.sentence if verdict.conflict else 'it accumulates'}"
    )


@hazard
def misplaced(block: Block, loop: Symbol, level: Level | None, width: int) -> str | None:
    """Return why a loop cannot run at a level where it stands, if it cannot."""
    if level not in {Level.POOL, Level.LANE}:
        return f"a processor has no level '{level_name(level)}': write pool or lane"
    found = [*places(block, loop)]
    if not found:
        return GONE
    first = found[0].loop  # Its versions have what verbs have done in common.
    if first.role is not Role.SEQUENTIAL:
        return "it is bound already"
    if first.unrolled > 1:
        return "its iterations are written out one after the other"
    if level is Level.LANE:
        if width > LANES_LIMIT or width & (width - 1):
            return f"lanes are a power of two, and at most {LANES_LIMIT}"
        return next(map(_in_lanes, found), None)
    return next(map(_in_pool, found), None)


@hazard
def _in_lanes(place: Place) -> str | None:
    """Return why a loop cannot run in lanes where it stands."""
    if lanes := place.lanes:
        return f"'{lanes[0].index.name}' runs in lanes already, and there are no lanes in lanes"
    if shared := [node for node in place.inside if node.role is Role.PARALLEL]:
        return f"'{shared[0].index.name}' inside of it is bound to the pool"
    return None


@hazard
def _in_pool(place: Place) -> str | None:
    """Return why a loop cannot be shared out among threads where it stands."""
    if lanes := [node for node in place.around if isinstance(node, For) and node.role is Role.VECTOR]:
        return f"it stands in '{lanes[0].index.name}', which runs in lanes"
    if shared := place.shared:
        return (
            f"'{shared[0].index.name}' is bound to the pool, and the two do not stand directly in one another:"
            " threads of the pool have no threads of their own"
        )
    return None


def bound(loop: For, level: Level, width: int, context: Context) -> For:
    """Return a loop bound to a level, with what it accumulates."""
    if loop.role is Role.VECTOR:
        return loop
    role = ROLES[level] if loop.role is Role.SEQUENTIAL else loop.role
    return replace(loop, role=role, width=max(width, loop.width), reductions=context.verdict(loop.index).reductions)
