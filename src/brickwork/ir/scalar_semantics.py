"""What the scalar operators mean: the arithmetic of the five value types on Python numbers.

A BOOL value is a `bool`, an INT64 or UINT64 value is an `int` in its range, a FLOAT32 value is a `float` that float32
holds exactly, a FLOAT64 value is any `float`. Functions in here take such values and return such values. Integers wrap,
floats follow IEEE 754 and never raise, and nothing depends on a library of arrays.

Not in here: which types meet (`frontend/`), the same operators as machine code (`codegen/operators.py`).
"""

from __future__ import annotations

import math
import operator as python
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TypeAlias

from brickwork.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType, Kind
from brickwork.ir.operators import Operator, Result

Number: TypeAlias = bool | int | float


# ---------------------------------------------------------------- rounding and conversion


def wrap(value: int, bits: int, *, signed: bool) -> int:
    """Return `value` modulo 2**bits, in the signed or the unsigned range.

    >>> wrap(200, 8, signed=True)
    -56
    """
    if 0 <= value < 1 << (bits - 1):
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def round_float32(value: float) -> float:
    """Return the float32 nearest to `value`, ties to even, infinity beyond the range."""
    try:
        return _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


_FLOAT32 = struct.Struct("<f")


def round_float16(value: float) -> float:
    """Return the float16 nearest to `value`."""
    try:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def round_bfloat16(value: float) -> float:
    """Return the bfloat16 nearest to the float32 `value`."""
    if math.isnan(value):
        return value
    bits = int.from_bytes(struct.pack("<f", value), "little")
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("<f", bits.to_bytes(4, "little"))[0]


def narrow(value: Number, dtype: DType) -> Number:
    """Return the element that storing `value` (of the value type of `dtype`) leaves in a tensor of `dtype`."""
    if dtype is FLOAT16:
        return round_float16(value)
    if dtype is BFLOAT16:
        return round_bfloat16(value)
    if dtype.is_integer:
        return wrap(int(value), dtype.bits, signed=dtype.kind is Kind.INT)
    return value


def cast(value: Number, dtype: DType) -> Number:
    """Return `value` converted to the value type `dtype`.

    Float to integer truncates and saturates, NaN gives 0. Integers wrap among each other and round once to a float.
    """
    if dtype is BOOL:
        return bool(value)
    if dtype.is_integer:
        return _to_integer(value, dtype) if isinstance(value, float) else _normal(int(value), dtype)
    if isinstance(value, float) or dtype is FLOAT64:
        return _normal(float(value), dtype)
    return round_float32(_round_to_odd(value))


def _to_integer(value: float, dtype: DType) -> int:
    low, high = (-(1 << 63), (1 << 63) - 1) if dtype.kind is Kind.INT else (0, (1 << 64) - 1)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def _round_to_odd(value: int) -> float:
    """Return `value` cut to 53 bits with the last one set if bits were lost: rounding it again is rounding once."""
    excess = max(abs(value).bit_length() - 53, 0)
    kept = abs(value) >> excess
    kept |= kept << excess != abs(value)
    return math.copysign(math.ldexp(kept, excess), value)


def _normal(value: Number, dtype: DType) -> Number:
    """Return an exact or double result brought into `dtype`."""
    if dtype is FLOAT32:
        return round_float32(value)
    if dtype.is_integer:
        return wrap(int(value), 64, signed=dtype.kind is Kind.INT)
    return value


# ---------------------------------------------------------------- operators


def evaluate(operator: Operator, operands: Sequence[Number], dtype: DType) -> Number:
    """Return `operator` applied to operands of the value type `dtype`, as `function_of` says."""
    return function_of(operator, dtype)(*operands)


@cache
def function_of(operator: Operator, dtype: DType) -> Callable[..., Number]:
    """Return what `operator` does to operands of the value type `dtype`.

    An integer division by zero, a negative integer exponent and a shift by a negative count have no value: a Check
    stands before them, and here they raise.
    """
    if dtype.is_float and operator.name in ROUNDED:
        return partial(_with_type, ROUNDED[operator.name], dtype)
    function = (FLOATS if dtype.is_float else INTEGERS).get(operator.name) or ALL[operator.name]
    if operator.result is Result.BOOL:
        return function
    if dtype is FLOAT32:
        return lambda *operands: round_float32(function(*operands))
    return _wrapping(function, signed=dtype.kind is Kind.INT) if dtype.is_integer else function


def _wrapping(function: Callable[..., Number], *, signed: bool) -> Callable[..., Number]:
    """Return a function of integers whose result wraps at 64 bits."""
    low, end = (-(1 << 63), 1 << 63) if signed else (0, 1 << 64)

    def run(*operands: Number) -> Number:
        value = function(*operands)
        return value if low <= value < end else wrap(int(value), 64, signed=signed)

    return run


def _with_type(function: Callable[..., Number], dtype: DType, *operands: Number) -> Number:
    return function(*operands, dtype)


def _minimum(left: float, right: float) -> float:
    return right if right < left else left  # noqa: FURB136 - the order of the operands decides about NaN


def _maximum(left: float, right: float) -> float:
    return right if right > left else left  # noqa: FURB136 - the order of the operands decides about NaN


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ValueError("negative exponent of an integer power")
    return pow(base, exponent, 1 << 64)


def _shift_left(value: int, count: int) -> int:
    return value << count if count < 64 else 0


def _shift_right(value: int, count: int) -> int:
    return value >> min(count, 64)


def _true_division(left: float, right: float) -> float:
    if right == 0.0:
        return _quotient_of_zero(left, right)
    return left / right


def _quotient_of_zero(left: float, zero: float) -> float:
    if math.isnan(left) or left == 0.0:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, zero)


def _fmod(left: float, right: float) -> float:
    if math.isinf(left) or right == 0.0:
        return math.nan
    return math.fmod(left, right)


def _float_floordiv(left: float, right: float, dtype: DType) -> float:
    """Return Python's `left // right`, each step rounded to `dtype`; the IEEE quotient where `right` is zero."""
    if right == 0.0:
        return _quotient_of_zero(left, right)
    remainder = _fmod(left, right)
    quotient = _round(_round(left - remainder, dtype) / right, dtype)
    if remainder != 0.0 and (right < 0.0) != (remainder < 0.0):
        quotient = _round(quotient - 1.0, dtype)
    if quotient == 0.0:
        return math.copysign(0.0, _true_division(left, right))
    floor = _integral(math.floor)(quotient)
    return _round(floor + 1.0, dtype) if quotient - floor > 0.5 else floor


def _float_mod(left: float, right: float, dtype: DType) -> float:
    """Return Python's `left % right` (the sign of `right`); NaN where `right` is zero."""
    remainder = _fmod(left, right)
    if remainder == 0.0:
        return math.copysign(0.0, right)
    return _round(remainder + right, dtype) if (right < 0.0) != (remainder < 0.0) else remainder


def _round(value: float, dtype: DType) -> float:
    return round_float32(value) if dtype is FLOAT32 else value


def _float_power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0.0 and exponent % 2.0 == 1.0 else math.inf
    except ValueError:  # zero to a negative power, or a negative base to a fraction
        if base != 0.0:
            return math.nan
        return math.copysign(math.inf, base) if exponent % 2.0 == 1.0 else math.inf


def _next_after(value: float, target: float, dtype: DType) -> float:
    """Return the number of `dtype` that follows `value` on the way to `target`."""
    if dtype is FLOAT64 or math.isnan(value) or math.isnan(target) or value == target:
        return math.nextafter(value, target)
    if value == 0.0:
        return math.copysign(2.0**-149, target)
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    bits += 1 if (value < target) == (value > 0.0) else -1
    return struct.unpack("<f", struct.pack("<i", bits))[0]


def _integral(function: Callable[[float], int]) -> Callable[[float], float]:
    """Return a function from floats to integral floats that keeps NaN, infinities and the sign of zero."""

    def rounded(value: float) -> float:
        return math.copysign(float(function(value)), value) if math.isfinite(value) else value

    return rounded


def _total(
    function: Callable[[float], float], *, domain: Callable[[float], float] = lambda _: math.nan
) -> Callable[[float], float]:
    """Return `function` with values instead of exceptions: infinity of the operand's sign, or what `domain` says."""

    def total(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.copysign(math.inf, value)
        except ValueError:
            return domain(value)

    return total


def _log_domain(value: float) -> float:
    return -math.inf if value == 0.0 else math.nan


def _log1p_domain(value: float) -> float:
    return -math.inf if value == -1.0 else math.nan


def _atanh_domain(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) == 1.0 else math.nan


def _gamma_domain(value: float) -> float:
    return math.copysign(math.inf, value) if value == 0.0 else math.nan


def _pole(_: float) -> float:
    return math.inf


def _even(function: Callable[[float], float]) -> Callable[[float], float]:
    total = _total(function)
    return lambda value: total(abs(value))


def _hypot(left: float, right: float) -> float:
    return math.hypot(left, right)


_ALIKE = ("add", "sub", "mul", "neg", "abs", "eq", "ne", "lt", "le", "gt", "ge")
ALL: dict[str, Callable[..., Number]] = {
    **{name: getattr(python, name) for name in _ALIKE},
    "minimum": _minimum,
    "maximum": _maximum,
}
"""Operators that read the same for integers and floats; their results are brought into the type afterwards."""

_SPELLED = {
    "floordiv": "floordiv",
    "mod": "mod",
    "logical_and": "and_",
    "logical_or": "or_",
    "logical_not": "not_",
    "bit_and": "and_",
    "bit_or": "or_",
    "bit_xor": "xor",
    "bit_not": "invert",
}
INTEGERS: dict[str, Callable[..., Number]] = {
    **{name: getattr(python, spelled) for name, spelled in _SPELLED.items()},
    "pow": _power,
    "bit_length": int.bit_length,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
}
"""Operators of integers and bools."""

ROUNDED: dict[str, Callable[..., Number]] = {
    "floordiv": _float_floordiv,
    "mod": _float_mod,
    "nextafter": _next_after,
}
"""Operators of floats that know the type: made of several steps that are rounded in it, or about its numbers."""

FLOATS: dict[str, Callable[..., Number]] = {
    "truediv": _true_division,
    "pow": _float_power,
    "floor": _integral(math.floor),
    "ceil": _integral(math.ceil),
    "trunc": _integral(math.trunc),
    "round": _integral(round),
    "sqrt": _total(math.sqrt),
    "cbrt": math.cbrt,
    "exp": _total(math.exp),
    "exp2": _total(math.exp2),
    "expm1": _total(math.expm1),
    "log": _total(math.log, domain=_log_domain),
    "log2": _total(math.log2, domain=_log_domain),
    "log10": _total(math.log10, domain=_log_domain),
    "log1p": _total(math.log1p, domain=_log1p_domain),
    "sin": _total(math.sin),
    "cos": _total(math.cos),
    "tan": _total(math.tan),
    "asin": _total(math.asin),
    "acos": _total(math.acos),
    "atan": math.atan,
    "sinh": _total(math.sinh),
    "cosh": _even(math.cosh),
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": _total(math.acosh),
    "atanh": _total(math.atanh, domain=_atanh_domain),
    "erf": math.erf,
    "erfc": math.erfc,
    "gamma": _total(math.gamma, domain=_gamma_domain),
    "lgamma": _total(math.lgamma, domain=_pole),
    "atan2": math.atan2,
    "hypot": _hypot,
    "fmod": _fmod,
    "copysign": math.copysign,
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
    "to_float16": round_float16,
    "to_bfloat16": round_bfloat16,
}
"""Operators of floats; double results are rounded to float32 afterwards."""
