"""Takes out the assignments that nothing reads.

Whatever may fail stays, and so do loops: those without an end do not end. A read of an element may be out of range.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.scalars import NONE, Ends, Liveness, Symbols
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Break, For, If, Statement, While
from brickwork.legality import legality


def without_dead(block: Block) -> Block:
    """Return the block without assignments whose values are not read."""
    while (shorter := _Dead().block(block, NONE, Ends())) != block:
        block = shorter
    return block


class _Dead:
    """One pass: from the end of a block to its beginning, with what is read from there on."""

    def __init__(self) -> None:
        self.liveness = Liveness({})

    def block(self, block: Block, after: Symbols, ends: Ends) -> Block:
        kept: list[Statement] = []
        for statement in reversed(block):
            if not self.is_dead(statement, after):
                kept.append(self.inside(statement, after, ends))
                after = self.liveness.statement(statement, after, ends, None)
        same = len(kept) == len(block) and all(new is old for new, old in zip(reversed(kept), block, strict=True))
        return block if same else tuple(reversed(kept))

    @legality
    def is_dead(self, statement: Statement, after: Symbols) -> bool:
        """Whether a statement does nothing but assign what is not in `after`."""
        if not isinstance(statement, Assign) or statement.symbol in after:
            return False
        return not effects(statement.value).loads

    def inside(self, statement: Statement, after: Symbols, ends: Ends) -> Statement:
        """Return a statement that stays, with less in its blocks."""
        match statement:
            case If(then=then, otherwise=otherwise):
                then, otherwise = self.block(then, after, ends), self.block(otherwise, after, ends)
                same = then is statement.then and otherwise is statement.otherwise
                return statement if same else replace(statement, then=then, otherwise=otherwise)
            case For(index=index, body=body):
                around = after | (self.liveness.read_first(statement, body) - {index})
                body = self.block(body, around, Ends(after, around))
                return statement if body is statement.body else replace(statement, body=body)
            case While(prelude=prelude, condition=condition, body=body):
                turn = (*prelude, If(condition=condition, then=body, otherwise=(Break(),)))
                around = after | self.liveness.read_first(statement, turn)
                ends = Ends(after, around)
                body = self.block(body, around, ends)
                tail = self.liveness.statement(turn[-1], around, ends, None)
                prelude = self.block(prelude, tail, ends)
                same = prelude is statement.prelude and body is statement.body
                return statement if same else replace(statement, prelude=prelude, body=body)
            case _:
                return statement
