"""Neighbours have no lanes where they may take branches to all that is their own, or store every second element."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from brickwork.ir.nodes import For, Role
from brickwork.ir.walk import statements
from support.lowering import numbers
from support.ptx import program_for_gpu
from support.scheduling import GPU, same
from support.shared import schedule_program


def inside(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if 0 < j < x.shape[1] - 1:
                y[i, j] = x[i, j - 1] + x[i, j + 1]
            else:
                y[i, j] = x[i, j]


def chosen(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = 0.0
            if 0 < j < x.shape[1] - 1:
                s = x[i, j - 1] + x[i, j + 1]
            y[i, j] = s


def by_rows(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i % 2 == 0:
                y[i, j] = x[i, j]
            else:
                y[i, j] = 2 * x[i, j]


def halves(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1] // 2):
            y[i, j] = x[i, 2 * j] + x[i, 2 * j + 1]


def pairs(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1] // 2):
            y[i, 2 * j] = x[i, j] * 2
            y[i, 2 * j + 1] = x[i, j] * 3


@pytest.mark.parametrize(
    ("function", "widths"), [(halves, {1, 4}), (pairs, {1}), (inside, {1}), (chosen, {1, 4}), (by_rows, {1, 4})]
)
def test_lanes(function: Callable[..., object], widths: set[int]) -> None:
    same(function, numbers(3, 8), numbers(3, 8))
    program, _ = schedule_program(program_for_gpu(function, torch.ones(3, 8), torch.ones(3, 8)), GPU)
    loops = [node for node in statements(program.body) if isinstance(node, For) and node.role is Role.PARALLEL]
    assert {node.width for node in loops} == widths
