"""The random numbers are Philox4x32-10's, and the distributions are what `ir/philox.py` says."""

from __future__ import annotations

import statistics

import pytest

from brickwork.ir import philox

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_published_vectors(counter, key, words):
    assert philox.philox(counter, key) == words


def test_all_four_words_are_used():
    assert philox.block(7, 0, 0, 3) == philox.block(7, 3, 0, 3) != philox.block(7, 4, 0, 3)
    assert len({philox.uniform(7, n, 0, 3) for n in range(4)}) == 4


def test_counter_extra_site_and_key_each_matter():
    draws = [
        philox.uniform(key, counter, extra, site)
        for key, counter, extra, site in [(1, 2, 3, 4), (2, 2, 3, 4), (1, 6, 3, 4), (1, 2, 4, 4), (1, 2, 3, 5)]
    ]
    assert len(set(draws)) == 5
    assert philox.uniform(1 << 32, 0, 0, 0) != philox.uniform(0, 0, 0, 0)
    assert philox.uniform(0, 1 << 34, 0, 0) != philox.uniform(0, 0, 0, 0)


def test_uniform_is_in_the_unit_interval_and_exact():
    draws = [philox.uniform(11, n, 0, 0) for n in range(4000)]
    assert all(0.0 <= draw < 1.0 and (draw * 2**24).is_integer() for draw in draws)
    assert abs(statistics.fmean(draws) - 0.5) < 0.02


def test_normal_has_mean_zero_and_variance_one():
    draws = [philox.normal(5, n, 0, 0) for n in range(8000)]
    assert abs(statistics.fmean(draws)) < 0.04
    assert abs(statistics.pstdev(draws) - 1) < 0.03
    neighbours = [x * y for x, y in zip(draws[::2], draws[1::2], strict=True)]
    assert abs(statistics.fmean(neighbours)) < 0.06


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 4), (0, 2**32 - 1), (0, 2**32), (-(2**63), 2**63 - 1)])
def test_integer_stays_in_range_and_fills_it(low, high):
    draws = [philox.integer(5, n, 0, 0, (low, high)) for n in range(2000)]
    assert all(low <= draw < high for draw in draws)
    span = high - low
    assert max(draws) >= low + (span - 1) * 0.99 // 1
    assert min(draws) <= low + span * 0.01
    assert len(set(draws)) > min(span, 2000) * 0.99 - 1
