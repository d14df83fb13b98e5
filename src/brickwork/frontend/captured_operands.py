"""Literals and captured values as operands: numbers, tuples, texts, dtypes, and values with parts."""

from __future__ import annotations

import ast
import enum
import sys
import types
from collections.abc import Callable

from brickwork.diagnostics.location import Location
from brickwork.frontend.complex_values import literal
from brickwork.frontend.environment import constant_items, is_number, is_tensor, torch_dtype
from brickwork.frontend.rules import error
from brickwork.frontend.typing import ElementType, Items, Opaque, Operand, Record, Value
from brickwork.frontend.value_classes import attributes_of, is_value
from brickwork.ir.build import constant
from brickwork.ir.dtypes import BOOL, ELEMENTS, FLOAT64, INT64

NOT_IMPLEMENTED = Opaque("NotImplemented")
"""What the method of an operator returns that does not take the other operand."""
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    ast.LShift: int.__lshift__,
    ast.Pow: int.__pow__,
    ast.BitAnd: int.__and__,
    ast.BitOr: int.__or__,
    ast.BitXor: int.__xor__,
}


def captured_operand(found: object, name: str, loc: Location) -> Operand:
    """Return a literal or a captured value."""
    if is_value(found):
        parts = attributes_of(found)
        return Record(
            type(found), tuple(parts), tuple(_part(item, f"{name}.{key}", loc) for key, item in parts.items())
        )
    items = constant_items(found)
    if items is not None:
        return Items(tuple(captured_operand(item, name, loc) for item in items))
    if is_number(found):
        return _number(found, loc)
    if isinstance(found, complex):
        return literal(found, loc)
    dtype = torch_dtype(found)
    if dtype in ELEMENTS:
        return ElementType(ELEMENTS[dtype])
    if found is None or isinstance(found, str):
        return Opaque("None") if found is None else Opaque("a text", found)
    if found is NotImplemented:
        return NOT_IMPLEMENTED
    if is_tensor(found):
        raise error("BW006", f"`{name}` is a captured tensor", loc, "pass it as an argument")
    message = f"`{name}` is of type {type(found).__name__}, which cannot be compiled in"
    raise error("BW006", message, loc, _instead_of_object(found, name))


def limits_of(name: str, found: Operand | None, loc: Location) -> Record:
    """Return `torch.finfo(dtype)` or `torch.iinfo(dtype)`, with its numbers as parts."""
    torch = sys.modules["torch"]
    kind = getattr(torch, name.removeprefix("torch."))
    if not isinstance(found, ElementType):
        raise error("BW101", f"`{name}` takes a dtype", loc, "write `x.dtype` of a tensor, or `torch.float32`")
    try:
        info = kind(getattr(torch, found.dtype.name))
    except TypeError as wrong:
        raise error("BW101", f"`{name}` of {found.dtype.name}: {wrong}", loc, "ask the other one") from None
    parts = {key: getattr(info, key) for key in dir(kind) if is_number(getattr(info, key, None))}
    return Record(kind, tuple(parts), tuple(_number(value, loc) for value in parts.values()))


def _part(found: object, name: str, loc: Location) -> Operand:
    """Return an attribute of a captured value with parts; one that is of no use is refused where it is used."""
    known = is_value(found) or is_number(found) or constant_items(found) is not None or torch_dtype(found) in ELEMENTS
    if known or found is None or isinstance(found, str | complex):
        return captured_operand(found, name, loc)
    return Opaque(f"`{name}`, which is of type {type(found).__name__}")


def _instead_of_object(found: object, name: str) -> str:
    """Return what to write for an object that is captured, or for a literal that is no number."""
    numbers = [key for key, item in vars(found).items() if is_number(item)] if hasattr(found, "__dict__") else []
    if isinstance(found, enum.Enum):
        return f"write the number that it stands for, `{name}.value`"
    if numbers and not isinstance(found, type | types.ModuleType):
        return f"write the attributes that are numbers, such as `{name}.{numbers[0]}`"
    if callable(found):
        return f"call it here: `{name}(...)`"
    return "capture numbers and functions; pass the rest as arguments"


def _number(found: object, loc: Location) -> Value:
    if isinstance(found, bool):
        return Value(constant(found, BOOL, loc))
    if isinstance(found, int):
        if not -(1 << 63) <= found < 1 << 63:
            what = found if abs(found) < 1 << 128 else "this integer"
            raise error("BW003", f"{what} does not fit in 64 bits", loc, _beyond(found))
        return Value(constant(found, INT64, loc), weak=True, given=True)
    if isinstance(found, float):
        return Value(constant(found, FLOAT64, loc), weak=True, given=True)
    return Value(constant(0, INT64))


def _beyond(number: int) -> str:
    """Return what to write instead of an integer of more than 64 bits: one with the same bits, if there is one."""
    if not 0 <= number < 1 << 64:
        return "write it as a float"
    return f"integers have a sign: write {number - (1 << 64)}, which has the same 64 bits, or a float"


_LONGEST = 4096
"""The largest exponent of literals that is computed: what it gives does not fit in 64 bits, which is told."""


def literal_integer(node: ast.expr) -> int | None:
    """Return what an expression of literal integers is worth, whatever its size on the way; None for another one."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.Invert() as sign, operand=operand):
            number = literal_integer(operand)
            return None if number is None else -number if isinstance(sign, ast.USub) else ~number
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATIONS:
            one, other = literal_integer(left), literal_integer(right)
            if one is None or other is None or (isinstance(sign, ast.LShift | ast.Pow) and not 0 <= other <= _LONGEST):
                return None
            return _OPERATIONS[type(sign)](one, other)
        case _:
            return None
