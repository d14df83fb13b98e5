"""Factors in which rows and terms meet: elements that go with the sum of a row and a term, or with their difference.

    s += w[T - 1 - t + u] * ...      row t, term u: w goes with u - t alone
    s += x[i + q] * ...              row i, term q: x goes with q + i alone

Of such a factor few numbers are distinct in a tile: as many as its rows and terms, not their product.
"""

from __future__ import annotations

from brickwork.analysis.contractions import Factor
from brickwork.analysis.slope import slope
from brickwork.ir.nodes import Apply, Constant, Load, Node, Read, Symbol
from brickwork.ir.walk import children, read_symbols, walk
from brickwork.legality import legality

_COMPARED = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})


@legality
def meeting(factor: Factor, row: Symbol, reached: frozenset[Symbol], depth: Symbol) -> int:
    """Return 1 if a factor goes with `depth + row` alone, -1 if with `depth - row` alone, and else 0.

    `reached` are the row and what is computed from it. What is read must not say where something else is read.
    """
    parts = (factor.value, *factor.masks)
    loads = [node for node in walk(parts) if isinstance(node, Load)]
    if not loads or any(isinstance(node, Load) for load in loads for index in load.indices for node in walk(index)):
        return 0
    if read_symbols(parts) & (reached - {row}):
        return 0
    return next((step for step in (1, -1) if all(_goes_with(part, row, depth, step) for part in parts)), 0)


@legality
def _goes_with(node: Node, row: Symbol, depth: Symbol, step: int) -> bool:
    """Whether an expression goes with `depth + step * row`, and with neither of both else."""
    if not read_symbols(node) & {row, depth}:
        return True
    match _moves(node, row), _moves(node, depth):
        case int() as across, int() as along:
            return across == step * along
        case _:
            return all(_goes_with(part, row, depth, step) for part in children(node))


def _moves(node: Node, symbol: Symbol) -> int | None:
    """Return how far a number, or what a comparison compares, goes for each step of an index; None if not evenly."""
    match node:
        case Apply(operator=operator, operands=(left, right)) if operator.name in _COMPARED:
            one, other = slope(left, symbol), slope(right, symbol)
            return None if one is None or other is None else one - other
        case Apply() | Read() | Constant():
            return slope(node, symbol)
        case _:
            return None if symbol in read_symbols(node) else 0
