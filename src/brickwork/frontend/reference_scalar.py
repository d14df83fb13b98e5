"""Values of `op.python`: numbers with a type, under the same rules as in compiled code, but computed at once.

Python's own numbers and bools are the weak ones; a `Scalar` is what comes from a tensor's element. The rules of types
are `typing.py`'s, the arithmetic is `ir/scalar_semantics.py`'s. Tensors and lists are not known here, but for tensors
without dimensions, which are read.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, cast

from brickwork.frontend.environment import is_tensor
from brickwork.frontend.typing import ValueType, floating, join, number
from brickwork.ir import scalar_semantics
from brickwork.ir.dtypes import BOOL, ELEMENTS, FLOAT64, INT64, PARTS, DType, value_dtype
from brickwork.ir.operators import OPERATORS
from brickwork.ir.scalar_semantics import Number
from brickwork.language.complex_numbers import Complex
from brickwork.language.math import FUNCTIONS
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A number with its value type; `weak` as in `ValueType`."""

    value: Number
    dtype: DType
    weak: bool = False

    @property
    def type(self) -> ValueType:
        """The type with its weakness."""
        return ValueType(self.dtype, self.weak)

    def item(self) -> Any:
        """Return the number."""
        return result(self.value, self.dtype, weak=self.weak)

    def bit_length(self) -> Any:
        """Stand for the method of ints; the call is that of a formula."""
        raise TypeError(f"{self.type} has no bit_length")

    def bit_count(self) -> Any:
        """Stand for the method of ints; the call is that of a formula."""
        raise TypeError(f"{self.type} has no bit_count")

    def conjugate(self) -> Any:
        """Stand for the method of numbers; the call is that of a formula."""
        raise TypeError(f"{self.type} is not conjugated here")

    def conj(self) -> Any:
        """Stand for the method of elements; the call is that of a formula."""
        raise TypeError(f"{self.type} is not conjugated here")

    def abs(self) -> Any:
        """Stand for the method of elements; the call is that of a formula."""
        raise TypeError(f"{self.type} has no abs here")

    def angle(self) -> Any:
        """Stand for the method of elements; the call is that of a formula."""
        raise TypeError(f"{self.type} has no angle here")

    def __bool__(self) -> bool:
        """Return whether the number is not zero."""
        return bool(self.value)

    def __index__(self) -> int:
        """Return the int, where an index or a bound is needed."""
        if isinstance(self.value, float):
            raise TypeError(f"an index is {self.type}, not an integer; write int(...) around it")
        return int(self.value)

    def __float__(self) -> float:
        """Return the number as a Python float."""
        return float(self.value)

    def __format__(self, specification: str) -> str:
        """Format the number, as in messages."""
        return format(self.value, specification)

    def __str__(self) -> str:
        """Return the number as text."""
        return str(self.value)


class GivenInt(int):
    """An int as the operator was given it: a literal, an argument or a number of the host part, not computed since."""


class GivenFloat(float):
    """A float as the operator was given it."""


def given(value: Any) -> Any:
    """Return a Python number marked as one that the operator was given; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(given, cast("tuple[Any, ...]", value)))
    return GivenInt(value) if type(value) is int else GivenFloat(value) if type(value) is float else value


def dtype_of(tensor: Any) -> DType:
    """Return the element type of a tensor."""
    return ELEMENTS[str(tensor.dtype).removeprefix("torch.")]


def is_scalar(value: object) -> bool:
    """Return whether the value is a number, or a tensor that stands for one."""
    if isinstance(value, Scalar | bool | int | float):
        return True
    return is_tensor(value) and getattr(value, "ndim", 1) == 0 and dtype_of(value) not in PARTS


def scalar(value: Any) -> Scalar:
    """Return a value with its type."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, bool):
        return Scalar(value, BOOL)
    if isinstance(value, int):
        return Scalar(scalar_semantics.wrap(value, 64, signed=True), INT64, weak=True)
    if isinstance(value, float):
        return Scalar(float(value), FLOAT64, weak=True)
    if isinstance(value, Integral):
        return scalar(int(value))
    if isinstance(value, Real):
        return scalar(float(value))
    if is_scalar(value):
        return Scalar(value.item(), value_dtype(dtype_of(value)))
    if isinstance(value, complex | Complex) or (is_tensor(value) and not value.ndim):
        raise TypeError("a real number is needed here, not a complex one")
    if hasattr(value, "single"):
        return scalar(value.single)
    raise TypeError(f"a number is needed here, not {type(value).__name__}")


def result(value: Number, dtype: DType, *, weak: bool) -> Any:
    """Return a computed value: Python's own type where that says all."""
    if dtype is BOOL or (weak and dtype in {INT64, FLOAT64}):
        return value
    return Scalar(value, dtype, weak)


def convert(value: Scalar, dtype: DType) -> Number:
    """Return the number in another value type."""
    return value.value if value.dtype is dtype else scalar_semantics.cast(value.value, dtype)


def number_type(values: Sequence[Scalar]) -> ValueType:
    """Return the type in which numbers meet."""
    kind = values[0].type
    for value in values[1:]:
        met = join(kind, value.type)
        if met is None:
            raise TypeError("uint64 does not mix with signed integers; write int(...) around the uint64 one")
        kind = met
    return kind


def _apply(name: str, values: Sequence[Scalar], kind: ValueType) -> Any:
    operator = OPERATORS[name]
    computed = scalar_semantics.evaluate(operator, [convert(value, kind.dtype) for value in values], kind.dtype)
    return result(computed, BOOL if isinstance(computed, bool) else kind.dtype, weak=kind.weak)


# ---------------------------------------------------------------- operators


def binary(name: str, left: Any, right: Any) -> Any:
    """Return `left <name> right`."""
    values = scalar(left), scalar(right)
    kind = number_type(values)
    if name.startswith(("bit_", "shift_")):
        return _bits(name, values, kind)
    kind = number(kind)
    if name == "pow":
        return _power(values, kind)
    if kind.dtype.is_integer and name in {"truediv", "floordiv", "mod"} and not values[1].value:
        raise ZeroDivisionError("integer modulo by zero" if name == "mod" else "integer division by zero")
    return _apply(name, values, floating(kind) if name == "truediv" else kind)


def _bits(name: str, values: tuple[Scalar, Scalar], kind: ValueType) -> Any:
    if kind.dtype.is_float:
        raise TypeError(f"bit operations take integers, not {kind}")
    if name.startswith("shift_"):
        kind = number(kind)
        if convert(values[1], INT64) < 0:
            raise ValueError("negative shift count")
    return _apply(name, values, kind)


def _power(values: tuple[Scalar, Scalar], kind: ValueType) -> Any:
    base, exponent = values
    if kind.dtype.is_integer and exponent.value < 0:
        if not exponent.weak:
            raise ValueError("a negative power of an integer; write float(...) around the base")
        kind = ValueType(FLOAT64, weak=True)
    if kind.dtype.is_float and exponent.weak:
        written_out = _written_out(result(convert(base, kind.dtype), kind.dtype, weak=kind.weak), exponent.value)
        if written_out is not None:
            return written_out
    return _apply("pow", (base, exponent), kind)


def _written_out(base: Any, exponent: Number) -> Any:
    """Return a float to one of the powers that `torch.pow` computes without a general power; None of others."""
    match exponent:
        case 1:
            return base
        case 2:
            return binary("mul", base, base)
        case 3:
            return binary("mul", binary("mul", base, base), base)
        case 0.5:
            return _real("sqrt", [base])
        case -0.5 | -1 | -2:
            return binary("truediv", 1.0, _written_out(base, -exponent))
        case _:
            return None


def compare(name: str, left: Any, right: Any) -> Any:
    """Return a comparison; of two numbers in the type in which they meet."""
    if all(isinstance(item, tuple | list) for item in (left, right)):
        return _compare_items(name, cast("Sequence[Any]", left), cast("Sequence[Any]", right))
    if not (is_scalar(left) and is_scalar(right)):
        return getattr(python, name)(left, right)
    values = scalar(left), scalar(right)
    return _apply(name, values, number_type(values))


def _compare_items(name: str, left: Sequence[Any], right: Sequence[Any]) -> Any:
    for one, other in zip(left, right, strict=False):
        if not compare("eq", one, other):
            return name == "ne" or (name != "eq" and compare(name, one, other))
    return getattr(python, name)(len(left), len(right))


def contains(item: Any, items: Any) -> bool:
    """Return whether a number is one of several."""
    return any(compare("eq", item, one) for one in items)


def unary(name: str, operand: Any) -> Any:
    """Return `-x` (`neg`), `+x` (`pos`) or `~x` (`bit_not`)."""
    value = scalar(operand)
    if name == "bit_not":
        return _apply(name, [value], value.type)
    kind = number(value.type)
    return (
        _apply(name, [value], kind) if name == "neg" else result(convert(value, kind.dtype), kind.dtype, weak=kind.weak)
    )


# ---------------------------------------------------------------- functions


def known(name: str) -> Callable[..., Any] | None:
    """Return the function that stands for Python's function of that name (`module.function`), or None."""
    module, _, function = name.rpartition(".")
    if module == "builtins":
        return _BUILTINS.get(function)
    if module == "torch" and name in FUNCTIONS:
        return partial(_of_torch, FUNCTIONS[name])
    if module != "math":
        return None
    if function in {"floor", "ceil", "trunc"}:
        return partial(_rounded, function)
    special = {"log": _log, "radians": _radians, "degrees": _degrees, "prod": _product}.get(function)
    if special is None and name in FUNCTIONS:
        return partial(_variadic, FUNCTIONS[name])
    return special


def _extremum(name: str, function: str) -> Callable[..., Any]:
    def extremum(*operands: Any, **named: Any) -> Any:
        items = [*(operands[0] if len(operands) == 1 else operands)]
        if not items and "default" in named:
            return named["default"]
        if not items:
            raise ValueError(f"{function}() iterable argument is empty")
        found = items[0]
        for item in items[1:]:
            values = scalar(found), scalar(item)
            found = _apply(name, values, number(number_type(values)))
        return found

    return extremum


def _sum(items: Any, start: Any = 0) -> Any:
    for item in items:
        start = binary("add", start, item)
    return start


def _product(items: Any, *, start: Any = 1) -> Any:
    for item in items:
        start = binary("mul", start, item)
    return start


def _any(items: Any) -> bool:
    return any(map(_truth, items))


def _all(items: Any) -> bool:
    return all(map(_truth, items))


def _absolute(operand: Any) -> Any:
    value = scalar(operand)
    return _apply("abs", [value], number(value.type))


def _integer(operand: Any) -> Any:
    value = scalar(operand)
    return result(convert(value, INT64), INT64, weak=value.weak or value.dtype is BOOL)


def _float(operand: Any) -> Any:
    if isinstance(operand, str):
        return float(operand)
    value = scalar(operand)
    kind = floating(value.type)
    return result(convert(value, kind.dtype), kind.dtype, weak=kind.weak)


def _rounded(name: str, operand: Any) -> Any:
    value = scalar(operand)
    if not value.dtype.is_float:
        kind = number(value.type)
        return result(convert(value, kind.dtype), kind.dtype, weak=value.weak)
    return _integer(_apply(name, [value], value.type))


def _real(name: str, operands: Sequence[Any], *, kept: bool = False) -> Any:
    values = [scalar(operand) for operand in operands]
    kind = floating(number_type(values))
    if kept:
        return result(convert(values[0], kind.dtype), kind.dtype, weak=kind.weak)
    return _apply(name, values, kind)


def _variadic(name: str, *operands: Any) -> Any:
    return _real(name, operands)


def _of_torch(name: str, *operands: Any) -> Any:
    if name == "pow":
        return binary("pow", *operands)
    if name not in {"floor", "ceil", "trunc", "round", "abs"}:
        return _real(name, operands)
    value = scalar(*operands)
    kind = number(value.type)
    if name != "abs" and not kind.dtype.is_float:
        return result(convert(value, kind.dtype), kind.dtype, weak=kind.weak)
    return _apply(name, [value], kind)


def _log(operand: Any, base: Any = None) -> Any:
    found = _real("log", [operand])
    return found if base is None else binary("truediv", found, _real("log", [base]))


def _radians(operand: Any) -> Any:
    return binary("mul", _real("abs", [operand], kept=True), 0.017453292519943295)


def _degrees(operand: Any) -> Any:
    return binary("mul", _real("abs", [operand], kept=True), 57.29577951308232)


def _truth(operand: Any) -> bool:
    return bool(scalar(operand).value)


def _nearest(operand: Any) -> Any:
    return _rounded("round", operand)


def _pow(base: Any, exponent: Any) -> Any:
    return binary("pow", base, exponent)


def _divmod(left: Any, right: Any) -> tuple[Any, Any]:
    return binary("floordiv", left, right), binary("mod", left, right)


_BUILTINS: dict[str, Callable[..., Any]] = {
    "min": _extremum("minimum", "min"),
    "max": _extremum("maximum", "max"),
    "sum": _sum,
    "any": _any,
    "all": _all,
    "abs": _absolute,
    "int": _integer,
    "float": _float,
    "bool": _truth,
    "round": _nearest,
    "pow": _pow,
    "divmod": _divmod,
}
