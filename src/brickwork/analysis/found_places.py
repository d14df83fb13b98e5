"""Places that elements of tensors or floats tell, and those that are no places where no iteration has asked."""

from __future__ import annotations

from collections.abc import Iterable

from brickwork.analysis.definitions import Definitions
from brickwork.ir.nodes import Apply, Assign, Constant, Expression, For, Load, Node, Symbol
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.legality import legality


def searched(root: For) -> frozenset[Symbol]:
    """Return the variables that come from elements of tensors or from floats."""
    found: frozenset[Symbol] = frozenset()
    while True:
        more = {node.symbol for node in statements(root) if isinstance(node, Assign) and is_found((node.value,), found)}
        if more <= found:
            return found
        found |= more


def is_found(indices: tuple[Expression, ...], searched: frozenset[Symbol]) -> bool:
    """Whether elements or floats tell some index: no loops over elements take the place of such an update."""
    if read_symbols(indices) & searched:
        return True
    return any(
        isinstance(node, Load) or (isinstance(node, Expression) and node.dtype.is_float) for node in walk(indices)
    )


@legality
def known_outside(expressions: Iterable[Expression], known: Definitions) -> tuple[Expression, ...] | None:
    """Return expressions in terms of what is known outside of loops, if none divides by what may be 0 there."""
    values: list[Expression] = []
    for each in expressions:
        value = known.value(each)
        if value is None or any(map(divides, walk(value))):
            return None
        values.append(value)
    return tuple(values)


@legality
def divides(node: Node) -> bool:
    """Whether a node divides by what may be 0 where no iteration has asked."""
    if not isinstance(node, Apply) or node.operator.name not in {"floordiv", "mod"}:
        return False
    divisor = node.operands[1]
    return not isinstance(divisor, Constant) or divisor.value == 0
