"""How far an integer moves with an index, as far as that is plain to see."""

from __future__ import annotations

from brickwork.ir.nodes import Apply, Constant, Expression, Read, Symbol
from brickwork.ir.walk import read_symbols
from brickwork.legality import legality


@legality
def slope(expression: Expression, index: Symbol) -> int | None:
    """Return by how much an integer grows for each step of an index; None where that is not seen."""
    match expression:
        case Read(symbol=symbol) if symbol == index:
            return 1
        case _ if index not in read_symbols(expression):
            return 0
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
            one, other = slope(left, index), slope(right, index)
            return None if one is None or other is None else one + (other if operator.name == "add" else -other)
        case Apply(
            operator=operator, operands=(Constant(value=int(factor)), other) | (other, Constant(value=int(factor)))
        ):
            one = slope(other, index) if operator.name == "mul" else None
            return None if one is None else factor * one
        case _:
            return None
