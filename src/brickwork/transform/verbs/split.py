"""Splits a loop into the loop over its chunks and the one over the iterations of a chunk.

for i in range(a, b): body   ->   for c in range((b - a + S - 1) // S):
                                      for i in range(a + c*S, min(a + c*S + S, b)): body
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.analysis.polynomial import UnknownAtom
from brickwork.ir import build
from brickwork.ir.nodes import Block, Expression, For, Role
from brickwork.ir.walk import loop_of, read_symbols, rewrite_loops
from brickwork.legality import hazard
from brickwork.transform.schedule.schedule import Split, chunk_of
from brickwork.transform.verbs.bind import GONE
from brickwork.transform.verbs.context import Context
from brickwork.transform.verbs.places import places


def apply(block: Block, verb: Split, context: Context) -> Block:
    """Return the block with a loop in chunks."""
    size = build.integer(verb.size)
    if verb.scaled is not None and (beside := context.schedule.split(verb.scaled)) is not None:
        size = build.mul(_times(loop_of(block, verb.scaled), beside.size), size)

    def change(loop: For) -> Block:
        return (chunks(loop, size) if loop.role is Role.SEQUENTIAL else loop,)

    return rewrite_loops(block, {verb.loop}, change)


@hazard
def refusal(block: Block, verb: Split, context: Context) -> str | None:
    """Return why a loop cannot be cut into chunks, if it cannot."""
    found = [*places(block, verb.loop)]
    if not found:
        return GONE
    if found[0].loop.role is not Role.SEQUENTIAL:
        return "it is bound already: split it before"
    if verb.loop not in context.analysis.loops or any(places(block, chunk_of(verb.loop))):
        return "it is split already, and a loop is split once"
    around = next(item for item in context.analysis.model.loops if item.node.index == verb.loop)
    if around.leaves:
        return "a 'break' may end it early"
    data = any(isinstance(atom, UnknownAtom) for end in (around.start, around.stop) for atom in end.atoms())
    if data and not context.verdict(verb.loop).independent:
        return "its iterations are in order, and it begins or ends where data say: its length may be no 64-bit integer"
    if verb.scaled is not None and context.schedule.split(verb.scaled) is None:
        return f"'{verb.scaled.name}' is not split"
    return None


def chunks(loop: For, size: Expression) -> For:
    """Return the loop over the chunks of a loop, which has the loop inside."""
    chunk = chunk_of(loop.index)
    length = build.sub(loop.stop, loop.start)
    count = build.apply("floordiv", build.add(length, build.sub(size, build.integer(1))), size)
    start = build.add(loop.start, build.mul(build.read(chunk), size))
    stop = build.apply("minimum", build.add(start, size), loop.stop)
    inner = replace(loop, start=start, stop=stop, reductions=())
    return For(index=chunk, start=build.integer(0), stop=count, body=(inner,), loc=loop.loc)


def cut(loops: Sequence[For], first: Expression, end: Expression) -> For:
    """Return a perfect nest for its iterations from the `first` to before the `end`, counted over all loops.

    How many iterations an inner loop has does not change with the indices of those around it; sizes say that there are
    some, variables may say that there are none.
    """
    loop, *inner = loops
    if not inner:
        return replace(loop, start=build.add(loop.start, first), stop=build.add(loop.start, end))
    each, one = count_of(*inner), build.integer(1)
    some = build.apply("maximum", each, one) if read_symbols(each) else each
    last = build.apply("floordiv", build.sub(build.add(end, each), one), some)
    past = build.mul(build.sub(build.read(loop.index), loop.start), each)
    low = build.apply("maximum", build.sub(first, past), build.integer(0))
    high = build.apply("minimum", build.sub(end, past), each)
    start = build.add(loop.start, build.apply("floordiv", first, some))
    return replace(loop, start=start, stop=build.add(loop.start, last), body=(cut(inner, low, high),))


def count_of(*loops: For) -> Expression:
    """Return how many iterations a loop has, or a perfect nest."""
    return build.product([build.iterations(loop.start, loop.stop) for loop in loops])


def chunks_of(loops: Sequence[For], size: Expression) -> For:
    """Return the loop over the chunks of a perfect nest, which has the nest inside; as `cut` says."""
    if len(loops) == 1:
        return chunks(loops[0], size)
    chunk, total = chunk_of(loops[0].index), count_of(*loops)
    count = build.apply("floordiv", build.add(total, build.sub(size, build.integer(1))), size)
    start = build.mul(build.read(chunk), size)
    inner = cut(loops, start, build.apply("minimum", build.add(start, size), total))
    return For(index=chunk, start=build.integer(0), stop=count, body=(inner,), loc=loops[0].loc)


def _times(loop: For, size: int) -> Expression:
    """Return how often a loop would fit a chunk of so many iterations, at least once."""
    rows = build.apply("maximum", build.sub(loop.stop, loop.start), build.integer(1))
    return build.apply("maximum", build.apply("floordiv", build.integer(size), rows), build.integer(1))
