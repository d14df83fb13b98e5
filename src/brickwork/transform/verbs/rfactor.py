"""Makes partial results of what a loop accumulates, and joins them in a fixed order; or makes updates indivisible.

    for i in range(n): s += x[i]   ->   s of chunks of iterations by the pool, of pieces by blocks of a grid, of lanes

The partial results are joined in the order of the iterations, so results depend on sizes alone. The order of a sum of
floats is another one than the source's.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from brickwork.analysis.atomic_updates import with_updates
from brickwork.analysis.verdicts import LoopVerdict
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Assign, Block, For, Role, Symbol
from brickwork.ir.walk import read_symbols, rewrite_loops
from brickwork.legality import hazard, legality
from brickwork.target.target import BLOCK_THREADS
from brickwork.transform.schedule.schedule import Level, Rfactor, chunk_of
from brickwork.transform.verbs.bind import bound, in_the_way, misplaced
from brickwork.transform.verbs.context import Context
from brickwork.transform.verbs.places import places
from brickwork.transform.verbs.split import chunks, chunks_of, count_of

MOST_PIECES = BLOCK_THREADS
"""Most pieces that an accumulating loop is cut into for the blocks of a grid: a block joins them."""
PIECE_UNIT = BLOCK_THREADS
"""Iterations of which a piece is a multiple, if the least piece is: pieces of aligned data are aligned then."""


def apply(block: Block, verb: Rfactor, context: Context) -> Block:
    """Return the block with partial results of a loop."""

    def change(loop: For) -> Block:
        return _factored(loop, verb, context) if verb.tensor is None else (with_updates(loop, {verb.tensor}),)

    return rewrite_loops(block, {verb.loop}, change)


@hazard
def refusal(block: Block, verb: Rfactor, context: Context) -> str | None:
    """Return why a processor cannot make partial results of what a loop accumulates, if it cannot."""
    verdict = context.verdict(verb.loop)
    if verb.tensor is not None:
        return _not_updated(verb, verdict)
    if not verdict.independent:
        return in_the_way(verdict)
    if not verdict.reductions:
        return f"it accumulates nothing: write bind({verb.loop.name}, ...)"
    if why := misplaced(block, verb.loop, verb.level, verb.size):
        return why
    if verb.level is Level.POOL and any(places(block, chunk_of(verb.loop))):
        return "it is split already, and a loop is split once"
    return None


@hazard
def _not_updated(verb: Rfactor, verdict: LoopVerdict) -> str | None:
    """Return why updates of a tensor cannot be made indivisible, or go to copies of it."""
    if verb.tensor not in verdict.updates:
        return "its iterations do not only update elements of this tensor where they may meet"
    if verb.level is None:
        return None if verdict.independent else "a processor updates atomically in loops that are claimed (bw.prange)"
    if verdict.independent:
        return "there is no order to keep in a loop that is claimed: write atomic in place of pool"
    return None


@legality
def cut_together(loop: For, context: Context) -> list[For]:
    """Return the loops of a perfect nest whose iterations are cut into pieces for blocks, outermost first.

    They accumulate the same, as often in each iteration around them, and stand around what a block shares out.
    """
    nest, sums = [loop], context.verdict(loop.index).reductions
    while context.schedule.bound(nest[-1].index, Level.THREAD) is None:
        match nest[-1].body:
            case (For() as inner,):
                moves = read_symbols((inner.start, inner.stop)) & {each.index for each in nest}
                shared = context.schedule.bound(inner.index, Level.THREAD) is not None
                if moves or shared or context.verdict(inner.index).reductions != sums:
                    break
                nest.append(inner)
            case _:
                break
    return nest


def _factored(loop: For, verb: Rfactor, context: Context) -> Block:
    """Return what a loop becomes whose reductions have partial results at a level."""
    reductions = context.verdict(loop.index).reductions
    match verb.level:
        case Level.POOL if loop.role is Role.SEQUENTIAL:
            return (replace(chunks(loop, build.integer(verb.size)), role=Role.PARALLEL, reductions=reductions),)
        case Level.BLOCK:
            size = Symbol(f"{loop.index.name}_size", next(context.numbers), INT64)
            unit, nest = gcd(PIECE_UNIT, verb.size), cut_together(loop, context)
            length = build.sub(loop.stop, loop.start) if len(nest) == 1 else count_of(*nest)
            most = MOST_PIECES * unit
            even = build.apply("floordiv", build.add(length, build.integer(most - 1)), build.integer(most))
            least = build.apply("maximum", even, build.integer(verb.size // unit))
            step = build.mul(build.read(size), build.integer(unit)) if unit > 1 else build.read(size)
            pieces = replace(chunks_of(nest, step), role=Role.BLOCK, reductions=reductions)
            return (Assign(symbol=size, value=least, loc=loop.loc), pieces)
        case Level.GRID:
            return (replace(loop, reductions=reductions),)
        case Level.WARP | Level.THREAD | Level.LANE:
            return (bound(loop, verb.level, verb.size, context),)
        case _:
            return (loop,)
