"""Programs that invite a wrong proof: what is scheduled must do as the source says, without races or stray accesses."""

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir.dtypes import INT64, UINT8
from brickwork.ir.nodes import For, Launch, Store
from brickwork.ir.walk import walk
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
