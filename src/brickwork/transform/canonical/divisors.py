"""Takes out checks that cannot fail: of divisors that are lengths of loops around, and of shifts by remainders.

for i in range(n): check(n != 0); y[i] = x[(i + s) % n]      ->      for i in range(n): y[i] = x[(i + s) % n]

An iteration runs, so the length is not 0; a remainder by a positive literal is between 0 and the literal.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.nodes import Apply, Block, Check, Constant, Expression, For, If, Statement, While
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.legality import legality

LARGE_BITS = 62
"""Integers of fewer bits do not wrap."""


def without_sure_checks(block: Block) -> Block:
    """Return the block without the checks that cannot fail where they stand."""
    changing = assigned_symbols(block)

    @legality
    def is_length(loop: For) -> bool:
        """Whether a loop that runs at all shows that its end is greater than 0, and stays so."""
        start = loop.start
        return isinstance(start, Constant) and start.value >= 0 and not read_symbols(loop.stop) & changing

    def visit(block: Block, lengths: frozenset[Expression]) -> Block:
        found = (inside(statement, lengths) for statement in block if not _is_sure(statement, lengths))
        kept = tuple(found)
        return block if len(kept) == len(block) and all(map(_is, kept, block)) else kept

    def inside(statement: Statement, lengths: frozenset[Expression]) -> Statement:
        match statement:
            case For(body=body):
                more = lengths | {statement.stop} if is_length(statement) else lengths
                return statement if (new := visit(body, more)) is body else replace(statement, body=new)
            case If(then=then, otherwise=otherwise):
                parts = visit(then, lengths), visit(otherwise, lengths)
                same = parts[0] is then and parts[1] is otherwise
                return statement if same else replace(statement, then=parts[0], otherwise=parts[1])
            case While(prelude=prelude, body=body):
                parts = visit(prelude, lengths), visit(body, lengths)
                same = parts[0] is prelude and parts[1] is body
                return statement if same else replace(statement, prelude=parts[0], body=parts[1])
            case _:
                return statement

    return visit(block, frozenset())


def _is(one: Statement, other: Statement) -> bool:
    return one is other


@legality
def _is_sure(statement: Statement, lengths: frozenset[Expression]) -> bool:
    if not isinstance(statement, Check):
        return False
    if any(statement.condition == build.apply("ne", length, build.integer(0)) for length in lengths):
        return True
    match statement.condition:
        case Apply(operator=operator, operands=(number, zero)) if operator.name == "ge" and build.is_constant(zero, 0):
            most = _most(number)
            return most is not None and most.bit_length() < LARGE_BITS
        case _:
            return False


@legality
def _most(number: Expression) -> int | None:
    """Return a limit of an integer that is not negative, or None where one of them is not known."""
    match number:
        case Constant(value=int(value)) if value >= 0:
            return value
        case Apply(operator=operator, operands=(_, Constant(value=int(value)))) if operator.name == "mod" and value > 0:
            return value - 1
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "mul"}:
            one, other = _most(left), _most(right)
            if one is None or other is None:
                return None
            return one + other if operator.name == "add" else one * other
        case _:
            return None
