"""Intervals around numbers that are shifted, and around how many bits numbers take: all that come of theirs."""

import itertools

import pytest

from brickwork.analysis.intervals import interval_of_bits
from brickwork.analysis.polynomial import EVERYTHING, INT64_RANGE, Interval
from brickwork.ir.dtypes import INT64
from brickwork.ir.operators import OPERATORS
from brickwork.ir.scalar_semantics import evaluate

ENDS = [-(2**63), -5, -1, 0, 1, 3, 40, 62, 63, 64, 2**40, 2**63 - 1]


@pytest.mark.parametrize("name", ["shift_left", "shift_right"])
def test_what_is_shifted_lies_within(name):
    for low, high in itertools.combinations_with_replacement(ENDS, 2):
        for least, most in itertools.combinations_with_replacement([place for place in ENDS if place >= 0], 2):
            within = interval_of_bits(name, [Interval(low, high), Interval(least, most)])
            for value, places in itertools.product((low, high, (low + high) // 2), (least, most)):
                found = evaluate(OPERATORS[name], [value, places], INT64)
                assert within.low <= found <= within.high


def test_lengths_lie_within():
    for low, high in itertools.combinations_with_replacement(ENDS, 2):
        within = interval_of_bits("bit_length", [Interval(low, high)])
        for value in (low, high, (low + high) // 2):
            assert within.low <= value.bit_length() <= within.high


def test_natural_numbers_tell_more():
    assert interval_of_bits("shift_left", [Interval(1, 1), Interval(0, 9)]) == Interval(1, 512)
    assert interval_of_bits("shift_left", [Interval(2, 3), Interval(1, 61)]) == INT64_RANGE.meet(Interval(4, 3 << 61))
    assert interval_of_bits("shift_left", [Interval(2, 3), Interval(1, 62)]) == INT64_RANGE
    assert interval_of_bits("shift_left", [Interval(0, 0), Interval(1, 64)]) == INT64_RANGE
    assert interval_of_bits("shift_right", [Interval(2, 30), Interval(0, None)]) == Interval(0, 30)
    assert interval_of_bits("bit_length", [Interval(0, 255)]) == Interval(0, 8)
    assert interval_of_bits("bit_length", [EVERYTHING]) == interval_of_bits("bit_length", [Interval(-1, 3)])
    assert interval_of_bits("bit_length", [Interval(5, None)]) == Interval(0, 64)
    assert interval_of_bits("shift_left", [Interval(1, None), Interval(0, 3)]) == INT64_RANGE
    assert interval_of_bits("shift_left", [Interval(1, 3), Interval(0, None)]) == INT64_RANGE
