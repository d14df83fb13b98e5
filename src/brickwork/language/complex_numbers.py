"""Complex numbers as values with parts, and the functions of `cmath` and `torch` on them, as plain Python.

The compiler inlines all of it as it inlines a user's class and helpers, and `op.python` runs it. Both parts of a number
have one type: whoever makes a `Complex` sees to that. Functions that keep their accuracy near zero, and whose gradients
are finite wherever torch's are, choose operands by conditions instead of leaving a branch early.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from math import atan2, copysign, cos, cosh, hypot, isfinite, isinf, isnan, pi, sin, sinh
from math import exp as real_exp
from math import log as real_log
from math import pow as real_pow
from math import sqrt as real_sqrt
from typing import Any, TypeVar

Number = Any
"""A complex number, or a real one."""
Item = TypeVar("Item")

LARGEST_POWER = 16
"""The largest literal exponent for which a power is products, which stand in the code; CPython's are up to 100.

Chosen, not measured."""


class Complex:
    """A complex number: two numbers of one type."""

    __slots__ = ("imag", "real")

    def __init__(self, real: Any, imag: Any) -> None:
        """Take the parts."""
        self.real = real
        self.imag = imag

    def __repr__(self) -> str:
        """Return how the number is written."""
        return f"({self.real} + {self.imag}j)"

    def __complex__(self) -> complex:
        """Return Python's own."""
        return complex(float(self.real), float(self.imag))

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: Number) -> Complex:
        """Return the sum."""
        if isinstance(other, Complex):
            return Complex(self.real + other.real, self.imag + other.imag)
        return Complex(self.real + other, self.imag)

    def __radd__(self, other: Number) -> Complex:
        """Return the sum with a real number before."""
        return Complex(other + self.real, self.imag)

    def __sub__(self, other: Number) -> Complex:
        """Return the difference."""
        if isinstance(other, Complex):
            return Complex(self.real - other.real, self.imag - other.imag)
        return Complex(self.real - other, self.imag)

    def __rsub__(self, other: Number) -> Complex:
        """Return the difference from a real number."""
        return Complex(other - self.real, -self.imag)

    def __mul__(self, other: Number) -> Complex:
        """Return the product."""
        if isinstance(other, Complex):
            return Complex(
                self.real * other.real - self.imag * other.imag, self.real * other.imag + self.imag * other.real
            )
        return Complex(self.real * other, self.imag * other)

    def __rmul__(self, other: Number) -> Complex:
        """Return the product with a real number before."""
        return Complex(other * self.real, other * self.imag)

    def __truediv__(self, other: Number) -> Complex:
        """Return the quotient."""
        if isinstance(other, Complex):
            return quotient(self.real, self.imag, other)
        return Complex(self.real / other, self.imag / other)

    def __rtruediv__(self, other: Number) -> Complex:
        """Return the quotient of a real number and this one."""
        return quotient(other, 0.0, self)

    def __pow__(self, other: Number) -> Complex:
        """Return a power; those with small literal exponents are products (`product`)."""
        return power(self, complex(other))

    def __rpow__(self, other: Number) -> Complex:
        """Return a power of a real number."""
        return power(complex(other), self)

    def __neg__(self) -> Complex:
        """Return the opposite."""
        return Complex(-self.real, -self.imag)

    def __pos__(self) -> Complex:
        """Return the number."""
        return self

    def __abs__(self) -> Any:
        """Return the absolute value, whose gradient is 0 at 0."""
        still = self.real == 0 and self.imag == 0
        size = hypot(1.0 if still else self.real, self.imag)
        return 0.0 if still else size

    # ------------------------------------------------------------ comparisons

    def __eq__(self, other: object) -> Any:
        """Return whether two numbers are equal."""
        if isinstance(other, Complex):
            return self.real == other.real and self.imag == other.imag
        return self.real == other and self.imag == 0

    def __bool__(self) -> bool:
        """Return whether the number is not zero."""
        return bool(self.real != 0 or self.imag != 0)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # elements are compared, never kept in sets

    # ------------------------------------------------------------ methods of Python's and of torch's

    def conjugate(self) -> Complex:
        """Return the conjugate."""
        return Complex(self.real, -self.imag)

    def conj(self) -> Complex:
        """Return the conjugate."""
        return Complex(self.real, -self.imag)

    def abs(self) -> Any:
        """Return the absolute value."""
        return abs(self)

    def item(self) -> Complex:
        """Return the number."""
        return self

    def angle(self) -> Any:
        """Return the angle."""
        return atan2(self.imag, self.real)


def quotient(real: Any, imag: Any, divisor: Complex) -> Complex:
    """Return a quotient by Smith's method, which does not overflow before the result does."""
    wide = abs(divisor.real) >= abs(divisor.imag)
    large = divisor.real if wide else divisor.imag
    small = divisor.imag if wide else divisor.real
    ratio = 0.0 if large == 0 else small / (1.0 if large == 0 else large)
    whole = large + small * ratio
    first = real if wide else imag
    second = imag if wide else real
    across = (second - first * ratio) / whole
    return Complex((first + second * ratio) / whole, across if wide else -across)


def product(base: Item, exponent: int, multiply: Callable[[Item, Item], Item]) -> Item:
    """Return a positive integer power as products."""
    if exponent == 1:
        return base
    half = product(base, exponent // 2, multiply)
    square = multiply(half, half)
    return multiply(square, base) if exponent % 2 else square


# ---------------------------------------------------------------- functions


def power(base: Number, exponent: Number) -> Complex:
    """Return a power by the principal logarithm; 0 to a power is 0, and 1 to the power 0."""
    still = base.real == 0 and base.imag == 0
    size = hypot(1.0 if still else base.real, base.imag)
    turn = atan2(base.imag, base.real)
    radius = real_pow(size, exponent.real) * real_exp(-exponent.imag * turn)
    angle = exponent.real * turn + exponent.imag * real_log(size)
    nothing = 1.0 if exponent.real == 0 and exponent.imag == 0 else 0.0
    return Complex(nothing if still else radius * cos(angle), 0.0 if still else radius * sin(angle))


def power_of(input: Number, exponent: Number) -> Number:
    """Return a power of numbers of which one is complex."""
    return input**exponent


def conjugate(input: Number) -> Number:
    """Return the conjugate."""
    return input.conjugate() if isinstance(input, Complex) else input


def absolute(input: Number) -> Any:
    """Return the absolute value."""
    return abs(input)


def real(input: Number) -> Any:
    """Return the real part."""
    return input.real if isinstance(input, Complex) else input


def imag(input: Number) -> Any:
    """Return the imaginary part."""
    return input.imag if isinstance(input, Complex) else 0 * input


def phase(input: Number) -> Any:
    """Return the angle."""
    if isinstance(input, Complex):
        return atan2(input.imag, input.real)
    turned = pi if input < 0 else 0.0
    return input if isnan(input) else turned + 0.0 * abs(input)


def polar(abs: Any, angle: Any) -> Complex:
    """Return a number by its absolute value and its angle."""
    return Complex(abs * cos(angle), abs * sin(angle))


def rect(r: Any, phi: Any) -> Complex:
    """Return a number by its absolute value and its angle."""
    return Complex(r * cos(phi), r * sin(phi))


def as_polar(z: Number) -> tuple[Any, Any]:
    """Return the absolute value and the angle."""
    number = complex(z)
    return abs(number), atan2(number.imag, number.real)


def of_parts(real: Any, imag: Any) -> Complex:
    """Return a number by its parts."""
    return Complex(real, imag)


def exp(input: Number) -> Complex:
    """Return the exponential."""
    number = complex(input)
    size = real_exp(number.real)
    return Complex(size * cos(number.imag), size * sin(number.imag))


def exp2(input: Number) -> Complex:
    """Return 2 to a power."""
    return exp(complex(input) * 0.6931471805599453)


def log(input: Number) -> Complex:
    """Return the principal logarithm."""
    number = complex(input)
    return Complex(real_log(abs(number)), atan2(number.imag, number.real))


def log_of_base(x: Number, base: Number) -> Complex:
    """Return the logarithm to a base."""
    return log(x) / log(base)


def log2(input: Number) -> Complex:
    """Return the logarithm to the base 2."""
    return log(input) / 0.6931471805599453


def log10(input: Number) -> Complex:
    """Return the logarithm to the base 10."""
    return log(input) / 2.302585092994046


def sqrt(input: Number) -> Complex:
    """Return the square root with a real part that is not negative."""
    number = complex(input)
    right = number.real >= 0
    half = real_sqrt(0.5 * (abs(number) + (number.real if right else -number.real)))
    other = number.imag / (2.0 * (1.0 if half == 0 else half))
    side = copysign(1.0, number.imag)
    return Complex(half if right else side * other, other if right else side * half)


def rsqrt(input: Number) -> Complex:
    """Return 1 by the square root."""
    return 1.0 / sqrt(input)


def square(input: Number) -> Number:
    """Return the square."""
    return input * input


def reciprocal(input: Number) -> Number:
    """Return 1 by the number."""
    return 1.0 / complex(input)


def sgn(input: Number) -> Number:
    """Return the number by its absolute value; 0 for 0."""
    number = complex(input)
    size = abs(number)
    return number / (1.0 if size == 0 else size)


def sin_of(input: Number) -> Complex:
    """Return the sine."""
    number = complex(input)
    return Complex(sin(number.real) * cosh(number.imag), cos(number.real) * sinh(number.imag))


def cos_of(input: Number) -> Complex:
    """Return the cosine."""
    number = complex(input)
    return Complex(cos(number.real) * cosh(number.imag), -sin(number.real) * sinh(number.imag))


def sinh_of(input: Number) -> Complex:
    """Return the hyperbolic sine."""
    number = complex(input)
    return Complex(sinh(number.real) * cos(number.imag), cosh(number.real) * sin(number.imag))


def cosh_of(input: Number) -> Complex:
    """Return the hyperbolic cosine."""
    number = complex(input)
    return Complex(cosh(number.real) * cos(number.imag), sinh(number.real) * sin(number.imag))


def tanh(input: Number) -> Complex:
    """Return the hyperbolic tangent; from 20 on it is 1 to rounding, before anything overflows."""
    number = complex(input)
    real, imag = 2.0 * min(max(number.real, -20.0), 20.0), 2.0 * number.imag
    below = cosh(real) + cos(imag)
    return Complex(sinh(real) / below, sin(imag) / below)


def tan(input: Number) -> Complex:
    """Return the tangent."""
    turned = tanh(Complex(-complex(input).imag, complex(input).real))
    return Complex(turned.imag, -turned.real)


def sigmoid(input: Number) -> Complex:
    """Return the logistic function."""
    return 1.0 / (1.0 + exp(-input))


def is_nan(input: Number) -> bool:
    """Return whether a part is NaN."""
    number = complex(input)
    return isnan(number.real) or isnan(number.imag)


def is_inf(input: Number) -> bool:
    """Return whether a part is infinite."""
    number = complex(input)
    return isinf(number.real) or isinf(number.imag)


def is_finite(input: Number) -> bool:
    """Return whether both parts are finite."""
    number = complex(input)
    return isfinite(number.real) and isfinite(number.imag)


OF_PARTS: dict[str, types.FunctionType] = {
    "torch.conj": conjugate,
    "torch.conj_physical": conjugate,
    "torch.real": real,
    "torch.imag": imag,
    "torch.angle": phase,
    "torch.polar": polar,
    "torch.complex": of_parts,
    "cmath.phase": phase,
    "cmath.polar": as_polar,
    "cmath.rect": rect,
    "cmath.isnan": is_nan,
    "cmath.isinf": is_inf,
    "cmath.isfinite": is_finite,
    "cmath.exp": exp,
    "cmath.log": log,
    "cmath.log10": log10,
    "cmath.sqrt": sqrt,
    "cmath.sin": sin_of,
    "cmath.cos": cos_of,
    "cmath.tan": tan,
    "cmath.sinh": sinh_of,
    "cmath.cosh": cosh_of,
    "cmath.tanh": tanh,
}
"""The functions that take or give complex numbers whatever they are called with, by their names."""

ON_COMPLEX: dict[str, types.FunctionType] = {
    "torch.abs": absolute,
    "torch.absolute": absolute,
    "torch.exp": exp,
    "torch.exp2": exp2,
    "torch.log": log,
    "torch.log2": log2,
    "torch.log10": log10,
    "torch.sqrt": sqrt,
    "torch.rsqrt": rsqrt,
    "torch.square": square,
    "torch.reciprocal": reciprocal,
    "torch.pow": power_of,
    "torch.sgn": sgn,
    "torch.sin": sin_of,
    "torch.cos": cos_of,
    "torch.tan": tan,
    "torch.sinh": sinh_of,
    "torch.cosh": cosh_of,
    "torch.tanh": tanh,
    "torch.sigmoid": sigmoid,
    "torch.isnan": is_nan,
    "torch.isinf": is_inf,
    "torch.isfinite": is_finite,
}
"""What torch's functions are on complex numbers, where they are something else on real ones."""

POWER: types.FunctionType = power_of
"""`pow` of two numbers."""
HELPERS: tuple[types.FunctionType, ...] = (
    *(power, power_of, quotient, log_of_base),
    *OF_PARTS.values(),
    *ON_COMPLEX.values(),
)
"""Every function of this module that programs may run."""
METHODS: dict[str, types.FunctionType] = {"conjugate": conjugate, "conj": conjugate, "abs": absolute, "angle": phase}
"""Methods that real numbers have too."""
