"""Gradients that are read before anything is added to them are filled with zeros, whatever gather form stores."""

from __future__ import annotations

import torch

from brickwork.ir.nodes import Allocate
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


def test_what_is_read_before_it_is_added_to_is_filled() -> None:
    """Nothing reads what the last loop adds: its gradient is of zeros, which were whatever memory held."""
    arguments = numbers(7), numbers(5), numbers(4)
    (made,) = [
        node
        for node in derived(added_last, arguments).body
        if isinstance(node, Allocate) and node.tensor.name.startswith("w_adjoint")
    ]
    assert made.fill is not None
    check_gradients(added_last, *arguments)
