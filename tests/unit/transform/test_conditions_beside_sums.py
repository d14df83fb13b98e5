"""Conditions before and after a sum of products have nests of their own, as gradients of maxima and of gathers need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import For
from support.lowering import memory, numbers
from support.scheduling import same
from support.sums_apart import apart, short_sums

Tensor = torch.Tensor
A, G, U = numbers(3, 4), numbers(4, 5), numbers(4, 5)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with short_sums():
        yield


def scattered_if(a: Tensor, g: Tensor, at: Tensor, y: Tensor) -> None:
    """Add sums where elements say, under a condition, as gradients of gathered rows do."""
    for i in range(a.shape[0]):
        for k in range(g.shape[1]):
            s = 0.0
            for j in range(g.shape[0]):
                s += a[i, j] * g[j, k]
            if g.shape[0] > 0:
                p = at[i]
                y[p, k] += s


def begun_by_a_condition(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Begin a sum with an element, if another one says so, as gradients of a maximum do."""
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for k in range(g.shape[1]):
            s = 0.5
            if a[i, 0] > 1.0:
                s += u[1, k]
            for j in range(a.shape[1]):
                s += a[i, j] * g[j, k]
            out[i, k] = s
    return out


def test_what_a_condition_scatters_has_a_nest_of_its_own() -> None:
    given = A, G, memory([1, 0, 1], INT64), numbers(2, 5)
    same(scattered_if, *given)
    assert apart(scattered_if, *given)[0]


def test_a_condition_that_says_how_a_sum_begins_has_a_nest_of_its_own() -> None:
    same(begun_by_a_condition, A, G, U)
    (kernel,) = apart(begun_by_a_condition, A, G, U)[0]
    assert len([node for node in kernel.body if isinstance(node, For)]) == 2


def begun_by_a_factor(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Say a factor in a condition before the sum."""
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for k in range(g.shape[1]):
            s = 0.5
            f = 1.0
            if a[i, 0] > 1.0:
                f = u[1, k]
            for j in range(a.shape[1]):
                s += a[i, j] * g[j, k] * f
            out[i, k] = s
    return out


def test_a_condition_that_says_more_than_how_a_sum_begins_stays_with_it() -> None:
    assert not apart(begun_by_a_factor, A, G, U)[0]
    same(begun_by_a_factor, A, G, U)
