"""Scratch tensors of which each iteration has a part of its own: no copies, and no other body for long ones."""

import torch

from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.nodes import Local
from brickwork.ir.walk import walk
from support.lowering import memory, program_of
from support.scheduling import GPU, same, scheduled

Tensor = torch.Tensor


def of_each_iteration(x: Tensor, y: Tensor) -> None:
    kept = torch.empty(x.shape[0], x.shape[1], dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            kept[i, k] = x[i, k] * 2.0
        for k in range(x.shape[1]):
            y[i] = y[i] * 0.5 + kept[i, x.shape[1] - 1 - k]


def of_all_iterations(x: Tensor, y: Tensor) -> None:
    kept = torch.empty(x.shape[1], dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            kept[k] = x[i, k] * 2.0
        for k in range(x.shape[1]):
            y[i] = y[i] * 0.5 + kept[x.shape[1] - 1 - k]


def copies(function):
    given = memory([[1.0, 2.0, -3.0], [0.5, 4.0, 2.5]], FLOAT64), memory([1.0, -1.0], FLOAT64)
    same(function, *given)
    return [node.tensor.sizes for node in walk(scheduled(program_of(function, *given), GPU)) if isinstance(node, Local)]


def test_what_iterations_have_parts_of_needs_no_copies():
    assert copies(of_each_iteration) == []
    assert set(copies(of_all_iterations)) == {(64,)}
