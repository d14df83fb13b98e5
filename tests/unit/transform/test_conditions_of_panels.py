"""Sums of products are packed where each condition on them holds, and are not where one does not."""

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Symbol
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import read_symbols
from brickwork.transform.schedule.panel_loops import ZERO, _Tile
from brickwork.transform.schedule.panels import _way, _with_fixed_sums, find_nest, keeps_order
from support.lowering import memory
from support.scheduling import agree, kernel_of, loops_of
from unit.transform.test_no_panels import nest_in, plain, squares

Tensor = torch.Tensor
PLACES = memory([[1, 0, 1, 2]], INT64)


def claimed(a: Tensor, b: Tensor, y: Tensor, place: Tensor) -> None:
    n = a.shape[0]
    for i in bw.prange(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            y[place[0, i] % 2, j] += s


def test_updates_of_elements_keep_the_order():
    kernel = kernel_of(claimed, *squares(4), PLACES)
    analysis, loops = find_updates(kernel, analyse(kernel), claimed=True), loops_of(kernel)
    verdict = analysis.loops[loops["i"].index]
    assert verdict.independent
    assert [tensor.name for tensor in verdict.updates] == ["y"]
    assert keeps_order(loops["i"], analysis)
    assert find_nest(loops["i"], analysis) is None


def triangle_by_parts(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if j + k < n:
                    for m in range(i + 1):
                        s += a[i, m] * b[k, j]
            y[i, j] = s


def by_a_product_behind_a_condition(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if j + k < n:
                    for m in range(min(n, i * i)):
                        s += a[i, m] * b[k, j]
            y[i, j] = s


def by_a_product_inside(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                for m in range(min(n, i * i)):
                    s += a[i, m] * b[k, j]
            y[i, j] = s


def not_even(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(max(0, 4 - i * i), n):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def into_elements(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                y[i, j] += a[i, k] * b[k, j]


def of_columns(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            y[0, j] += s


def with_a_value_of_the_outer_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s, last = 0.0, 1.0
            for k in range(n):
                last = a[i, k]
                for m in range(n):
                    s += last * b[m, j]
            y[i, j] = s + last


def of_whole_numbers(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0
            for k in range(n):
                s += int(a[i, k]) * int(b[k, j])
            y[i, j] = s


def test_bounds_behind_conditions_go_with_rows():
    nest = nest_in(triangle_by_parts, *squares(5))
    assert nest is not None
    rows = {loop.index for loop in nest.rows}
    assert not any(read_symbols((loop.start, loop.stop)) & rows for loop in nest.contraction.sums)
    agree(triangle_by_parts, *squares(5))


@pytest.mark.parametrize("function", [not_even, by_a_product_behind_a_condition, by_a_product_inside])
def test_bounds_that_neither_grow_nor_fall_are_not_packed(function):
    assert nest_in(function, *squares(5)) is None
    agree(function, *squares(5))


def ranges_of(loops):
    return {loops[name].index: (loops[name].start, build.sub(loops[name].stop, build.integer(1))) for name in "ij"}


@pytest.mark.parametrize("function", [into_elements, of_columns, with_a_value_of_the_outer_sum, of_whole_numbers])
def test_other_sums_are_not_packed(function):
    assert nest_in(function, *squares(5)) is None
    agree(function, *squares(5))


def test_sums_with_the_same_bounds_in_all_iterations_stay_as_they_are():
    loops = loops_of(kernel_of(plain, *squares(4)))
    body = loops["j"].body
    found = _with_fixed_sums(body, ranges_of(loops))
    assert found == (body, ((loops["k"].start, loops["k"].stop),), frozenset())


def test_integers_grow_and_fall_with_what_they_are_made_of():
    index = Symbol("i", 1, INT64)
    for number, way in ((2, 1), (0, None), (-1, None)):
        divided = Apply(
            operator=OPERATORS["floordiv"], operands=(build.read(index), build.integer(number)), dtype=INT64
        )
        assert _way(divided, index) == way
    square = Apply(operator=OPERATORS["mul"], operands=(build.read(index), build.read(index)), dtype=INT64)
    for pair in ((square, build.read(index)), (build.read(index), square)):
        assert _way(Apply(operator=OPERATORS["add"], operands=pair, dtype=INT64), index) is None


# ---------------------------------------------------------------- what is asked before a factor is read


def masked_rows(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if i + k > 2:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def masked_columns(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if j + k > 2:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def masked_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if a[i, k] > 0.0 and j + k > 2:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def asked(function):
    """Return what is asked before the first and the second factor are read: a mask, or a test of places."""
    nest = nest_in(function, *squares(5))
    assert nest is not None
    tile = _Tile(nest, None, None, ZERO, ZERO, ZERO, ZERO)
    return [
        ["mask" if each in factor.masks else "places" for each in tile.conditions(factor)]
        for factor in nest.contraction.factors
    ]


def test_elements_are_read_where_they_are_there_and_are_wanted():
    assert asked(plain) == [[], []]
    assert asked(masked_rows) == [["mask"], ["places"]]
    assert asked(masked_columns) == [["places"], ["mask"]]
    assert asked(masked_both) == [["places", "mask", "places"], ["mask", "places"]]
