"""What varies along a loop: the variables that its iterations may set to different values, were they run together.

A variable that does not is computed once for all of them (`unroll_jam.py`). It depends on nothing that varies: not on
the loop's index, on elements that the loop stores, on random numbers, or on whether and how often a statement runs.
"""

from __future__ import annotations

from dataclasses import field
from typing import cast

from brickwork.ir.build import is_constant
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
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, children, statements
from brickwork.legality import hazard, legality
from brickwork.records import dataclass

MOST = 1 << 62
"""Stands for a factor that no divisor is a multiple of."""


@dataclass(frozen=True, slots=True)
class Varying:
    """What varies along a loop: variables, and elements of the tensors that it stores into.

    Of its iterations those run together of which the `index` has the same quotient by `factor`.
    """

    index: Symbol
    factor: int
    stored: frozenset[Tensor]
    symbols: set[Symbol] = field(default_factory=set[Symbol])

    @hazard
    def reads(self, *expressions: Expression) -> bool:
        """Whether one of some expressions may have another value in another iteration."""
        return any(map(self._differs, expressions))

    @hazard
    def _differs(self, node: Expression) -> bool:
        match node:
            case Read(symbol=symbol):
                return symbol in self.symbols
            case Load(tensor=tensor) if tensor in self.stored:
                return True
            case _ if is_group(node, self.index, self.factor):
                return False
            case _:
                return self.reads(*(cast("Expression", each) for each in children(node)))

    @hazard
    def runs_apart(self, statement: Statement) -> bool:
        """Whether iterations run a statement each for itself, and so all that it assigns."""
        match statement:
            case Assign(symbol=symbol, value=value):
                return symbol in self.symbols or self.reads(value)
            case If(condition=condition):
                return self.reads(condition)
            case For(start=start, stop=stop):
                return self.reads(start, stop) or ends_early(statement)
            case _:
                return True

    def follow(self, block: Block) -> None:
        """Add what a block makes vary."""
        for statement in block:
            if self.runs_apart(statement):
                self.symbols.update(assigned_symbols(statement))
            elif isinstance(statement, If):
                self.follow((*statement.then, *statement.otherwise))
            elif isinstance(statement, For):
                self.follow(statement.body)


@hazard
def ends_early(loop: For) -> bool:
    """Whether an iteration of a loop may end it, or itself, before the end."""
    return any(isinstance(node, Break | Continue) for node in statements(loop.body))


@legality
def is_group(node: Node, index: Symbol, factor: int) -> bool:
    """Whether an expression is the index's quotient by a multiple of the factor."""
    match node:
        case Apply(operator=operator, operands=(Read(symbol=symbol), Constant(value=divisor))):
            return operator.name == "floordiv" and symbol == index and divisor in range(factor, MOST, factor)
        case _:
            return False


@legality
def varying(loop: For, factor: int = MOST) -> Varying:
    """Return what varies along a loop; `factor` iterations run together, of loops from 0 those of one quotient."""
    stored = (node.tensor for node in statements(loop.body) if isinstance(node, Store))
    together = factor if is_constant(loop.start, 0) else MOST
    found = Varying(loop.index, together, frozenset(stored), {loop.index})
    before = 0
    while len(found.symbols) > before:
        before = len(found.symbols)
        found.follow(loop.body)
    return found
