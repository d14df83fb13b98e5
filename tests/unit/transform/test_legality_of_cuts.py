"""Loops that must not be cut, elements that must not become variables, and code that must stay where it is.

Each program is like one that `distribute`, `promote`, `sink` or `unswitch` is for, but for one
thing that makes that illegal. It means the same as written and however it is run.
"""

import pytest
import torch

from brickwork.ir.dtypes import INT64, UINT8
from support.lowering import memory
from support.scheduling import same

Tensor = torch.Tensor
N = 6
X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
Y = memory([1.0] * N)
S = memory([0.25] * N)
I6 = memory([3, 1, 4, 1, 5, 2], INT64)
M = memory([[float((3 * i + 5 * j) % 7 - 3) for j in range(N)] for i in range(N)])
OUT = memory([[0.5] * N for _ in range(N)])


# ---------------------------------------------------------------- cuts: `y[i] = x[i]` before `s[i] = s[i - 1] + ...`


def what_is_read_is_written_later(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0] - 1):
        y[i] = x[i] * 2.0
        x[i + 1] = y[i] + x[i] * 0.5


def what_is_written_is_written_later(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(1, x.shape[0] - 1):
        y[i + 1] = x[i] * 2.0
        s[i] = s[i - 1] + 1.0
        y[i] = s[i]


def a_variable_leads_on(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(1, x.shape[0]):
        t = x[i] * 2.0
        y[i] = t + 1.0
        s[i] = s[i - 1] * 0.5 + t


def a_variable_leads_back(x: Tensor, y: Tensor, s: Tensor) -> None:
    t = 1.0
    for i in range(1, x.shape[0]):
        y[i] = t
        s[i] = s[i - 1] * 0.5 + x[i]
        t = x[i] * 0.5


def both_parts_set_what_is_read_after(x: Tensor, y: Tensor, s: Tensor) -> None:
    t = 0.0
    for i in range(1, x.shape[0]):
        y[i] = x[i] * 2.0
        if x[i] > 0.0:
            t = 1.0
        s[i] = s[i - 1] * 0.5 + x[i]
        if x[i] < 0.0:
            t = 2.0
    y[0] = t


def a_list_is_of_both_parts(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(1, x.shape[0]):
        w = [x[i], x[i] * 0.5]
        y[i] = w[i % 2] * 2.0
        s[i] = s[i - 1] * 0.5 + w[(i + 1) % 2]


def tensors_are_exchanged(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(1, x.shape[0]):
        y[i] = x[i] * 2.0
        s[i] = s[i - 1] * 0.5 + 1.0
        x, y = y, x


def it_ends_early(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(1, x.shape[0]):
        y[i] = x[i] * 2.0
        s[i] = s[i - 1] * 0.5 + x[i]
        if s[i] > 1.0:
            break


def iterations_end_early(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(1, x.shape[0]):
        if x[i] < 0.0:
            continue
        y[i] = x[i] * 2.0
        s[i] = s[i - 1] * 0.5 + x[i]


# ---------------------------------------------------------------- elements as variables: `for j: out[i] += x[j]`


def the_index_changes(x: Tensor, y: Tensor, s: Tensor) -> None:
    k = 0
    for j in range(x.shape[0]):
        y[k] += x[j]
        if x[j] < 0.0:
            k = j


def the_index_is_the_loops(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(2):
        for j in range(x.shape[0]):
            y[i] += x[j]
            s[j] = y[i]


def another_element_is_written(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        y[2] += x[j]
        y[j] = x[j] + 1.0


def another_element_is_read(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        y[2] += x[j] * y[j]


def the_index_is_an_element_that_changes(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        y[int(s[0])] += x[j]
        s[0] = s[0] + 0.5


def it_is_outside_and_never_reached(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        if x[j] > 100.0:
            y[9] += x[j]


def it_is_outside_and_the_inner_loop_is_empty(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        for k in range(x.shape[0], N):
            y[9] += x[j] * k


def it_is_outside_and_a_loop_is_left_before_it(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        if x[j] > 1.0:
            break
        y[9] += x[j]


def it_is_outside_and_iterations_end_before_it(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        if x[j] < 100.0:
            continue
        y[9] += x[j]


def it_is_outside_in_a_loop_as_long_as_data(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        n = int(y[j]) - 1
        for k in range(n):
            y[9] += x[j] * k


def it_is_outside_in_a_while(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        k = 0
        while x[j] > 100.0 + k:
            y[9] += x[j]
            k += 1


def it_is_outside_behind_a_loop_that_reaches_another(x: Tensor, y: Tensor, s: Tensor) -> None:
    for j in range(x.shape[0]):
        for k in range(2):
            s[0] += x[k]
        if x[j] > 100.0:
            y[9] += x[j]


# ---------------------------------------------------------------- indices of loops as variables


def the_copy_is_changed(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i0 in range(x.shape[0] - 1):
        i = i0
        y[i] = x[i]
        i = i0 + 1
        s[i] = x[i] * 2.0


def the_copy_is_read_after(x: Tensor, y: Tensor, s: Tensor) -> None:
    i = 1
    for i0 in range(x.shape[0] - 2):
        i = i0
        y[i] = x[i]
    s[i] = 7.0


def the_copy_is_read_before(x: Tensor, y: Tensor, s: Tensor) -> None:
    i = 3
    for i0 in range(x.shape[0]):
        y[i0] = x[i]
        i = i0


# ---------------------------------------------------------------- conditions asked further out


def the_branch_changes_its_condition(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t, k = 0.0, i
        for v in range(x.shape[0]):
            if k < 4:
                t += x[v]
                k += 1
        y[i] = t


def what_the_condition_is_made_of_is_read_after(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t, k = 0.0, 0
        for v in range(3):
            k = i + v
            if k < 5:
                t += x[k]
        y[i] = t
        s[i] = k


def what_the_condition_is_made_of_is_carried(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t, k = 0.0, 0
        for v in range(4):
            k = k + i
            if k < 5:
                t += x[v]
        y[i] = t


def the_condition_is_of_elements_that_change(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        for v in range(4):
            if s[i] < 1.0:
                t += x[v]
                s[i] = s[i] + 0.3
        y[i] = t


def the_condition_has_another_way(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        for v in range(4):
            if i < 3:
                t += x[v]
            else:
                t -= x[v] * 0.5
        y[i] = t


def the_branch_changes_what_its_condition_was_made_of(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t, k = 0.0, i
        for v in range(4):
            m = k + v
            if m < 6:
                t += x[m]
                k = 1
        y[i] = t


def the_condition_is_of_what_one_way_sets(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t, k = 0.0, 9
        for v in range(4):
            if i < 2 * v:
                k = v
            if k < 3:
                t += x[v]
        y[i] = t


def the_branch_reads_what_one_way_sets(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t, k = 0.0, 5
        for v in range(4):
            if i < 2 * v:
                k = v
            if i < 4:
                t += k * x[v]
        y[i] = t


def the_branch_changes_what_was_set_before_it(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        t, k = 0.0, 5
        for v in range(4):
            k = v + 1
            if i < 4:
                k = k + 1
                t += k * x[v]
        y[i] = t


VECTORS = [
    value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__
]


@pytest.mark.parametrize("function", VECTORS)
def test_it_does_what_the_source_says(function):
    same(function, X, Y, S)


# ---------------------------------------------------------------- integers, which may fail


def it_fails_between(x: Tensor, y: Tensor, s: Tensor) -> None:
    for i in range(1, x.shape[0]):
        y[i] = x[i] // (x[i] - 5)
        s[i] = s[i - 1] + y[i]


def test_what_was_written_before_a_failure_does_not_show():
    zeros = memory([0] * N, INT64)
    same(it_fails_between, I6, zeros, memory([0] * N, INT64))


def it_wraps(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        y[0] = y[0] * 3 // 2 + x[i]


def test_an_element_is_as_narrow_as_its_tensor():
    same(it_wraps, I6, memory([250, 1], UINT8))


# ---------------------------------------------------------------- statements between loops


def divides_first(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        v = i // h
        for j in range(x.shape[1]):
            out[i, j] = x[v, j]


def writes_what_was_read_first(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        v = x[i, h]
        for j in range(x.shape[1]):
            x[i, j] = v + 1.0


def changes_what_was_set_first(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        v = h + i
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + v
            v = 3


def reads_in_bounds_what_was_set_first(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        m = (i + h) % 4
        for j in range(m):
            out[i, j] = x[i, j]


def sets_first_what_the_last_iteration_left(x: Tensor, out: Tensor, h: int) -> None:
    v = h
    for i in range(x.shape[0]):
        v = v // 2 + 1
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + v


def stores_first(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        x[i, 0] += 1.0
        for j in range(1, x.shape[1]):
            out[i, j] = x[i, j] * 2.0


def checks_behind_an_element(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        v = int(x[i, 0]) // (h + i)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + v


def checks_by_the_index(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        v = 7 // (i + h + 1)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + v


def checks_what_was_computed(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        m = i * i + h + 1
        v = 7 // m
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + v


def divides_in_a_condition(x: Tensor, out: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        for j in range(h):
            if i // h < 2:
                t += x[i, j]
        out[i, 0] = t


SPACES = [checks_by_the_index, checks_what_was_computed, divides_in_a_condition]
SPACES += [divides_first, writes_what_was_read_first, changes_what_was_set_first, reads_in_bounds_what_was_set_first]
SPACES += [sets_first_what_the_last_iteration_left, stores_first, checks_behind_an_element]


@pytest.mark.parametrize("function", SPACES)
def test_statements_between_loops_stay_with_their_iteration(function):
    for h in (0, 1, 2):
        same(function, M, OUT, h)
    same(function, memory([[]]), memory([[]]), 0)
