"""Operators on scalars: in Python's scope of numbers, in kernels of values, with Taichi's types and rounding."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64, UINT64
from brickwork.ir.nodes import Expression, FailureKind
from brickwork.taichi import state
from brickwork.taichi.errors import TaichiTypeError, unsupported
from brickwork.taichi.scalars import ScalarType, i32, join, named, plain, u1
from brickwork.taichi.values import Scalar, Value, current

SIGNS: dict[str, str] = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
BITS = frozenset({"bit_and", "bit_or", "bit_xor", "shift_left", "shift_right", "bit_shr"})
_RING = frozenset({"add", "sub", "mul", "bit_and", "bit_or", "bit_xor"})


def _any_real(*numbers: Any) -> bool:
    return any(type_of_number(each).is_real for each in numbers)


def _raw_div(left: Any, right: Any) -> Any:
    """Return the quotient of numbers of Python; that of whole numbers is rounded toward zero."""
    if _any_real(left, right):
        return left / right
    size = abs(left) // abs(right)
    return -size if (left < 0) != (right < 0) else size


def _raw_mod(left: Any, right: Any) -> Any:
    return math.fmod(left, right) if _any_real(left, right) else left - right * _raw_div(left, right)


_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": lambda left, right: left / right,
    "floordiv": lambda left, right: left // right,
    "mod": operator.mod,
    "pow": lambda left, right: left**right,
    "bit_and": lambda left, right: left & right,
    "bit_or": lambda left, right: left | right,
    "bit_xor": lambda left, right: left ^ right,
    "shift_left": lambda left, right: left << right,
    "shift_right": lambda left, right: left >> right,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "minimum": lambda left, right: right if math.isnan(left) or right < left else left,
    "maximum": lambda left, right: right if math.isnan(left) or right > left else left,
    "atan2": math.atan2,
    "raw_div": _raw_div,
    "raw_mod": _raw_mod,
    "bit_shr": lambda left, right: (left & (1 << type_of_number(left).bits) - 1) >> right,
}


def is_number(value: object) -> bool:
    """Return whether something is a number of Python, of NumPy or of torch, known while a kernel is compiled."""
    if isinstance(value, bool | int | float):
        return True
    return hasattr(value, "item") and hasattr(value, "dtype") and getattr(value, "shape", None) == ()


def is_scalar(value: object) -> bool:
    """Return whether something is a scalar, known now or at run time."""
    return isinstance(value, Scalar) or is_number(value)


def type_of_number(value: Any) -> ScalarType:
    """Return the type of a number that is known while a kernel is compiled."""
    if isinstance(value, bool):
        return u1
    if hasattr(value, "dtype"):
        return named(value.dtype) or state.settings().default_fp
    return state.settings().default_fp if isinstance(value, float) else state.settings().default_ip


def type_of(value: Any) -> ScalarType:
    """Return the type of a scalar."""
    return value.type if isinstance(value, Scalar) else type_of_number(value)


def literal(value: Any, kind: ScalarType) -> Value:
    """Return a number as a value of a type."""
    return Value(build.constant(kind.number(value), kind.value, current().loc), kind, index=True)


def lift(value: Any) -> Scalar:
    """Return a scalar as one of the kernel."""
    if isinstance(value, Scalar):
        return value
    if not is_number(value):
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            raise TaichiTypeError("Only 0-dimensional numpy array can be used to initialize a scalar expression")
        raise TaichiTypeError(f"{_described(value)} is no value that a kernel computes with")
    kind, number = type_of_number(value), plain(value)
    if isinstance(number, int) and not kind.is_real and not kind.holds(number):
        raise TaichiTypeError(f"Integer literal {number} exceeded the range of default_ip: {kind}")
    return literal(number, kind)


def _described(value: object) -> str:
    return f"`{getattr(value, '__name__', None) or type(value).__name__}`"


# ---------------------------------------------------------------- conversions


def convert(value: Any, kind: ScalarType) -> Scalar:
    """Return a scalar in another type: floats are truncated, integers wrap."""
    scalar = lift(value) if not is_number(value) or isinstance(value, Scalar) else _number(value, kind)
    if scalar.type == kind:
        return scalar
    if kind.is_bool:
        return Value(_truth(scalar), u1)
    if kind.is_real or kind.element is UINT64:
        source = scalar.value
        if kind.element is UINT64 and source.dtype.is_float:
            source = build.cast(source, INT64, source.loc)
        return Value(build.cast(source, kind.value, source.loc), kind)
    if scalar.type.is_real or scalar.type.is_bool or scalar.type.element is UINT64:
        source = scalar.value
        made = build.cast(source, INT64, source.loc)
        return Value(made, kind, fits=scalar.type.is_bool)
    inside = scalar.fits and scalar.type.wraps and _contains(kind, scalar.type)
    if not scalar.type.wraps or inside or kind.bits <= scalar.type.bits:
        return Value(scalar.ir, kind, fits=inside, index=scalar.index and inside)
    return Value(scalar.value, kind, fits=_contains(kind, scalar.type))


def _number(value: Any, kind: ScalarType) -> Scalar:
    """Return a number that is known now in a type; a literal is first one of the default type."""
    number, own = plain(value), type_of_number(value)
    if isinstance(number, float) and own.is_real and kind.is_real:
        number = own.number(number)
    return literal(number, kind)


def _contains(wide: ScalarType, narrow: ScalarType) -> bool:
    """Return whether all values of an integer type are values of another one."""
    if narrow.is_bool or not wide.wraps:
        return narrow.is_bool or wide.is_signed or not narrow.is_signed
    return wide.bits >= narrow.bits + (wide.is_signed and not narrow.is_signed) and (
        wide.is_signed or not narrow.is_signed
    )


def bit_cast(value: Any, kind: ScalarType) -> Any:
    """Return the same bits as a value of another type of the same width."""
    scalar = lift(value)
    if scalar.type.bits != kind.bits:
        raise TaichiTypeError(f"bit_cast needs types of one width, not {scalar.type} and {kind}")
    if scalar.type.is_real != kind.is_real:
        raise unsupported(f"bit_cast between {scalar.type} and {kind}")
    return convert(scalar, kind)


def _truth(scalar: Scalar) -> Expression:
    value = scalar.value
    if value.dtype is BOOL:
        return value
    return build.apply("ne", value, build.constant(0, value.dtype, value.loc), loc=value.loc)


def truth(value: Any) -> Expression:
    """Return whether a scalar is not zero."""
    if not is_scalar(value):
        raise TaichiTypeError(f"a condition must be a scalar, not {_described(value)}")
    return _truth(lift(value))


def is_true(value: Any) -> Any:
    """Return a scalar as a bool."""
    return Value(truth(value), u1) if isinstance(value, Scalar) else bool(value)


# ---------------------------------------------------------------- binary operators


def binary(name: str, left: Any, right: Any) -> Any:
    """Return an operator of two scalars."""
    if not isinstance(left, Scalar) and not isinstance(right, Scalar):
        return _python_binary(name, left, right)
    return _binary(name, lift(left), lift(right))


def _python_binary(name: str, left: Any, right: Any) -> Any:
    try:
        found = _PYTHON[name](left, right)
    except TypeError:
        raise TaichiTypeError(_unsupported(name, type(left).__name__, type(right).__name__)) from None
    return found


def _unsupported(name: str, *types: object) -> str:
    said = " and ".join(f"'{each}'" for each in types)
    return f"unsupported operand type(s) for '{SIGNS.get(name, name)}': {said}"


def _binary(name: str, left: Scalar, right: Scalar) -> Scalar:
    kind = join(left.type, right.type)
    if name in BITS and (left.type.is_real or right.type.is_real):
        raise TaichiTypeError(_unsupported(name, left.type, right.type))
    if name in COMPARISONS:
        return _comparison(name, left, right, kind)
    if name in {"truediv", "atan2"} and not kind.is_real:
        kind = state.settings().default_fp
    if name == "pow" and left.type.is_real:
        found = _power(left, right, kind)
        if found is not None:
            return found
    if name in {"shift_left", "shift_right", "bit_shr"}:
        return _shift(name, left, right)
    if kind.is_bool:
        return _of_bools(name, left, right)
    first, second = convert(left, kind), convert(right, kind)
    if kind.is_real:
        return Value(_real(name, first.value, second.value), kind)
    return _integers(name, first, second, kind)


def _comparison(name: str, left: Scalar, right: Scalar, kind: ScalarType) -> Scalar:
    first, second = (side if side.type == kind else convert(side, kind) for side in (left, right))
    if kind.is_bool:
        both = [build.cast(each.value, INT64) for each in (first, second)]
        return Value(build.apply(name, *both, loc=current().loc), u1)
    return Value(build.apply(name, first.compared, second.compared, loc=current().loc), u1)


def _real(name: str, left: Expression, right: Expression) -> Expression:
    loc = current().loc
    match name:
        case "raw_div":
            return build.apply("truediv", left, right, loc=loc)
        case "raw_mod":
            return build.apply("fmod", left, right, loc=loc)
        case "minimum" | "maximum":  # A NaN is passed over.
            nan = build.apply("isnan", left, loc=loc)
            return build.select(nan, right, build.apply(name, left, right, loc=loc), loc)
        case _:
            return build.apply(name, left, right, loc=loc)


def _power(base: Scalar, exponent: Scalar, kind: ScalarType) -> Scalar | None:
    """Return a float to the power of a small whole number, by multiplications."""
    whole = exponent.ir if not exponent.type.is_real else None
    if not isinstance(whole, build.Constant) or not -64 <= whole.value <= 64:
        return None
    value = current().keep(convert(base, kind).value)
    result: Expression = build.constant(1.0, kind.value)
    factor: Expression = value
    rest = abs(int(whole.value))
    while rest:
        if rest & 1:
            result = factor if isinstance(result, build.Constant) else build.mul(result, factor)
        rest >>= 1
        if rest:
            factor = current().keep(build.mul(factor, factor))
    if whole.value < 0:
        result = build.apply("truediv", build.constant(1.0, kind.value), result)
    return Value(result, kind)


def _of_bools(name: str, left: Scalar, right: Scalar) -> Scalar:
    if name in {"bit_and", "bit_or", "bit_xor"}:
        return Value(build.apply(name, left.value, right.value, loc=current().loc), u1)
    one, other = (Value(build.cast(side.value, INT64), i32) for side in (left, right))
    return convert(Value(build.apply("bit_and", _integers(name, one, other, i32).value, build.integer(1)), i32), u1)


def _shift(name: str, left: Scalar, right: Scalar) -> Scalar:
    builder, kind = current(), left.type if not left.type.is_bool else i32
    kind = join(kind, right.type) if kind.bits < right.type.bits else kind
    left = convert(left, kind)
    amount = build.cast(right.value, kind.value)
    if kind.is_signed or kind.wraps:
        zero = build.constant(0, amount.dtype)
        builder.check(build.apply("ge", amount, zero), FailureKind.VALUE, "negative shift count")
    if name == "shift_left":
        return Value(build.apply("shift_left", left.ir, amount, loc=builder.loc), kind, fits=False)
    if name == "bit_shr" and kind.is_signed:
        if kind.bits == 64:
            bits = build.apply("shift_right", build.cast(left.value, UINT64), build.cast(amount, UINT64))
            return Value(build.cast(bits, INT64), kind)
        low = build.apply("bit_and", left.ir, build.integer((1 << kind.bits) - 1), loc=builder.loc)
        return Value(build.apply("shift_right", low, amount, loc=builder.loc), kind, fits=False)
    return Value(build.apply("shift_right", left.value, amount, loc=builder.loc), kind)


def _integers(name: str, left: Scalar, right: Scalar, kind: ScalarType) -> Scalar:
    loc, index = current().loc, left.index and right.index
    if name in _RING:
        made = build.apply(name, left.ir, right.ir, loc=loc)
        fits = name in {"bit_and", "bit_or", "bit_xor"} and left.fits and right.fits
        masked = name == "bit_and" and any(build.is_constant(each.ir, 0) or _is_mask(each) for each in (left, right))
        constant = isinstance(made, build.Constant) and kind.holds(made.value)
        return Value(made, kind, fits=fits or masked or constant, index=index and not name.startswith("bit"))
    if name == "pow":
        return _integer_power(left, right, kind)
    first, second = left.compared, right.compared
    if name in {"minimum", "maximum"}:
        return Value(build.apply(name, first, second, loc=loc), kind, fits=left.fits and right.fits, index=index)
    _refuse_zero(second)
    if name in {"floordiv", "mod"}:
        made = build.apply(name, first, second, loc=loc)
        positive = isinstance(second, build.Constant) and second.value > 0
        fits = left.fits and positive if name == "floordiv" else right.fits
        return Value(made, kind, fits=fits, index=index)
    first, second = current().keep(first), current().keep(second)
    if not kind.is_signed:
        return Value(build.apply("floordiv" if name == "raw_div" else "mod", first, second, loc=loc), kind)
    quotient = _truncated(first, second)
    if name == "raw_mod":
        return Value(build.sub(first, build.mul(quotient, second), loc), kind)
    return Value(quotient, kind, fits=False)


def _is_mask(side: Scalar) -> bool:
    return isinstance(side.ir, build.Constant) and side.fits and side.ir.value >= 0


def _truncated(first: Expression, second: Expression) -> Expression:
    """Return the quotient of signed integers, rounded toward zero."""
    size = build.apply("floordiv", build.apply("abs", first), build.apply("abs", second))
    zero = build.integer(0)
    differ = build.apply("ne", *(build.cast(build.apply("lt", each, zero), INT64) for each in (first, second)))
    return build.select(differ, build.apply("neg", size), size)


def _refuse_zero(divisor: Expression) -> None:
    condition = build.apply("ne", divisor, build.constant(0, divisor.dtype), loc=current().loc)
    current().check(condition, FailureKind.DIVISION, "integer division or modulo by zero")


def _integer_power(base: Scalar, exponent: Scalar, kind: ScalarType) -> Scalar:
    power = exponent.value
    if power.dtype is INT64:
        condition = build.apply("ge", power, build.integer(0))
        current().check(condition, FailureKind.ASSERTION, "Negative exponent in pow(int, int) is not allowed.")
        power = build.apply("maximum", power, build.integer(0))
    return Value(build.apply("pow", base.value, power, loc=current().loc), kind, fits=False)


# ---------------------------------------------------------------- unary operators

FLOATS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "tanh": math.tanh,
    "rsqrt": lambda value: 1 / math.sqrt(value),
}
"""Functions whose result is a float, of integers too."""
ROUNDINGS: dict[str, Callable[[float], float]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": lambda value: math.copysign(math.floor(abs(value) + 0.5), value),
    "trunc": math.trunc,
}
"""Functions of floats alone."""


def unary(name: str, operand: Any) -> Any:
    """Return a function of a scalar."""
    if not isinstance(operand, Scalar):
        return _python_unary(name, operand)
    loc, kind = current().loc, operand.type
    if name in ROUNDINGS:
        if not kind.is_real:
            raise TaichiTypeError(f"'{name}' takes real inputs only, however '{kind}' is provided")
        return Value(_rounded(name, operand.value), kind)
    if name in FLOATS:
        kind = kind if kind.is_real else state.settings().default_fp
        value = convert(operand, kind).value
        if name == "rsqrt":
            root = build.apply("sqrt", value, loc=loc)
            return Value(build.apply("truediv", build.constant(1.0, kind.value), root, loc=loc), kind)
        return Value(build.apply(name, value, loc=loc), kind)
    match name:
        case "neg" if kind.is_bool:
            return operand
        case "neg" if kind.element is UINT64:
            return Value(build.sub(build.constant(0, UINT64), operand.value, loc), kind)
        case "neg":
            return Value(build.apply("neg", operand.ir, loc=loc), kind, fits=kind.is_real, index=operand.index)
        case "abs" if kind.is_bool or not (kind.is_signed or kind.is_real):
            return operand
        case "abs":
            return Value(build.apply("abs", operand.value, loc=loc), kind, fits=False)
        case "logical_not" if not kind.is_real:
            return Value(build.apply("logical_not", truth(operand), loc=loc), u1)
        case "bit_not" if kind.is_bool:
            return Value(build.apply("logical_not", operand.value, loc=loc), u1)
        case "bit_not" if not kind.is_real:
            return Value(build.apply("bit_not", operand.ir, loc=loc), kind, fits=operand.fits and kind.is_signed)
        case "isnan" | "isinf" if kind.is_real:
            return Value(build.apply(name, operand.value, loc=loc), u1)
        case _:
            sign = {"bit_not": "~", "logical_not": "not"}.get(name, name)
            raise TaichiTypeError(f"'{sign}' takes integral inputs only, however '{kind}' is provided")


def _rounded(name: str, value: Expression) -> Expression:
    loc = current().loc
    if name != "round":
        return build.apply(name, value, loc=loc)
    half = build.constant(0.5, value.dtype)
    size = current().keep(build.apply("abs", value, loc=loc))
    floor = current().keep(build.apply("floor", size, loc=loc))
    up = build.apply("ge", build.sub(size, floor), half)
    away = build.select(up, build.add(floor, build.constant(1.0, value.dtype)), floor)
    return build.apply("copysign", away, value, loc=loc)


def _python_unary(name: str, operand: Any) -> Any:
    if name == "neg":
        return -operand
    if name == "abs":
        return abs(operand)
    if name == "bit_not":
        return ~operand
    if name == "logical_not":
        return not operand
    if name in {"isnan", "isinf"}:
        return getattr(math, name)(operand)
    if state.builder() is not None and name in ROUNDINGS and not isinstance(operand, float):
        raise TaichiTypeError(f"'{name}' takes real inputs only, however '{type_of_number(operand)}' is provided")
    try:
        return float((FLOATS | ROUNDINGS)[name](operand))
    except ValueError:
        return math.nan


def select(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return one of two scalars; both are evaluated."""
    if not any(isinstance(each, Scalar) for each in (condition, then, otherwise)):
        return then if condition else otherwise
    kind = join(type_of(then), type_of(otherwise))
    first, second = convert(then, kind), convert(otherwise, kind)
    ways = (first.value, second.value) if first.fits != second.fits else (first.ir, second.ir)
    fits = first.fits or second.fits
    made = build.select(truth(condition), *ways, current().loc)
    return Value(made, kind, fits=fits or not kind.wraps, index=first.index and second.index)
