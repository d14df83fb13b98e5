"""The derivative of every scalar operator: what reverse mode and forward mode multiply by.

`RULES` has an entry for each operator of the IR, with one `Partial` an operand, None where the derivative is zero
everywhere (`floor`, comparisons, everything on integers). Values at special points are torch's: the square root of 0
gives infinity, the absolute value of 0 gives 0, and a power's exponent gives 0 at a base of 0. Where torch and Python
differ in the function itself (`minimum`, `maximum`), the derivative goes to the operand that is chosen.

Operands and result come as expressions that are repeated freely, so callers pass reads of variables and constants.
How expressions are walked is not in here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from brickwork.ir.build import apply, constant, is_constant, logical_not, power, select
from brickwork.ir.nodes import Constant, Expression
from brickwork.ir.operators import OPERATORS
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """Where a derivative is taken: the operands, and the operator's result there."""

    operands: tuple[Expression, ...]
    result: Expression


_Scaled: TypeAlias = Callable[[Expression, Point], Expression]
_Chosen: TypeAlias = Callable[[Point], Expression]


@dataclass(frozen=True, slots=True)
class Partial:
    """The derivative by one operand.

    `scale(outer, point)` is `outer` (an adjoint or a tangent of the operands' type) times the derivative. Where
    `where(point)` does not hold the derivative is 0, and `scale` may be anything there, NaN too: it is selected away,
    never multiplied by 0.
    """

    scale: _Scaled
    where: _Chosen | None = None


def chain(partial: Partial, outer: Expression, point: Point) -> Expression:
    """Return `outer` times the derivative, 0 where `where` says so."""
    scaled = partial.scale(outer, point)
    if partial.where is None:
        return scaled
    return select(partial.where(point), scaled, constant(0.0, outer.dtype))


# ---------------------------------------------------------------- expressions, short


def _times(left: Expression, right: Expression) -> Expression:
    return right if is_constant(left, 1.0) else left if is_constant(right, 1.0) else apply("mul", left, right)


def _over(left: Expression, right: Expression) -> Expression:
    return apply("truediv", left, right)


def _plus(left: Expression, right: Expression) -> Expression:
    return apply("add", left, right)


def _minus(left: Expression, right: Expression) -> Expression:
    return apply("sub", left, right)


def _negative(value: Expression) -> Expression:
    return apply("neg", value)


def _number(value: float, like: Expression) -> Constant:
    return constant(value, like.dtype)


def _square(value: Expression) -> Expression:
    return apply("mul", value, value)


def _from_one(value: Expression) -> Expression:
    return _minus(_number(1.0, value), value)


def _is_zero(value: Expression) -> Expression:
    return apply("eq", value, _number(0.0, value))


# ---------------------------------------------------------------- operators of one operand


def _factor(derivative: Callable[[Expression, Expression], Expression]) -> tuple[Partial]:
    """Return the rule of an operator of one operand whose derivative is a function of operand and result."""
    return (Partial(lambda outer, point: _times(outer, derivative(point.operands[0], point.result))),)


def _quotient(divisor: Callable[[Expression, Expression], Expression]) -> tuple[Partial]:
    """Return the rule of an operator of one operand whose derivative is 1 by a function of operand and result."""
    return (Partial(lambda outer, point: _over(outer, divisor(point.operands[0], point.result))),)


def _absolute(outer: Expression, point: Point) -> Expression:
    (operand,) = point.operands
    zero = _number(0.0, operand)
    below = select(apply("lt", operand, zero), _negative(outer), zero)
    return select(apply("gt", operand, zero), outer, below)


def _bell(value: Expression) -> Expression:
    """Return the derivative of the error function."""
    return _times(_number(2.0 / math.sqrt(math.pi), value), apply("exp", _negative(_square(value))))


_SHIFT = 10
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def digamma(value: Expression) -> Expression:
    """Return the logarithmic derivative of the gamma function, an expression whose own derivatives are right, too.

    Below 0 it is reflected. The recurrence moves the operand up by 10, where the asymptotic series is exact.
    """
    zero, one = _number(0.0, value), _number(1.0, value)
    below = apply("lt", value, zero)
    start = select(below, _minus(one, value), value)
    moved = _plus(start, _number(_SHIFT, value))
    inverse = _over(one, _square(moved))
    tail = _number(_SERIES[-1], value)
    for coefficient in reversed(_SERIES[:-1]):
        tail = _plus(_times(tail, inverse), _number(coefficient, value))
    result = _minus(_minus(apply("log", moved), _over(_number(0.5, value), moved)), _times(tail, inverse))
    for step in reversed(range(_SHIFT)):
        result = _minus(result, _over(one, _plus(start, _number(step, value)) if step else start))
    angle = _times(_number(math.pi, value), apply("fmod", value, one))
    pole = select(_is_zero(angle), _number(math.nan, value), apply("sin", angle))
    mirrored = _over(_times(_number(math.pi, value), apply("cos", angle)), pole)
    return _minus(result, select(below, mirrored, zero))


# ---------------------------------------------------------------- operators of two operands


def _left(point: Point) -> Expression:
    return point.operands[0]


def _right(point: Point) -> Expression:
    return point.operands[1]


def _by(derivative: Callable[[Point], Expression], where: _Chosen | None = None) -> Partial:
    """Return a rule that multiplies by `derivative`."""
    return Partial(lambda outer, point: _times(outer, derivative(point)), where)


def _not_zero(chosen: Callable[[Point], Expression]) -> _Chosen:
    return lambda point: logical_not(_is_zero(chosen(point)))


def _of_denominator(outer: Expression, point: Point) -> Expression:
    return _times(_negative(outer), _over(point.result, _right(point)))


def _of_base(outer: Expression, point: Point) -> Expression:
    base, exponent = point.operands
    if is_constant(exponent, 1.0):
        return outer
    less = _minus(exponent, _number(1.0, exponent))
    short = power(base, less.value) if isinstance(less, Constant) else None
    return _times(outer, _times(exponent, short or apply("pow", base, less)))


def _exponent_counts(point: Point) -> Expression:
    base, exponent = point.operands
    return logical_not(apply("logical_and", _is_zero(base), apply("ge", exponent, _number(0.0, exponent))))


def _second_chosen(comparison: str) -> _Chosen:
    return lambda point: apply(comparison, _right(point), _left(point))


def _first_chosen(comparison: str) -> _Chosen:
    return lambda point: logical_not(apply(comparison, _right(point), _left(point)))


def _per_radius(point: Point, value: Expression) -> Expression:
    return _over(value, _plus(_square(_left(point)), _square(_right(point))))


def _off_origin(point: Point) -> Expression:
    return logical_not(apply("logical_and", _is_zero(_left(point)), _is_zero(_right(point))))


def _sign_of(operand: Expression) -> Expression:
    return apply("copysign", _number(1.0, operand), operand)


_WHOLE = Partial(lambda outer, _: outer)
_OPPOSITE = Partial(lambda outer, _: _negative(outer))

_TWO: dict[str, tuple[Partial | None, Partial | None]] = {
    "add": (_WHOLE, _WHOLE),
    "sub": (_WHOLE, _OPPOSITE),
    "mul": (_by(_right), _by(_left)),
    "truediv": (Partial(lambda outer, point: _over(outer, _right(point))), Partial(_of_denominator)),
    "pow": (
        Partial(_of_base, _not_zero(_right)),
        _by(lambda point: _times(point.result, apply("log", _left(point))), _exponent_counts),
    ),
    "mod": (_WHOLE, _by(lambda point: _negative(apply("floordiv", *point.operands)))),
    "fmod": (_WHOLE, _by(lambda point: _negative(apply("trunc", _over(*point.operands))))),
    "minimum": (Partial(_WHOLE.scale, _first_chosen("lt")), Partial(_WHOLE.scale, _second_chosen("lt"))),
    "maximum": (Partial(_WHOLE.scale, _first_chosen("gt")), Partial(_WHOLE.scale, _second_chosen("gt"))),
    "atan2": (
        _by(lambda point: _per_radius(point, _right(point)), _off_origin),
        _by(lambda point: _per_radius(point, _negative(_left(point))), _off_origin),
    ),
    "hypot": (
        _by(lambda point: _over(_left(point), point.result)),
        _by(lambda point: _over(_right(point), point.result)),
    ),
    "copysign": (_by(lambda point: _times(_sign_of(_left(point)), _sign_of(_right(point))), _not_zero(_left)), None),
    # A neighbour is as far away all around: it moves with the number, and not with where the step leads.
    "nextafter": (_WHOLE, None),
}

_ONE: dict[str, tuple[Partial]] = {
    "neg": (_OPPOSITE,),
    "to_float16": (_WHOLE,),
    "to_bfloat16": (_WHOLE,),
    "abs": (Partial(_absolute),),
    "sqrt": _quotient(lambda _, result: _times(_number(2.0, result), result)),
    "cbrt": _quotient(lambda _, result: _times(_number(3.0, result), _square(result))),
    "exp": _factor(lambda _, result: result),
    "exp2": _factor(lambda _, result: _times(result, _number(math.log(2.0), result))),
    "expm1": _factor(lambda _, result: _plus(result, _number(1.0, result))),
    "log": _quotient(lambda operand, _: operand),
    "log2": _quotient(lambda operand, _: _times(operand, _number(math.log(2.0), operand))),
    "log10": _quotient(lambda operand, _: _times(operand, _number(math.log(10.0), operand))),
    "log1p": _quotient(lambda operand, _: _plus(operand, _number(1.0, operand))),
    "sin": _factor(lambda operand, _: apply("cos", operand)),
    "cos": _factor(lambda operand, _: _negative(apply("sin", operand))),
    "tan": _factor(lambda _, result: _plus(_number(1.0, result), _square(result))),
    "asin": _quotient(lambda operand, _: apply("sqrt", _from_one(_square(operand)))),
    "acos": _quotient(lambda operand, _: _negative(apply("sqrt", _from_one(_square(operand))))),
    "atan": _quotient(lambda operand, _: _plus(_square(operand), _number(1.0, operand))),
    "sinh": _factor(lambda operand, _: apply("cosh", operand)),
    "cosh": _factor(lambda operand, _: apply("sinh", operand)),
    "tanh": _factor(lambda _, result: _from_one(_square(result))),
    "asinh": _quotient(lambda operand, _: apply("sqrt", _plus(_square(operand), _number(1.0, operand)))),
    "acosh": _quotient(lambda operand, _: apply("sqrt", _minus(_square(operand), _number(1.0, operand)))),
    "atanh": _quotient(lambda operand, _: _from_one(_square(operand))),
    "erf": _factor(lambda operand, _: _bell(operand)),
    "erfc": _factor(lambda operand, _: _negative(_bell(operand))),
    "gamma": _factor(lambda operand, result: _times(result, digamma(operand))),
    "lgamma": _factor(lambda operand, _: digamma(operand)),
}

_FLAT = (
    "floordiv eq ne lt le gt ge logical_and logical_or logical_not bit_and bit_or bit_xor bit_not bit_length "
    "shift_left shift_right floor ceil trunc round isnan isinf isfinite"
)

RULES: dict[str, tuple[Partial | None, ...]] = {
    **_ONE,
    **_TWO,
    **{name: (None,) * OPERATORS[name].arity for name in _FLAT.split()},
}
"""The derivatives of every operator by its name, one an operand."""
