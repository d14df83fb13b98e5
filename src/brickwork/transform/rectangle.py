"""Rectangular bounding boxes of triangular nests, so that a grid has one range of iterations.

    for i in range(n):                            for i in range(n):
        for j in range(i + 1):         ->             for j in range(n):
            ...                                           if j < i + 1: ...

Half of the threads of a triangle have nothing to do, and are done at once: worth it where an iteration holds a loop,
and so takes long, unless the threads of a block for each row share its iterations out: those of contractions are tiles
of a rectangle in any case. So are windows placed by variables that the host does not know, in loops that it runs:

    for t in range(steps):                                 for t in range(steps):
        p = place[t]                                           p = place[t]
        for y in range(max(0, p - 3), min(n, p + 4)):  ->      for y in range(0, n):
            ...                                                    if y >= max(0, p - 3) and y < min(n, p + 4): ...

Invariant: the same iterations run; the analysis is of the nest as it was, and holds for this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias, cast

from brickwork.analysis.contractions import find_contraction, grouped
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Block, Constant, Expression, For, If, Read, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, substitute
from brickwork.legality import legality
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.schedule.planner import Planner


def rectangle(block: Block, analysis: Analysis) -> Block:
    """Return the block with rectangles where they can be made."""

    def visit(statement: Statement) -> Block:
        return (_bounded(statement, analysis) if isinstance(statement, For) else statement,)

    return rewrite_statements(_with_windows(block, analysis, frozenset()), visit)


Values: TypeAlias = Mapping[Symbol, Expression]
"""What variables stand for, made of those that did not change since."""


def _with_windows(
    block: Block, analysis: Analysis, unknown: frozenset[Symbol], values: Values = MappingProxyType({})
) -> Block:
    """Return a block that the host launches the loops of, with windows as long as it knows; some variables are unknown.

    Those have to do with elements, or with loops before.
    """
    made: list[Statement] = []
    for statement in block:
        match statement:
            case For(index=index, body=body) if not analysis.loops[index].independent:
                inside = assigned_symbols(statement)
                around = (unknown | inside) - {index}
                made.append(replace(statement, body=_with_windows(body, analysis, around, _without(values, inside))))
            case For():
                made.append(_window(statement, analysis, unknown, values))
            case _:
                made.append(statement)
        asks, assigned = effects(statement), assigned_symbols(statement)
        moves = not isinstance(statement, Assign) or asks.reads & unknown or asks.loads or asks.draws
        unknown = unknown | assigned if moves else unknown - assigned
        values = _after(statement, values)
    return tuple(made)


def _without(values: Values, assigned: frozenset[Symbol]) -> Values:
    return {key: value for key, value in values.items() if key not in assigned and not effects(value).reads & assigned}


@legality
def _after(statement: Statement, values: Values) -> Values:
    """Return what variables stand for after a statement."""
    left = _without(values, assigned_symbols(statement))
    if not isinstance(statement, Assign):
        return left
    value = substitute(statement.value, values)
    fixed = effects(value).plain and statement.symbol not in effects(value).reads
    return {**left, statement.symbol: value} if fixed else left


@legality
def _window(loop: For, analysis: Analysis, unknown: frozenset[Symbol], values: Values) -> For:
    """Return a loop over all that the host knows a window to be in, and in it the same for a window in that."""
    verdict, inside = analysis.loops[loop.index], effects(loop.body)
    ends = substitute(loop.start, values), substitute(loop.stop, values)
    asks = effects(ends)
    start, stop = _known(ends[0], "maximum", unknown), _known(ends[1], "minimum", unknown)
    if start is None or stop is None or not asks.reads & unknown or not asks.plain:
        return loop
    if not verdict.independent or verdict.reductions or verdict.updates or inside.leaves or asks.reads & inside.assigns:
        return loop
    at = build.read(loop.index)
    own = build.apply("logical_and", build.apply("ge", at, ends[0]), build.apply("lt", at, ends[1]))
    *head, last = loop.body
    if isinstance(last, For) and all(isinstance(item, Assign) and effects(item).plain for item in head):
        for item in head:
            values = _after(item, values)
        found = _window(last, analysis, unknown, values)
        if found is not last and not effects(head).reads & inside.assigns:
            return replace(loop, start=start, stop=stop, body=(_asking(found, own, head),))
    return replace(loop, start=start, stop=stop, body=(If(condition=own, then=loop.body, loc=loop.loc),))


def _asking(found: For, own: Expression, head: Sequence[Statement]) -> For:
    """Return windows in a window, the innermost of which asks for the outer one, too, and runs what stands before."""
    inner = found.body[0]
    if isinstance(inner, For):
        return replace(found, body=(_asking(inner, own, head),))
    asked = cast("If", inner)
    condition = build.apply("logical_and", own, asked.condition)
    return replace(found, body=(replace(asked, condition=condition, then=(*head, *asked.then)),))


@legality
def _known(bound: Expression, clip: str, unknown: frozenset[Symbol]) -> Expression | None:
    """Return what the host knows a bound to be clipped to; None for others. It is the bound, or beyond it."""
    asks = effects(bound)
    if not (asks.loads or asks.draws or asks.reads & unknown):
        return bound
    match bound:
        case Apply(operator=operator, operands=operands) if operator.name == clip:
            return next((found for item in operands if (found := _known(item, clip, unknown)) is not None), None)
        case Apply(operator=operator, operands=(left, Constant() as more)) if operator.name in {"add", "sub"}:
            found = _known(left, clip, unknown)
            # What is made of sizes does not wrap.
            return None if found is None or effects(found).reads else replace(bound, operands=(found, more))
        case _:
            return None


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
