"""A `while` that counts towards a limit becomes a `for` that is left, so that the host can tell how long it can be.

    k = 0                                          k = 0
    while k < n and x[k] > 0:                      for turn in range(max(n - 0, 0) + 1):
        s = s * x[k]                  ->               if not (k < n and x[k] > 0): break
        k += 1                                         s = s * x[k]
                                                       k += 1

A counter goes up or down by a constant in each iteration, or is multiplied or divided by one (then there are as many
iterations as an integer has bits). Invariant: the `for` has one iteration more than its counter allows, so that it
always ends at its condition, as the `while` does; that holds for loops that end. Where nothing but the counter ends the
loop, the `for` has just its iterations and is never left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.scalars import MIRRORED
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
    Node,
    Random,
    Read,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, walk
from brickwork.records import dataclass
from brickwork.transform.scratch import Names

BITS = 64
"""No counter is doubled or halved more often between two integers."""


def counted_while(block: Block, names: Names) -> Block:
    """Return the block with the loops that count towards a limit as loops of a known length."""
    result: list[Statement] = []
    for statement in block:
        match statement:
            case If(then=then, otherwise=otherwise):
                result.append(
                    replace(statement, then=counted_while(then, names), otherwise=counted_while(otherwise, names))
                )
            case For(body=body):
                result.append(replace(statement, body=counted_while(body, names)))
            case While():
                inner = replace(statement, body=counted_while(statement.body, names))
                result.append(_for(inner, result, names) or inner)
            case _:
                result.append(statement)
    return tuple(result)


def _for(loop: While, before: Sequence[Statement], names: Names) -> For | None:
    """Return a loop as one of a known length, or None where nothing in it counts."""
    turns = next(_turns(loop, before), None)
    if turns is None:
        return None
    index = names.symbol("turn", INT64)
    if turns.exact:
        return For(index=index, start=build.integer(0), stop=turns.most, body=loop.body, loc=loop.loc)
    left = If(condition=build.logical_not(loop.condition), then=(Break(loc=loop.loc),), loc=loop.loc)
    return For(
        index=index,
        start=build.integer(0),
        stop=build.add(turns.most, build.integer(1)),
        body=(*loop.prelude, left, *loop.body),
        loc=loop.loc,
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """What an iteration does to a counter: `name` is add, sub, mul or floordiv."""

    name: str
    by: int


@dataclass(frozen=True, slots=True)
class _Turns:
    """The most iterations that a loop can have; `exact` says that it has them unless its body leaves it."""

    most: Expression
    exact: bool


def _turns(loop: While, before: Sequence[Statement]) -> Iterator[_Turns]:
    """Yield the most iterations that a loop can have, by each of its counters."""
    assigned = assigned_symbols((*loop.prelude, *loop.body))
    for fact in _facts(loop.condition, _known(loop.prelude)):
        if not isinstance(fact, Apply) or fact.operator.name not in MIRRORED:
            continue
        left, right = fact.operands
        sides = ((left, fact.operator.name, right), (right, MIRRORED[fact.operator.name], left))
        for counter, compare, limit in sides:
            fixed = not read_symbols(limit) & assigned and not any(isinstance(node, Load) for node in walk(limit))
            if not isinstance(counter, Read) or counter.dtype is not INT64 or limit.dtype is not INT64 or not fixed:
                continue
            step = _step(loop, counter.symbol)
            begin = _value(counter.symbol, before)
            turns = None if step is None else _length(step, begin or counter, compare, limit)
            if step is not None and turns is not None:
                alone = not loop.prelude and fact == loop.condition and step.name in {"add", "sub"}
                yield _Turns(turns, alone)


def _length(step: _Step, begin: Expression, compare: str, limit: Expression) -> Expression | None:
    """Return how many iterations there are at most while `counter <compare> limit`."""
    above = compare in {"lt", "le"}
    closed = build.integer(1 if compare in {"le", "ge"} else 0)
    match step.name:
        case "add" | "sub" if (step.name == "add") == above:
            way = build.sub(limit, begin) if above else build.sub(begin, limit)
            whole = build.add(way, build.add(closed, build.integer(step.by - 1)))
            turns = build.apply("floordiv", whole, build.integer(step.by)) if step.by > 1 else whole
            return build.apply("maximum", turns, build.integer(0))
        case "mul" if above and isinstance(begin, Constant) and begin.value >= 1:
            return build.integer(BITS)
        case "floordiv" if compare == "gt" and isinstance(limit, Constant) and limit.value >= 0:
            return build.integer(BITS)
        case "floordiv" if compare == "ge" and isinstance(limit, Constant) and limit.value >= 1:
            return build.integer(BITS)
        case _:
            return None


def _step(loop: While, counter: Symbol) -> _Step | None:
    """Return what each iteration that does not leave does to a counter, once."""
    found = [node for node in statements((*loop.prelude, *loop.body)) if counter in _set_by(node)]
    places = [place for place, node in enumerate(loop.body) if found and node is found[0]]
    if len(found) != 1 or not places or any(_continues(loop.body[: places[0]])):
        return None
    match found[0]:
        case Assign(value=Apply(operator=operator, operands=(Read(symbol=symbol), Constant(value=int(by))))) if (
            symbol == counter and not isinstance(by, bool)
        ):
            least = 1 if operator.name in {"add", "sub"} else 2
            return _Step(operator.name, by) if by >= least else None
        case _:
            return None


def _set_by(statement: Node) -> frozenset[Symbol]:
    """Return the variable that a statement sets itself, if it does."""
    match statement:
        case Assign(symbol=symbol):
            return frozenset((symbol,))
        case For(index=index):
            return frozenset((index,))
        case _:
            return frozenset()


def _continues(block: Block) -> Iterator[Continue]:
    """Yield the jumps to the next iteration of the loop around a block."""
    for statement in block:
        match statement:
            case Continue():
                yield statement
            case If(then=then, otherwise=otherwise):
                yield from _continues(then)
                yield from _continues(otherwise)
            case _:
                pass


def _value(symbol: Symbol, before: Sequence[Statement]) -> Expression | None:
    """Return what a variable holds after some statements, in terms of what has not changed since it was set."""
    changed = frozenset[Symbol]()
    for statement in reversed(before):
        if isinstance(statement, Assign) and statement.symbol == symbol:
            plain = not any(isinstance(node, Load | Random) for node in walk(statement.value))
            return statement.value if plain and not read_symbols(statement.value) & (changed | {symbol}) else None
        changed |= assigned_symbols(statement)
        if symbol in changed:
            return None
    return None


# ---------------------------------------------------------------- what holds in an iteration


def _known(block: Block) -> dict[Symbol, tuple[Expression, ...]]:
    """Return what holds where a variable of a prelude is true.

    The operands of `and` after the first are computed in a branch.
    """
    result: dict[Symbol, tuple[Expression, ...]] = {}
    for statement in block:
        for symbol in assigned_symbols(statement):
            result.pop(symbol, None)
        match statement:
            case Assign(symbol=symbol, value=value):
                result[symbol] = _facts(value, result)
            case If(condition=condition, then=then, otherwise=(Assign(symbol=symbol, value=value),)):
                inner = _known(then)
                if symbol in inner and (value == condition or build.is_constant(value, 0)):
                    result[symbol] = (*_facts(condition, result), *inner[symbol])
            case _:
                pass
    return result


def _facts(condition: Expression, known: Mapping[Symbol, tuple[Expression, ...]]) -> tuple[Expression, ...]:
    """Return the parts of a condition that all hold where it does."""
    match condition:
        case Read(symbol=symbol):
            return known.get(symbol, ())
        case Apply(operator=operator, operands=(left, right)) if operator.name == "logical_and":
            return (*_facts(left, known), *_facts(right, known))
        case _:
            return (condition,)
