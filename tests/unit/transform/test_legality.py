"""Programs that a transform must leave alone in one respect: each means the same as written and however it is run.

Each is like a program that the transform is for, but for one thing that makes it illegal.
"""

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import Memory
from support.lowering import memory
from support.scheduling import same

Tensor = torch.Tensor
A = memory([[float((3 * k + 5 * j) % 7 - 3) for j in range(6)] for k in range(5)])
B = memory([[float((2 * k + 3 * j) % 5 - 2) for j in range(6)] for k in range(5)])
C = memory([0.5, 0.25, -1.0, 2.0, 4.0, 8.0])


# ---------------------------------------------------------------- the order of loops: `c[j] += a[k, j]`, over k, then j


def a_bound_is_an_element_that_is_written(c: Tensor, a: Tensor, n: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(n[0]):
            c[j] += a[k, j]
            n[j] = n[j] - 1


def a_start_is_an_element_that_is_written(c: Tensor, a: Tensor, n: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(n[5], 6):
            c[j] += a[k, j]
            n[j] = n[j] + 1


def a_bound_is_assigned(c: Tensor, a: Tensor) -> None:
    m = 4
    for k in range(a.shape[0]):
        for j in range(m):
            c[j] += a[k, j]
            m = 2


def a_start_is_assigned(c: Tensor, a: Tensor) -> None:
    m = 0
    for k in range(a.shape[0]):
        for j in range(m, 5):
            c[j] += a[k, j]
            m = 2


def rows_end_early(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[k, j] < -2.0:
                break
            c[j] += a[k, j]


def an_iteration_fails(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j] += a[k, j] // (a[k, j] - 3)


def tensors_are_exchanged(c: Tensor, a: Tensor, b: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j] += a[k, j] * k
            a, b = b, a


def a_variable_is_carried(c: Tensor, a: Tensor) -> None:
    s = 1.0
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = s * 0.5 + a[k, j]
            c[j] += s


def a_variable_is_read_after_it(c: Tensor, a: Tensor) -> None:
    last = 0.0
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            last = a[k, j] * 2.0
            c[j] += last
    c[0] += last


def rows_are_longer(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(k, a.shape[1]):
            c[j] += a[k, j]


def neighbours_meet(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            c[j] += a[k, j] * c[j - 1]


def what_is_written_is_read_elsewhere(c: Tensor, a: Tensor) -> None:
    for k in range(1, a.shape[0]):
        for j in range(a.shape[1] - 1):
            c[j] += a[k - 1, j + 1]
            a[k, j] = c[j] * 0.5


INTEGERS = memory([[4, 5, 6, 7, 8, 9], [1, 2, 4, 3, 5, 6], [2, 3, 5, 7, 11, 13]], INT64)


@pytest.mark.parametrize(
    ("function", "others"),
    [
        (a_bound_is_an_element_that_is_written, (A, memory([5, 1, 1, 1, 1, 1], INT64))),
        (a_start_is_an_element_that_is_written, (A, memory([1] * 6, INT64))),
        (a_bound_is_assigned, (A,)),
        (a_start_is_assigned, (A,)),
        (rows_end_early, (A,)),
        (tensors_are_exchanged, (A, B)),
        (a_variable_is_carried, (A,)),
        (a_variable_is_read_after_it, (A,)),
        (rows_are_longer, (A,)),
        (neighbours_meet, (A,)),
        (what_is_written_is_read_elsewhere, (A,)),
    ],
)
def test_the_order_of_loops_does_not_show(function, others):
    same(function, C, *others)


def test_the_order_of_failures_does_not_show():
    same(an_iteration_fails, memory([0] * 6, INT64), INTEGERS)


def plain_sums(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j] += a[k, j]


def one_sum(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[0] += a[k, j]


def two_parts(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[k, j] = a[k, j] * 0.5 + k
        c[k] = c[k + 1] + 1.0


@pytest.mark.parametrize("function", [plain_sums, one_sum, two_parts])
def test_tensors_that_share_memory_mean_what_the_source_says(function):
    shared = memory([float(k % 5 + 1) for k in range(30)])
    row = Memory(shared.data, (6,), (1,), shared.dtype, 3)
    same(function, row, Memory(shared.data, (5, 6), (6, 1), shared.dtype), may_alias=True)


def a_nest_stands_between(c: Tensor, a: Tensor, b: Tensor) -> None:
    t = 0.0
    for i in range(c.shape[0]):
        if c[i] > 0.0:
            t = 1.0
        for k in range(a.shape[0]):
            for j in range(a.shape[1]):
                b[k, j] += a[k, j] * i
        if c[i] < 0.0:
            t = 2.0
    c[0] = t


def a_nest_reads_a_list(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        w = [c[i]] * 9
        for k in range(a.shape[0]):
            w[k] = a[k, i] * 2.0
        for k in range(a.shape[0]):
            for j in range(a.shape[1]):
                b[k, j] += w[(k + j) % 9] * i


@pytest.mark.parametrize("function", [a_nest_stands_between, a_nest_reads_a_list])
def test_a_loop_around_a_nest_means_what_the_source_says(function):
    same(function, C, A, B)


def a_list_is_of_each_iteration(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            w = [a[k, j], 2.0, 3.0]
            w[j % 3] += 1.0
            c[j] += w[k % 3]


def the_nest_is_not_all(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j] += a[k, j]
        c[k] = c[k] * 0.5


def test_a_nest_means_what_the_source_says():
    same(a_list_is_of_each_iteration, C, A)
    same(the_nest_is_not_all, C, A)
