"""Where a sum of products, scaled and begun after it was summed up, is another number than the source's sum.

    for k in range(n): y[i] += d[i] * f[k] * g[k]        y[i] + (sum of f[k] * g[k]) * d[i]

A late sum is 0.0 where all terms are zeros, whatever their signs: what begins with -0.0 may be -0.0 in one of both
alone. Products that vanish before a large scale meets them, and scales that vanish themselves, lose bits that the
source has. What is not finite is seen from the sum itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from math import copysign

from brickwork.analysis.contractions import Contraction, computed_from
from brickwork.ir import build
from brickwork.ir.nodes import Apply, Assign, Cast, Constant, Expression, Symbol
from brickwork.legality import hazard

SMALL = 2.0**-100
"""Below this a product of float32 may have lost bits: its terms are below the least normal number, 2**-126."""
LARGE = 2.0**16
"""A scale up to this makes nothing of lost bits, those below 2**-137, that a float32 of 24 bits would show."""


def differs_late(found: Contraction, total: Symbol) -> Expression | None:
    """Return when a sum, which `total` is before it is scaled, is another number than the source's; None if never."""
    conditions = tuple(_conditions(found, total))
    return _joined("logical_or", conditions) if conditions else None


def _conditions(found: Contraction, total: Symbol) -> Iterator[Expression]:
    if not found.symbol.dtype.is_float:
        return
    if may_begin_with_negative_zero(found):
        begun, zero = build.read(found.symbol), build.constant(0.0, found.symbol.dtype)
        scaled = build.product([build.read(total), *found.scale])
        yield build.apply("logical_and", build.apply("eq", scaled, zero), is_negative_zero(begun))
    if not found.is_whole:
        yield from _vanishing(found, total)


def is_negative_zero(value: Expression) -> Expression:
    """Return whether a float is -0.0."""
    zero, one = build.constant(0.0, value.dtype), build.constant(1.0, value.dtype)
    sign = build.apply("lt", build.apply("copysign", one, value), zero)
    return build.apply("logical_and", build.apply("eq", value, zero), sign)


@hazard
def may_begin_with_negative_zero(found: Contraction) -> bool:
    """Whether a sum may begin with -0.0."""
    match computed_from(found.before, (found.symbol,)):
        case (*_, Assign(value=Constant(value=number))):
            return number == 0 and copysign(1.0, number) < 0
        case (*_, Assign(value=Cast(operand=operand))):
            return operand.dtype.is_float
        case _:
            return True


@hazard
def _vanishing(found: Contraction, total: Symbol) -> Iterator[Expression]:
    """Yield when a scale makes much of products that are too small, or is too small itself for being a quotient."""
    dtype = found.symbol.dtype
    one, small, product = build.constant(1.0, dtype), build.constant(SMALL, dtype), build.read(total)
    scale: list[Expression] = [one]
    products = [build.apply("lt", build.apply("abs", product), small)]
    known = 1.0
    for factor in found.scale:
        size = build.apply("abs", factor)
        product = build.mul(product, factor)
        products.append(build.apply("lt", build.apply("abs", product), small))
        if isinstance(factor, Constant):
            known *= max(abs(float(factor.value)), 1.0)
            continue
        scale.append(build.apply("maximum", size, one))
        if isinstance(factor, Apply) and factor.operator.name == "truediv":
            yield build.apply("lt", size, small)
    if len(scale) > 1 or known > LARGE:
        large = build.apply("gt", build.product([*scale, build.constant(known, dtype)]), build.constant(LARGE, dtype))
        yield build.apply("logical_and", large, _joined("logical_or", products[:-1]))


def _joined(name: str, conditions: Sequence[Expression]) -> Expression:
    return reduce(lambda one, other: build.apply(name, one, other), conditions)
