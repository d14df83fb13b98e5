"""Several elements of one tensor that a loop updates: each is in a variable of its own, if they are apart."""

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Store
from brickwork.ir.walk import statements
from brickwork.transform.promote import apart_in, promote
from support.lowering import memory
from support.scheduling import kernel_of, loops_of, same

Tensor = torch.Tensor
X = memory([1.0, -2.0, 3.0, 0.5, -1.0])
Y = memory([0.25] * 5)
E = memory([2, 0, 2, 1, 4], INT64)


def of_rows(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        y[0] += x[t]
        y[1] += x[t] * x[t]
        y[2] = max(y[2], x[t])


def through_two_loops(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        for k in range(t):
            y[0] += x[k]
            y[1] += y[0] * x[t]
            y[3] = y[3] * 0.5 - x[k]


def one_is_set_too(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        y[0] += x[t]
        y[1] = x[t]
        y[2] -= x[t]


def maybe_one_element(x: Tensor, y: Tensor, e: Tensor) -> None:
    p = e[0]
    for t in range(x.shape[0]):
        y[0] += x[t]
        y[p] = y[p] * 0.5 + x[t]


def read_in_others_places(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        y[0] += x[t]
        y[4] += y[e[t]]


def moving(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(1, x.shape[0]):
        y[t] += x[t]
        y[0] += x[t] * y[t]


def set_where_no_other_is_read(x: Tensor, y: Tensor, e: Tensor) -> None:
    for t in range(x.shape[0]):
        for _ in range(3):
            if t % 3 == 1:
                y[t] = 0.0
            else:
                y[t] += y[e[0]]


PROGRAMS = [
    (of_rows, 0),
    (through_two_loops, 0),
    (one_is_set_too, 1),
    (maybe_one_element, 2),
    (read_in_others_places, 2),
    (moving, 1),
    (set_where_no_other_is_read, 2),
]


@pytest.mark.parametrize(("function", "left"), PROGRAMS, ids=[each[0].__name__ for each in PROGRAMS])
def test_elements_of_one_tensor(function: Callable[..., object], left: int):
    """How many stores are left in the innermost loop, and what is computed."""
    kernel = kernel_of(function, X, Y, E)
    found = promote(kernel, apart_in(lambda: analyse(kernel)))
    inner = [*loops_of(found).values()][-1]
    assert sum(isinstance(node, Store) for node in statements(inner)) == left
    same(function, X, Y, E)


def test_one_at_a_time_where_nothing_is_proved():
    """Without what proves elements apart none of several is taken."""
    kernel = kernel_of(of_rows, X, Y, E)
    assert promote(kernel).body == kernel.body
