"""Expressions over sizes and arguments in the user's notation, for explanations: `x.shape[0] - 1 >= 2 * radius`.

What a user could not have written (an element, a choice) is `...`. Nothing here is read back.
"""

from __future__ import annotations

from brickwork.ir.nodes import Apply, Cast, Constant, Expression, Read, Size

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
_CALLS = {"minimum": "min", "maximum": "max"}
_REGROUPABLE = frozenset({"logical_or", "logical_and", "add", "mul"})
"""Operators whose operands may be grouped either way: no operand of the same kind needs parentheses."""


def spelled(expression: Expression) -> str:
    """Return an expression over sizes and arguments as a user writes it."""
    match expression:
        case Constant(value=value):
            return str(value)
        case Read(symbol=symbol):
            return symbol.name
        case Size(tensor=tensor, axis=axis):
            return f"{tensor.name}.shape[{axis}]"
        case Cast(operand=operand):
            return spelled(operand)
        case Apply(operator=operator, operands=(left, right)) if operator.name in _SIGNS:
            sign, binding = _SIGNS[operator.name]
            first = binding if operator.name in {*_REGROUPABLE, "sub"} else binding + 1
            second = binding if operator.name in _REGROUPABLE else binding + 1
            return f"{_grouped(left, first)} {sign} {_grouped(right, second)}"
        case Apply(operator=operator, operands=operands):
            return f"{_CALLS.get(operator.name, operator.name)}({', '.join(map(spelled, operands))})"
        case _:
            return "..."


def _grouped(operand: Expression, binding: int) -> str:
    """Return an operand, in parentheses if it binds less tightly than that."""
    match operand:
        case Cast(operand=inner):
            return _grouped(inner, binding)
        case Apply(operator=operator, operands=(_, _)) if (
            operator.name in _SIGNS and _SIGNS[operator.name][1] < binding
        ):
            return f"({spelled(operand)})"
        case _:
            return spelled(operand)
