"""Complex numbers in `op.python`: made, read and taken for what they are; their methods run rewritten.

The rules are those of compiled code: both parts have one type, and functions are the ones of
`language/complex_numbers.py`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from brickwork.frontend.environment import is_tensor
from brickwork.frontend.reference_scalar import Scalar, convert, dtype_of, is_scalar, number_type, result, scalar
from brickwork.frontend.typing import floating
from brickwork.ir.dtypes import PARTS, DType, value_dtype
from brickwork.ir.scalar_semantics import narrow
from brickwork.language.complex_numbers import (
    LARGEST_POWER,
    OF_PARTS,
    ON_COMPLEX,
    POWER,
    Complex,
    log_of_base,
    product,
)


def complex_of(real: Any, imag: Any) -> Complex:
    """Return a complex number; both parts get the type in which they meet."""
    values = scalar(real), scalar(imag)
    kind = floating(number_type(values))
    return Complex(*(result(convert(value, kind.dtype), kind.dtype, weak=kind.weak) for value in values))


def read(item: Any, dtype: DType) -> Any:
    """Return an element of a tensor as a value."""
    if dtype not in PARTS:
        return result(item, value_dtype(dtype), weak=False)
    part = PARTS[dtype]
    return Complex(Scalar(item.real, part), Scalar(item.imag, part))


def is_number(value: Any) -> bool:
    """Return whether a value is a number, be it complex."""
    return isinstance(value, complex | Complex) or is_scalar(value)


def plain(value: Any) -> Any:
    """Return a complex number of Python's, or a tensor that stands for one, as a value; anything else as it is."""
    if isinstance(value, complex):
        return complex_of(value.real, value.imag)
    if is_tensor(value) and value.ndim == 0 and value.is_complex():
        return read(value.item(), dtype_of(value))
    return value


def as_python(value: Any) -> Any:
    """Return a complex number as Python's own, for functions of the host; anything else as it is."""
    return complex(value) if isinstance(value, Complex) else value


def stored(value: Any, dtype: DType) -> complex:
    """Return what an element of a complex type becomes."""
    value = plain(value)
    parts = (value.real, value.imag) if isinstance(value, Complex) else (value, 0.0)
    numbers = [narrow(convert(scalar(part), PARTS[dtype]), PARTS[dtype]) for part in parts]
    return complex(float(numbers[0]), float(numbers[1]))


def construct(add: Callable[[Any, Any], Any], multiply: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    """Return `complex(a, b)`: of one number, or of two parts, which may be complex themselves."""
    real, imag = map(plain, (*parts, 0, 0)[:2])
    if isinstance(imag, Complex):
        return add(multiply(imag, complex_of(0.0, 1.0)), real)
    if isinstance(real, Complex):
        return complex_of(real.real, add(real.imag, imag))
    return complex_of(real, imag)


def small_power(base: Any, exponent: Any, multiply: Callable[[Any, Any], Any]) -> Complex | None:
    """Return a power with a small integer exponent of Python's, before it is inverted; None of another one."""
    if not isinstance(exponent, int | float) or not 0 < abs(exponent) <= LARGEST_POWER or exponent != int(exponent):
        return None
    found: Complex = product(base, abs(int(exponent)), multiply)
    return found


def formula(name: str | None, arguments: Sequence[Any]) -> types.FunctionType | None:
    """Return what a known function is on complex numbers, where one is among the arguments or may be the result."""
    if name is None:
        return None
    if name == "cmath.log" and len(arguments) == 2:
        return log_of_base
    if name in OF_PARTS:
        return OF_PARTS[name]
    if not any(isinstance(item, Complex) for item in arguments):
        return None
    return POWER if name == "builtins.pow" and len(arguments) == 2 else ON_COMPLEX.get(name)


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute that numbers have: a part, or a method."""
    owner = plain(owner)
    if isinstance(owner, Complex) or not is_scalar(owner):
        return getattr(owner, name)
    value = scalar(owner)
    if name == "imag":
        return result(convert(Scalar(0, value.dtype), value.dtype), value.dtype, weak=value.weak)
    return owner if name == "real" else getattr(value, name)
