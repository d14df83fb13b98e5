"""Schedules that may be faster than a default one, and give the same bits: what `op.tune` measures.

Each differs from the default in one verb of one nest: in the number of lanes, the size of chunks and tiles, what is
unrolled, or which loop stands innermost and runs in lanes. What makes partial results stays as it is. Whether a
candidate is legal is not asked here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.verdicts import Analysis
from brickwork.ir.nodes import For, Symbol
from brickwork.ir.walk import statements
from brickwork.transform.schedule.schedule import (
    LANES_LIMIT,
    Bind,
    Contract,
    Fuse,
    Level,
    Reorder,
    Rfactor,
    Schedule,
    Split,
    Unroll,
    Verb,
    planned,
)


def candidates(
    schedule: Schedule, nest: Sequence[For], loops: Collection[Symbol], analysis: Analysis
) -> Iterator[Schedule]:
    """Yield schedules for one nest: its loops are `nest`, outermost first, and `loops` with those over their chunks."""
    own = tuple(verb for verb in schedule.verbs if verb.loop in loops)
    if any(isinstance(verb, Contract) or (isinstance(verb, Rfactor) and verb.tensor is not None) for verb in own):
        return
    yield from _turned(own, nest, analysis)
    yield from _unrolled(own, nest)
    for place, verb in enumerate(own):
        for other in _others(verb):
            yield Schedule((*own[:place], *((other,) if other is not None else ()), *own[place + 1 :]))


def _others(verb: Verb) -> Iterator[Verb | None]:
    """Yield what may stand in place of a verb: one with twice and with half its number, or None for nothing."""
    match verb:
        case Bind(level=Level.LANE, width=width):
            if width < LANES_LIMIT:
                yield replace(verb, width=2 * width)
            if width > 2:
                yield replace(verb, width=width // 2)
            yield None
        case Split(size=size):
            yield replace(verb, size=2 * size)
            if size > 1:
                yield replace(verb, size=size // 2)
        case Unroll(factor=factor):
            yield replace(verb, factor=2 * factor)
            if factor > 2:
                yield replace(verb, factor=factor // 2, then=factor // 4 if factor // 4 > 1 else 0)
            yield None
        case _:
            pass


def _unrolled(own: tuple[Verb, ...], nest: Sequence[For]) -> Iterator[Schedule]:
    """Yield the schedule with iterations of a loop written out: of an outer one together, of an inner one in order."""
    shared = {verb.loop for verb in own if isinstance(verb, Bind) and verb.level is Level.POOL}
    holding = [node for node in nest if any(isinstance(item, For) for item in statements(node.body))]
    around = [node for node in holding if node.index in shared]
    named = {verb.loop for verb in own}
    if not any(isinstance(verb, Unroll) for verb in own):
        for node in around[-1:]:
            yield Schedule((*own, Unroll(node.index, 4, jam=True)))
    for node in nest:
        if node.index not in named and node not in holding:
            yield planned((*own, Unroll(node.index, 4)))


def _turned(own: tuple[Verb, ...], nest: Sequence[For], analysis: Analysis) -> Iterator[Schedule]:
    """Yield schedules with another loop of a perfect nest innermost, in lanes, and the others on threads."""
    band: list[For] = []
    for node in nest:
        verdict = analysis.loops[node.index]
        if not verdict.independent or verdict.reductions or (band and band[-1].body != (node,)):
            break
        band.append(node)
    lanes = next((verb for verb in own if isinstance(verb, Bind) and verb.level is Level.LANE), None)
    if len(band) < 2 or lanes is None or any(isinstance(verb, Rfactor | Fuse) for verb in own):
        return
    for node in band:
        if node.index != lanes.loop:
            order = (*(item.index for item in band if item is not node), node.index)
            turn = () if order == tuple(item.index for item in band) else (Reorder(order),)
            yield Schedule((*turn, *(Bind(index, Level.POOL) for index in order[:-1]), replace(lanes, loop=node.index)))
