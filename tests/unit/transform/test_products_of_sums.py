"""Products of what an inner loop computes are nests of their own, behind one that computes it."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
import torch

from brickwork.ir.nodes import For
from brickwork.transform import nests_apart, separate_sums
from support.lowering import numbers
from support.scheduling import same
from support.sums_apart import apart

Tensor = torch.Tensor
X, W, Y = numbers(3, 4), numbers(5, 4), numbers(5, 6)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with (
        patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=2),
        patch.object(separate_sums, "LEAST_TERMS", 2),
    ):
        yield


def distances_times_vectors(x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], y.shape[1])
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            d = 0.0
            for k in range(x.shape[1]):
                t = x[i, k] - w[j, k]
                d += t * t
            p = d + 1.0
            for e in range(y.shape[1]):
                out[i, e] += p * y[j, e]
    return out


def a_layer_in_one_nest(x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    """Compute a row of hidden values for each column of the result."""
    out = torch.zeros(x.shape[0], y.shape[1])
    for i in range(x.shape[0]):
        for e in range(y.shape[1]):
            s = 0.0
            for j in range(w.shape[0]):
                d = 0.0
                for k in range(x.shape[1]):
                    d += x[i, k] * w[j, k]
                s += max(d, 1.0) * y[j, e]
            out[i, e] = s
    return out


@pytest.mark.parametrize("function", [distances_times_vectors, a_layer_in_one_nest], ids=lambda item: item.__name__)
def test_what_an_inner_loop_computes_is_kept(function: Callable[..., object]) -> None:
    ((kernel,), kept) = apart(function, X, W, Y)
    assert len([node for node in kernel.body if isinstance(node, For)]) == 2
    assert kept == [("d_kept", 2)]
    same(function, X, W, Y)


def of_rows_and_columns(x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], y.shape[1])
    for i in range(x.shape[0]):
        for e in range(y.shape[1]):
            s = 0.0
            for j in range(w.shape[0]):
                d = 0.0
                for k in range(x.shape[1]):
                    d += max(x[i, k], y[k, e])
                s += d * y[j, e]
            out[i, e] = s
    return out


def elements_of_the_loop(x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], w.shape[0], y.shape[1])
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            d = 0.0
            for k in range(x.shape[1]):
                d += math.fabs(x[i, k] - w[j, k])
            for e in range(y.shape[1]):
                out[i, j, e] += d * y[j, e]
    return out


def few_columns(x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], 2)
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            d = 0.0
            for k in range(x.shape[1]):
                d += math.fabs(x[i, k] - w[j, k])
            for e in range(2):
                out[i, e] += d * y[j, e]
    return out


def rows_that_are_asked(x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    """Add the sums of a row to what the next one begins with."""
    out = torch.zeros(x.shape[0], y.shape[1])
    last = 0.0
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            d = last
            for k in range(x.shape[1]):
                d += math.fabs(x[i, k] - w[j, k])
            last = d / 16.0
            for e in range(y.shape[1]):
                out[i, e] += d * y[j, e]
            last += out[i, 0] / 16.0
    return out


STAY = [of_rows_and_columns, elements_of_the_loop, few_columns, rows_that_are_asked]


@pytest.mark.parametrize("function", STAY, ids=lambda item: item.__name__)
def test_what_is_no_product_of_rows_and_columns_stays(function: Callable[..., object]) -> None:
    with patch.multiple(nests_apart, LEAST_SIDE=3):
        assert not apart(function, X, W, Y)[0]
        same(function, X, W, Y)
