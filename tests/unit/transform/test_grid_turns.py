"""Loops that accumulate in a thread of a grid: which are unrolled, and which let neighbours go together."""

import pytest
import torch

from brickwork.ir.dtypes import INT64
from support.causal import timex
from support.kernels import matrix_product
from support.kernels_models import bags
from support.layouts import product_of_rows_by_columns, products_of_rows
from support.lowering import memory
from unit.transform.test_grid import agree, pieces_of


def directives(function, *arguments):
    return [line for item in pieces_of(function, *arguments)[2] for line in str(item.schedule).splitlines()]


def counting(*sizes):
    if len(sizes) == 1:
        return [float(number % 5) for number in range(sizes[0])]
    return [counting(*sizes[1:]) for _ in range(sizes[0])]


def lags(x: torch.Tensor) -> torch.Tensor:
    """Sums of products of elements so far apart, which are fewer the farther they are."""
    out = torch.empty_like(x)
    for lag in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[0] - lag):
            s += x[t] * x[t + lag]
        out[lag] = s
    return out


def columns_first(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A matrix product, column by column."""
    out = a.new_empty(a.shape[0], b.shape[1])
    for j in range(b.shape[1]):
        for i in range(a.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def window(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Sums over a window of some length."""
    out = torch.empty_like(x)
    for t in range(x.shape[0]):
        s = 0.0
        for k in range(w.shape[0]):
            s += x[t + k] * w[k]
        out[t] = s
    return out


def triples(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Products of matrices with rows of three."""
    out = x.new_empty(x.shape[0], w.shape[1])
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(3):
                s += x[i, k] * w[k, j]
            out[i, j] = s
    return out


def test_turns_that_read_neighbours_are_written_out():
    w, k = memory(counting(2, 8)), memory(counting(5, 2, 8))
    assert directives(timex, w, k, 0.5)[-1] == "unroll(u, 4)"
    agree(timex, w, k, 0.5)
    a, b = memory(counting(5, 8)), memory(counting(8, 8))
    assert "unroll(k, 4)" in directives(matrix_product, a, b)
    agree(matrix_product, a, b)


def test_rows_go_together_in_loops_in_another_order():
    a, b = memory(counting(5, 8)), memory(counting(8, 8))
    assert directives(columns_first, a, b)[:2] == ["permute(i, j)", "jam(i, 4)"]
    agree(columns_first, a, b)


@pytest.mark.parametrize("rows", [1, 4, 7])
def test_rows_that_lie_far_apart_are_read_by_tiles_of_threads(rows):
    x, w = memory(counting(2, rows, 8)), memory(counting(2, 5, 8))
    assert directives(products_of_rows, x, w)[0] == "tile(i, 4)"
    agree(products_of_rows, x, w)
    x, w = memory(counting(rows, 8)), memory(counting(5, 8))
    assert directives(product_of_rows_by_columns, x, w)[:2] == ["tile(i, 4)", "permute(i, j)"]
    agree(product_of_rows_by_columns, x, w)


def test_few_turns_and_those_that_begin_anywhere_are_not():
    ids, starts = memory([0, 2, 1], INT64), memory([0, 2], INT64)
    for case in (
        (bags, memory(counting(3, 8)), ids, starts),
        (triples, memory(counting(5, 3)), memory(counting(3, 8))),
    ):
        assert not [line for line in directives(*case) if line.startswith("unroll")]


@pytest.mark.parametrize("length", [1, 4, 7, 16])
def test_lanes_slide_together_where_their_loops_are_as_long_as_they_are_many(length):
    assert directives(lags, memory(counting(length)))[:3] == ["parallel(lag)", "vectorise(lag, 4)", "unroll(t, 8)"]
    agree(lags, memory(counting(length)))


def test_lanes_over_a_short_window_do_not():
    assert "parallel(t)" in directives(window, memory(counting(8)), memory(counting(3)))
    assert "vectorise(t, 4)" not in directives(window, memory(counting(8)), memory(counting(3)))
