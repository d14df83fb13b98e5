"""Between which numbers those lie that are shifted, and how many bits numbers take."""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.polynomial import INT64_RANGE, Interval
from brickwork.ir.dtypes import INT64
from brickwork.legality import legality


@legality
def interval_of_bits(name: str, operands: Sequence[Interval]) -> Interval:
    """Return an interval around what an operator gives of integers in these intervals; natural ones tell the most."""
    natural = [each for each in operands if each.low is not None and each.low >= 0]
    if name == "bit_length":
        highs = [each.high for each in natural if each.high is not None]
        return Interval(0, highs[0].bit_length() if highs else INT64.bits)
    if len(natural) < len(operands):
        return INT64_RANGE
    value, places = natural
    if name == "shift_right":
        return Interval(0, value.high)
    if value.high is None or places.high is None or places.high >= INT64.bits:
        return INT64_RANGE
    within = Interval((value.low or 0) << (places.low or 0), value.high << places.high)
    return within if within.fits else INT64_RANGE
