"""Code sinking: statements between loops go into the inner one, so that a grid has one range of iterations.

    for i in range(n):                                if 0 < n: check(h != 0)
        check(h != 0)                                 for i in range(n):
        v = i // h                             ->         for j in range(m):
        for j in range(m):                                    v = i // h
            y[i, j] = x[v, j]                                 y[i, j] = x[v, j]

Checks of what no iteration changes move out, before the loop; cheap arithmetic moves in. Invariant: what is computed,
and the first check that fails, stay the same. The analysis is of the nest as it was, and holds for this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.nodes import (
    Assign,
    Block,
    Break,
    Check,
    Continue,
    For,
    If,
    Load,
    Local,
    Random,
    Statement,
    Store,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.transform.schedule.planner import is_long_computation

CHEAP = 64
"""Nodes of what may be computed again in each iteration of an inner loop."""


def sink(block: Block, analysis: Analysis) -> Block:
    """Return the block with perfect nests where they can be made."""

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For):
            return (statement,)
        checks, loop = _hoisted(statement)
        return (*checks, _sunk(loop, analysis))

    return rewrite_statements(block, visit)


@legality
def _hoisted(loop: For) -> tuple[Block, For]:
    """Return the checks that come first in each iteration and are the same in all, and the loop without them."""
    changing = assigned_symbols(loop.body) | {loop.index}
    moved: list[Statement] = []
    kept: list[Statement] = []
    ahead = True
    for statement in loop.body:
        if ahead and _is_fixed_check(statement) and not read_symbols(statement) & changing:
            moved.append(statement)
            continue
        ahead = ahead and isinstance(statement, Assign) and not any(isinstance(node, Load) for node in walk(statement))
        kept.append(statement)
    if not moved:
        return (), loop
    runs = build.apply("lt", loop.start, loop.stop, loc=loop.loc)
    return (If(condition=runs, then=tuple(moved), loc=loop.loc),), replace(loop, body=tuple(kept))


@legality
def _is_fixed_check(statement: Statement) -> bool:
    """Whether a statement does nothing but check what no element or random number has a part in."""
    if any(isinstance(node, Load | Random) for node in walk(statement)):
        return False
    match statement:
        case Check():
            return True
        case If(then=then, otherwise=()):
            return all(map(_is_fixed_check, then))
        case _:
            return False


@legality
def _sunk(loop: For, analysis: Analysis) -> For:
    if len(loop.body) < 2 or not isinstance(inner := loop.body[-1], For):
        return loop
    outer, within = analysis.loops[loop.index], analysis.loops[inner.index]
    if not (outer.independent and within.independent) or outer.reductions or within.reductions:
        return loop
    ahead = loop.body[:-1]
    assigned = assigned_symbols(ahead)
    if read_symbols((inner.start, inner.stop)) & (assigned | {loop.index}) or not _is_cheap(ahead):
        return loop
    read = {node.tensor for node in walk(ahead) if isinstance(node, Load)}
    stored = {node.tensor for node in statements(inner) if isinstance(node, Store)}
    private = not live_before(ahead, NONE) & assigned and not assigned & assigned_symbols(inner)
    if read & stored or not private:
        return loop
    return replace(loop, body=(_sunk(replace(inner, body=(*ahead, *inner.body)), analysis),))


def _is_cheap(block: Sequence[Statement]) -> bool:
    nodes = [*walk(block)]
    barred = Store | Local | Check | For | While | Break | Continue | Random
    return len(nodes) <= CHEAP and not any(isinstance(node, barred) or is_long_computation(node) for node in nodes)
