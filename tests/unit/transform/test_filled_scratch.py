"""Scratch tensors that are read where data say: iterations have copies where each fills all elements before."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import Launch, Local
from brickwork.ir.walk import walk
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.privatise import scratch_of
from brickwork.transform.scratch import Names
from support.lowering import memory, program_of
from support.scheduling import AVX2, agree

Tensor = torch.Tensor


def filled(x: Tensor, y: Tensor) -> None:
    tmp = torch.ones(4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        top = int(abs(y[i]) * 1e3) % 4
        while top >= 0:
            tmp[top] += tmp[int(abs(x[i, top]) * 1e3) % 7 - 3]
            top -= 1
        y[i] = tmp[0] + tmp[3]


def filled_by_rows(x: Tensor, y: Tensor) -> None:
    tmp = torch.ones(2, 4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(4):
            for m in range(2):
                tmp[m, k] = x[i, k] * m
        y[i] = tmp[int(abs(x[i, 0]) * 1e3) % 3 - 1, int(abs(x[i, 1]) * 1e3) % 7 - 3]


def filled_but_the_first(x: Tensor, y: Tensor) -> None:
    tmp = torch.ones(4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(1, 4):
            tmp[k] = x[i, k]
        y[i] = tmp[int(abs(x[i, 0]) * 1e3) % 7 - 3]
        tmp[0] = y[i]


def filled_but_the_last(x: Tensor, y: Tensor) -> None:
    tmp = torch.ones(4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(3):
            tmp[k] = x[i, k]
        y[i] = tmp[int(abs(x[i, 0]) * 1e3) % 7 - 3]
        tmp[3] = y[i]


def filled_but_a_row(x: Tensor, y: Tensor) -> None:
    tmp = torch.ones(2, 4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[1, k] = x[i, k]
        y[i] = tmp[int(abs(x[i, 0]) * 1e3) % 3 - 1, 2]
        tmp[0, 2] = y[i]


def filled_on_a_diagonal(x: Tensor, y: Tensor) -> None:
    tmp = torch.ones(4, 4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k, k] = x[i, k]
        y[i] = tmp[int(abs(x[i, 0]) * 1e3) % 7 - 3, 2]
        tmp[0, 2] = y[i]


def read_while_it_is_filled(x: Tensor, y: Tensor) -> None:
    tmp = torch.ones(4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(4):
            y[i] += tmp[int(abs(x[i, 0]) * 1e3) % 7 - 3]
            tmp[k] = x[i, k]


COPIES: dict[Callable[..., object], int] = {
    filled: 1,
    filled_by_rows: 1,
    filled_but_the_first: 0,
    filled_but_the_last: 0,
    filled_but_a_row: 0,
    filled_on_a_diagonal: 0,
    read_while_it_is_filled: 0,
}


def arguments(rows: int) -> tuple[Memory, Memory]:
    draw = random.Random(rows)
    matrix = [[draw.gauss(0, 1) for _ in range(4)] for _ in range(rows)]
    return memory(matrix, FLOAT64), memory([draw.gauss(0, 1) for _ in range(rows)], FLOAT64)


@pytest.mark.parametrize("function", COPIES, ids=lambda function: function.__name__)
def test_iterations_have_copies_of_what_each_fills_whole(function: Callable[..., object]) -> None:
    program = program_of(function, *arguments(2))
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    source = schedule_kernel(kernel, AVX2, scratch=scratch_of(program)).source
    copies = [node for node in walk(source.body) if isinstance(node, Local) and node.tensor.name == "tmp"]
    assert len(copies) == COPIES[function]
    agree(function, *arguments(7), target=AVX2)


def test_one_element_has_no_neighbours():
    names = Names(*(itertools.count() for _ in range(3)))
    alone, row = (names.tensor("w", FLOAT64, *sizes)[0].type for sizes in ((), (3,)))
    assert alone.neighbours is None
    assert row.neighbours == 0
