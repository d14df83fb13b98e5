"""Python's operators on typed values: the rules of numbers, with the checks that stand before a division.

Reads, calls and names are elsewhere; in here all operands are values already.
"""

from __future__ import annotations

import ast

from brickwork.diagnostics.location import Location
from brickwork.frontend.lowering_state import State
from brickwork.frontend.rules import error
from brickwork.frontend.typing import Value, ValueType, floating, join, number
from brickwork.ir.build import apply, cast, constant, is_constant, power
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Constant, Expression, FailureKind, Read, Select, Size

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "bit_and",
    ast.BitOr: "bit_or",
    ast.BitXor: "bit_xor",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


def meet(left: Value, right: Value, loc: Location) -> ValueType:
    """Return the type in which two values meet; refuse uint64 with signed."""
    kind = join(left.type, right.type)
    if kind is None:
        raise error("BW101", "uint64 does not mix with signed integers", loc, "write int(...) around the uint64 one")
    return kind


def binary(state: State, name: str, left: Value, right: Value, loc: Location) -> Value:
    """Return `left <name> right` with Python's meaning."""
    kind = meet(left, right, loc)
    if name.startswith(("bit_", "shift_")):
        return _bits(state, name, left, right, loc)
    kind = number(kind)
    if name == "pow":
        return _power(state, left, right, kind, loc)
    if kind.dtype.is_integer and name in {"truediv", "floordiv", "mod"}:
        divisor = cast(right.expression, kind.dtype, loc)
        zero = constant(0, kind.dtype, loc)
        left = _read_before_check(state, left, right)
        message = "integer division by zero" if name != "mod" else "integer modulo by zero"
        state.check(apply("ne", divisor, zero, loc=loc), FailureKind.DIVISION, message, (), loc)
        if name != "truediv" and is_constant(divisor, 0):
            raise error("BW101", "the divisor is zero", loc, "divide by something else")
    if name == "truediv":
        kind = floating(kind)
    operands = (cast(item.expression, kind.dtype, loc) for item in (left, right))
    result = apply(name, *operands, loc=loc)
    if _stays_nonnegative(state, name, result, right.expression):
        state.nonnegative.add(result)
    return Value(result, kind.weak)


def _read_before_check(state: State, left: Value, right: Value) -> Value:
    """Return the left operand, read before a check of the right one: of two failures the first is reported."""
    if isinstance(right.expression, Constant) or not effects(left.expression).loads:
        return left
    return Value(state.pin(left.expression), left.weak)


def _stays_nonnegative(state: State, name: str, result: Expression, right: Expression) -> bool:
    if result.dtype is not INT64 or not isinstance(result, Apply):
        return False
    if name == "mod":
        return is_nonnegative(state, right)
    return name in {"add", "mul", "floordiv"} and all(is_nonnegative(state, item) for item in result.operands)


def is_nonnegative(state: State, expression: Expression) -> bool:
    """Return whether an integer expression is seen to be at least 0."""
    match expression:
        case Constant():
            return expression.value >= 0
        case Size():
            return True
        case Select():
            return is_nonnegative(state, expression.then) and is_nonnegative(state, expression.otherwise)
        case Apply() if expression.operator.name in {"minimum", "maximum"}:
            seen = [is_nonnegative(state, item) for item in expression.operands]
            return all(seen) if expression.operator.name == "minimum" else any(seen)
        case _:
            return expression in state.nonnegative


def _bits(state: State, name: str, left: Value, right: Value, loc: Location) -> Value:
    kind = meet(left, right, loc)
    if kind.dtype.is_float:
        advice = "write `and` and `or` between conditions, `**` for a power, or int(...) around the float"
        raise error("BW101", f"bit operations take integers, not {kind}", loc, advice)
    if name.startswith("shift_"):
        kind = number(kind)
        count = cast(right.expression, INT64, loc)
        left = _read_before_check(state, left, right)
        positive = apply("ge", count, constant(0, INT64, loc), loc=loc)
        state.check(positive, FailureKind.VALUE, "negative shift count", (), loc)
    operands = (cast(item.expression, kind.dtype, loc) for item in (left, right))
    return Value(apply(name, *operands, loc=loc), kind.weak)


def _power(state: State, left: Value, right: Value, kind: ValueType, loc: Location) -> Value:
    exponent = right.expression
    if kind.dtype.is_integer and isinstance(exponent, Constant) and exponent.value < 0:
        kind = ValueType(FLOAT64, weak=True)
    base = cast(left.expression, kind.dtype, loc)
    if isinstance(exponent, Constant) and (kind.dtype.is_float or exponent.value == 2):
        repeated = exponent.value in {2, 3, -2} and not isinstance(base, Constant | Read)
        written_out = power(state.pin(base) if repeated else base, exponent.value, loc)
        if written_out is not None:
            return Value(written_out, kind.weak)
    exponent = cast(exponent, kind.dtype, loc)
    if kind.dtype.is_float and right.type.dtype.is_integer and is_constant(base, 2):
        # Fewer instructions than a power, and on processors exact for whole exponents.
        return Value(apply("exp2", exponent, loc=loc), kind.weak)
    if kind.dtype.is_integer:
        natural = apply("ge", exponent, constant(0, kind.dtype, loc), loc=loc)
        message = "a negative power of an integer; write float(...) around the base"
        state.check(natural, FailureKind.VALUE, message, (), loc)
    return Value(apply("pow", base, exponent, loc=loc), kind.weak)


def compare(name: str, left: Value, right: Value, loc: Location) -> Value:
    """Return a comparison of two values."""
    kind = meet(left, right, loc)
    operands = (cast(item.expression, kind.dtype, loc) for item in (left, right))
    return Value(apply(name, *operands, loc=loc))


def unary(state: State, operator: ast.unaryop, value: Value, loc: Location) -> Value:
    """Return `-x`, `+x`, `~x` or `not x`."""
    del state
    match operator:
        case ast.Not():
            return Value(apply("logical_not", cast(value.expression, BOOL, loc), loc=loc))
        case ast.Invert():
            if not value.dtype.is_integer:
                raise error("BW101", f"`~` takes an integer, not {value.type}", loc, "write `not` for a bool")
            return Value(apply("bit_not", value.expression, loc=loc), value.weak)
        case _:
            kind = number(value.type)
            operand = cast(value.expression, kind.dtype, loc)
            if isinstance(operator, ast.USub):
                operand = apply("neg", operand, loc=loc)
            return Value(operand, kind.weak)
