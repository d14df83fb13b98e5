"""Between which numbers those lie that are shifted or chosen, quotients, remainders, and counts of bits."""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.polynomial import EVERYTHING, INT64_RANGE, Interval
from brickwork.ir.dtypes import INT64
from brickwork.legality import legality


@legality
def interval_of_bits(name: str, operands: Sequence[Interval]) -> Interval:
    """Return an interval around what an operator gives of integers in these intervals; natural ones tell the most."""
    natural = [(each.low, each.high) for each in operands if each.low is not None and each.low >= 0]
    if name == "bit_length":
        highs = [high for _, high in natural if high is not None]
        return Interval(0, highs[0].bit_length() if highs else INT64.bits)
    if len(natural) < len(operands):
        return INT64_RANGE
    (low, high), (least, most) = natural
    if name == "shift_right":
        return Interval(0, high)
    if high is None or most is None or most >= INT64.bits:
        return INT64_RANGE
    within = Interval(low << least, high << most)
    return within if within.fits else INT64_RANGE


def interval_of_choice(side: int, then: Interval, otherwise: Interval) -> Interval:
    """Return an interval around what a condition chooses: the greater of two is at least both, the less at most."""
    hull = then.hull(otherwise)
    lows = [each.low for each in (then, otherwise) if each.low is not None and side > 0]
    highs = [each.high for each in (then, otherwise) if each.high is not None and side < 0]
    return hull.meet(Interval(max(lows, default=None), min(highs, default=None)))


def mirrored(interval: Interval) -> Interval:
    """Return an interval around the numbers in one and their negatives."""
    if interval.low is None or interval.high is None:
        return EVERYTHING
    span = max(abs(interval.low), abs(interval.high))
    return Interval(-span, span)


def interval_of_rest(divisor: Interval) -> Interval:
    """Return an interval around the remainders by divisors in one."""
    low = 0 if divisor.low is not None and divisor.low > 0 else None if divisor.low is None else divisor.low + 1
    high = None if divisor.high is None else max(divisor.high - 1, 0)
    return Interval(low, high)
