"""Rectangular bounding boxes of triangular nests, so that a grid has one range of iterations.

    for i in range(n):                            for i in range(n):
        for j in range(i + 1):         ->             for j in range(n):
            ...                                           if j < i + 1: ...

Half of the threads of a triangle have nothing to do, and are done at once: worth it where an iteration holds a loop,
and so takes long, unless the threads of a block for each row share its iterations out: those of contractions are tiles
of a rectangle in any case. Invariant: the same iterations
run; the analysis is of the nest as it was, and holds for this one.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.contractions import find_contraction, grouped
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Block, Constant, Expression, For, If, Read, Statement, Symbol
from brickwork.ir.walk import read_symbols, rewrite_statements, substitute
from brickwork.legality import legality
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.schedule.planner import Planner


def rectangle(block: Block, analysis: Analysis) -> Block:
    """Return the block with rectangles where they can be made."""

    def visit(statement: Statement) -> Block:
        return (_bounded(statement, analysis) if isinstance(statement, For) else statement,)

    return rewrite_statements(block, visit)


def is_rectangle(loop: For, analysis: Analysis) -> bool:
    """Whether a loop was made longer, so that its body asks which of its iterations are the source's."""
    found = next((item.node for item in analysis.model.loops if item.node.index == loop.index), loop)
    return (found.start, found.stop) != (loop.start, loop.stop)


def _bounded(loop: For, analysis: Analysis) -> For:
    if len(loop.body) != 1 or not isinstance(inner := loop.body[0], For) or not _is_worth_it(loop, inner, analysis):
        return loop
    return rectangle_of(loop, inner) or loop


@legality
def rectangle_of(loop: For, inner: For) -> For | None:
    """Return a loop whose inner one runs over all that it runs over in any iteration, or None."""
    start, stop = _least(inner.start, loop), _most(inner.stop, loop)
    if start is None or stop is None:
        return None
    at = build.read(inner.index)
    conditions = [build.apply("ge", at, inner.start)] if start is not inner.start else []
    conditions += [build.apply("lt", at, inner.stop)] if stop is not inner.stop else []
    body = inner.body
    for condition in reversed(conditions):
        body = (If(condition=condition, then=body, loc=inner.loc),)
    return replace(loop, body=(replace(inner, start=start, stop=stop, body=body),))


def _is_worth_it(loop: For, inner: For, analysis: Analysis) -> bool:
    """Whether threads are to share a triangle out, none of which does little."""
    verdicts = [analysis.loops[item.index] for item in (loop, inner)]
    if any(not verdict.independent or verdict.reductions or verdict.updates for verdict in verdicts):
        return False
    long = effects(inner.body).loops
    if not long or loop.index not in read_symbols((inner.start, inner.stop)):
        return False
    leaning = [bound for bound in (inner.start, inner.stop) if loop.index in read_symbols(bound)]
    groups = grouped(inner.body, [loop.index, inner.index])
    if len(leaning) == 1 and groups and find_contraction(inner.body, *groups):
        return True
    return inner not in Planner(analysis).lanes([loop]) or not runs_in_lockstep(loop.body, frozenset({inner.index}))


def _least(bound: Expression, loop: For) -> Expression | None:
    """Return the least value of a bound in the iterations of a loop; itself if it is the same in all."""
    return _at_end(bound, loop, last=_slope(bound, loop.index) == -1)


def _most(bound: Expression, loop: For) -> Expression | None:
    """Return the largest value of a bound in the iterations of a loop; itself if it is the same in all."""
    return _at_end(bound, loop, last=_slope(bound, loop.index) == 1)


@legality
def _at_end(bound: Expression, loop: For, *, last: bool) -> Expression | None:
    slope = _slope(bound, loop.index)
    if not slope:
        return bound if slope == 0 else None
    end = build.sub(loop.stop, build.integer(1)) if last else loop.start
    return substitute(bound, {loop.index: end})


@legality
def _slope(expression: Expression, index: Symbol) -> int | None:
    """Return 1 or -1 for what never falls or never rises with a loop's index, 0 for what is fixed, None for others."""
    match expression:
        case Read(symbol=symbol) if symbol == index:
            return 1
        case _ if index not in read_symbols(expression):
            return 0
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "minimum", "maximum"}:
            slopes = {_slope(left, index), _slope(right, index)} - {0}
            return slopes.pop() if len(slopes) == 1 else None
        case Apply(operator=operator, operands=(left, right)) if operator.name == "sub":
            other = _slope(right, index)
            slopes = {_slope(left, index), None if other is None else -other} - {0}
            return slopes.pop() if len(slopes) == 1 else None
        case Apply(operator=operator, operands=(Constant(value=factor), operand)) if operator.name == "mul":
            slope = _slope(operand, index)
            return None if slope is None else slope if factor == abs(factor) else -slope
        case _:
            return None
