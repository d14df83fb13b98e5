"""The table of scalar operators: what exists, how many operands it takes and what it returns.

Meaning lives in `interpret.py`, machine code in `codegen/operators.py`; a test asks both for every name in here.
All operands of one application have the same value type (the frontend casts), but for what `Result` says.
"""

from __future__ import annotations

from enum import Enum

from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64, UINT64, DType
from brickwork.records import dataclass


class Result(Enum):
    """The type that an application of an operator has."""

    SAME = "the type of its operands"
    BOOL = "bool"


NUMBERS = (INT64, UINT64, FLOAT32, FLOAT64)
INTEGERS = (INT64, UINT64)
FLOATS = (FLOAT32, FLOAT64)
ANY = (BOOL, *NUMBERS)


@dataclass(frozen=True, slots=True)
class Operator:
    """A scalar operator: its name, arity, the operand types it takes and the rule for its result."""

    name: str
    arity: int
    operands: tuple[DType, ...]
    result: Result = Result.SAME

    def __hash__(self) -> int:
        """Return that of the name."""
        return hash(self.name)

    def __str__(self) -> str:
        """Return the operator's name."""
        return self.name


def _table(*rows: tuple[str, int, tuple[DType, ...], Result]) -> dict[str, Operator]:
    return {name: Operator(name, arity, operands, result) for name, arity, operands, result in rows}


def _floats(
    arity: int, names: str, result: Result = Result.SAME
) -> tuple[tuple[str, int, tuple[DType, ...], Result], ...]:
    return tuple((name, arity, FLOATS, result) for name in names.split())


OPERATORS: dict[str, Operator] = _table(
    # Arithmetic. Integers wrap at 64 bits. `floordiv` and `mod` floor, as Python's; a zero integer divisor is
    # excluded by a Check that stands before. `truediv` is for floats. `pow` of integers takes a non-negative exponent.
    *((name, 2, NUMBERS, Result.SAME) for name in ("add", "sub", "mul", "floordiv", "mod", "pow")),
    ("truediv", 2, FLOATS, Result.SAME),
    # `minimum(a, b)` is `b if b < a else a` and `maximum(a, b)` is `b if b > a else a`: Python's answer with NaN.
    *((name, 2, NUMBERS, Result.SAME) for name in ("minimum", "maximum")),
    *((name, 1, NUMBERS, Result.SAME) for name in ("neg", "abs")),
    # Comparison and logic. The logical ones are strict: short-circuit is control flow and is lowered to If.
    *((name, 2, ANY, Result.BOOL) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *((name, 2, (BOOL,), Result.BOOL) for name in ("logical_and", "logical_or")),
    ("logical_not", 1, (BOOL,), Result.BOOL),
    # Bits. A shift by 64 or more gives 0, or the sign for `shift_right` of a negative int64; by less than 0 is refused
    # by a Check that stands before.
    *((name, 2, (BOOL, *INTEGERS), Result.SAME) for name in ("bit_and", "bit_or", "bit_xor")),
    ("bit_not", 1, INTEGERS, Result.SAME),
    # How many bits the absolute value takes: the least n for which it is below 2 ** n.
    ("bit_length", 1, INTEGERS, Result.SAME),
    *((name, 2, INTEGERS, Result.SAME) for name in ("shift_left", "shift_right")),
    # Floating point. `round` is half to even. Domain errors give IEEE values.
    *_floats(1, "floor ceil trunc round sqrt cbrt exp exp2 expm1 log log2 log10 log1p"),
    *_floats(1, "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc gamma lgamma"),
    *_floats(2, "atan2 hypot fmod copysign nextafter"),
    *_floats(1, "isnan isinf isfinite", Result.BOOL),
    # A value that a narrower type holds: rounded as a store rounds it.
    *((name, 1, (FLOAT32,), Result.SAME) for name in ("to_float16", "to_bfloat16")),
)
"""Every operator by name."""


def result_dtype(operator: Operator, operand: DType) -> DType:
    """Return the type of `operator` applied to operands of type `operand`."""
    return BOOL if operator.result is Result.BOOL else operand
