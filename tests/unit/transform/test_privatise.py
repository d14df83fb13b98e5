"""Scratch tensors of iterations: which loops get copies of their own, and that results stay bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import For, Launch, Load, Local
from brickwork.ir.verify import verify_kernel
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.target.target import Target
from brickwork.transform.autodiff.simplify import simplified
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.preconditions import NOTHING
from brickwork.transform.privatise import scratch_of
from support.lowering import memory, program_of
from support.scheduling import AVX2, agree

Tensor = torch.Tensor


def a_list(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [0.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        for k in range(3):
            tmp[k] += tmp[k + 1]
        y[i] = tmp[0] + tmp[2]


def a_tensor(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(2, 2, dtype=torch.float64)
    for t in range(3):
        for i in range(x.shape[0]):
            for a in range(2):
                for b in range(2):
                    tmp[a, b] = x[i, 2 * a + b] * t
            y[i] = y[i] + tmp[0, 1] - tmp[1, 0]


def one_by_one(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [0.0] * 4
    for i in range(x.shape[0]):
        tmp[0] = x[i, 0]
        if tmp[0] > 0.0:
            tmp[1] = x[i, 1]
            y[i] = tmp[0] + tmp[1]
    for i in range(x.shape[0]):
        tmp[2] = y[i]
        y[i] = tmp[2] * 2


def filled_on_a_guard(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(s, 4):
            tmp[k] = x[i, k]
        y[i] = tmp[s] + tmp[3]


def one_too_few(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(3):
            tmp[k] = x[i, k]
        y[i] = tmp[0] + tmp[3]
        tmp[3] = y[i]


def read_after(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        y[i] = tmp[0]
    y[0] = y[0] + tmp[3]


def filled_on_a_path(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        if x[i, 0] > 0.0:
            for k in range(4):
                tmp[k] = x[i, k]
        y[i] = tmp[2]


def filled_up_to_a_break(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            if x[i, k] > 0.5:
                break
            tmp[k] = x[i, k]
        y[i] = tmp[2] + tmp[0]


def carried(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = tmp[k] + x[i, k]
        y[i] = tmp[1]


def in_order_anyway(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(1, x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        y[i] = y[i - 1] + tmp[3]


def by_an_empty_loop(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for _ in range(s):
            for k in range(4):
                tmp[k] = x[i, k]
        y[i] = tmp[3]


def returned(x: Tensor, y: Tensor, s: int) -> Tensor:
    tmp = torch.zeros(4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        y[i] = tmp[1]
    return tmp


COPIES: dict[Callable[..., object], int | None] = {a_list: 1, a_tensor: 1, one_by_one: 2, filled_on_a_guard: None}
SHARED = (
    one_too_few,
    read_after,
    filled_on_a_path,
    filled_up_to_a_break,
    carried,
    in_order_anyway,
    by_an_empty_loop,
    returned,
)


def arguments(rows: int) -> tuple[Memory, Memory]:
    draw = random.Random(rows)
    matrix = [[draw.gauss(0, 1) for _ in range(4)] for _ in range(rows)]
    return memory(matrix, FLOAT64), memory([draw.gauss(0, 1) for _ in range(rows)], FLOAT64)


@pytest.mark.parametrize("function", [*COPIES, *SHARED], ids=lambda function: function.__name__)
def test_which_loops_get_copies(function: Callable[..., object]) -> None:
    program = program_of(function, *arguments(2), 0)
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    scheduled = schedule_kernel(kernel, AVX2, scratch=scratch_of(program))
    found = sum(isinstance(node, Local) for node in walk(scheduled.source.body))
    if (expected := COPIES.get(function, 0)) is not None:
        assert found == expected


@pytest.mark.parametrize("target", [AVX2, cuda_target((9, 0))], ids=["processor", "grid"])
@pytest.mark.parametrize("function", [*COPIES, *SHARED], ids=lambda function: function.__name__)
def test_results_stay(function: Callable[..., object], target: Target) -> None:
    for rows in (2, 5):
        for s in (0, 1, 3, -2) if function in {filled_on_a_guard, by_an_empty_loop} else (0,):
            agree(function, *arguments(rows), s, target=target)


def in_a_bound(x: Tensor, y: Tensor, s: int) -> None:
    lengths = torch.zeros(2, dtype=torch.int64)
    p = s
    for i in range(2):
        lengths[i] = p
        p = 2
    for i in range(2):
        for k in range(lengths[i]):
            y[k] = x[i, k]


def test_what_a_loop_is_as_long_as_is_read_before_its_iterations() -> None:
    program = program_of(in_a_bound, *arguments(2), 1)
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    body = simplified(kernel.body, kernel.tensors, NOTHING)
    bounds = [bound for node in walk(body) if isinstance(node, For) for bound in (node.start, node.stop)]
    assert not any(isinstance(node, Load) for node in walk(bounds))
    verify_kernel(schedule_kernel(replace(kernel, body=body), AVX2, scratch=scratch_of(program)).kernel)
