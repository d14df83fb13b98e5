"""Small tensors that are filled after one another are filled by one launch on grids."""

# pyright: basic
from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import If, Kernel
from brickwork.ir.walk import statements, walk
from support.lowering import memory, nested
from support.ptx import program_for_gpu
from support.scheduling import GPU
from support.shared import schedule_program

FEW = replace(GPU, threads=4)
"""A machine that has room for four elements."""


def several(x: Tensor, value: float):
    """Fill tensors of several ranks, types and sizes, and store into some of their elements."""
    assert x.shape[0] > 0
    a = torch.full((x.shape[0], 2), 7.0)
    b = torch.zeros((), dtype=torch.int64)
    assert x.shape[0] < 100
    c = torch.full((x.shape[0],), value, dtype=torch.float16)
    d = torch.ones((0,))
    for i in range(1, x.shape[0]):
        a[i, 0] = x[i]
        c[i] = x[i]
    return a, b, c, d


def one(x: Tensor):
    a = torch.full((x.shape[0],), 7.0)
    for i in range(1, x.shape[0]):
        a[i] = x[i]
    return a


def kernels_of(node) -> list[str]:
    return [inner.name for inner in walk(node) if isinstance(inner, Kernel)]


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_elements_are_filled_by_one_launch_or_by_several(length: int) -> None:
    program = program_for_gpu(several, torch.ones(3), 3.0)
    pieces, _ = schedule_program(program, FEW)
    arguments = [memory([float(place) for place in range(length)]), 2.5]
    plain, cut = (run_program(each, arguments) for each in (program, pieces))
    assert [nested(item) for item in plain] == [nested(item) for item in cut]


def test_small_tensors_are_filled_together() -> None:
    pieces, _ = schedule_program(program_for_gpu(several, torch.ones(3), 3.0), GPU)
    (choice,) = [node for node in statements(pieces.body) if isinstance(node, If) and "_fill" in str(kernels_of(node))]
    assert [
        len([name for name in kernels_of(part) if "_fill" in name]) for part in (choice.then, choice.otherwise)
    ] == [1, 4]


def test_one_tensor_is_filled_alone() -> None:
    pieces, _ = schedule_program(program_for_gpu(one, torch.ones(3)), GPU)
    assert [name for name in kernels_of(pieces.body) if "_fill" in name] == ["a_fill_2"]
