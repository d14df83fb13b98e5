"""How many bytes a call moves and how many operations it makes, as formulas that are printed beside the results.

A formula is text, arithmetic over the names of a case (`"8 * N"`), or a function of the case's arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

Formula: TypeAlias = str | Callable[..., float]


def written(formula: Formula) -> str:
    """Return a formula as it is printed: its text, or the name of its function."""
    return formula if isinstance(formula, str) else f"{getattr(formula, '__name__', 'a function')}(...)"


def listed(moved: Formula | None, flops: Formula | None) -> dict[str, str]:
    """Return the formulas that there are, as they are printed."""
    given = {"bytes": moved, "operations": flops}
    return {name: written(formula) for name, formula in given.items() if formula is not None}


def evaluated(formula: Formula | None, names: Mapping[str, object], arguments: tuple[object, ...]) -> int:
    """Return what a formula says for a case; 0 where there is none. Text sees the names, a function the arguments."""
    if formula is None:
        return 0
    if not isinstance(formula, str):
        return round(formula(*arguments))
    return round(_value(ast.parse(formula, mode="eval").body, names, formula))


def _value(node: ast.expr, names: Mapping[str, object], formula: str) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return _named(name, names, formula)
        case ast.BinOp(left=left, op=op, right=right):
            return _applied(op, _value(left, names, formula), _value(right, names, formula), formula)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names, formula)
        case _:
            raise _refused(formula)


def _named(name: str, names: Mapping[str, object], formula: str) -> float:
    numbers = {each: value for each, value in names.items() if isinstance(value, int | float)}
    if name not in numbers:
        raise ValueError(
            f"`{name}` in the formula {formula!r} is not a number of the case; there are: {', '.join(numbers)}"
        )
    return numbers[name]


def _applied(op: ast.operator, left: float, right: float, formula: str) -> float:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.FloorDiv():
            return left // right
        case ast.Pow():
            return float(left**right)
        case _:
            raise _refused(formula)


def _refused(formula: str) -> ValueError:
    return ValueError(f"the formula {formula!r} is more than + - * / // ** of numbers and names")
