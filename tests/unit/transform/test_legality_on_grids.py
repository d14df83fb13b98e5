"""Nests that a grid must not run as it would like to: triangles, diagonals, and loops that the host runs.

Each program is like one that `rectangle`, `wavefront`, `predicate`, `persistent` or `lockstep` is for, but for one
thing that makes that illegal. It means the same as written and however it is run.
"""

import pytest
import torch

import brickwork as bw
from brickwork.ir.dtypes import INT64
from support.lowering import memory
from support.scheduling import same

Tensor = torch.Tensor
N = 6
A = memory([[float((3 * i + 5 * j) % 7 - 3) for j in range(N)] for i in range(N)])
OUT = memory([[0.5] * N for _ in range(N)])
X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])


# ---------------------------------------------------------------- triangles, with bounds that rise, fall and do neither


def rises_and_falls(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        for j in range(min(i, N - i), max(i + 1, N - i)):
            t = 0.0
            for k in range(N):
                t += a[i, k] * a[k, j]
            y[i, j] = t


def is_twice_as_steep(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(3):
        for j in range(2 * i, 6 - i * 2 + 2 * i):
            t = 0.0
            for k in range(j):
                t += a[i, k] * a[k, j]
            y[i, j] = t


def falls(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        for j in range(N - 1 - i, N - i // 2):
            t = 0.0
            for k in range(N):
                t += a[i, k] * a[k, j]
            y[i, j] = t


def is_square(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        for j in range(i * i % 5, N):
            t = 0.0
            for k in range(N):
                t += a[i, k] * a[k, j]
            y[i, j] = t


def falls_by_a_product(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(3):
        for j in range(-2 * i + 4, 6 - i):
            t = 0.0
            for k in range(N):
                t += a[i, k] * a[k, j]
            y[i, j] = t


def differences_cancel(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        for j in range(i - min(2 * i, 5) + 5, N):
            t = 0.0
            for k in range(N):
                t += a[i, k] * a[k, j]
            y[i, j] = t


def rows_are_sums(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        t = 0.0
        for j in range(i + 1):
            for k in range(N):
                t += a[i, k] * a[k, j]
        y[i, 0] = t


def columns_are_updated(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        for j in range(i + 1):
            for k in range(N):
                y[0, k] += a[i, k] * a[k, j]


def rows_meet(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(i):
            for k in range(N):
                y[i, j] = y[i - 1, j] * 0.5 + a[i, k]


# ---------------------------------------------------------------- diagonals: `y[i, j] = y[i - 1, j] + y[i, j - 1]`


def a_variable_goes_along(a: Tensor, y: Tensor, x: Tensor) -> None:
    t = 0.0
    for i in range(1, N):
        for j in range(1, N):
            t = t * 0.5 + a[i, j]
            y[i, j] = y[i - 1, j] + y[i, j - 1] + t


def a_variable_is_read_after(a: Tensor, y: Tensor, x: Tensor) -> None:
    t = 0.0
    for i in range(1, N):
        for j in range(1, N):
            t = a[i, j] * 2.0
            y[i, j] = y[i - 1, j] + y[i, j - 1] + t
    y[0, 0] = t


def rows_are_shorter(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(1, N - i):
            y[i, j] = y[i - 1, j] + y[i, j - 1] + a[i, j]


def rows_begin_later(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(i, N):
            y[i, j] = y[i - 1, j] + y[i, j - 1] + a[i, j]


def rows_end_early(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(1, N):
            if a[i, j] > 2.0:
                break
            y[i, j] = y[i - 1, j] + y[i, j - 1] + a[i, j]


def tensors_are_exchanged(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(1, N):
            y[i, j] = y[i - 1, j] + y[i, j - 1] + a[i, j]
            a, y = y, a


def what_is_right_above_is_needed(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(1, N - 1):
            y[i, j] = y[i - 1, j + 1] + y[i, j - 1] + a[i, j]


def what_is_far_above_is_needed(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(1, N - 2):
            y[i, j] = y[i - 1, j + 2] * 0.5 + y[i, j - 1] + a[i, j]


def what_comes_is_read(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N - 1):
        for j in range(1, N):
            y[i, j] = y[i + 1, j - 1] + y[i, j - 1] * 0.5


def the_nest_holds_a_loop(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(1, N):
            for k in range(2):
                y[i, j] = y[i - 1, j] + y[i, j - 1] + a[i, k]


def a_while_goes_along(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(1, N):
        for j in range(1, N):
            k = 0
            while k < j:
                y[i, j] = y[i - 1, j] + y[i, j - 1] + a[i, k]
                k += 2


# ---------------------------------------------------------------- loops that the host runs, or a block


def an_element_ends_it(a: Tensor, y: Tensor, x: Tensor) -> None:
    for k in range(N):
        if x[k] > 2.5:
            break
        for j in range(N):
            y[0, j] += a[k, j] * x[k]


def an_element_ends_what_is_claimed(a: Tensor, y: Tensor, x: Tensor) -> None:
    for k in bw.prange(a.shape[0] + 1):
        for j in range(a.shape[1]):
            y[k, j] = a[k, j] * x[k]
        if x[k] > 2.5:
            break


def an_element_skips(a: Tensor, y: Tensor, x: Tensor) -> None:
    for k in range(N):
        if x[k] < 0.0:
            x[k] = 1.0
            continue
        for j in range(N):
            y[k, j] = a[k, j] * x[k]
        x[k] = y[k, 0]


def a_nest_decides(a: Tensor, y: Tensor, x: Tensor) -> None:
    for k in range(N):
        if x[0] < 5.0:
            for j in range(N):
                x[j] = x[j] + a[k, j] * a[k, j]
        else:
            for j in range(N):
                y[k, j] = x[j]


def a_while_waits_for_elements(a: Tensor, y: Tensor, x: Tensor) -> None:
    k = 0
    while x[0] < 9.0 and k < N:
        for j in range(N):
            x[j] = x[j] + a[k, j] * a[k, j] + 1.0
        k += 1
    y[0, 0] = k


def a_variable_outlives_it(a: Tensor, y: Tensor, x: Tensor) -> None:
    t = 1.0
    for k in range(N):
        t = t * 0.5 + x[k]
        for j in range(N):
            x[j] = x[j] * 0.5 + a[k, j] * t
    y[0, 0] = t


def a_row_reads_what_others_write(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        t = y[i, 0]
        for j in range(N):
            y[i, j] = a[i, j] + t
        for j in range(N):
            y[i, j] = y[i, N - 1 - j] * 0.5


def a_row_is_written_by_all_that_read_it(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            y[i, j] = a[i, j] * x[j]
        if y[i, 2] > 0.0:
            y[i, 2] = y[i, 1]
        for j in range(N):
            a[i, j] = y[i, N - 1 - j]


def rows_share_a_list(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        w = [0.0, 0.0]
        for j in range(N):
            w[j % 2] += a[i, j]
        for j in range(N):
            y[i, j] = w[(j + 1) % 2]


def the_next_turn_writes_what_this_one_reads(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        for k in range(N):
            t = y[i, k]
            for j in range(N):
                y[i, j] = y[i, j] * 0.5 + t


def one_way_reads_the_other_writes(a: Tensor, y: Tensor, x: Tensor) -> None:
    for i in range(N):
        t = 0.0
        if a[i, 0] > 0.0:
            t = y[i, 1]
        for j in range(N):
            y[i, j] = a[i, j] + t


NESTS = [item for item in list(globals().values()) if getattr(item, "__annotations__", {}).keys() >= {"a", "y", "x"}]


@pytest.mark.parametrize("function", NESTS)
def test_it_does_what_the_source_says(function):
    same(function, A, OUT, X)


def divides_in_turns(x: Tensor, y: Tensor, h: int) -> None:
    for k in range(x.shape[0]):
        for j in range(y.shape[0]):
            y[j] += x[k] // (h + j)
        h = h - 1


def divides_along_diagonals(x: Tensor, y: Tensor, h: int) -> None:
    for k in range(1, x.shape[0]):
        for j in range(1, y.shape[1]):
            y[k, j] = (y[k - 1, j] + y[k, j - 1]) // (h + j)


def test_failures_come_in_order():
    numbers = memory([3, 1, 4, 1, 5], INT64)
    square = memory([[7, 5, 3, 2]] * 5, INT64)
    for h in (4, 2, -1):
        same(divides_in_turns, numbers, memory([0] * 4, INT64), h)
        same(divides_along_diagonals, numbers, square, h)
