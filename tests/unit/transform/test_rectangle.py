"""Triangular nests of long iterations are rectangles on a grid, with the same iterations."""

from __future__ import annotations

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, Kernel, Program
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.pipeline import schedule_program
from brickwork.transform.rectangle import rectangle
from support.lowering import program_of
from support.tensors import to_memory, to_tensor

Tensor = torch.Tensor
GPU = cuda_target((9, 0))


def lower_half(c: Tensor, a: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i + 1):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * a[j, k]


def band(c: Tensor, a: Tensor) -> None:
    n = c.shape[0]
    for i in range(n):
        for j in range(max(i - 2, 0), min(i + 3, n)):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * a[j, k]


def falling(c: Tensor, a: Tensor) -> None:
    n = c.shape[0]
    for i in range(n):
        for j in range(n - i):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * a[j, k]


def by_rows(c: Tensor, a: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i + 1):
            for k in range(a.shape[0]):
                c[i, j] += a[k, i] * a[k, j]


def short(c: Tensor, a: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i + 1):
            c[i, j] = a[j, i]


def made(function) -> tuple[Program, Program]:
    program = program_of(function, to_memory(torch.rand(4, 4)), to_memory(torch.rand(4, 4)))
    return program, schedule_program(program, GPU)[0]


@pytest.mark.parametrize("function", [lower_half, band, falling])
def test_threads_share_a_triangle_out(function):
    program, pieces = made(function)
    nests = [node for node in walk(pieces) if isinstance(node, For) and node.role.value == "parallel"]
    assert {node.index.name for node in nests} == {"i", "j"}
    for n in (0, 1, 2, 7):
        c, a = torch.rand(n, n), torch.rand(n, 5)
        plain, cut = [to_memory(c), to_memory(a)], [to_memory(c), to_memory(a)]
        run_program(program, plain)
        run_program(pieces, cut, check=True)
        assert to_tensor(plain[0]).equal(to_tensor(cut[0]))


@pytest.mark.parametrize("function", [by_rows, short])
def test_rows_for_blocks_and_short_iterations_stay(function):
    program, _ = made(function)
    kernel = next(node for node in walk(program) if isinstance(node, Kernel))
    assert rectangle(kernel.body, analyse(kernel)) == kernel.body
