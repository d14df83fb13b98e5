"""A `while` that counts towards a limit becomes a `for` that is left, so that the host can tell how long it can be.

    k = 0                                          k = 0
    while k < n and x[k] > 0:                      for turn in range(max(n - 0, 0) + 1):
        s = s * x[k]                  ->               if not (k < n and x[k] > 0): break
        k += 1                                         s = s * x[k]
                                                       k += 1

A counter goes up or down by a constant in each iteration, or is multiplied or divided by one (then there are as many
iterations as an integer has bits). Invariant: the `for` has one iteration more than its counter allows, so that it
always ends at its condition, as the `while` does; that holds for loops that end. Where nothing but the counter ends the
loop, it is a `for` already (`counting.py`). Gradients alone ask for this form, where they need the length of a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from brickwork.analysis.polynomial import SCALAR_LIMIT
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Break,
    Constant,
    Expression,
    For,
    If,
    Read,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import rewrite_blocks
from brickwork.legality import legality
from brickwork.transform.canonical.steps import ADDING, SCALING, is_fixed, limits, step_of
from brickwork.transform.scratch import Names

BITS = 64
"""No counter is doubled or halved more often between two integers."""


def counted_while(block: Block, names: Names) -> Block:
    """Return the block with the loops that count towards a limit as loops of a known length."""

    def visit(inner: Block) -> Block:
        result: list[Statement] = []
        for statement in inner:
            result.append(_for(statement, result, names) if isinstance(statement, While) else statement)
        return tuple(result)

    return rewrite_blocks(block, visit)


def _for(loop: While, before: Sequence[Statement], names: Names) -> For | While:
    """Return a loop as one of a known length, or as it is where nothing in it counts."""
    most = next(_most(loop, before), None)
    if most is None:
        return loop
    left = If(condition=build.logical_not(loop.condition), then=(Break(loc=loop.loc),), loc=loop.loc)
    return For(
        index=names.symbol("turn", INT64),
        start=build.integer(0),
        stop=build.add(most, build.integer(1)),
        body=(*loop.prelude, left, *loop.body),
        loc=loop.loc,
    )


@legality
def _most(loop: While, before: Sequence[Statement]) -> Iterator[Expression]:
    """Yield the most iterations that a loop can have, by each of its counters."""
    for fact in _facts(loop.condition, _known(loop.prelude)):
        for counter, compare, limit in limits(fact):
            step = step_of(loop, counter, ADDING | SCALING) if is_fixed(limit, loop) else None
            if step is not None and isinstance(step.by, Constant):
                begin = _value(counter, before) or build.read(counter)
                most = _length(step.operator, int(step.by.value), begin, compare, limit)
                if most is not None:
                    yield most


@legality
def _length(operator: str, by: int, begin: Expression, compare: str, limit: Expression) -> Expression | None:
    """Return how many iterations there are at most while `counter <compare> limit`.

    Integers that the program names are not beyond those that gradients take, so that no difference wraps.
    """
    above, closed = compare in {"lt", "le"}, int(compare in {"le", "ge"})
    if any(isinstance(end, Constant) and abs(end.value) > SCALAR_LIMIT for end in (begin, limit)):
        return None
    match operator:
        case "add" if by > 0 if above else by < 0:
            way = build.sub(limit, begin) if above else build.sub(begin, limit)
            whole = build.add(way, build.integer(closed + abs(by) - 1))
            return build.apply("maximum", build.apply("floordiv", whole, build.integer(abs(by))), build.integer(0))
        case "mul" if by > 1 and above and isinstance(begin, Constant) and begin.value >= 1:
            return build.integer(BITS)
        case "floordiv" if by > 1 and not above and isinstance(limit, Constant) and limit.value >= closed:
            return build.integer(BITS)
        case _:
            return None


@legality
def _value(symbol: Symbol, before: Sequence[Statement]) -> Expression | None:
    """Return what a variable holds after some statements, in terms of what has not changed since it was set."""
    changed = frozenset((symbol,))
    for statement in reversed(before):
        found = effects(statement)
        if symbol in found.assigns:
            stays = found.plain and not found.reads & changed
            return statement.value if stays and isinstance(statement, Assign) else None
        changed |= found.assigns
    return None


# ---------------------------------------------------------------- what holds in an iteration


@legality
def _known(block: Block) -> dict[Symbol, tuple[Expression, ...]]:
    """Return what holds where a variable of a prelude is true.

    The operands of `and` after the first are computed in a branch.
    """
    result: dict[Symbol, tuple[Expression, ...]] = {}
    for statement in block:
        for symbol in effects(statement).assigns:
            result.pop(symbol, None)
        match statement:
            case Assign(symbol=symbol, value=value):
                result[symbol] = _facts(value, result)
            case If(condition=condition, then=then, otherwise=(Assign(symbol=symbol, value=value),)) if (
                value == condition
            ):
                result[symbol] = (*_facts(condition, result), *_known(then).get(symbol, ()))
            case _:
                pass
    return result


@legality
def _facts(condition: Expression, known: Mapping[Symbol, tuple[Expression, ...]]) -> tuple[Expression, ...]:
    """Return the parts of a condition that all hold where it does."""
    match condition:
        case Read(symbol=symbol):
            return known.get(symbol, ())
        case Apply(operator=operator, operands=(left, right)) if operator.name == "logical_and":
            return (*_facts(left, known), *_facts(right, known))
        case _:
            return (condition,)
