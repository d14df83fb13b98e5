"""Which integers an expression can be, as types, constants and operators tell, whatever its variables are.

    (q >> 4 & 15) - 8        -8 to 7

Codes of few bits are of interest: what is longer than 32 bits is taken for any integer.
"""

from __future__ import annotations

from brickwork.ir.dtypes import BOOL, UINT64, DType, Kind
from brickwork.ir.nodes import Apply, Cast, Constant, Expression, Load, Select
from brickwork.legality import legality

Range = tuple[int, int]
_WORD_BITS = 32


@legality
def integer_range(expression: Expression) -> Range | None:
    """Return the least and the greatest integer that an expression can be; None if that is not known."""
    found = _range_of(expression)
    return found if found is not None and max(-found[0], found[1]) <= 2**_WORD_BITS else None


@legality
def _range_of(expression: Expression) -> Range | None:
    match expression:
        case _ if expression.dtype is BOOL:
            return 0, 1
        case Constant(value=value) if not expression.dtype.is_float:
            return int(value), int(value)
        case Load(tensor=tensor) if not tensor.type.dtype.is_float:
            return _of_type(tensor.type.dtype)
        case Cast(operand=operand) if not expression.dtype.is_float:
            found = integer_range(operand)
            return None if expression.dtype is UINT64 and found is not None and found[0] < 0 else found
        case Select(then=then, otherwise=otherwise):
            return _hull(integer_range(then), integer_range(otherwise))
        case Apply(operator=operator, operands=operands) if expression.dtype is not UINT64:
            return _applied(operator.name, [integer_range(operand) for operand in operands])
        case _:
            return None


@legality
def _of_type(dtype: DType) -> Range:
    if dtype.kind is Kind.UINT:
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


@legality
def _hull(left: Range | None, right: Range | None) -> Range | None:
    return None if left is None or right is None else (min(left[0], right[0]), max(left[1], right[1]))


@legality
def _applied(name: str, operands: list[Range | None]) -> Range | None:
    match name, operands:
        case "add", [(low, high), (least, most)]:
            return low + least, high + most
        case "sub", [(low, high), (least, most)]:
            return low - most, high - least
        case "neg", [(low, high)]:
            return -high, -low
        case "mul", [(low, high), (least, most)]:
            corners = [one * other for one in (low, high) for other in (least, most)]
            return min(corners), max(corners)
        case "minimum" | "maximum", [(low, high), (least, most)]:
            choice = min if name == "minimum" else max
            return choice(low, least), choice(high, most)
        case "bit_and", [left, right]:
            masks = [bounds[1] for bounds in (left, right) if bounds is not None and bounds[0] >= 0]
            return (0, min(masks)) if masks else None
        case "mod", [_, (low, high)] if low > 0:
            return 0, high - 1
        case "shift_right", [(low, high), _]:
            return min(low, 0), max(high, 0)
        case "floordiv", [(low, high), (least, _)] if least > 0:
            return min(low, 0), max(high, 0)
        case _:
            return None
