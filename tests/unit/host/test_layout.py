import pytest

from brickwork.host.layout import (
    Placement,
    extent,
    is_aligned,
    is_contiguous,
    is_narrow,
    may_alias,
    overlap,
    tensor_type,
    unit_axis,
)
from brickwork.ir.dtypes import FLOAT32


@pytest.mark.parametrize(
    ("sizes", "strides", "contiguous", "unit"),
    [
        ((), (), True, None),
        ((4,), (1,), True, 0),
        ((4,), (2,), False, None),
        ((1,), (7,), True, 0),
        ((3, 4), (4, 1), True, 1),
        ((3, 4), (1, 3), False, 0),
        ((3, 1), (1, 9), True, 1),
        ((0, 4), (9, 9), True, 0),
        ((2, 3), (1, 1), False, 1),
    ],
)
def test_types_follow_sizes_and_strides(sizes, strides, contiguous, unit):
    assert is_contiguous(sizes, strides) is contiguous
    assert unit_axis(sizes, strides) == unit
    kind = tensor_type(FLOAT32, sizes, strides)
    assert (kind.rank, kind.contiguous, kind.unit_axis) == (len(sizes), contiguous, unit)


def test_extents_reach_from_the_first_to_the_last_element():
    assert extent(Placement(0, (2, 3), (10, 2), 4)) == (10 + 4 + 1) * 4
    assert extent(Placement(0, (), (), 8)) == 8
    assert extent(Placement(0, (0, 3), (3, 1), 8)) == 0


def test_memory_overlaps_if_the_ranges_do():
    one, next_to, inside = (Placement(address, (4,), (1,), 4) for address in (100, 116, 112))
    empty = Placement(104, (0,), (1,), 4)
    assert not overlap(one, next_to)
    assert overlap(one, inside)
    assert not overlap(one, empty)
    assert may_alias([one, inside], [0])
    assert may_alias([one, inside], [1])
    assert not may_alias([one, inside], [])
    assert not may_alias([one, next_to], [0, 1])
    assert may_alias([Placement(0, (2, 3), (2, 1), 4)], [0])


def test_tensors_without_data_share_no_memory():
    nowhere = Placement(0, (4,), (1,), 4)
    assert not may_alias([nowhere, nowhere], [0, 1])


def test_narrow_calls_have_small_sizes_places_and_integers():
    most = 1 << 28
    small = Placement(0, (most - 1, 2), (1, most), 4)
    assert is_narrow([small], [most - 1, 1 - most])
    assert is_narrow([], [])
    assert not is_narrow([small], [most])
    assert not is_narrow([small], [-most])
    assert not is_narrow([small, Placement(0, (most,), (0,), 4)], [])
    assert not is_narrow([Placement(0, (9, 2), (1 << 28, 1), 1)], [])
    assert is_narrow([Placement(0, (8, 2), (1 << 28, 1), 8)], [])
    assert not is_narrow([Placement(0, (1,), (1 << 31,), 4)], [])


def test_aligned_calls_have_tensors_that_begin_at_a_multiple_of_16_bytes():
    assert is_aligned([Placement(address, (4,), (1,), 4) for address in (0, 16, 4096)])
    assert not is_aligned([Placement(address, (4,), (1,), 4) for address in (16, 40)])
    assert is_aligned([])
