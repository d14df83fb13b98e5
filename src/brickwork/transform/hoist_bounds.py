"""Bound hoisting: what the bounds of an inner loop are computed from moves out of the loops in order around it.

    for t in range(frames[b]):                 n = lengths[b] + 1
        n = lengths[b] + 1             ->      for t in range(frames[b]):
        for u in range(n): ...                     for u in range(n): ...

The nest is perfect then, and its bounds are the same in all of its iterations. Invariant: what is moved computes the
same in each iteration, and cannot fail, whether there is an iteration or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from brickwork.analysis.analyse import analyse
from brickwork.analysis.found_places import divides
from brickwork.analysis.scalars import live_after_loops
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Expression, For, Kernel, Load, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, substitute, walk
from brickwork.legality import hazard, legality

BOUND_NUMBERS = 3_900_000
"""Numbers of the variables made in here start from this."""


def hoist_bounds(kernel: Kernel, analysis: Analysis) -> tuple[Kernel, Analysis]:
    """Return the kernel with the bounds of nests that run in order before these, and its analysis.

    `analysis` is of this kernel. Where what was moved may fail, nothing is.
    """
    live = live_after_loops(kernel.body)
    numbers = count(BOUND_NUMBERS)
    moved: set[Symbol] = set()

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or kernel.may_alias or analysis.loops[statement.index].independent:
            return (statement,)
        ahead = statement.body[:-1]
        if not ahead or not isinstance(statement.body[-1], For) or not _are_fixed(statement, live[statement.index]):
            return (statement,)
        *assigned, loop = _hoisted(statement, numbers)
        moved.update(assigned_symbols(assigned))
        return (*assigned, loop)

    body = rewrite_statements(kernel.body, visit)
    if not moved:
        return kernel, analysis
    changed = replace(kernel, body=body)
    found = analyse(changed)
    return (kernel, analysis) if _may_fail(changed, moved, found) else (changed, found)


@legality
def _are_fixed(loop: For, live: frozenset[Symbol]) -> bool:
    """Whether all that stands in a loop before its last statement computes the same in each iteration.

    `live` are the variables that are read after the loop.
    """
    *ahead, last = loop.body
    changing = assigned_symbols(loop)
    own = assigned_symbols(ahead)
    if own & live or len(own) < len(ahead) or own & assigned_symbols(last):
        return False
    for item in ahead:
        if not isinstance(item, Assign) or read_symbols(item.value) & changing:
            return False
        if effects(item).loads & effects(loop).changes:
            return False
        if any(map(divides, walk(item.value))):
            return False
        changing -= {item.symbol}
    return True


def _hoisted(loop: For, numbers: Iterator[int]) -> Iterator[Statement]:
    """Yield the assignments of a loop, to variables of their own, and the loop without them."""
    *ahead, last = loop.body
    names: dict[Symbol, Expression] = {}
    for item in ahead:
        if isinstance(item, Assign):
            own, value = replace(item.symbol, number=next(numbers)), substitute(item.value, names)
            names[item.symbol] = build.read(own)
            yield replace(item, symbol=own, value=value)
    yield replace(loop, body=(substitute(last, names),))


@hazard
def _may_fail(kernel: Kernel, moved: set[Symbol], analysis: Analysis) -> bool:
    """Whether an element that was moved is read at a place that is not known to be in range."""
    reads = (
        node
        for item in walk(kernel.body)
        if isinstance(item, Assign) and item.symbol in moved
        for node in walk(item.value)
        if isinstance(node, Load)
    )
    return any(
        analysis.bounds[read.access, axis].bound is Bound.CHECKED for read in reads for axis in range(len(read.indices))
    )
