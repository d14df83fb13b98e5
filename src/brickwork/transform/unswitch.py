"""Asks conditions of accumulating loops as far out as they are known: a window at a border is cut once a row.

    for v in range(m):                          if 0 <= y + u - 1 < height:
        i = y + u - 1                               for v in range(m):
        j = x + v - 1                   ->              if 0 <= x + v - 1 < width:
        if 0 <= i < height and 0 <= j < width:              s += image[y + u - 1, x + v - 1]
            s += image[i, j]

An `if ...: continue` is the opposite branch around the rest. Integers that a condition is made of are written out in
it, so that it tells by itself what it depends on. Loops that run in parallel keep their bodies: nests of them stay
perfect. On a grid, conditions of sizes go around such nests, where the host asks them:

    for i in range(n): if 0 < m: ...      ->      if 0 < m: for i in range(n): ...

Invariant: what runs, and in which order, stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from brickwork.analysis.scalars import Symbols, live_after_loops
from brickwork.analysis.verdicts import Analysis
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Statement,
    Symbol,
)
from brickwork.ir.walk import (
    assigned_symbols,
    operands_of,
    read_symbols,
    rewrite_statements,
    substitute,
    substitute_block,
    walk,
)
from brickwork.legality import legality
from brickwork.transform.canonical.choices import LARGEST, choice, is_simple
from brickwork.transform.guard import conjunction
from brickwork.transform.without_continue import to_the_end

Values: TypeAlias = Mapping[Symbol, Expression]


def unswitch(kernel: Kernel, analysis: Analysis) -> Kernel:
    """Return the kernel with the conditions of its accumulating loops asked as far out as they are known."""
    live = live_after_loops(kernel.body)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or analysis.loops[statement.index].is_free:
            return (statement,)
        found = _guarded(to_the_end(statement.body))
        if found is None or sum(1 for _ in walk(found.condition)) > LARGEST:
            return (statement,)
        return (_lifted(statement, found, live[statement.index]),)

    body = rewrite_statements(kernel.body, visit)
    return kernel if body == kernel.body else replace(kernel, body=body)


def unswitch_nests(block: Block, analysis: Analysis) -> Block:
    """Return a block with what nothing in it changes asked around its parallel loops, where all of them ask it."""
    changing = assigned_symbols(block)

    def visit(statement: Statement) -> Block:
        match statement:
            case For(body=(*heads, If(condition=condition, otherwise=()) as found)) if (
                all(isinstance(item, Assign) for item in heads)
                and not effects(heads).draws
                and analysis.loops[statement.index].is_free
                and _may_be_asked_around(condition, changing)
            ):
                return (replace(found, then=visit(replace(statement, body=(*heads, *found.then)))),)
            case _:
                return (statement,)

    return rewrite_statements(block, visit)


@legality
def _may_be_asked_around(condition: Expression, changing: Symbols) -> bool:
    """Whether a condition may be asked before a loop, even one that has no iterations."""
    return is_simple(condition) and not read_symbols(condition) & changing


@legality
def _lifted(loop: For, found: If, live: Symbols) -> Statement:
    """Return a loop whose body does what one branch does, with what of its condition does not change before it."""
    if (assigned_symbols(loop.body) - assigned_symbols(found.then)) & live:
        return loop
    changing = assigned_symbols(found.then) | {loop.index}
    parts = dict.fromkeys(operands_of(found.condition, "logical_and"))
    before = [item for item in parts if not read_symbols(item) & changing]
    rest = [item for item in parts if item not in before]
    body = (replace(found, condition=conjunction(rest)),) if rest else found.then
    inner = replace(loop, body=body)
    return If(condition=conjunction(before), then=(inner,), loc=found.loc) if before else inner


@legality
def _guarded(block: Block) -> If | None:
    """Return a block as one branch, if it does nothing but compute a condition and something under it."""
    *ahead, last = block
    if not isinstance(last, If) or last.otherwise:
        return None
    values = _computed(ahead, {})
    if values is None:
        return None
    condition, then = substitute(last.condition, values), substitute_block(last.then, values)
    if not is_simple(condition):
        return None
    taken_out, changing = assigned_symbols(ahead), assigned_symbols(then)
    if taken_out & (read_symbols(condition) | read_symbols(then) | changing) or changing & _read_in(values):
        return None
    return replace(last, condition=condition, then=then)


@legality
def _computed(block: Iterable[Statement], known: Values) -> Values | None:
    """Return what variables are worth after a block that does nothing but simple arithmetic, if it does."""
    values = dict(known)
    for statement in block:
        match statement:
            case Assign(symbol=symbol, value=value):
                values[symbol] = substitute(value, values)
                if not is_simple(values[symbol]):
                    return None
            case If(condition=condition, then=then, otherwise=otherwise):
                first, second = _computed(then, values), _computed(otherwise, values)
                test = substitute(condition, values)
                if first is None or second is None or not is_simple(test):
                    return None
                values |= dict(_joined(test, first, second))
            case _:
                return None
    return values


def _joined(test: Expression, then: Values, otherwise: Values) -> Iterator[tuple[Symbol, Expression]]:
    """Yield what variables are worth after a branch that sets them on both ways."""
    for symbol in (item for item in then if item in otherwise):
        yield symbol, choice(test, then[symbol], otherwise[symbol])


def _read_in(values: Values) -> Symbols:
    return read_symbols(values.values())
