"""What contractions leave for variables of loops around, and sums that go with few loops, have nests of their own."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch

import brickwork as bw
from brickwork.ir.dtypes import INT64
from support.lowering import memory, numbers
from support.scheduling import same
from support.sums_apart import apart, short_sums

Tensor = torch.Tensor
A, B = numbers(3, 4), numbers(5, 4)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with short_sums():
        yield


def probabilities(a: Tensor, b: Tensor) -> Tensor:
    """Take the greatest product of a row away while products are computed."""
    out = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        most = -math.inf
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            out[i, j] = s
            most = max(most, s)
        total = 0.0
        for j in range(b.shape[0]):
            out[i, j] = out[i, j] - most
            total += out[i, j]
        out[i, 0] += total
    return out


def nearest(a: Tensor, b: Tensor) -> Tensor:
    """Find the best column, with the squares of its elements."""
    out = torch.empty(a.shape[0])
    for i in range(a.shape[0]):
        best, at = -1e30, 0
        for j in range(b.shape[0]):
            s, n = 0.0, 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
                n += b[j, k] * b[j, k]
            score = 2 * s - n
            if score > best:
                best, at = score, j
        out[i] = at
    return out


def similar(a: Tensor, b: Tensor) -> Tensor:
    """Divide by norms of rows, and of columns, which are summed up beside the product."""
    out = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            s, m, n = 0.0, 0.0, 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
                m += a[i, k] * a[i, k]
                n += b[j, k] * b[j, k]
            out[i, j] = s - m * n
    return out


def squares(a: Tensor, b: Tensor) -> Tensor:
    """Compute terms of each sum in one variable, which all of them assign."""
    out = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            s, m, n = 0.0, 0.0, 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
                m += (a[i, k] + 1.0) ** 2
                n += (b[j, k] - 1.0) ** 2
            out[i, j] = s - m * n
    return out


def twice(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Multiply from the left and from the right: the inner sums go without `p`."""
    out = torch.zeros(x.shape[0], a.shape[0], b.shape[0])
    for n in range(x.shape[0]):
        for p in range(a.shape[0]):
            for q in range(b.shape[0]):
                total = 0.0
                for i in range(x.shape[1]):
                    t = 0.0
                    for j in range(x.shape[2]):
                        t += x[n, i, j] * b[q, j]
                    total += a[p, i] * t
                out[n, p, q] = total
    return out


@pytest.mark.parametrize(
    ("function", "nests", "kept"),
    [
        (probabilities, 2, [("s_kept", 2)]),
        (nearest, 3, [("s_kept", 2), ("n_kept", 1)]),
        (squares, 4, [("s_kept", 2), ("n_kept", 1), ("m_kept", 1)]),
        (similar, 4, [("s_kept", 2), ("n_kept", 1), ("m_kept", 1)]),
    ],
)
@pytest.mark.parametrize("rows", [3, 1, 0])
@pytest.mark.parametrize("columns", [5, 1, 0])
def test_what_other_iterations_change_and_what_goes_with_few_loops_is_apart(
    function: Callable[..., object], nests: int, kept: list[tuple[str, int]], rows: int, columns: int
) -> None:
    (kernel,), made = apart(function, A, B)
    assert (len(kernel.body), made) == (nests, kept)
    same(function, numbers(rows, 4), numbers(columns, 4))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (0, 3, 4), (2, 0, 4), (2, 3, 0)])
@pytest.mark.parametrize("rows", [3, 0])
def test_inner_sums_are_computed_before_loops_that_they_do_not_go_with(sizes: tuple[int, int, int], rows: int) -> None:
    (kernel,), made = apart(twice, numbers(2, 3, 4), numbers(3, 3), numbers(2, 4))
    assert (len(kernel.body), made) == (2, [("t_kept", 3)])
    same(twice, numbers(*sizes), numbers(rows, sizes[1]), numbers(2, sizes[2]))


# ---------------------------------------------------------------- what stays


def begins_with_the_last(a: Tensor, b: Tensor) -> Tensor:
    """Begin a sum with what the iteration before has left."""
    out = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        most = 0.0
        for j in range(b.shape[0]):
            s = most
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            out[i, j] = s
            most = s - most
    return out


def norm_that_goes_on(a: Tensor, b: Tensor) -> Tensor:
    """Add squares to a norm that is never set to zero."""
    out = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        n = 0.0
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            for k in range(a.shape[1]):
                n += b[0, k] * b[0, k]
            out[i, j] = s - n
    return out


def norm_of_results(a: Tensor, b: Tensor) -> Tensor:
    """Square what the nest stores."""
    out = torch.ones(5, 5)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            s, n = 0.0, 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            for k in range(a.shape[1]):
                n += out[j, k]
            out[i, j] = s - n
    return out


def norm_of_a_triangle(a: Tensor, b: Tensor) -> Tensor:
    """Square rows of columns that go with the row."""
    out = torch.zeros(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(i, b.shape[0]):
            s, n = 0.0, 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
                n += b[j, k] * b[j, k]
            out[i, j] = s - n
    return out


def norm_read_before(a: Tensor, b: Tensor) -> Tensor:
    """Read a norm while it is zero, and when it is summed up."""
    out = torch.zeros(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            n = 0.0
            s = n
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            out[i, j] = s + n
            for k in range(a.shape[1]):
                n += a[i, k] * a[i, k]
            out[i, j] += n
    return out


def norm_set_again(a: Tensor, b: Tensor) -> Tensor:
    """Go on with a norm after the product."""
    out = torch.zeros(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            n = 1.0
            for k in range(a.shape[1]):
                n += a[i, k] * a[i, k]
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            n = n * s
            out[i, j] = s - n
    return out


def term_of_the_norm(a: Tensor, b: Tensor) -> Tensor:
    """Read after a norm the term that it was computed from last, in a variable that has another value before."""
    out = torch.zeros(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            t = a[i, 0] + b[j, 0]
            s = t
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            n = 0.0
            for k in range(a.shape[1]):
                t = b[j, k] + 2.0
                n += t * t
            out[i, j] = s - n + t
    return out


def norm_after_the_rows(a: Tensor, b: Tensor) -> Tensor:
    """Read after the loops what the last iteration has summed up."""
    out = torch.zeros(a.shape[0], b.shape[0] + 1)
    for i in range(a.shape[0]):
        n = -1.0
        for j in range(b.shape[0]):
            n = 0.0
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
                n += a[i, k] * a[i, k]
            out[i, j] = s - n
        out[i, b.shape[0]] = n
    return out


def product_after_the_rows(a: Tensor, b: Tensor) -> Tensor:
    """Read after the loops the last product."""
    out = torch.zeros(a.shape[0], b.shape[0] + 1)
    for i in range(a.shape[0]):
        s, most = 3.0, 0.0
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            out[i, j] = most
            most = max(most, s)
        out[i, b.shape[0]] = s
    return out


def norm_of_the_first_row(a: Tensor, b: Tensor) -> Tensor:
    """Sum up a row that the first iteration stores into."""
    out = torch.ones(a.shape[0] + 1, b.shape[0] + 4)
    for i in range(a.shape[0]):
        n = 0.0
        for k in range(a.shape[1]):
            n += out[0, k]
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            out[i, j] = s + n
    return out


def row_set_again(a: Tensor, b: Tensor) -> Tensor:
    """Store the same in each iteration, which another statement replaces."""
    out = torch.zeros(a.shape[0], b.shape[0])
    row = torch.zeros(a.shape[1])
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            row[k] = a[0, k]
        for j in range(b.shape[0]):
            s = row[1]
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            out[i, j] = s
        for k in range(a.shape[1]):
            row[k] = 2.0 * k
    return out


def norm_of_a_lower_triangle(a: Tensor, b: Tensor) -> Tensor:
    """Sum up the same row for columns up to the row's."""
    out = torch.zeros(a.shape[0], a.shape[0])
    for i in range(a.shape[0]):
        for j in range(i + 1):
            s, n = 0.0, 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * a[j, k]
                n += b[0, k] * b[0, k]
            out[i, j] = s - n
    return out


def norms_drawn(a: Tensor, b: Tensor) -> Tensor:
    """Draw in the loop that does not go with the row."""
    out = torch.zeros(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            s, n = 0.0, 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            for k in range(a.shape[1]):
                n += bw.rand() * b[j, k]
            out[i, j] = s - n
    return out


def scaled(a: Tensor, b: Tensor, scale: float) -> Tensor:
    out = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            s, n = 0.0, 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
                n += b[j, k] * scale
            out[i, j] = s - n
    return out


STAY = [
    *(begins_with_the_last, norm_that_goes_on, norm_of_results, norm_of_a_triangle, norm_read_before),
    *(norm_set_again, norm_after_the_rows, product_after_the_rows),
    *(norm_of_the_first_row, row_set_again, term_of_the_norm),
]


@pytest.mark.parametrize("function", STAY)
@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (1, 1), (3, 0)])
def test_values_are_those_of_the_source(function: Callable[..., object], rows: int, columns: int) -> None:
    same(function, numbers(rows, 4), numbers(columns, 4))


def test_what_goes_with_all_loops_or_goes_on_stays_in_them() -> None:
    for function in (begins_with_the_last, product_after_the_rows):
        assert apart(function, A, B) == ([], [])
    for function in (norm_that_goes_on, norm_of_results, norm_of_the_first_row):
        assert dict(apart(function, A, B)[1]).get("n_kept", 2) == 2, function


def test_loops_whose_bounds_go_with_others_stay_around_what_they_do_not_go_with() -> None:
    for function in (norm_of_a_triangle, norm_of_a_lower_triangle):
        assert ("n_kept", 2) in apart(function, A, numbers(3, 4))[1] or len(apart(function, A, A)[0][0].body) == 2
        same(function, A, numbers(3, 4))


def test_variables_that_are_known_before_the_nest_go_with_no_loop() -> None:
    assert ("n_kept", 1) in apart(scaled, A, B, 2.0)[1]
    same(scaled, A, B, 2.0)


def test_draws_go_with_each_iteration() -> None:
    assert ("n_kept", 1) not in apart(norms_drawn, A, B)[1]


def edges(a: Tensor, b: Tensor, at: Tensor) -> Tensor:
    """The greatest sum of two products over neighbours, which elements say."""
    out = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            best = -math.inf
            for m in range(at.shape[0]):
                n = at[m]
                s = 0.0
                for k in range(a.shape[1]):
                    s += b[j, k] * a[i, k] + b[j, k] * (a[n, k] - a[i, k])
                best = max(best, s)
            out[i, j] = best
    return out


def with_a_long_term(a: Tensor, b: Tensor) -> Tensor:
    """One variable has a product that is none of a row by a column."""
    out = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        most = 0.0
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k] + math.sin(a[i, k] + b[j, k]) * b[j, k]
            most = max(most, s)
            out[i, j] = s - most
    return out


def test_products_at_places_that_are_checked_stay() -> None:
    assert apart(edges, A, B, memory([0, 2, 1], INT64)) == ([], [])


def test_products_beside_a_longer_one_of_the_same_variable_stay() -> None:
    assert apart(with_a_long_term, A, B) == ([], [])
