"""Loops that count get an index, and variables that count along become sums with it.

    k = a                                    for u in range(a, n):
    while k < n:                                 y[p + (u - a) * 2] = x[u]
        y[p] = x[k]                  ->      k = max(a, n)
        k += 1                               p = p + max(n - a, 0) * 2
        p += 2

A variable counts along if each iteration adds the same integer to it, once, in the body of the loop itself. Invariant:
a loop that gets an index ends after as many iterations as it counts, or because something fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.scalars import MIRRORED, NONE, Symbols, live_after_loops
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Break,
    Constant,
    Continue,
    Expression,
    For,
    If,
    Load,
    Read,
    Size,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.canonical.copies import substituted
from brickwork.transform.scratch import Names


def count(block: Block, names: Names) -> Block:
    """Return the block with indices in place of the variables that count."""
    if not any(isinstance(node, For | While) and _may_count(node) for node in statements(block)):
        return block
    live = live_after_loops(block)

    def visit(statement: Statement) -> Block:
        if isinstance(statement, While) and (made := _with_index(statement, names)) is not None:
            statement, *rest = made
            return (*_counted(statement, NONE), *rest) if isinstance(statement, For) else made
        return _counted(statement, live[statement.index]) if isinstance(statement, For) else (statement,)

    return rewrite_statements(block, visit)


def _may_count(loop: For | While) -> bool:
    return any(isinstance(item, Assign) and item.symbol.dtype is INT64 for item in loop.body)


@dataclass(frozen=True, slots=True)
class _Step:
    """What each iteration of a loop adds to a variable, and at which place of the body."""

    symbol: Symbol
    by: Expression
    place: int


@legality
def _step(loop: For | While, symbol: Symbol) -> _Step | None:
    """Return the step of a variable; None where iterations do not add the same to it."""
    body = loop.body
    places = [place for place, item in enumerate(body) if isinstance(item, Assign) and item.symbol == symbol]
    writes = [node for node in statements(body) if _sets(node, symbol)]
    if not places or len(writes) != 1 or any(_jumps(body[: places[0]], Continue)):
        return None
    match body[places[0]]:
        case Assign(value=Apply(operator=operator, operands=(Read(symbol=left), by))) if left == symbol:
            name = operator.name
        case Assign(value=Apply(operator=operator, operands=(by, Read(symbol=right)))) if right == symbol:
            name = "add" if operator.name == "add" else ""
        case _:
            return None
    if name not in {"add", "sub"} or not _is_fixed(by, loop):
        return None
    return _Step(symbol, by if name == "add" else build.apply("neg", by), places[0])


def _sets(statement: object, symbol: Symbol) -> bool:
    match statement:
        case Assign(symbol=other) | For(index=other):
            return other == symbol
        case _:
            return False


@legality
def _is_fixed(value: Expression, loop: For | While) -> bool:
    """Whether an integer is the same in every iteration of a loop, and no element that might be out of range."""
    return not read_symbols(value) & assigned_symbols(loop) and not any(isinstance(node, Load) for node in walk(value))


def _jumps(block: Block, kind: type[Break | Continue]) -> Iterator[Statement]:
    """Yield the jumps of a kind out of the loop that a block belongs to, or to its next iteration."""
    for statement in block:
        match statement:
            case Break() | Continue():
                yield from (statement,) if isinstance(statement, kind) else ()
            case If(then=then, otherwise=otherwise):
                yield from _jumps((*then, *otherwise), kind)
            case _:
                pass


# ---------------------------------------------------------------- variables that count along


@legality
def _counted(loop: For, live: Symbols) -> Block:
    """Return a loop with sums with its index in place of the variables that count along.

    `live` are variables that are read after it. Where it may be left, no sum is known of them.
    """
    if loop.claimed:
        return (loop,)
    left = any(_jumps(loop.body, Break))
    after: list[Statement] = []
    for symbol in dict.fromkeys(item.symbol for item in loop.body if isinstance(item, Assign)):
        step = _step(loop, symbol) if symbol.dtype is INT64 and not (left and symbol in live) else None
        if step is not None:
            after.append(_total(loop, step))
            begun = build.sub(build.read(loop.index), loop.start)
            loop = replace(loop, body=_summed(loop.body, step, *_sums(step, begun)))
    return (loop, *after)


def _total(loop: For, step: _Step) -> Assign:
    """Return the statement that adds what all iterations add."""
    total = build.mul(_turns(loop.start, loop.stop), step.by)
    return Assign(symbol=step.symbol, value=build.add(build.read(step.symbol), total), loc=loop.loc)


def _turns(start: Expression, stop: Expression) -> Expression:
    """Return how many iterations there are from `start` to `stop`."""
    number = build.sub(stop, start)
    return number if isinstance(number, Size) else build.apply("maximum", number, build.integer(0))


def _summed(body: Block, step: _Step, before: Expression, after: Expression) -> Block:
    """Return a body without the step, and with what the variable is before and after it."""
    return (
        *(substituted(item, {step.symbol: before}) for item in body[: step.place]),
        *(substituted(item, {step.symbol: after}) for item in body[step.place + 1 :]),
    )


def _sums(step: _Step, begun: Expression) -> tuple[Expression, Expression]:
    """Return what a variable is before and after its step where so many iterations have been."""
    turns = (begun, build.add(begun, build.integer(1)))
    before, after = (build.add(build.read(step.symbol), build.mul(number, step.by)) for number in turns)
    return before, after


# ---------------------------------------------------------------- loops that get an index


@legality
def _with_index(loop: While, names: Names) -> Block | None:
    """Return a `while` that only its counter ends as a `for`, and what the counter is after it; None if it is not."""
    if loop.prelude or any(_jumps(loop.body, Break)):
        return None
    for counter, compare, limit in _limits(loop.condition):
        step = _step(loop, counter) if _is_fixed(limit, loop) else None
        if step is None or not isinstance(step.by, Constant):
            continue
        by, way = int(step.by.value), 1 if compare in {"lt", "le"} else -1
        if by * way > 0:
            beyond = way if compare in {"le", "ge"} else 0
            return _for(loop, step, by, build.add(limit, build.integer(beyond)), names)
    return None


def _limits(condition: Expression) -> Sequence[tuple[Symbol, str, Expression]]:
    """Return what a condition says as a variable, a comparison, and a limit."""
    match condition:
        case Apply(operator=operator, operands=(left, right)) if operator.name in MIRRORED and left.dtype is INT64:
            sides = ((left, operator.name, right), (right, MIRRORED[operator.name], left))
            return [(side.symbol, name, limit) for side, name, limit in sides if isinstance(side, Read)]
        case _:
            return ()


def _for(loop: While, step: _Step, by: int, limit: Expression, names: Names) -> Block:
    """Return the loop that counts to a limit, which it does not reach, and what its counter is then."""
    counter, index = build.read(step.symbol), names.symbol(step.symbol.name, INT64)
    made = For(index=index, start=build.integer(0), stop=limit, body=(), loc=loop.loc)
    if by == 1:
        made = replace(made, start=counter)
        before, after = build.read(index), build.add(build.read(index), build.integer(1))
    else:
        way = build.sub(limit, counter) if by > 0 else build.sub(counter, limit)
        turns = build.apply("floordiv", build.add(way, build.integer(abs(by) - 1)), build.integer(abs(by)))
        made = replace(made, stop=turns)
        before, after = _sums(step, build.read(index))
    return (replace(made, body=_summed(loop.body, step, before, after)), _total(made, step))
