"""What is no contraction is not packed, and runs as before."""

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import For
from brickwork.transform.schedule.panels import find_nest
from support.lowering import memory
from support.scheduling import agree, kernel_of, loops_of

Tensor = torch.Tensor


def grid(n, m, seed):
    values = [float((7 * i + 5 * j + 3 * seed + i * j) % 9 - 4) for i in range(n) for j in range(m)]
    return Memory(values, (n, m), (m, 1), FLOAT32)


def nest_in(function, *arguments):
    kernel = kernel_of(function, *arguments)
    (first, *_) = [node for node in kernel.body if isinstance(node, For)]
    return find_nest(first, analyse(kernel))


def squares(n):
    return grid(n, n, 0), grid(n, n, 1), grid(n, n, 2)


def with_a_check(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            assert a[i, j] > -9.0
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def with_a_break(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if a[i, k] > 3.0:
                    break
                s += a[i, k] * b[k, j]
            y[i, j] = s


def one_after_the_other(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(1, n):
        for j in range(n):
            s = y[i - 1, j]
            for k in range(n):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def of_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += (a[i, k] - b[k, j]) * (a[i, k] - b[k, j])
            y[i, j] = s


def up_and_down(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(min(i, n - i)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def by_a_product(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(min(n, i * i)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def greatest(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s = max(s, a[i, k] * b[k, j])
            y[i, j] = s


def of_rows_alone(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[0, k]
            y[i, j] = s


def a_total(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    t = 0.0
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            t += s
    y[0, 0] = t


def with_another_branch(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            if n > 3:
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            else:
                y[i, j] = 1.0


def with_more_behind_a_branch(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            if n > 3:
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            y[i, j] += 1.0


def of_some_rows(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            if i > 2:
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def with_a_last_value(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            last = 1.0
            for k in range(n):
                last = a[i, k]
                s += last * b[k, j]
            y[i, j] = s + last


def by_places_under_a_condition(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if j + k < 4:
                    s += a[i, int(a[i, k]) % n] * b[k, j]
            y[i, j] = s


def with_a_check_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            assert s > -99999.0
            y[i, j] = s


def with_a_loop_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            while s > 3.0:
                s -= 2.0
            y[i, j] = s


def with_one_side_in_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                for m in range(n):
                    s += a[i, (k + m) % n] * b[k, (i + j) % n]
            y[i, j] = s


OTHERS = [with_one_side_in_both, with_a_check_behind, with_a_loop_behind]
OTHERS += [a_total, with_another_branch, with_more_behind_a_branch, of_some_rows, with_a_last_value]
OTHERS += [by_places_under_a_condition, with_a_check, with_a_break, one_after_the_other, of_both, up_and_down]
OTHERS += [by_a_product, greatest, of_rows_alone]


@pytest.mark.parametrize("function", OTHERS)
def test_what_is_no_contraction_runs_as_before(function):
    assert nest_in(function, *squares(5)) is None
    agree(function, *squares(5))


def test_loops_that_add_to_elements_that_data_choose_are_not_packed():
    def scattered(a: Tensor, b: Tensor, y: Tensor, place: Tensor) -> None:
        n = a.shape[0]
        for i in range(n):
            for j in range(n):
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                y[place[0, i], j] += s

    kernel = kernel_of(scattered, *squares(4), memory([[1, 0, 1, 2]], INT64))
    assert find_nest(loops_of(kernel)["i"], analyse(kernel)) is None
