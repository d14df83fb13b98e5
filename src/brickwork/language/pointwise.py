"""torch's pointwise functions that are made of others, as plain Python on numbers.

They are inlined as those of `formulas.py` are. A local that first takes the argument has the argument's type, so that
`sign` of a float is a float.
"""

from __future__ import annotations

from math import (
    copysign,
    cos,
    erf,
    erfc,
    exp,
    expm1,
    fmod,
    inf,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    nan,
    nextafter,
    pi,
    sin,
    sqrt,
    tanh,
)

from brickwork.language.formulas import Real


def torch_isclose(input: Real, other: Real, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether two numbers are close, as torch asks it."""
    close = abs(input - other) <= atol + rtol * abs(other)
    both = equal_nan and isnan(input) and isnan(other)
    return input == other or both or (close and isfinite(input) and isfinite(other))


def sign(input: Real) -> Real:
    """Return -1, 0 or 1; 0 for NaN."""
    result = input
    result = 1 if input > 0 else -1 if input < 0 else 0
    return result


def signbit(input: Real) -> bool:
    """Return whether the sign is negative, also that of zero."""
    return copysign(1.0, input) < 0


def square(input: Real) -> Real:
    """Return the square."""
    return input * input


def reciprocal(input: Real) -> Real:
    """Return 1 / x."""
    return 1.0 / float(input)


def root_of_sum(value: Real) -> Real:
    """Return the square root of a sum of squares: that of 0 has the slope 0, as torch's norms have."""
    return value if value == 0 else sqrt(value)


def same(value: Real) -> Real:
    """Return a number itself: of rows it makes new ones, as `clone` does."""
    return value


def is_own(function: object) -> bool:
    """Return whether this is a function of brickwork's own that is computed item by item where it is given rows."""
    return function is root_of_sum or function is same


def rsqrt(input: Real) -> Real:
    """Return 1 / sqrt(x)."""
    return 1.0 / sqrt(input)


def sigmoid(input: Real) -> Real:
    """Return the logistic function."""
    small = exp(input if input < 0 else -input)
    return (small if input < 0 else 1.0) / (1.0 + small)


def logit(input: Real, eps: float | None = None) -> Real:
    """Return the inverse of the logistic function."""
    value = float(input)
    if eps is not None:
        value = min(max(value, eps), 1 - eps)
    return log(value / (1 - value))


def relu(input: Real) -> Real:
    """Return x where it is positive or NaN, else 0."""
    return 0 if input <= 0 else input


def relu6(input: Real) -> Real:
    """Return x between 0 and 6."""
    return 0 if input <= 0 else 6 if input >= 6 else input


def leaky_relu(input: Real, negative_slope: float = 0.01) -> Real:
    """Return x, or a part of it where it is negative."""
    return input if input > 0 else input * negative_slope


def elu(input: Real, alpha: float = 1.0) -> Real:
    """Return x, or alpha * (exp(x) - 1) where it is negative."""
    return alpha * expm1(input) if input <= 0 else input


def silu(input: Real) -> Real:
    """Return x * sigmoid(x)."""
    return input * sigmoid(input)


def mish(input: Real) -> Real:
    """Return x * tanh(softplus(x))."""
    return input * tanh(softplus(input))


def softplus(input: Real, beta: float = 1.0, threshold: float = 20.0) -> Real:
    """Return log(1 + exp(beta * x)) / beta, and x itself where beta * x is large."""
    scaled = input * beta
    return input if scaled > threshold else log1p(exp(scaled)) / beta


def softsign(input: Real) -> Real:
    """Return x / (1 + |x|)."""
    return input / (1.0 + abs(input))


def logsigmoid(input: Real) -> Real:
    """Return log(sigmoid(x))."""
    return min(0.0, input) - log1p(exp(input if input < 0 else -input))


def hardtanh(input: Real, min_val: float = -1.0, max_val: float = 1.0) -> Real:
    """Return x between two limits."""
    return max_val if input >= max_val else min_val if input <= min_val else input


def hardsigmoid(input: Real) -> Real:
    """Return x / 6 + 1 / 2 between 0 and 1."""
    return min(max(input + 3.0, 0.0), 6.0) / 6.0


def hardswish(input: Real) -> Real:
    """Return x * hardsigmoid(x)."""
    return input * min(max(input + 3.0, 0.0), 6.0) / 6.0


def gelu(input: Real, approximate: str = "none") -> Real:
    """Return x times the normal distribution function, or its approximation by tanh."""
    if approximate == "tanh":
        return 0.5 * input * (1.0 + tanh(0.7978845608028654 * (input + 0.044715 * input * input * input)))
    return input * 0.5 * (1.0 + erf(input * 0.7071067811865476))


def clamp(input: Real, min: Real | None = None, max: Real | None = None) -> Real:
    """Return x between two limits; NaN stays."""
    result = input
    if min is not None:
        result = result if result >= min or result != result else min
    if max is not None:
        result = result if result <= max or result != result else max
    return result


def where(condition: bool, input: Real, other: Real) -> Real:
    """Return one of two numbers."""
    return input if condition else other


def maximum(input: Real, other: Real) -> Real:
    """Return the greater number, NaN if one of them is."""
    return input if input != input or input > other else other


def minimum(input: Real, other: Real) -> Real:
    """Return the smaller number, NaN if one of them is."""
    return input if input != input or input < other else other


def fmax(input: Real, other: Real) -> Real:
    """Return the greater number, the other one of NaN."""
    return other if input != input or other > input else input


def fmin(input: Real, other: Real) -> Real:
    """Return the smaller number, the other one of NaN."""
    return other if input != input or other < input else input


def torch_fmod(input: Real, other: Real) -> Real:
    """Return the remainder with the sign of the dividend, of integers too."""
    size = -input if input < 0 else input
    rest = size % abs(other)
    return -rest if input < 0 else rest


def torch_remainder(input: Real, other: Real) -> Real:
    """Return the remainder with the sign of the divisor."""
    return input % other


def floor_divide(input: Real, other: Real) -> Real:
    """Return the floor of the quotient."""
    return input // other


def div(input: Real, other: Real, *, rounding_mode: str | None = None) -> Real:
    """Return the quotient, as it is or rounded down or to zero."""
    if rounding_mode == "floor":
        return input // other
    if rounding_mode == "trunc":
        quotient = abs(input) // abs(other)
        return quotient if signbit(input) == signbit(other) else -quotient
    return input / other


def add(input: Real, other: Real, *, alpha: Real = 1) -> Real:
    """Return input + alpha * other."""
    return input + alpha * other


def subtract(input: Real, other: Real, *, alpha: Real = 1) -> Real:
    """Return input - alpha * other."""
    return input - alpha * other


def multiply(input: Real, other: Real) -> Real:
    """Return the product."""
    return input * other


def negative(input: Real) -> Real:
    """Return -x."""
    return -input


def positive(input: Real) -> Real:
    """Return x."""
    return +input


def frac(input: Real) -> Real:
    """Return the fraction, with the sign of x."""
    return fmod(input, 1.0)


def lerp(input: Real, end: Real, weight: Real) -> Real:
    """Return the number that lies `weight` of the way from one to the other."""
    return input + weight * (end - input) if abs(weight) < 0.5 else end - (end - input) * (1 - weight)


def addcmul(input: Real, tensor1: Real, tensor2: Real, *, value: Real = 1) -> Real:
    """Return input + value * tensor1 * tensor2."""
    return input + value * tensor1 * tensor2


def addcdiv(input: Real, tensor1: Real, tensor2: Real, *, value: Real = 1) -> Real:
    """Return input + value * tensor1 / tensor2."""
    return input + value * tensor1 / tensor2


def heaviside(input: Real, values: Real) -> Real:
    """Return 0 below zero, 1 above, and `values` at zero."""
    result = input
    result = values if input == 0 else 1 if input > 0 else 0
    return result


def xlogy(input: Real, other: Real) -> Real:
    """Return x * log(y), and 0 where x is 0 and y is not NaN."""
    nothing = input == 0 and (other <= 0 or isinf(other))
    return 0.0 * float(input) if nothing else input * log(other)


def logaddexp(input: Real, other: Real) -> Real:
    """Return log(exp(x) + exp(y))."""
    gap = input - other
    rest = log1p(exp(gap if gap < 0 else -gap))
    return input if input == other and isinf(input) else max(input, other) + rest


def logaddexp2(input: Real, other: Real) -> Real:
    """Return log2(2**x + 2**y)."""
    gap = (input - other) * 0.6931471805599453
    rest = log1p(exp(gap if gap < 0 else -gap)) * 1.4426950408889634
    return input if input == other and isinf(input) else max(input, other) + rest


def deg2rad(input: Real) -> Real:
    """Return the angle in radians."""
    return input * 0.017453292519943295


def rad2deg(input: Real) -> Real:
    """Return the angle in degrees."""
    return input * 57.29577951308232


def sinc(input: Real) -> Real:
    """Return sin(pi x) / (pi x)."""
    angle = input * pi
    return 1.0 if input == 0 else sin(angle) / angle


def nan_to_num(input: Real, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Real:
    """Return the number, or what stands for NaN and the infinities."""
    result = float(input)
    above = nextafter(copysign(inf, result), 0.0)
    below = -abs(above)
    above = abs(above)
    if posinf is not None:
        above = posinf
    if neginf is not None:
        below = neginf
    return nan if isnan(result) else result if isfinite(result) else above if result > 0 else below


def digamma(input: Real) -> Real:
    """Return the logarithmic derivative of the gamma function."""
    value = float(input)
    shift = 0.0
    if value < 0:
        fraction = fmod(value, 1.0)
        shift = -pi * cos(pi * fraction) / sin(pi * fraction) if fraction != 0 else nan
        value = 1 - value
    pole = value == 0
    for _ in range(10):
        if value < 10:
            shift -= 1.0 / value
            value += 1
    inverse = 1.0 / (value * value)
    tail = inverse * (
        0.08333333333333333
        - inverse
        * (
            0.008333333333333333
            - inverse
            * (
                0.003968253968253968
                - inverse * (0.004166666666666667 - inverse * (0.007575757575757576 - inverse * 0.021092796092796094))
            )
        )
    )
    return copysign(inf, -input) if pole else shift + (log(value) - 0.5 / value - tail)


def erfinv(input: Real) -> Real:
    """Return the inverse of the error function."""
    value = float(input)
    logarithm = log1p(-(value * value))
    term = 4.330746750799873 + 0.5 * logarithm
    guess = sqrt(sqrt(term * term - logarithm * 6.802721088435374) - term)
    size = abs(value)
    for _ in range(3):
        error = erf(guess) - size if size < 0.5 else (1 - size) - erfc(guess)
        slope = 1.1283791670955126 * exp(-guess * guess)
        newton = error / slope
        guess -= newton / (1 + guess * newton)
    result = copysign(guess if size < 1 else inf if size == 1 else nan, value)
    step = (value - erf(result)) / (1.1283791670955126 * exp(-result * result))  # at 0 all of the derivative is here
    return result + step if size < 0.5 else result


def bitwise_and(input: int, other: int) -> int:
    """Return the bits that both have."""
    return input & other


def bitwise_or(input: int, other: int) -> int:
    """Return the bits that one of them has."""
    return input | other


def bitwise_xor(input: int, other: int) -> int:
    """Return the bits in which they differ."""
    return input ^ other


def bitwise_not(input: int) -> int:
    """Return the other bits."""
    return ~input


def bitwise_left_shift(input: int, other: int) -> int:
    """Return the bits moved up."""
    return input << other


def bitwise_right_shift(input: int, other: int) -> int:
    """Return the bits moved down."""
    return input >> other


def logical_and(input: Real, other: Real) -> bool:
    """Return whether both are not zero."""
    return bool(input) and bool(other)


def logical_or(input: Real, other: Real) -> bool:
    """Return whether one of them is not zero."""
    return bool(input) or bool(other)


def logical_xor(input: Real, other: Real) -> bool:
    """Return whether one of them alone is not zero."""
    return bool(input) != bool(other)


def logical_not(input: Real) -> bool:
    """Return whether it is zero."""
    return not input


def eq(input: Real, other: Real) -> bool:
    """Return whether they are equal."""
    return input == other


def ne(input: Real, other: Real) -> bool:
    """Return whether they differ."""
    return input != other


def lt(input: Real, other: Real) -> bool:
    """Return whether the first is less."""
    return input < other


def le(input: Real, other: Real) -> bool:
    """Return whether the first is not greater."""
    return input <= other


def gt(input: Real, other: Real) -> bool:
    """Return whether the first is greater."""
    return input > other


def ge(input: Real, other: Real) -> bool:
    """Return whether the first is not less."""
    return input >= other
