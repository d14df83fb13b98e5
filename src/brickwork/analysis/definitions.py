"""What a variable is worth at a place of a block, in terms of what keeps its value while the block runs.

    q = p            p changes later in the block: nothing is known of q
    k = 2 * n - 1    n does not change: k is `2 * n - 1`, until k is assigned again

A walk over the block goes from statement to statement with `after`, and into the loops of the block with `inside`.
Invariant: what is returned has the same value wherever in the block it is evaluated. It reads no variable that the
block assigns, and no element of a tensor that the block stores into or rebinds. Tensors that are rebound have equal
sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass

LARGEST = 64
"""Nodes of a value beyond which it stands nowhere again: a chain of doublings would grow without end.

Beyond as many a branch stays one: no value is computed in vain that is longer."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """What is known at one place. The whole block assigns `changing`, and stores into `stored` or rebinds them."""

    changing: frozenset[Symbol]
    stored: frozenset[Tensor]
    values: Mapping[Symbol, Expression] = field(default_factory=dict[Symbol, Expression])

    @legality
    def value(self, expression: Expression) -> Expression | None:
        """Return an expression in terms of what the block does not change; None where that is not known."""
        found = substitute(expression, self.values)
        asks = effects(found)
        stays = not asks.draws and not asks.reads & self.changing and not asks.loads & self.stored
        return found if stays else None

    def after(self, statement: Statement) -> Definitions:
        """Return what is known after a statement."""
        rest = self._without(assigned_symbols(statement))
        if isinstance(statement, Assign):
            value = self.value(statement.value)
            if value is not None and sum(1 for _ in walk(value)) <= LARGEST:
                return replace(rest, values={**rest.values, statement.symbol: value})
        return rest

    def inside(self, statement: For | If) -> Definitions:
        """Return what is known where an iteration of a loop in the block, or a branch of it, begins."""
        return self._without(assigned_symbols(statement))

    @legality
    def _without(self, symbols: frozenset[Symbol]) -> Definitions:
        if self.values.keys().isdisjoint(symbols):
            return self
        return replace(self, values={symbol: value for symbol, value in self.values.items() if symbol not in symbols})


def definitions_in(block: Block) -> Definitions:
    """Return what is known where a block begins: that which it does not change."""
    found = effects(block)
    return Definitions(found.assigns, found.changes)
