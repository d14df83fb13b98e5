"""Takes out checks of divisors that are lengths of loops around: an iteration runs, so the length is not 0.

for i in range(n): check(n != 0); y[i] = x[(i + s) % n]      ->      for i in range(n): y[i] = x[(i + s) % n]
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.nodes import Block, Check, Constant, Expression, For, If, Statement, While
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.legality import legality


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
    return isinstance(statement, Check) and any(
        statement.condition == build.apply("ne", length, build.integer(0)) for length in lengths
    )
