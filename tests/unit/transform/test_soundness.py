"""Programs that invite a wrong proof: what is scheduled must do as the source says, without races or stray accesses."""

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir.dtypes import INT64, UINT8
from brickwork.ir.nodes import For, Launch, Store
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.pipeline import schedule_kernel
from support.lowering import memory, program_of
from support.scheduling import AVX2, agree

ZEROS = [0.0] * 12


def kernel_of(function, *arguments):
    return next(node.kernel for node in walk(program_of(function, *arguments)) if isinstance(node, Launch))


def divides_on_one_path(out: torch.Tensor, n: int) -> None:
    for i in range(out.shape[0]):
        if n != 0 and i % n == 0:
            out[i] = 1
        elif n == 0:
            out[0] = out[0] * 0.5 + i


def remainder_on_one_path(out: torch.Tensor, n: int) -> None:
    for i in range(out.shape[0]):
        k = 0
        if n > 0:
            k = i % n
        if n <= 0:
            out[k] = out[k] * 0.5 + i


@pytest.mark.parametrize("function", [divides_on_one_path, remainder_on_one_path])
@pytest.mark.parametrize("divisor", [0, 3, 20])
def test_a_division_on_one_path_says_nothing_of_the_others(function, divisor):
    agree(function, memory(ZEROS), divisor)


def steps_by_data(k: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    m = y.shape[0]
    for i in range(k.shape[0]):
        j = i + k[i] * m
        if j < out.shape[0]:
            out[j] = out[j] * 0.5 + i


def test_data_of_two_iterations_does_not_cancel_out():
    steps = memory([1, 0, 1, 0, 1, 0, 1, 0], UINT8)
    agree(steps_by_data, steps, memory([0.0]), memory(ZEROS))


def chooses(x: torch.Tensor, out: torch.Tensor, flag: bool) -> None:
    for i in range(x.shape[0]):
        if flag:
            out[i + 1] = x[i]
        else:
            out[i] = x[i]


@pytest.mark.parametrize("flag", [False, True])
def test_bools_stand_in_guards(flag):
    agree(chooses, memory([1.0, 2.0, 3.0]), memory([0.0] * 4), flag)


def triangles(out: torch.Tensor) -> None:
    for k in range(out.shape[0]):
        for i in range(k):
            for j in range(out.shape[1]):
                out[i, j] = out[i, j] + 1


def test_a_nest_is_not_flattened_on_a_condition_that_varies():
    agree(triangles, memory([[0.0] * 3] * 5))


def negates(v: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(v.shape[0]):
        a = v[i]
        if a <= 0:
            k = a // -1
            if k < out.shape[0]:
                out[k] = 1


def test_the_least_integer_divided_by_minus_one_is_no_index():
    v, out = memory([-1, -2], INT64), memory(ZEROS)
    agree(negates, v, out)
    kernel = kernel_of(negates, v, out)
    (store,) = (node for node in walk(kernel.body) if isinstance(node, Store))
    assert analyse(kernel).bounds[store.access, 0].bound is Bound.CHECKED


def nullifies(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i + 1] * 0


def asks_in_vain(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        if x[i + 1] > 0 and 2 < 1:
            out[i] = 1


def chooses_the_same(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = i if x[i + 1] > 0 else i + 0


@pytest.mark.parametrize("function", [nullifies, asks_in_vain, chooses_the_same])
def test_a_read_whose_value_does_not_matter_is_in_range_too(function):
    with pytest.raises(IndexError):
        agree(function, memory([1, 2, 3], INT64), memory([1, 2, 3], INT64))


def greatest(x: torch.Tensor, out: torch.Tensor) -> None:
    s = x[0]
    for i in range(x.shape[0]):
        s = max(x[i], s)
    out[0] = s


def test_what_comes_after_nan_counts_where_the_variable_is_second():
    kernel = schedule_kernel(kernel_of(greatest, memory(ZEROS), memory(ZEROS)), AVX2).kernel
    assert not any(node.reductions for node in walk(kernel.body) if isinstance(node, For))


def divides_what_it_reads(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    for i in range(out.shape[0]):
        out[i] = x[i] // n


def test_what_is_read_before_a_division_fails_before_it():
    with pytest.raises(IndexError):
        agree(divides_what_it_reads, memory([], INT64), memory(ZEROS), 0)


def cut_on_a_guard(a: torch.Tensor, b: torch.Tensor, s: int) -> None:
    for i in range(s, a.shape[0]):
        a[i] = b[i] * 2 + i
        b[i] = b[i - 1] + a[i - 1]


def accumulates_on_a_guard(a: torch.Tensor, b: torch.Tensor, s: int) -> None:
    for i in range(s, a.shape[0]):
        for j in range(b.shape[0]):
            a[i] = a[i] + a[i - 1] * b[j]


def places_on_a_guard(a: torch.Tensor, b: torch.Tensor, s: int) -> None:
    for i in range(s, a.shape[0]):
        b[i] = a[i - 1] + 1
        a[i] = b[i] * 0.5 + b[i - 2]


@pytest.mark.parametrize("target", [AVX2, cuda_target((9, 0))], ids=["processor", "grid"])
@pytest.mark.parametrize("function", [cut_on_a_guard, accumulates_on_a_guard, places_on_a_guard])
@pytest.mark.parametrize("start", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("size", [5, 4, 2])
def test_loops_are_moved_only_where_the_guards_hold(function, start, size, target):
    if start >= 2 - size:
        values = [1.0, 3.0, 2.0, 5.0, 4.0][:size]
        agree(function, memory(values), memory([value + 1 for value in values]), start, target=target)


def steps_down_and_right(a: torch.Tensor, s: int) -> None:
    for i in range(s, s + a.shape[0] - 1):
        for j in range(s, s + a.shape[1] - 1):
            a[i - s + 1, j - s + 1] = a[i - s, j - s + 1] + a[i - s + 1, j - s] * 0.5


def steps_down_from(a: torch.Tensor, s: int) -> None:
    for i in range(s, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i - 1, j] + a[i, j - 1] * 0.5


@pytest.mark.parametrize(
    ("function", "starts"),
    [(steps_down_and_right, (0, 2**61, 2**62 + 5, -(2**62))), (steps_down_from, (-2, 0, 1, 2**62))],
)
def test_diagonals_of_bounds_from_arguments(function, starts):
    for start in starts:
        agree(function, memory([[1.0, 2.0, 3.0], [5.0, 7.0, 9.0], [4.0, 1.0, 0.5]]), start, target=cuda_target((9, 0)))
