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

from brickwork.analysis.definitions import LARGEST
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Check,
    For,
    If,
    Statement,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.transform.schedule.planner import is_long_computation


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
        ahead = ahead and isinstance(statement, Assign) and not effects(statement).loads
        kept.append(statement)
    if not moved:
        return (), loop
    runs = build.apply("lt", loop.start, loop.stop, loc=loop.loc)
    return (If(condition=runs, then=tuple(moved), loc=loop.loc),), replace(loop, body=tuple(kept))


@legality
def _is_fixed_check(statement: Statement) -> bool:
    """Whether a statement does nothing but check what no element has a part in."""
    if effects(statement).loads:
        return False
    match statement:
        case Check():
            return True
        case If(then=then, otherwise=()):
            return all(map(_is_fixed_check, then))
        case _:
            return False


def _sunk(loop: For, analysis: Analysis) -> For:
    if len(loop.body) < 2 or not isinstance(inner := loop.body[-1], For):
        return loop
    ahead = loop.body[:-1]
    rectangle = loop.index not in read_symbols((inner.start, inner.stop)) and not analysis.loops[inner.index].reductions
    if not rectangle or not _is_cheap(ahead) or not _may_sink(loop, inner, analysis):
        return loop
    return replace(loop, body=(_sunk(replace(inner, body=(*ahead, *inner.body)), analysis),))


@legality
def _may_sink(loop: For, inner: For, analysis: Analysis) -> bool:
    """Whether each iteration of the last statement of a loop may do again what stands before it: assignments alone.

    As iterations of both are independent, and the outer ones accumulate nothing, no value of a variable passes on.
    """
    outer, within, ahead = analysis.loops[loop.index], analysis.loops[inner.index], loop.body[:-1]
    read = effects(ahead).loads
    stored = effects(inner).stores
    if not all(isinstance(node, Assign | If) for node in statements(ahead)) or read & stored:
        return False
    fixed = not read_symbols((inner.start, inner.stop)) & assigned_symbols(ahead)
    return fixed and outer.independent and within.independent and not outer.reductions


def _is_cheap(block: Sequence[Statement]) -> bool:
    nodes = [*walk(block)]
    return len(nodes) <= LARGEST and not any(map(is_long_computation, nodes))
