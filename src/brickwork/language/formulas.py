"""Functions of `math` that are made of others, as plain Python.

The compiler inlines them as it inlines a user's helpers, and `op.python` runs them. The parameters have the names that
the originals have. torch's functions are in `pointwise.py`; what is one operator of the IR is in `math.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import (
    copysign,
    fmod,
    inf,
    isfinite,
    isinf,
    nan,
    nextafter,
    sqrt,
)
from typing import Any

Real = Any
"""A number: the formulas follow its type."""


def require(condition: bool, message: str) -> None:
    """Fail with a ValueError unless the condition holds; in compiled code a check."""
    if not condition:
        raise ValueError(message)


# ---------------------------------------------------------------- integers


def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor."""
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


def lcm(a: int, b: int) -> int:
    """Return the least common multiple."""
    return 0 if a == 0 or b == 0 else abs(a // gcd(a, b) * b)


def factorial(n: int) -> int:
    """Return n!, which fits in 64 bits up to 20."""
    require(n >= 0, "factorial() not defined for negative values")
    result = 1
    for k in range(2, n + 1):
        result *= k
    return result


def comb(n: int, k: int) -> int:
    """Return how many ways there are to choose k of n."""
    require(n >= 0, "n must be a non-negative integer")
    require(k >= 0, "k must be a non-negative integer")
    result = 1
    for i in range(min(k, n - k)):
        common = gcd(result, i + 1)
        result = result // common * ((n - i) // ((i + 1) // common))
    return result if k <= n else 0


def perm(n: int, k: int | None = None) -> int:
    """Return how many ways there are to choose k of n in order."""
    require(n >= 0, "n must be a non-negative integer")
    count = n
    if k is not None:
        count = k
    require(count >= 0, "k must be a non-negative integer")
    result = 1
    for i in range(min(n, count)):
        result *= n - i
    return result if count <= n else 0


def isqrt(n: int) -> int:
    """Return the floor of the square root."""
    require(n >= 0, "isqrt() argument must be nonnegative")
    root = min(int(sqrt(n)), 3037000499)
    while root * root > n:
        root -= 1
    while root < 3037000499 and (root + 1) * (root + 1) <= n:
        root += 1
    return root


def bit_length(n: int) -> int:
    """Return how many bits the absolute value takes."""
    rest, length = abs(n), 0
    for width in (32, 16, 8, 4, 2, 1):
        if rest >> width != 0:
            rest >>= width
            length += width
    return length if rest == 0 else length + 1 + (0 if rest > 0 else 63)


def bit_count(n: int) -> int:
    """Return how many bits of the absolute value are set."""
    bits = abs(n)
    bits -= (bits >> 1) & 0x5555555555555555
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bits * 0x0101010101010101) >> 56) & 0xFF


def power_modulo(base: int, exponent: int, modulus: int) -> int:
    """Return base ** exponent % modulus, for a modulus below 2**31."""
    require(exponent >= 0, "pow() with a modulus takes a non-negative exponent")
    require(-2147483648 <= modulus <= 2147483648, "pow() takes a modulus of at most 2**31")
    result, factor, rest = 1 % modulus, base % modulus, exponent
    while rest > 0:
        if rest & 1:
            result = result * factor % modulus
        factor = factor * factor % modulus
        rest >>= 1
    return result


# ---------------------------------------------------------------- math's functions of floats


def isclose(a: Real, b: Real, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    """Return whether two numbers are close."""
    require(rel_tol >= 0 and abs_tol >= 0, "tolerances must be non-negative")
    close = abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)
    return a == b or (close and not isinf(a) and not isinf(b))


def remainder(x: Real, y: Real) -> Real:
    """Return the remainder by the nearest multiple of y, the even one of two."""
    size, step = abs(float(x)), abs(float(y))
    rest = fmod(size, step)
    gap = step - rest
    tie = rest - 2.0 * fmod(0.5 * (size - rest), step)
    result = rest if rest < gap else -gap if rest > gap else tie
    return copysign(1.0, x) * (result if isfinite(rest) else nan)


def modf(x: Real) -> tuple[Real, Real]:
    """Return the fraction and the integral part, both with the sign of x."""
    fraction = copysign(0.0 if isinf(x) else fmod(x, 1.0), x)
    return fraction, copysign(x - fraction, x)


def frexp(x: Real) -> tuple[Real, int]:
    """Return (m, e) with x == m * 2**e and 0.5 <= abs(m) < 1."""
    size, exponent = abs(float(x)), 0
    if size != 0 and isfinite(size):
        for k in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
            if size >= 2.0**k:
                size *= 2.0**-k
                exponent += k
        if size >= 1:
            size *= 0.5
            exponent += 1
        for k in (512, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
            if size < 2.0**-k:
                size *= 2.0 ** (k // 2)
                size *= 2.0 ** (k - k // 2)
                exponent -= k
        if size < 0.5:
            size *= 2.0
            exponent -= 1
    return copysign(size, x), exponent


def ldexp(x: Real, i: int) -> Real:
    """Return x * 2**i, rounded once."""
    fraction, exponent = frexp(x)
    power = min(max(exponent + i, -2048), 2048)
    small = power < -64
    rest = power + 64 if small else power
    for k in (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        if rest >= k:
            fraction *= 2.0 ** (k - 1)
            fraction *= 2.0
            rest -= k
        if rest <= -k:
            fraction *= 2.0 ** (1 - k)
            fraction *= 0.5
            rest += k
    scaled = fraction * (2.0**-64 if small else 1.0)
    return scaled if isfinite(x) and x != 0 else float(x)


def ulp(x: Real) -> Real:
    """Return the distance to the next number away from zero."""
    size = abs(float(x))
    above = nextafter(size, inf)
    gap = size - nextafter(size, 0.0) if isinf(above) else above - size
    return gap if isfinite(size) else size


def dist(p: Sequence[Real], q: Sequence[Real]) -> Real:
    """Return the distance of two points."""
    return sqrt(sum((a - b) * (a - b) for a, b in zip(p, q)))


def sumprod(p: Sequence[Real], q: Sequence[Real]) -> Real:
    """Return the sum of the products."""
    require(len(p) == len(q), "Inputs are not the same length")
    return sum(a * b for a, b in zip(p, q))
