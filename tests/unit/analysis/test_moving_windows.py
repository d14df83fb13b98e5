"""Windows that move along an axis, in gradients: they begin where the window of an element does."""

from __future__ import annotations

import torch

from brickwork.ir.nodes import For, If
from brickwork.ir.walk import walk
from support.gradients import check_gradients, numbers

Tensor = torch.Tensor


def window(x: Tensor, w: Tensor, r: int) -> Tensor:
    n = x.shape[0]
    y = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        for j in range(i - r, i + r + 1):
            if 0 <= j and j < n:
                y[i] += x[j] * w[j - i + r]
    return y


def convolution(x: Tensor, w: Tensor) -> Tensor:
    n = x.shape[0] - w.shape[0] + 1
    y = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        for k in range(w.shape[0]):
            y[i] += x[i + k] * w[k]
    return y


def test_a_window_of_an_argument_begins_at_its_element() -> None:
    program = check_gradients(window, numbers(9), numbers(5), 2)
    summing = [
        node for node in walk(program) if isinstance(node, For) and not any(isinstance(item, For) for item in node.body)
    ]
    assert any(node.start != node.stop and str(node.start).count("maximum") for node in summing)


def test_weights_as_long_as_an_axis_begin_at_the_first() -> None:
    program = check_gradients(convolution, numbers(9), numbers(3))
    tested = [node for node in walk(program) if isinstance(node, For) and isinstance(node.body[0], If)]
    assert tested
