"""Variables of float64 that count in ones become integers, which the rest of the compiler knows to count along.

    count = 0.0                             count = 0
    for i in range(n):                      for i in range(n):
        count += 1.0              ->            count += 1
        mean += (x[i] - mean) / count           mean += (x[i] - mean) / float(count)

So a mean that is kept up to date is a linear recurrence, whose slope the index says. Invariant: a variable changes
only where each value that it is given is a whole number, or it and one: float64 has all of these to 2^53, which takes
a processor months to count to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import copysign

from brickwork.analysis.polynomial import SCALAR_LIMIT
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Apply, Assign, Block, Cast, Constant, Expression, Node, Read, Statement, Symbol
from brickwork.ir.walk import rewrite, statements
from brickwork.legality import hazard, legality
from brickwork.transform.scratch import Names


def with_whole_counters(block: Block, given: Collection[Symbol], names: Names) -> Block:
    """Return the block with integers in place of the variables that count in ones, but for those that are `given`."""
    values: dict[Symbol, list[Expression]] = {}
    for node in statements(block):
        if isinstance(node, Assign) and node.symbol.dtype is FLOAT64 and node.symbol not in given:
            values.setdefault(node.symbol, []).append(node.value)
    wanted = {symbol: each for symbol, each in values.items() if not all(isinstance(item, Constant) for item in each)}
    whole = {symbol: names.symbol(symbol.name, INT64) for symbol, each in wanted.items() if counts(symbol, each)}
    return tuple(_rewritten(statement, whole) for statement in block) if whole else block


@legality
def counts(symbol: Symbol, given: Sequence[Expression]) -> bool:
    """Whether each value that a variable is given is a whole number, or it and one."""
    return all(_is_whole(value, SCALAR_LIMIT) or _is_step(symbol, value) for value in given)


@legality
def _is_whole(value: Expression, most: int) -> bool:
    """Whether a value is a literal that an integer is the same as, and no greater than `most`."""
    if not isinstance(value, Constant) or not abs(float(value.value)) <= most:
        return False
    return float(value.value).is_integer() and not _is_negative_zero(float(value.value))


@hazard
def _is_negative_zero(value: float) -> bool:
    return value == 0 and copysign(1.0, value) < 0


@legality
def _is_step(symbol: Symbol, value: Expression) -> bool:
    """Whether a value is a variable and one, or less one."""
    match value:
        case Apply(operator=operator, operands=(Read(symbol=found), by)) if operator.name in {"add", "sub"}:
            return found == symbol and _is_whole(by, 1)
        case Apply(operator=operator, operands=(by, Read(symbol=found))) if operator.name == "add":
            return found == symbol and _is_whole(by, 1)
        case _:
            return False


def _rewritten(statement: Statement, whole: Mapping[Symbol, Symbol]) -> Statement:
    """Return a statement with integers in place of these variables."""
    counters = frozenset(whole.values())

    def visit(node: Node) -> Node:
        match node:
            case Read(symbol=symbol) if symbol in whole:
                return build.cast(build.read(whole[symbol]), FLOAT64)
            case Cast(operand=Cast(operand=Read(symbol=symbol) as counter), dtype=dtype) if symbol in counters:
                return build.cast(counter, dtype) if dtype.is_float else node
            case Assign(symbol=symbol, value=value, loc=loc) if symbol in whole:
                return Assign(symbol=whole[symbol], value=_integer(value), loc=loc)
            case _:
                return node

    return rewrite(statement, visit)


def _integer(value: Expression) -> Expression:
    """Return a literal as an integer, and what was added to a variable, which is cast, as a sum of integers."""
    match value:
        case Constant(value=number):
            return build.integer(int(number))
        case Apply(operator=operator, operands=(one, other)):
            return build.apply(operator.name, _integer(one), _integer(other))
        case Cast(operand=operand):
            return operand
        case _:
            return value
