"""Loops in order around columns of a state that add to elements of each step: columns are for threads of a grid."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import Tensor

from brickwork.analysis.analyse import analyse
from brickwork.transform.interchange import interchange
from support.lowering import numbers
from support.scheduling import kernel_of, same


def adding(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                n = 0.0
                for i in range(s.shape[1]):
                    n += s[b, i, j] * k[t, i]
                for i in range(s.shape[1]):
                    s[b, i, j] = n * 0.5 + k[t, i]
                    y[b, t, i] += s[b, i, j] * v[t, j]


def added_at_once(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """Nothing but an update for each element: a block adds these up sooner."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + v[t, j]
                y[b, t, 0] += s[b, 0, j]


def product(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """No loop has to run in order: those that are free stand outside, and sums need no atomic additions."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                n = 0.0
                for i in range(s.shape[1]):
                    n += s[b, i, j]
                y[b, t, 0] += n * v[t, j]


def other_columns(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """Rows are free without atomic additions."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for i in range(s.shape[1]):
                for j in range(s.shape[2]):
                    n = 0.0
                    for m in range(2):
                        n += v[t, j] * m
                    s[b, i, j] = s[b, i, j] * 0.5 + n
                    y[b, t, i] += s[b, i, j]


def least_and_sum(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """Two operators, which have an order."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + k[t, i]
                    y[b, t, i] += s[b, i, j]
                    y[b, t, i] = min(y[b, t, i], 3.0)


def orders(function: Callable[..., object], *, grid: bool = True) -> list[list[str]]:
    kernel = kernel_of(function, *arguments())
    return [[index.name for index in each.order] for each in interchange(kernel, analyse(kernel), grid=grid)[1]]


def arguments() -> tuple[object, ...]:
    return numbers(2, 3, 4), numbers(5, 3), numbers(5, 4), numbers(2, 5, 4)


def test_columns_stand_outside_with_atomic_additions() -> None:
    assert orders(adding) == [["b", "j", "t"]]
    assert orders(adding, grid=False) == []


@pytest.mark.parametrize("function", [added_at_once, product, least_and_sum])
def test_nests_that_keep_their_order(function: Callable[..., object]) -> None:
    assert not any("j" in order[:2] for order in orders(function))


def test_what_is_free_anyway_comes_first() -> None:
    assert orders(other_columns) == [["b", "i", "t", "j"]]


@pytest.mark.parametrize("function", [adding, added_at_once, product, other_columns, least_and_sum])
def test_all_ways_give_the_same(function: Callable[..., object]) -> None:
    same(function, *arguments())
