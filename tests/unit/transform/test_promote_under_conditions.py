"""Elements that a loop updates under conditions that change in it: in variables where they surely exist.

Each program does the same as written, for processors and for a GPU.
"""

from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Store
from brickwork.ir.walk import statements, walk
from brickwork.transform.promote import apart_in, promote, promote_under_conditions
from support.lowering import memory
from support.scheduling import kernel_of, loops_of, same

Tensor = torch.Tensor
X = memory([1.0, -2.0, 3.0, 0.5, -1.0])
Y = memory([0.25] * 5)
E = memory([2, 0, 2, 1, 4], INT64)


def window(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        for k in range(3):
            if 0 <= t + k - 1 < x.shape[0]:
                y[t] += x[t + k - 1]


def left_out(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        for k in range(x.shape[0]):
            if x[k] < 0:
                continue
            y[t] = max(y[t], x[k] * t)


def none_at_all(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        for k in range(x.shape[0]):
            if x[k] > 100:
                y[t] += x[k]


def in_a_while(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        for k in range(x.shape[0]):
            n = e[k]
            while n > 1:
                y[t] += x[n]
                n -= 1


def in_range_by_the_condition(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0] + 3):
        for k in range(3):
            if t + k < x.shape[0]:
                y[t] += x[t + k]


def elements_that_meet(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        for k in range(3):
            if x[k] > 0:
                y[e[i]] += x[k]


def claimed(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        if i == 3:
            y[0] = y[0] * 2 + x[i]


def read_elsewhere(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(1, x.shape[0]):
        for k in range(3):
            if x[k] > 0:
                y[t] += y[k]


def decayed(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        for k in range(x.shape[0]):
            if x[k] > 0:
                y[t] = y[t] * 0.5 + x[k]


def claimed_of_elements(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        if e[i] == 4:
            y[0] = y[0] * 2 + x[i]


def one_iteration_alone(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        if i == 3:
            y[0] = y[0] * 2 + x[i]


def one_iteration_around(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(4):
        for k in range(3):
            if 3 * i + k >= 10:
                y[0] = y[0] * 2 + x[k]


def one_iteration_inside(x: Tensor, y: Tensor, e: Tensor) -> None:
    for _ in range(3):
        for j in range(x.shape[0]):
            if j == 3:
                y[0] = y[0] * 2 + x[j]


def in_range_of_data(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        p = e[t]
        for k in range(3):
            if k <= p < y.shape[0]:
                y[p] += x[k]


def stored_in_other_iterations(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(4):
        for k in range(3):
            if t % 2 == 0:
                y[3 - k] = x[k] * (t + 1)
            else:
                y[t] += x[k]


def stored_in_an_inner_loop(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(4):
        for k in range(2):
            if t % 2 == 0:
                for q in range(3):
                    y[3 - q] = x[q + k] * (t + 1)
            else:
                y[t] += x[k]


def stored_with_it(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(3):
        for k in range(3):
            if x[k] > 0:
                y[t] += x[k]
                y[3] = x[t]


def stored_before_it_is_left_out(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(3):
        for k in range(3):
            if x[k] > 0:
                y[3] = x[t]
                if k > t:
                    continue
                y[t] += x[k]


PROGRAMS = [
    (stored_in_other_iterations, False),
    (stored_in_an_inner_loop, False),
    (stored_before_it_is_left_out, False),
    (window, True),
    (left_out, True),
    (none_at_all, True),
    (in_a_while, True),
    (in_range_by_the_condition, False),
    (elements_that_meet, False),
    (claimed, False),
    (read_elsewhere, False),
    (decayed, True),
    (claimed_of_elements, False),
    (one_iteration_alone, False),
    (one_iteration_around, False),
    (one_iteration_inside, False),
    (in_range_of_data, False),
]


@pytest.mark.parametrize(("function", "taken"), PROGRAMS, ids=[each[0].__name__ for each in PROGRAMS])
def test_promotion(function: Callable[..., object], taken: bool):
    """Whether the innermost loop stores into memory no more, and what is computed."""
    kernel = kernel_of(function, X, Y, E)
    plain = promote(kernel)
    found = promote_under_conditions(kernel, apart_in(lambda: analyse(kernel)), plain)
    inner = [*loops_of(found).values()][-1]
    assert (not any(isinstance(node, Store) for node in walk(inner))) == taken
    assert (found is plain) != taken
    same(function, X, Y, E)


def test_one_of_two():
    """Elements that may not exist stay in memory; others are variables all the same."""

    def both(x: Tensor, y: Tensor, z: Tensor) -> None:
        for t in range(x.shape[0] + 3):
            for k in range(3):
                if x[k] > 0:
                    y[t] += x[k]
                if t + k < x.shape[0]:
                    z[t] += x[k]

    arguments = (X, memory([1.0] * 8), Y)
    kernel = kernel_of(both, *arguments)
    found = promote_under_conditions(kernel, apart_in(lambda: analyse(kernel)), promote(kernel))
    inner = [*loops_of(found).values()][-1]
    assert [node.tensor.name for node in statements(inner) if isinstance(node, Store)] == ["z"]
    same(both, *arguments)


def test_an_element_that_others_are_stored_with():
    """Where both are stored under one condition, the other store is that of another element for sure."""
    kernel = kernel_of(stored_with_it, X, Y, E)
    found = promote_under_conditions(kernel, apart_in(lambda: analyse(kernel)), promote(kernel))
    inner = [*loops_of(found).values()][-1]
    assert sum(isinstance(node, Store) for node in walk(inner)) == 1
    same(stored_with_it, X, Y, E)


def test_an_element_that_does_not_exist():
    """What is out of range fails where it is updated, and only there."""
    same(in_range_by_the_condition, X, memory([0.5] * 3), E)
    same(none_at_all, X, memory([0.5] * 3), E)


def test_a_loop_that_adds_to_a_variable_for_another_element_runs():
    """It does something where the condition does not hold: the variable is stored behind the loop around it."""

    def beside(x: Tensor, y: Tensor, z: Tensor, n: int) -> None:
        for i in range(3):
            for k in range(3):
                for j in range(3):
                    z[i] += x[j]
                    if n > 0:
                        y[k] += x[j]

    for n in (0, 1):
        assert same(beside, X, memory([1.0] * 3), memory([2.0] * 3), n)[2] != [2.0] * 3
