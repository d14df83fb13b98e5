"""Writes iterations of a loop out: one after the other, or in jam (`unroll_jam.py`), so that they share what they read.

A loop is jammed unless an iteration could fail: the order in which failures are met stays that of the source, but
where each iteration is for a thread of a grid. The iterations that are left over make a nest of their own, with the
parallel loops around:

    parallel for b, parallel for i: body   ->   parallel for b, parallel for blocks of i: four bodies
                                                parallel for b, parallel for the rest of i: body
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brickwork.ir.nodes import Block, Break, Continue, For, Node, Role, Statement, Symbol
from brickwork.ir.walk import read_symbols, rewrite, rewrite_loops, rewrite_statements, statements
from brickwork.legality import hazard, legality
from brickwork.transform.schedule.schedule import LANES_LIMIT, Bind, Level, Unroll
from brickwork.transform.verbs.bind import GONE, in_the_way
from brickwork.transform.verbs.context import Context
from brickwork.transform.verbs.places import Place, places
from brickwork.transform.verbs.unroll_jam import may_jam, unroll_jam

SHARED = frozenset({Role.PARALLEL, Role.BLOCK})
"""The roles of loops whose iterations are shared out, so that a part of a nest may have loops of its own for them."""


def apply(block: Block, verb: Unroll, context: Context) -> Block:
    """Return the block with iterations of a loop written out."""
    factors = (verb.factor, verb.then) if verb.then else (verb.factor,)
    around = _around(block, verb.loop) if verb.jam else frozenset[Symbol]()

    def change(loop: For) -> Block:
        if loop.index in around:
            return tuple(replace(loop, body=(part,)) for part in loop.body)
        if verb.jam:
            return _jammed(loop, factors, context.numbers, failing=_is_for_threads(verb.loop, context))
        return (replace(loop, unrolled=verb.factor) if loop.role is Role.SEQUENTIAL else loop,)

    return rewrite_loops(block, {*around, verb.loop}, change)


@hazard
def refusal(block: Block, verb: Unroll, context: Context) -> str | None:
    """Return why iterations of a loop cannot be written out, if they cannot."""
    found = [*places(block, verb.loop)]
    if not found:
        return GONE
    if not 2 <= verb.factor <= LANES_LIMIT or verb.factor & (verb.factor - 1):
        return f"the number of iterations is a power of two, and from 2 to {LANES_LIMIT}"
    if not verb.jam:
        return next(map(_in_turn, found), None)
    if verb.then >= verb.factor:
        return f"of fewer than {verb.factor} iterations that are left over, {verb.then} cannot run together"
    verdict = context.verdict(verb.loop)
    if not verdict.independent or verdict.reductions:
        return in_the_way(verdict)
    if not may_jam(tuple(statement for place in found for statement in place.loop.body)):
        return "an iteration may fail or end early, or has a list of its own"
    if found[0].loop.role is Role.VECTOR:
        return "it runs in lanes"
    return None


@hazard
def _in_turn(place: Place) -> str | None:
    """Return why iterations of a loop in order cannot be written out."""
    if place.loop.role is not Role.SEQUENTIAL:
        return "it is bound, and has no iterations in order"
    if any(isinstance(node, Break | Continue) for node in statements(place.loop.body)):
        return "an iteration may end early"
    return None


def _around(block: Block, jammed: Symbol) -> frozenset[Symbol]:
    """Return the loops right around one whose iterations are shared out, as theirs are."""
    found: set[Symbol] = set()
    for node in statements(block):
        outer: list[Symbol] = []
        inner = node
        while isinstance(inner, For) and inner.role in SHARED:
            if inner.index == jammed:
                found.update(outer)
            if len(inner.body) != 1:
                break
            outer.append(inner.index)
            inner = inner.body[0]
    return frozenset(found)


@legality
def _is_for_threads(loop: Symbol, context: Context) -> bool:
    """Whether each iteration of a loop is for a thread of a grid, where failures are met in any order."""
    bound = (item for item in context.schedule.verbs if isinstance(item, Bind) and item.loop == loop)
    return any(item.level is Level.GRID for item in bound)


def _jammed(loop: For, factors: tuple[int, ...], numbers: Iterator[int], *, failing: bool) -> Block:
    if not factors or not may_jam(loop.body, failing=failing):
        return (loop,)
    jammed, rest = unroll_jam(loop, factors[0], numbers)
    return (jammed, *_jammed(_widened(_alone(rest)), factors[1:], numbers, failing=failing))


def _alone(rest: For) -> For:
    """Return what is left over with threads along its innermost loop, where iterations are long.

    It has fewer iterations than the threads that would be laid over it.
    """
    if all(node.role is Role.PARALLEL for node in statements(rest.body) if isinstance(node, For)):
        return rest

    def visit(node: Node) -> Node:
        return replace(node, across=0) if isinstance(node, For) and node.across else node

    return rewrite(rest, visit)


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
