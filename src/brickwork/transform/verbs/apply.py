"""Carries out a schedule, verb by verb.

Of an innermost loop that stands in another and is shared out, or accumulates in lanes, a version in order is kept for
few iterations: setting out would take longer than they do. Which one runs depends on the length alone.

    vector for i in range(a, b): s += x[i]   ->   if b - a < FEW: vector of one lane for i in range(a, b): s += x[i]
                                                  else: vector for i in range(a, b): s += x[i]
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.nodes import Block, Constant, For, If, Role, Symbol, While
from brickwork.ir.walk import rewrite_loops, statements, unused_number
from brickwork.transform.schedule.contract_loops import contract
from brickwork.transform.schedule.lockstep import with_barriers_in_blocks
from brickwork.transform.schedule.panel_loops import pack
from brickwork.transform.schedule.planner import FEW, is_apart
from brickwork.transform.schedule.schedule import (
    CHUNK_NUMBERS,
    Bind,
    Contract,
    Fuse,
    Reorder,
    Rfactor,
    Schedule,
    Split,
    Unroll,
    Verb,
)
from brickwork.transform.verbs import bind, fuse, reorder, rfactor, split, unroll
from brickwork.transform.verbs.context import Context

SHORT_APART = 4 * FEW
"""As many iterations as `FEW` where lanes read elements that lie apart, which processors do one by one."""


def apply_schedule(
    block: Block, schedule: Schedule, analysis: Analysis, long: frozenset[Symbol] = frozenset()
) -> Block:
    """Return the block with its loops run as the schedule says; of the `long` loops there is no version in order."""
    context = Context(schedule, analysis, count(unused_number(block) + 2 * CHUNK_NUMBERS))
    met = set(long)
    for verb in schedule.verbs:
        if isinstance(verb, Split | Bind | Rfactor) and verb.loop not in met:
            met.add(verb.loop)
            if _is_often_short(block, verb.loop, schedule, analysis):
                block = _unless_short(block, verb.loop, analysis)
        block = apply(block, verb, context)
    return with_barriers_in_blocks(block, context.numbers)


def apply(block: Block, verb: Verb, context: Context) -> Block:
    """Return the block as a verb leaves it."""
    match verb:
        case Split():
            return split.apply(block, verb, context)
        case Fuse():
            return fuse.apply(block, verb, context)
        case Reorder():
            return reorder.apply(block, verb, context)
        case Bind():
            return bind.apply(block, verb, context)
        case Rfactor():
            return rfactor.apply(block, verb, context)
        case Unroll():
            return unroll.apply(block, verb, context)
        case Contract():
            return _contracted(block, verb, context)


def _contracted(block: Block, verb: Contract, context: Context) -> Block:
    write = pack if verb.down else contract
    return rewrite_loops(block, {verb.loop}, lambda loop: write(loop, verb, context.analysis, context.numbers))


def _is_often_short(block: Block, index: Symbol, schedule: Schedule, analysis: Analysis) -> bool:
    """Whether a loop is an innermost one that others run again and again, and may then be short."""
    verdict = analysis.loops.get(index)  # none of a loop that a verb made
    sums = verdict is not None and bool(verdict.reductions)
    accumulates = schedule.width(index) >= FEW and sums and not schedule.threads(index)
    chunked = schedule.chunk(index) and schedule.width(index) > 1
    if schedule.flat(index) or not (accumulates or chunked):
        return False
    around = [node for node in statements(block) if isinstance(node, For | While) and _holds(node.body, index)]
    shared = any(isinstance(node, For) and schedule.parallel(node.index) for node in around)
    if not around or (shared and not accumulates):
        return False
    *_, loop = (node for node in statements(around[-1].body) if isinstance(node, For) and node.index == index)
    return _may_be_short(loop)


def _holds(block: Block, index: Symbol) -> bool:
    return any(isinstance(node, For) and node.index == index for node in statements(block))


def _may_be_short(loop: For) -> bool:
    """Whether a loop is an innermost one whose length is no constant."""
    bounds = (loop.start, loop.stop)
    if all(isinstance(bound, Constant) for bound in bounds):
        return False
    return not any(isinstance(node, For | While) for node in statements(loop.body))


def _unless_short(block: Block, index: Symbol, analysis: Analysis) -> Block:
    """Return the block with a version of a loop in one lane for few iterations."""
    ends = (access for access in analysis.accesses if access.loops and access.loops[-1].node.index == index)
    least = SHORT_APART if any(is_apart(access, index) for access in ends) else FEW

    def change(loop: For) -> Block:
        few = build.apply("lt", build.sub(loop.stop, loop.start), build.integer(least))
        short = replace(loop, role=Role.VECTOR, reductions=analysis.loops[index].reductions)
        return (If(condition=few, then=(short,), otherwise=(loop,), loc=loop.loc),)

    return rewrite_loops(block, {index}, change)
