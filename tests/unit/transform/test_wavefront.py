"""Nests along their diagonals: which have any, and that results stay bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Kernel, Launch, Node
from brickwork.ir.walk import rewrite
from brickwork.target.cuda import cuda_target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.wavefront import diagonals, wavefront
from support.lowering import memory, nested, program_of
from support.scheduling import agree, kernel_of

Tensor = torch.Tensor


def edges(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def corners(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            low = min(a[i - 1, j], a[i, j - 1])
            if b[i, j] > 0.0:
                low = a[i - 1, j - 1]
            a[i, j] = low + 1.0


def seidel(a: Tensor, b: Tensor) -> None:
    for _ in range(2):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = (a[i - 1, j + 1] + a[i - 1, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j - 1]) / 5.0


def far_ahead(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1] - 3):
            a[i, j] = a[i - 1, j + 3] + a[i, j - 1]


def rows(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i - 1, j] + b[i, j]


def read_before_it_is_written(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0] - 1):
        for j in range(2, a.shape[1]):
            a[i, j] = a[i - 1, j] + a[i, j - 1] + a[i + 1, j - 2]


def triangle(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(i, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def other_triangle(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, min(i, a.shape[1])):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def summed(a: Tensor, b: Tensor) -> None:
    total = 0.0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            total += a[i, j]
    a[0, 0] = total


def carried(a: Tensor, b: Tensor) -> None:
    last = 0.0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + last
            last = b[i, j]


def read_after(a: Tensor, b: Tensor) -> None:
    last = 0.0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            last = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            a[i, j] = last
    a[0, 0] = last


def left_early(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            if a[i, j] > 1.0:
                break


def two_in_one(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        a[i, 0] = a[i - 1, 0] + 1.0
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def continued(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1] - 3):
            if b[i, j] > 0.0:
                continue
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i - 1, j + 3]


SLOPES = {edges: [1], corners: [1], continued: [1], seidel: [2], far_ahead: [], rows: []}
SLOPES |= {read_before_it_is_written: [], triangle: [], summed: [], carried: [], read_after: [], left_early: []}
SLOPES |= {two_in_one: [], other_triangle: []}


def matrices(height: int, width: int) -> list[Memory]:
    draw = random.Random(1)
    return [memory([[draw.gauss(0, 1) for _ in range(width)] for _ in range(height)], FLOAT64) for _ in range(2)]


@pytest.mark.parametrize("function", SLOPES, ids=lambda function: function.__name__)
def test_diagonals(function: Callable[..., None]) -> None:
    found: list[list[int]] = []

    def skewed(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        analysis = analyse(node.kernel)
        found.append([*diagonals(node.kernel, analysis).values()])
        kernel: Kernel = wavefront(node.kernel, analysis)[0]
        assert (kernel is not node.kernel) == bool(SLOPES[function])
        return Launch(kernel=kernel)

    changed = rewrite(program_of(function, *matrices(2, 2)), skewed)
    assert found == [SLOPES[function]]
    for sizes in ((1, 1), (2, 5), (6, 3), (5, 8), (7, 7)):
        expected, given = matrices(*sizes), matrices(*sizes)
        run_program(program_of(function, *expected), expected, check=True)
        run_program(changed, given, check=True)
        assert [nested(item) for item in given] == [nested(item) for item in expected]


@pytest.mark.parametrize("function", [edges, seidel], ids=lambda function: function.__name__)
def test_a_diagonal_is_a_launch(function: Callable[..., None]) -> None:
    program = program_of(function, *matrices(2, 2))
    (kernel,) = [node.kernel for node in program.body if isinstance(node, Launch)]
    analysis = schedule_kernel(kernel, cuda_target((9, 0))).analysis
    independent = [analysis.loops[loop.node.index].independent for loop in analysis.model.loops]
    assert independent[-2:] == [False, True]


def checked(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            assert b[i, j] > 0.0
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def exchanged(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1])
            a, b = b, a


def the_first_row_is_data(a: Tensor, b: Tensor) -> None:
    for i in range(max(1, int(b[0, 0])), a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_last_row_is_data(a: Tensor, b: Tensor) -> None:
    for i in range(1, int(b[0, 0])):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_first_column_is_data(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(max(1, int(b[0, 0])), a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1])


def the_last_column_is_data(a: Tensor, b: Tensor) -> None:
    k = int(b[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(1, k):
            a[i, j] = max(a[i - 1, j], a[i, j - 1])


def a_row_is_a_list(a: Tensor, b: Tensor) -> None:
    for t in range(2):
        w = [t * 1.0] * 6
        for i in range(a.shape[0]):
            for j in range(1, 6):
                w[j] = max(w[j], w[j - 1]) + b[i, j]
                a[i, j] = w[j]


def test_nests_that_may_fail_exchange_tensors_or_wrap_have_no_diagonals():
    def found(function: Callable[..., None], *, may_alias: bool = False) -> list[int]:
        kernel = replace(kernel_of(function, *matrices(2, 2)), may_alias=may_alias)
        return [*diagonals(kernel, analyse(kernel)).values()]

    assert found(edges) == [1]
    assert found(a_row_is_a_list) == [2]
    assert found(edges, may_alias=True) == found(a_row_is_a_list, may_alias=True) == []
    bounds = [the_first_row_is_data, the_last_row_is_data, the_first_column_is_data, the_last_column_is_data]
    for function in (checked, exchanged, *bounds):
        assert found(function) == [], function.__name__


def drawn(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + bw.rand()


def test_iterations_that_end_early_or_draw_numbers_have_diagonals():
    for function in (continued, drawn):
        kernel = kernel_of(function, *matrices(2, 2))
        assert [*diagonals(kernel, analyse(kernel)).values()] == [1]
        agree(function, *matrices(6, 5), target=cuda_target((9, 0)))


def reused(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
    i = a.shape[0] - 1
    while i > 0:
        a[i, 0] = a[i, 0] + i
        i -= 1


def still_read(a: Tensor, b: Tensor) -> None:
    last = 0
    for i in range(1, a.shape[0]):
        last = i
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
    a[0, 0] = last + 0.5


@pytest.mark.parametrize(("function", "nests"), [(reused, 1), (still_read, 0)])
def test_variables_that_repeat_an_index(function: Callable[..., None], nests: int) -> None:
    program = program_of(function, *matrices(2, 2))
    kernel, plain = (
        node.kernel for item in (program, canonical(program)) for node in item.body if isinstance(node, Launch)
    )
    assert len(diagonals(kernel, analyse(kernel))) == 0
    assert len(diagonals(plain, analyse(plain))) == nests
    for sizes in ((1, 1), (2, 5), (6, 3)):
        agree(function, *matrices(*sizes), target=cuda_target((9, 0)))
        agree(function, *matrices(*sizes))
