"""Carries out a schedule: writes roles, widths and reductions into the loops, and cuts loops into chunks.

for i in range(a, b): body   ->   parallel for c in range((b - a + S - 1) // S):
                                      vector for i in range(a + c*S, min(a + c*S + S, b)): body

Of an innermost loop that stands in another and is shared out, or accumulates in lanes, a version in order is kept for
few iterations: setting out would take longer than they do. Which one runs depends on the length alone.

    vector for i in range(a, b): s += x[i]   ->   if b - a < SHORT: vector of one lane for i in range(a, b): s += x[i]
                                                  else: vector for i in range(a, b): s += x[i]

A loop is jammed (`unroll_jam.py`) unless a check in it could fail: the order in which failures are met stays that of
the source. The iterations that are left over make a nest of their own, with the parallel loops around:

    parallel for b, parallel for i: body   ->   parallel for b, parallel for blocks of i: four bodies
                                                parallel for b, parallel for the rest of i: body
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from math import gcd

from brickwork.analysis.atomic_updates import with_updates
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Reduction,
    Role,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements
from brickwork.transform.flatten import flatten
from brickwork.transform.schedule.cache_tile import cut_into_tiles
from brickwork.transform.schedule.contract import contract
from brickwork.transform.schedule.permute import permute
from brickwork.transform.schedule.planner import is_apart
from brickwork.transform.schedule.schedule import LANES_LIMIT, Schedule
from brickwork.transform.schedule.tile import nest_of, tile
from brickwork.transform.schedule.unroll_jam import may_jam, unroll_jam

CHUNK_NUMBERS = 1_000_000
"""Added to the number of a loop's index to number the index of its chunks."""
MOST_PIECES = 1024
"""Most pieces that an accumulating loop is cut into for the blocks of a grid."""
PIECE_UNIT = 1024
"""Iterations of which a piece is a multiple, if the least piece is: pieces of aligned data are aligned then."""
SHORT = 8
"""Fewer iterations than these run in order where a loop is begun many times."""
SHORT_APART = 32
"""The same where lanes read elements that lie apart, which processors do one by one."""


def apply_schedule(
    block: Block, schedule: Schedule, analysis: Analysis, long: frozenset[Symbol] = frozenset()
) -> Block:
    """Return the block with its loops run as the schedule says; of the `long` loops there is no version in order."""
    block = rewrite_statements(block, lambda statement: (_permuted(statement, schedule),))
    highest = max((symbol.number for symbol in assigned_symbols(block)), default=0)
    numbers = count(highest + 2 * CHUNK_NUMBERS)
    repeated = _often_short(block, schedule, analysis) - long
    around = _around_jams(block, schedule)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For):
            return (statement,)
        updated = schedule.updates(statement.index) | schedule.copies(statement.index)
        if updated:
            statement = with_updates(statement, updated)
        if statement.index in around:
            return tuple(_apply(replace(statement, body=(part,)), schedule, analysis) for part in statement.body)
        if (directive := schedule.contraction(statement.index)) is not None:
            return contract(statement, directive, analysis, numbers)
        loops = schedule.flat(statement.index)
        flat = flatten(statement, loops) if loops else statement
        if schedule.partials(statement.index):
            size = Symbol(f"{statement.index.name}_size", next(numbers), INT64)
            return _share(flat, schedule, analysis, size)
        applied = _apply(flat, schedule, analysis)
        tiling = schedule.tile(statement.index)
        if tiling is not None:
            return tile(applied, tiling, schedule.order(statement.index) or nest_of(applied), numbers)
        cut = schedule.cache_tile(statement.index)
        if cut is not None:
            return (cut_into_tiles(applied, cut, numbers),)
        if statement.index in repeated:
            return (_unless_short(statement, applied, analysis),)
        return _jammed(applied, schedule.jam(statement.index), numbers)

    return rewrite_statements(block, visit)


def _often_short(block: Block, schedule: Schedule, analysis: Analysis) -> frozenset[Symbol]:
    """Return the indices of the innermost loops that others run again and again, and that may then be short."""
    around = [node for node in statements(block) if isinstance(node, For | While)]
    shared = {
        item.index
        for node in around
        if isinstance(node, For) and schedule.parallel(node.index)
        for item in statements(node.body)
        if isinstance(item, For)
    }
    inside = {item.index: item for node in around for item in statements(node.body) if isinstance(item, For)}
    slow = {
        index
        for index in inside
        if (schedule.width(index) >= SHORT and analysis.loops[index].reductions and not schedule.threads(index))
        or (schedule.chunk(index) and schedule.width(index) > 1 and index not in shared)
    }
    return frozenset(index for index in slow if not schedule.flat(index) and _may_be_short(inside[index]))


def _may_be_short(loop: For) -> bool:
    """Whether a loop is an innermost one whose length is no constant."""
    bounds = (loop.start, loop.stop)
    if all(isinstance(bound, Constant) for bound in bounds):
        return False
    return not any(isinstance(node, For | While) for node in statements(loop.body))


def _unless_short(loop: For, applied: For, analysis: Analysis) -> If:
    """Return the loop as it was applied, and one of width 1 for few iterations."""
    ends = (access for access in analysis.accesses if access.loops and access.loops[-1].node.index == loop.index)
    least = SHORT_APART if any(is_apart(access) for access in ends) else SHORT
    few = build.apply("lt", build.sub(loop.stop, loop.start), build.integer(least))
    short = replace(loop, role=Role.VECTOR, reductions=analysis.loops[loop.index].reductions)
    return If(condition=few, then=(short,), otherwise=(applied,), loc=loop.loc)


def _permuted(statement: Statement, schedule: Schedule) -> Statement:
    """Return a nest in the order of the schedule; one that is tiled is put in order there."""
    if not isinstance(statement, For) or schedule.tile(statement.index) is not None:
        return statement
    order = schedule.order(statement.index)
    return permute(statement, order) if order else statement


def _around_jams(block: Block, schedule: Schedule) -> frozenset[Symbol]:
    """Return the loops of a grid right around one that runs in jam: each of its parts is shared out with them."""
    found: set[Symbol] = set()
    for node in statements(block):
        outer: list[Symbol] = []
        inner = node
        while isinstance(inner, For) and _is_of_grid(inner, schedule):
            if schedule.jam(inner.index):
                found.update(outer)
            if len(inner.body) != 1:
                break
            outer.append(inner.index)
            inner = inner.body[0]
    return frozenset(found)


def _is_of_grid(loop: For, schedule: Schedule) -> bool:
    return schedule.parallel(loop.index) or schedule.blocks(loop.index)


def _jammed(loop: For, factors: tuple[int, ...], numbers: Iterator[int]) -> Block:
    if not factors or not may_jam(loop.body):
        return (loop,)
    jammed, rest = unroll_jam(loop, factors[0], numbers)
    return (jammed, *_jammed(_widened(rest), factors[1:], numbers))


def _widened(rest: For) -> For:
    """Return iterations that are left over with twice the lanes, where registers hold the results of fewer iterations.

    So each goes through memory in longer strips. Lanes that would run apart stay as they are.
    """

    def visit(statement: Statement) -> Block:
        if isinstance(statement, For) and _runs_alike(statement):
            statement = replace(statement, width=min(2 * statement.width, LANES_LIMIT))
        return (statement,)

    return replace(rest, body=rewrite_statements(rest.body, visit))


def _runs_alike(loop: For) -> bool:
    """Whether a loop runs in lanes that join nothing, all of which run the same iterations of the loops inside."""
    inside = [node for node in statements(loop.body) if isinstance(node, For)]
    bounds = [bound for node in inside for bound in (node.start, node.stop)]
    alike = loop.index not in read_symbols(bounds)
    return loop.role is Role.VECTOR and loop.width > 1 and not loop.reductions and alike


def _apply(loop: For, schedule: Schedule, analysis: Analysis) -> For:
    width, size = schedule.width(loop.index), schedule.chunk(loop.index)
    role = _role(loop.index, schedule)
    reductions = analysis.loops[loop.index].reductions
    if size:
        inner = replace(loop, role=role, width=max(width, 1), reductions=() if role is Role.SEQUENTIAL else reductions)
        return _cut(inner, reductions, size)
    if role is Role.SEQUENTIAL:
        loop = replace(loop, unrolled=schedule.unrolled(loop.index))
        return replace(loop, reductions=reductions) if schedule.split(loop.index) else loop
    return replace(loop, role=role, width=max(width, 1), reductions=reductions)


def _role(index: Symbol, schedule: Schedule) -> Role:
    if schedule.parallel(index):
        return Role.PARALLEL
    if schedule.blocks(index):
        return Role.BLOCK
    if schedule.threads(index):
        return Role.THREAD
    return Role.VECTOR if schedule.width(index) else Role.SEQUENTIAL


def _cut(loop: For, reductions: tuple[Reduction, ...], size: int) -> For:
    """Return the loop in pieces of `size` iterations, which are shared out among threads."""
    return _pieces(loop, reductions, build.integer(size), Role.PARALLEL)


def _share(loop: For, schedule: Schedule, analysis: Analysis, size: Symbol) -> Block:
    """Return the loop in at most MOST_PIECES pieces of at least so many iterations, each for a block of threads."""
    reductions = analysis.loops[loop.index].reductions
    role = _role(loop.index, schedule)
    shared = role is Role.THREAD
    width = max(schedule.width(loop.index), 1)
    inner = replace(loop, role=role, width=width, reductions=reductions if shared else ())
    unit = gcd(PIECE_UNIT, schedule.partials(loop.index))
    length, most = build.sub(loop.stop, loop.start), MOST_PIECES * unit
    even = build.apply("floordiv", build.add(length, build.integer(most - 1)), build.integer(most))
    least = build.apply("maximum", even, build.integer(schedule.partials(loop.index) // unit))
    step = build.mul(build.read(size), build.integer(unit)) if unit > 1 else build.read(size)
    pieces = _pieces(inner, reductions, step, Role.BLOCK)
    return (Assign(symbol=size, value=least, loc=loop.loc), pieces)


def _pieces(loop: For, reductions: tuple[Reduction, ...], step: Expression, role: Role) -> For:
    piece = Symbol(f"{loop.index.name}_chunk", loop.index.number + CHUNK_NUMBERS, INT64)
    length = build.sub(loop.stop, loop.start)
    count = build.apply("floordiv", build.add(length, build.sub(step, build.integer(1))), step)
    start = build.add(loop.start, build.mul(build.read(piece), step))
    stop = build.apply("minimum", build.add(start, step), loop.stop)
    inner = replace(loop, start=start, stop=stop)
    return For(
        index=piece,
        start=build.integer(0),
        stop=count,
        body=(inner,),
        role=role,
        reductions=reductions,
        loc=loop.loc,
    )
