"""Skipped turns: where elements decide whether a turn of a block's loop does anything, threads find the next that does.

    for i in range(n):                             next = 0
        if keep[i]:                                while next < n:
            for j in threads(i + 1, n): ...   ->       end = min(next + threads, n); i = end
                                                       for j in threads(next, end): if keep[j]: i = min(i, j)
                                                       if i < end: for j in threads(i + 1, n): ...
                                                       next = min(i + 1, end)

A turn that does nothing takes as long as a read, since it waits for an element; one search takes about three of these.
Right since no turn between changes anything: a condition that is computed early is what it would be in its turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, For, If, Reduction, Role, Select, Statement, Symbol, While
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import rewrite_statements, statements, substitute
from brickwork.legality import legality


def with_skipped_turns(block: Block, numbers: Iterator[int], threads: int) -> Block:
    """Return what a block of so many threads runs in lockstep, with searches in place of turns that do nothing."""

    def visit(statement: Statement) -> Block:
        match statement:
            case For(body=(If() as choice,)) if _waits(statement, choice):
                return _searched(statement, choice, numbers, threads)
            case _:
                return (statement,)

    return rewrite_statements(block, visit)


@legality
def _waits(loop: For, choice: If) -> bool:
    """Whether a loop in order does what elements decide and nothing else, and threads share some of that out."""
    decided = effects(choice.condition)
    if loop.role is not Role.SEQUENTIAL or choice.otherwise or not decided.loads:
        return False
    if effects(choice.then).leaves:
        return False
    return any(isinstance(node, For) and node.role is Role.THREAD for node in statements(choice.then))


def _searched(loop: For, choice: If, numbers: Iterator[int], threads: int) -> Block:
    """Return the search for turns, and each of them as a loop of one iteration, so that its index keeps its bounds."""
    loc, one = loop.loc, build.integer(1)
    following, end, place, at = (
        Symbol(name, next(numbers), INT64) for name in ("next", "end", loop.index.name, loop.index.name)
    )
    ahead, ends, found = build.read(following), build.read(end), build.read(place)
    beyond = build.apply("minimum", build.add(found, one), ends)
    condition = substitute(choice.condition, {loop.index: build.read(at)})
    nearest = Select(condition=condition, then=build.read(at), otherwise=ends, loc=loc)
    search = For(
        index=at,
        start=build.apply("maximum", ahead, loop.start),
        stop=build.apply("minimum", ends, loop.stop),
        body=(Assign(symbol=place, value=build.apply("minimum", found, nearest), loc=loc),),
        role=Role.THREAD,
        reductions=(Reduction(place, OPERATORS["minimum"]),),
        loc=loc,
    )
    turn = For(
        index=loop.index,
        start=build.apply("maximum", found, loop.start),
        stop=build.apply("minimum", beyond, loop.stop),
        body=choice.then,
        loc=loc,
    )
    body = (
        Assign(symbol=end, value=build.apply("minimum", build.add(ahead, build.integer(threads)), loop.stop), loc=loc),
        Assign(symbol=place, value=ends, loc=loc),
        search,
        turn,
        Assign(symbol=following, value=beyond, loc=loc),
    )
    turns = While(prelude=(), condition=build.apply("lt", ahead, loop.stop), body=body, loc=loc)
    return (Assign(symbol=following, value=loop.start, loc=loc), turns)
