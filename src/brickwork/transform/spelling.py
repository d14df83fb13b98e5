"""Expressions over sizes and arguments in the user's notation, for explanations: `x.shape[0] - 1 >= 2 * radius`.

What a user could not have written (an element, a choice) is `...`. Nothing here is read back.
"""

from __future__ import annotations

from brickwork.ir.nodes import Apply, Cast, Constant, Expression, Read, Select, Size

_SIGNS = {
    "logical_or": ("or", 1),
    "logical_and": ("and", 2),
    "eq": ("==", 3),
    "ne": ("!=", 3),
    "lt": ("<", 3),
    "le": ("<=", 3),
    "gt": (">", 3),
    "ge": (">=", 3),
    "add": ("+", 4),
    "sub": ("-", 4),
    "mul": ("*", 5),
    "floordiv": ("//", 6),
    "mod": ("%", 6),
}
"""Signs of operators, and how tightly they bind: divisions more than products, which gives `(a * b) // c`."""
BEYOND = 7
"""More tightly than any sign."""
_CALLS = {"minimum": "min", "maximum": "max"}
_REGROUPABLE = frozenset({"logical_or", "logical_and", "add", "mul"})
"""Operators whose operands may be grouped either way: no operand of the same kind needs parentheses."""


def spelled(expression: Expression) -> str:
    """Return an expression over sizes and arguments as a user writes it."""
    match _plain(expression):
        case Constant(value=value):
            return str(value)
        case Read(symbol=symbol):
            return symbol.name
        case Size(tensor=tensor, axis=axis):
            return f"{tensor.name}.shape[{axis}]"
        case Apply(operator=operator, operands=(left, right)) if operator.name in _SIGNS:
            sign, binding = _SIGNS[operator.name]
            first = binding if operator.name in {*_REGROUPABLE, "sub"} else binding + 1
            second = binding if operator.name in _REGROUPABLE else binding + 1
            if operator.name == "mul" and _binding(right) == _SIGNS["mod"][1]:
                second = BEYOND
            return f"{_grouped(left, first)} {sign} {_grouped(right, second)}"
        case Apply(operator=operator, operands=operands):
            return f"{_CALLS.get(operator.name, operator.name)}({', '.join(map(spelled, operands))})"
        case _:
            return "..."


def _grouped(operand: Expression, binding: int) -> str:
    """Return an operand, in parentheses if it binds less tightly than that."""
    return f"({spelled(operand)})" if _binding(operand) < binding else spelled(operand)


def _binding(expression: Expression) -> int:
    """Return how tightly the outermost sign of an expression binds."""
    match _plain(expression):
        case Apply(operator=operator, operands=(_, _)) if operator.name in _SIGNS:
            return _SIGNS[operator.name][1]
        case _:
            return BEYOND


def _plain(expression: Expression) -> Expression:
    """Return an expression without conversions, and without the 1 that the host divides by where it would by zero."""
    match expression:
        case Cast(operand=operand):
            return _plain(operand)
        case Select(condition=Apply(operands=(tested, _)), then=Constant(value=1), otherwise=other) if tested == other:
            return _plain(other)
        case _:
            return expression
