"""Loops that accumulate in a thread of a grid: which are unrolled, and which let neighbours go together."""

import pytest
import torch

from brickwork.ir.dtypes import DTYPES, INT64
from brickwork.ir.nodes import Constant, For, If, Role
from brickwork.ir.walk import walk
from brickwork.transform import versions
from brickwork.transform.schedule import register_tile
from support.causal import product, timex
from support.kernels import matrix_product
from support.kernels_models import bags
from support.layouts import product_of_rows_by_columns, products_of_rows
from support.lowering import memory
from unit.transform.test_grid import GPU, agree, kernels, pieces_of

TILED = {"bind(j, grid, 8)", "unroll(i, 4, jam)"}
"""What lays the threads of a block over two loops."""


def verbs_of(function, *arguments):
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


def columns_from(a: torch.Tensor, b: torch.Tensor, first: int) -> torch.Tensor:
    """A matrix product, of which some columns are zero."""
    out = a.new_zeros(a.shape[0], b.shape[1])
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            if j >= first:
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


def turns(function, *arguments):
    """Return how many turns of a loop each kernel writes out."""
    loops = (node for kernel in kernels(pieces_of(function, *arguments)[1]) for node in walk(kernel.body))
    return {node.unrolled for node in loops if isinstance(node, For)} - {1}


def without_tiles(monkeypatch):
    """Have no register tiles, which stand beside the other schedule, for many iterations."""
    monkeypatch.setattr(versions, "tile_schedule", lambda *_: None)


def test_turns_that_read_neighbours_are_written_out(monkeypatch):
    without_tiles(monkeypatch)
    w, k = memory(counting(2, 8)), memory(counting(5, 2, 8))
    assert verbs_of(timex, w, k, 0.5)[-2:] == ["unroll(u, 4)", "unroll(b, 4, jam)"]
    agree(timex, w, k, 0.5)
    a, b = memory(counting(5, 8)), memory(counting(8, 8))
    assert "unroll(k, 4)" in verbs_of(product, a, b)
    agree(product, a, b)


def test_rows_under_a_condition_go_together_in_one_thread_alone(monkeypatch):
    """Tiles of threads need more registers there than they gain."""
    without_tiles(monkeypatch)
    a, b = memory(counting(5, 8)), memory(counting(8, 8))
    assert verbs_of(columns_from, a, b, 3)[-1] == "unroll(i, 4, jam)"
    agree(columns_from, a, b, 3)


def test_what_is_added_to_elements_is_no_condition(monkeypatch):
    """It is added to none where there is nothing to add, which the host asks."""
    without_tiles(monkeypatch)
    a, b = memory(counting(5, 8)), memory(counting(8, 8))
    assert TILED <= {*verbs_of(matrix_product, a, b)}
    agree(matrix_product, a, b)


def test_rows_go_together_in_loops_in_another_order(monkeypatch):
    without_tiles(monkeypatch)
    a, b = memory(counting(5, 8)), memory(counting(8, 8))
    assert {*TILED, "reorder(i, j)"} <= {*verbs_of(columns_first, a, b)}
    agree(columns_first, a, b)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("length", [16, 32, 48])
def test_register_tiles_agree(rows, length, monkeypatch):
    monkeypatch.setattr(register_tile, "busy_threads", lambda _: 1)
    w, k = memory(counting(2, length)), memory(counting(rows, 2, length))
    assert {"bind(t, grid, 4)", "unroll(b, 2, jam)"} <= {*verbs_of(timex, w, k, 0.5)}
    assert "unroll(u, 16)" in verbs_of(timex, w, k, 0.5)
    agree(timex, w, k, 0.5)
    a, b = memory(counting(rows, length)), memory(counting(length, 16))
    assert {"bind(j, grid, 4)", "unroll(i, 4, jam)"} <= {*verbs_of(product, a, b)}
    assert "bind(j, lane, 8)" in verbs_of(product, a, b)
    agree(product, a, b)
    assert {"bind(lag, lane, 16)", "unroll(t, 16)"} <= {*verbs_of(lags, memory(counting(length)))}
    agree(lags, memory(counting(length)))


def test_few_iterations_and_other_rows_have_no_register_tiles():
    """They have the schedule without, which stands beside the one with tiles."""
    w, k = memory(counting(2, 16)), memory(counting(5, 2, 16))
    assert turns(timex, w, k, 0.5) == {4, 16}
    conditions = [item.condition for item in walk(pieces_of(timex, w, k, 0.5)[1]) if isinstance(item, If)]
    numbers = {node.value for node in walk(conditions) if isinstance(node, Constant)}
    assert {register_tile.busy_threads(GPU) * 2 * 16, 16} <= numbers


@pytest.mark.parametrize("item", [DTYPES["float64"], DTYPES["uint8"]])
def test_wide_and_narrow_elements_have_no_register_tiles(item):
    w, k = memory(counting(2, 16), item), memory(counting(5, 2, 16), item)
    assert 16 not in turns(timex, w, k, 0.5)


def test_where_offsets_may_need_64_bits_there_are_no_register_tiles():
    w, k = memory(counting(2, 16)), memory(counting(5, 2, 16))
    _, pieces, _ = pieces_of(timex, w, k, 0.5, narrow=False)
    assert not [
        node for item in kernels(pieces) for node in walk(item.body) if isinstance(node, For) and node.unrolled > 4
    ]


@pytest.mark.parametrize("rows", [1, 4, 7])
def test_rows_that_lie_far_apart_are_read_by_tiles_of_threads(rows):
    x, w = memory(counting(2, rows, 8)), memory(counting(2, 5, 8))
    assert TILED <= {*verbs_of(products_of_rows, x, w)}
    agree(products_of_rows, x, w)
    x, w = memory(counting(rows, 8)), memory(counting(5, 8))
    assert {*TILED, "reorder(i, j)"} <= {*verbs_of(product_of_rows_by_columns, x, w)}
    agree(product_of_rows_by_columns, x, w)


def test_few_turns_and_those_that_begin_anywhere_are_not():
    ids, starts = memory([0, 2, 1], INT64), memory([0, 2], INT64)
    for case in (
        (bags, memory(counting(3, 8)), ids, starts),
        (triples, memory(counting(5, 3)), memory(counting(3, 8))),
    ):
        assert not [line for line in verbs_of(*case) if line.startswith("unroll") and "jam" not in line]


@pytest.mark.parametrize("length", [1, 4, 7, 16])
def test_lanes_slide_together_where_their_loops_are_as_long_as_they_are_many(length, monkeypatch):
    without_tiles(monkeypatch)
    assert {"bind(lag, lane, 4)", "unroll(t, 8)"} <= {*verbs_of(lags, memory(counting(length)))}
    agree(lags, memory(counting(length)))


def test_lanes_over_a_short_window_do_not():
    assert "bind(t, grid)" in verbs_of(window, memory(counting(8)), memory(counting(3)))
    assert "bind(t, lane, 4)" not in verbs_of(window, memory(counting(8)), memory(counting(3)))


def first_choices(x: torch.Tensor, picked: torch.Tensor, k: int) -> None:
    """Pick the greatest elements of each row that are not picked yet."""
    for n in range(x.shape[0]):
        least = 9.0
        for e in range(x.shape[1]):
            least = min(least, x[n, e])
        for j in range(k):
            best, where = least - 1, 0
            for e in range(x.shape[1]):
                taken = False
                for i in range(j):
                    if picked[n, i] == e:
                        taken = True
                if not taken and x[n, e] > best:
                    best, where = x[n, e], e
            picked[n, j] = where


def test_threads_share_a_search_whose_values_are_as_long_for_all_of_them():
    """How long the loop inside is does not depend on the search's index; nothing else could be shared out."""
    x = memory([[float(i * 7 % 5 + n) for i in range(40)] for n in range(3)])
    picked = memory([[0] * 4] * 3, INT64)
    found = [node for kernel in kernels(pieces_of(first_choices, x, picked, 4)[1]) for node in walk(kernel.body)]
    shared = [node.index.name for node in found if isinstance(node, For) and node.role is Role.THREAD]
    inside = [node.index.name for node in found if isinstance(node, For) and node.index.name == "i"]
    assert shared.count("e") > 1
    assert inside
    agree(first_choices, x, picked, 4)


def least_of_triangles(x: torch.Tensor, y: torch.Tensor) -> None:
    for n in range(x.shape[0]):
        total = 0.0
        for e in range(x.shape[1]):
            total += x[n, e]
        best = total
        for e in range(x.shape[1]):
            s = 1.0
            for i in range(e):
                s = s * 0.5 + x[n, i]
            best = min(best, s)
        y[n] = best


def test_threads_do_not_share_a_search_whose_values_are_longer_for_some():
    x = memory([[float(i * 7 % 5 + n) for i in range(40)] for n in range(3)])
    y = memory([0.0] * 3)
    found = [node for kernel in kernels(pieces_of(least_of_triangles, x, y)[1]) for node in walk(kernel.body)]
    around = [node for node in found if isinstance(node, For) and any(isinstance(each, For) for each in node.body)]
    assert not [node for node in around if node.role is Role.THREAD]
    agree(least_of_triangles, x, y)
