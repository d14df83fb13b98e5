"""Gradients that are read before anything is added to them are filled with zeros, whatever gather form stores.

Those that are stored before they are read are read behind the nest.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.nodes import Allocate, For, Launch, Store
from brickwork.ir.walk import statements
from support.gradients import check_gradients, derived, numbers


def added_last(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> None:
    n = x.shape[0]
    w = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        w[i] = x[i] * x[i]
    for i in range(n - 2):
        for k in range(3):
            y[i] += w[i + k]
    for i in range(n):
        w[(3 * i) % n] += z[i // 2] * z[i // 2]


def added_beside(x: torch.Tensor, y: torch.Tensor) -> None:
    """The last loop's gradient reads odd elements, and adds to even ones, in one nest."""
    n = x.shape[0]
    w = torch.zeros(2 * n, dtype=torch.float64)
    for i in range(n):
        w[2 * i] = x[i] * x[i]
    for i in range(n - 2):
        for k in range(3):
            y[i] += w[2 * (i + k)]
    for i in range(n - 2):
        for k in range(3):
            w[2 * i + 1] += w[2 * (i + k)] * x[i]


def added_in_a_half(x: torch.Tensor, y: torch.Tensor) -> None:
    n = x.shape[0]
    w = torch.zeros(2 * n, dtype=torch.float64)
    for i in range(n):
        w[i] = x[i] * x[i]
    for i in range(n - 2):
        for k in range(3):
            y[i] += w[i + k]
    for i in range(n - 2):
        for k in range(3):
            w[n + i] += w[i + k] * x[i]


@pytest.mark.parametrize(
    ("function", "sizes"), [(added_last, (7, 5, 4)), (added_beside, (7, 5)), (added_in_a_half, (7, 5))]
)
def test_what_is_read_before_it_is_added_to_is_filled(function: Callable[..., None], sizes: tuple[int, ...]) -> None:
    """Nothing reads what the last loop adds: its gradient is of zeros, which were whatever memory held."""
    arguments = [numbers(size) for size in sizes]
    (made,) = [
        node
        for node in derived(function, arguments).body
        if isinstance(node, Allocate) and node.tensor.name.startswith("w_adjoint")
    ]
    assert made.fill is not None
    check_gradients(function, *arguments)


def scaled_sums(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for k in range(x.shape[0]):
                y[i, j] += x[k, i] * x[k, j]
            y[i, j] /= x.shape[0]


def scaled_rows(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * w[k, j]
        for j in range(y.shape[1]):
            y[i, j] *= 0.5


def scaled_neighbours(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
    """Elements are stored again in the next iteration."""
    for i in range(y.shape[0] - 1):
        for j in range(y.shape[1]):
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * w[k, j]
            y[i, j] *= 0.5
            y[i + 1, j] *= 0.25


@pytest.mark.parametrize(
    ("function", "sizes", "gathers"),
    [
        (scaled_sums, ((3, 4), (4, 4)), True),
        (scaled_rows, ((3, 4), (4, 2), (3, 2)), True),
        (scaled_neighbours, ((3, 4), (4, 2), (3, 2)), False),
    ],
)
def test_what_is_stored_before_it_is_read_is_read_behind_the_nest(
    function: Callable[..., None], sizes: tuple[tuple[int, ...], ...], gathers: bool
) -> None:
    arguments = [numbers(*size) for size in sizes]
    body = derived(function, arguments).body
    (kernel,) = (node.kernel for node in body if isinstance(node, Launch))
    found = [item for item in kernel.body if isinstance(item, For) and "x_gradient" in _stored(item)]
    assert found
    assert gathers == all({*_stored(item)} == {"x_gradient"} for item in found)
    check_gradients(function, *arguments)


def _stored(loop: For) -> list[str]:
    return [node.tensor.name for node in statements(loop) if isinstance(node, Store)]
