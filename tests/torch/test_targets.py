"""What brickwork has to reach, and tables that are put together of others."""

import pytest

from benchmarks import scaling, sin, timex
from benchmarks.targets import Target, reaching
from brickwork import bench

ROWS = {1: {"torch": 4e-3, "brickwork": 3e-3}, 2: {"torch": 8e-3, "brickwork": 9e-3}}


def table_of(rows):
    """A table whose times are given: {x: {line: seconds}}."""
    listed = {x: {line: [seconds] for line, seconds in row.items()} for x, row in rows.items()}
    return bench.tabled(listed, title="sine", moved="8 * N", flops="2 * N")


def test_targets_are_seconds_or_times_of_another():
    table = reaching(table_of(ROWS), Target(1, "torch"), Target(5e-3))
    assert [case.at_most for case in table.record.cases] == pytest.approx([4e-3, 5e-3])
    assert table.case(1).target == "torch and 5.00 ms"
    assert "(met)" in str(table)
    assert "(missed)" in str(table)


def test_targets_hold_where_they_were_set_and_where_the_other_was_timed():
    table = reaching(table_of(ROWS), Target(2, "numba"), at=(2,))
    assert (table.case(1).target, table.case(2).target) == ("", "2 x numba")
    assert [case.at_most for case in table.record.cases] == [0.0, 0.0]


def test_joined_tables_have_the_lines_of_all():
    first, second = (table_of({1: {line: seconds}}) for line, seconds in (("brickwork", 1e-3), ("torch", 2e-3)))
    table = sin.joined(first, second)
    assert table.lines == ("brickwork", "torch")
    assert table.measured_in("speed-up").value(1, "brickwork") == pytest.approx(2)


def test_formulas_have_numbers_in_the_place_of_what_stays_the_same():
    assert timex._filled(timex.OPERATIONS, {"B": 8, "C": 64}) == "8 * 64 * T * (T + 1)"


def test_times_for_a_million():
    case = scaling._for_a_million(table_of({1000: {"brickwork": 1e-3}}).case(1000), 1000)
    assert case.timings["brickwork"].median == pytest.approx(1.0)
    assert (case.moved, case.flops) == (8_000_000, 2_000_000)
