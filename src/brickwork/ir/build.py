"""Constructors of expressions that infer types and fold constants; nonsense raises ValueError.

Folding is exact: a folded expression has the value that `interpret.py` gives to the unfolded one. Functions whose last
digit depends on the machine's library (`sin`, `exp`) are not folded. Only expressions are made in here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import reduce

from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64, UINT64, DType
from brickwork.ir.nodes import (
    Apply,
    Cast,
    Constant,
    Expression,
    Load,
    Random,
    Read,
    Reduction,
    Select,
    Size,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.operators import OPERATORS, result_dtype

Number = bool | int | float

_COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
}
_ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "minimum": min,
    "maximum": max,
}
_LOGIC: dict[str, Callable[[bool, bool], bool]] = {
    "logical_and": lambda left, right: left and right,
    "logical_or": lambda left, right: left or right,
}


def constant(value: Number, dtype: DType, loc: Location = NOWHERE) -> Constant:
    """Return a literal: integers wrap to 64 bits, float32 values are rounded."""
    if dtype is BOOL:
        return Constant(value=bool(value), dtype=dtype, loc=loc)
    if dtype is INT64:
        return Constant(value=(int(value) + (1 << 63)) % (1 << 64) - (1 << 63), dtype=dtype, loc=loc)
    if dtype is UINT64:
        return Constant(value=int(value) % (1 << 64), dtype=dtype, loc=loc)
    number = float(value)
    return Constant(value=round_float32(number) if dtype is FLOAT32 else number, dtype=dtype, loc=loc)


def integer(value: int, loc: Location = NOWHERE) -> Constant:
    """Return an int64 literal."""
    return constant(value, INT64, loc)


def identity(item: Reduction) -> Constant:
    """Return what a partial result of a reduction starts from."""
    dtype, most = item.symbol.dtype, item.operator.name == "minimum"
    match item.operator.name:
        case "add":
            return empty_sum(dtype)
        case "bit_or" | "bit_xor" | "logical_or":
            return constant(0, dtype)
        case "bit_and" | "logical_and":
            return constant(-1, dtype)
        case "mul":
            return constant(1, dtype)
        case _ if dtype.is_float:
            return constant(math.inf if most else -math.inf, dtype)
        case _ if dtype is INT64:
            return constant(2**63 - 1 if most else -(2**63), dtype)
        case _:
            return constant(2**64 - 1 if most else 0, dtype)


def empty_sum(dtype: DType) -> Constant:
    """Return what a partial sum starts from. 0.0 would make 0.0 of sums that are -0.0."""
    return constant(-0.0 if dtype.is_float else 0, dtype)


def round_float32(value: float) -> float:
    """Return the float32 nearest to `value`; beyond the largest one, infinity."""
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def read(symbol: Symbol, loc: Location = NOWHERE) -> Read:
    """Return the value of a variable."""
    return Read(symbol=symbol, loc=loc)


def size(tensor: Tensor, axis: int, loc: Location = NOWHERE) -> Expression:
    """Return the extent of a tensor along an axis: a literal for a local, and for the parts of complex elements."""
    if tensor.is_local:
        return integer(tensor.sizes[axis], loc)
    return (
        integer(2, loc)
        if tensor.type.pairs and axis == tensor.type.rank - 1
        else Size(tensor=tensor, axis=axis, loc=loc)
    )


def is_constant(expression: Expression, value: Number) -> bool:
    """Return whether the expression is a literal equal to `value`."""
    return isinstance(expression, Constant) and expression.value == value


def stored_literal(store: Store) -> str | None:
    """Return the text of the literal that a store leaves in an element, which tells zeros of two signs apart."""
    return repr(store.value.value) if store.combine is None and isinstance(store.value, Constant) else None


def apply(name: str, *operands: Expression, loc: Location = NOWHERE) -> Expression:
    """Return the operator `name` applied to operands of one type that it takes; folded where that is exact."""
    operator = OPERATORS[name]
    dtype = operands[0].dtype
    if len(operands) != operator.arity or any(operand.dtype != dtype for operand in operands):
        raise ValueError(f"{name} takes {operator.arity} operands of one type")
    if dtype not in operator.operands:
        raise ValueError(f"{name} does not take {dtype}")
    folded = _fold(name, dtype, operands, loc)
    if folded is not None:
        return folded
    return Apply(operator=operator, operands=operands, dtype=result_dtype(operator, dtype), loc=loc)


def _fold(name: str, dtype: DType, operands: tuple[Expression, ...], loc: Location) -> Expression | None:
    if all(isinstance(operand, Constant) for operand in operands):
        values = [operand.value for operand in operands if isinstance(operand, Constant)]
        return _fold_constants(name, dtype, values, loc)
    if len(operands) != 2:
        return None
    left, right = operands
    if dtype is BOOL:
        return _fold_logic(name, left, right)
    if name in {"eq", "le", "ge"} and left == right and dtype.is_integer and not _may_fail(left):
        return constant(True, BOOL, loc)
    if isinstance(left, Size) and is_constant(right, 0) and name in {"lt", "ge"}:
        return constant(name == "ge", BOOL, loc)
    return _fold_identity(name, left, right, loc) if dtype.is_integer else None


def _fold_constants(name: str, dtype: DType, values: list[Number], loc: Location) -> Expression | None:
    if name in _COMPARISONS:
        return constant(_COMPARISONS[name](values[0], values[1]), BOOL, loc)
    if name in _LOGIC:
        return constant(_LOGIC[name](bool(values[0]), bool(values[1])), BOOL, loc)
    if name == "logical_not":
        return constant(not values[0], BOOL, loc)
    if name in _ARITHMETIC:
        return constant(_ARITHMETIC[name](values[0], values[1]), dtype, loc)
    if name == "neg":
        return constant(-values[0], dtype, loc)
    if name == "abs":
        return constant(abs(values[0]), dtype, loc)
    if dtype.is_integer:
        return _fold_integers(name, dtype, [int(value) for value in values], loc)
    if name == "truediv" and values[1] != 0:
        return constant(values[0] / values[1], dtype, loc)
    return None


def _fold_integers(name: str, dtype: DType, values: list[int], loc: Location) -> Expression | None:
    if name == "floordiv" and values[1] != 0:
        return constant(values[0] // values[1], dtype, loc)
    if name == "mod" and values[1] != 0:
        return constant(values[0] % values[1], dtype, loc)
    if name == "pow" and 0 <= values[1] < 64:
        return constant(values[0] ** values[1], dtype, loc)
    if name == "bit_and":
        return constant(values[0] & values[1], dtype, loc)
    if name == "bit_or":
        return constant(values[0] | values[1], dtype, loc)
    if name == "bit_xor":
        return constant(values[0] ^ values[1], dtype, loc)
    if name == "bit_length":
        return constant(values[0].bit_length(), dtype, loc)
    if name == "shift_left" and 0 <= values[1] < 64:
        return constant(values[0] << values[1], dtype, loc)
    return None


def _fold_logic(name: str, left: Expression, right: Expression) -> Expression | None:
    for one, other in ((left, right), (right, left)):
        if name in _LOGIC and isinstance(one, Constant):
            if one.value is (name == "logical_and"):
                return other
            return None if _may_fail(other) else one
    return None


def _fold_identity(name: str, left: Expression, right: Expression, loc: Location) -> Expression | None:
    """Fold integer identities; for floats they would change signed zeros and NaN."""
    match name:
        case "add" if is_constant(left, 0):
            return right
        case "add" | "sub" if is_constant(right, 0):
            return left
        case "sub" if left == right and not _may_fail(left):
            return constant(0, left.dtype, loc)
        case "mul" if is_constant(left, 1):
            return right
        case "mul" | "floordiv" if is_constant(right, 1):
            return left
        case "mul" if (is_constant(left, 0) or is_constant(right, 0)) and not (_may_fail(left) or _may_fail(right)):
            return constant(0, left.dtype, loc)
        case "mod" if is_constant(right, 1) and not _may_fail(left):
            return constant(0, left.dtype, loc)
        case "add" | "sub" if isinstance(right, Constant) and isinstance(left, Apply):
            return _fold_offset(name, left, right, loc)
        case _:
            return None


def _may_fail(expression: Expression) -> bool:
    """Whether a read in an expression may be out of range: then it is kept, though its value is of no use."""
    match expression:
        case Load():
            return True
        case Apply(operands=operands):
            return any(map(_may_fail, operands))
        case Cast(operand=operand):
            return _may_fail(operand)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return any(map(_may_fail, (condition, then, otherwise)))
        case Random(bounds=bounds):
            return any(map(_may_fail, bounds))
        case _:
            return False


def _fold_offset(name: str, left: Apply, right: Constant, loc: Location) -> Expression | None:
    """Fold (x + a) - b and the like into x + (a - b)."""
    if left.operator.name not in {"add", "sub"} or not isinstance(left.operands[1], Constant):
        return None
    inner = left.operands[1].value if left.operator.name == "add" else -left.operands[1].value
    outer = right.value if name == "add" else -right.value
    total = inner + outer
    base = left.operands[0]
    if total < 0 and right.dtype is INT64:
        return apply("sub", base, constant(-total, right.dtype, loc), loc=loc)
    return apply("add", base, constant(total, right.dtype, loc), loc=loc)


def cast(operand: Expression, dtype: DType, loc: Location = NOWHERE) -> Expression:
    """Return the conversion to `dtype`; none where the operand has it already."""
    if operand.dtype == dtype:
        return operand
    if isinstance(operand, Constant):
        value = operand.value
        if dtype is BOOL or dtype in {FLOAT32, FLOAT64} or not isinstance(value, float):
            return constant(bool(value) if dtype is BOOL else value, dtype, loc)
        if math.isfinite(value) and abs(value) < 2.0**62:
            return constant(int(value), dtype, loc)
    return Cast(operand=operand, dtype=dtype, loc=loc)


def select(condition: Expression, then: Expression, otherwise: Expression, loc: Location = NOWHERE) -> Expression:
    """Return `then` where the bool condition holds, else `otherwise`, which has the same type."""
    if condition.dtype is not BOOL or then.dtype != otherwise.dtype:
        raise ValueError("select takes a bool and two expressions of one type")
    if isinstance(condition, Constant):
        return then if condition.value else otherwise
    if then == otherwise and not _may_fail(condition):
        return then
    return Select(condition=condition, then=then, otherwise=otherwise, loc=loc)


def add(left: Expression, right: Expression, loc: Location = NOWHERE) -> Expression:
    """Return the sum."""
    return apply("add", left, right, loc=loc)


def sub(left: Expression, right: Expression, loc: Location = NOWHERE) -> Expression:
    """Return the difference."""
    return apply("sub", left, right, loc=loc)


def mul(left: Expression, right: Expression, loc: Location = NOWHERE) -> Expression:
    """Return the product."""
    return apply("mul", left, right, loc=loc)


def product(factors: Sequence[Expression]) -> Expression:
    """Return the product of factors, from the left: 1 of none."""
    return reduce(mul, factors) if factors else integer(1)


def iterations(start: Expression, stop: Expression) -> Expression:
    """Return how many iterations a loop from `start` to `stop` has."""
    number = sub(stop, start)
    return number if isinstance(number, Size) else apply("maximum", number, integer(0))


def power(base: Expression, exponent: Number, loc: Location = NOWHERE) -> Expression | None:
    """Return a float to the power of a literal as `torch.pow` computes it; None where that is a general power.

    The base is repeated.
    """
    match exponent:
        case 1:
            return base
        case 2:
            return mul(base, base, loc)
        case 3:
            return mul(mul(base, base, loc), base, loc)
        case 0.5:
            return apply("sqrt", base, loc=loc)
        case -0.5 | -1 | -2:
            divisor = power(base, -exponent, loc)
            return None if divisor is None else apply("truediv", constant(1.0, base.dtype, loc), divisor, loc=loc)
        case _:
            return None


def logical_not(operand: Expression, loc: Location = NOWHERE) -> Expression:
    """Return the negation of a bool."""
    return apply("logical_not", operand, loc=loc)
