"""Maxima that scale sums stay in loops with them where something else goes with either, or they go another way."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from brickwork.ir.interpret import Memory
from brickwork.ir.signature import Signature
from brickwork.transform.canonical.form import canonical
from brickwork.transform.running_extremes import with_running_extremes
from support.lowering import argument_type
from support.scheduling import GPU, way
from support.tensors import to_memory

Tensor = torch.Tensor


def whole(*sizes: int, step: int = 7) -> Memory:
    """Return small whole numbers."""
    count = math.prod(sizes)
    return to_memory(torch.tensor([float((step * n + 3) % 11 - 5) for n in range(count)]).reshape(sizes))


def is_changed(function: Callable[..., None], *arguments: Memory) -> bool:
    """Whether a program changes."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = canonical(way(function, signature), sizes=True)
    return with_running_extremes(program, GPU)[0] != program


def the_maximum_begins_anew(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            if x[i, j] < -3.0:
                for _ in range(2):
                    m = -5.0
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i, 0] = z
        y[i, 1] = m


def the_sum_begins_anew_with_scores(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            s = 0.0
            for k in range(3):
                s += w[j, k]
                z = 1.0
            new = max(m, s)
            z = z * math.exp2(m - new) + math.exp2(s - new)
            m = new
        y[i, 0] = z
        y[i, 1] = m


def the_maximum_begins_anew_with_scores(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            s = 0.0
            for k in range(3):
                s += w[j, k]
                m = -2.0
            new = max(m, s)
            z = z * math.exp2(m - new) + math.exp2(s - new)
            m = new
        y[i, 0] = z
        y[i, 1] = m


def elements_read_before_they_are_scaled(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            t = y[i, 0]
            y[i, 0] = y[i, 0] * math.exp2(m - new)
            y[i, 0] = t + math.exp2(x[i, j] - new)
            m = new


def what_a_loop_of_sums_leaves(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            t = 0.0
            for d in range(y.shape[1]):
                t = w[j, d]
                y[i, d] = y[i, d] * math.exp2(m - new) + t * math.exp2(x[i, j] - new)
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new) * t
            m = new
        y[i, 0] += z


def a_branch_goes_on_with_a_variable(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            t = x[i, j] * 2.0
            if x[i, j] > 0.0:
                for d in range(2):
                    t += w[j, d]
            if t > 1.0:
                y[i, 1] += t
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i, 0] = z


def a_loop_of_sums_leaves_a_variable(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        t = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            for d in range(y.shape[1]):
                t = w[j, d]
                y[i, d] = y[i, d] * math.exp2(m - new) + t * math.exp2(x[i, j] - new)
            m = new
        y[i, 0] += t


def more_elements_in_each_iteration(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(3):
            new = max(m, x[i, j])
            for d in range(j):
                y[i, d] = y[i, d] * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new


def terms_of_the_element_before(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            t = 3.0
            for d in range(y.shape[1]):
                u = t
                t = w[j, d]
                y[i, d] = y[i, d] * math.exp2(m - new) + u * math.exp2(x[i, j] - new)
            m = new


def terms_with_a_count(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        n = 0.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            if x[i, j] > 0.0:
                n += 1.0
                y[i, 1] += 1.0
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new) * n
            m = new
        y[i, 0] = z


def the_maximum_comes_second(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(x[i, j], m)
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i, 0] = z
        y[i, 1] = m


def nothing_is_added(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -math.inf
        z = 2.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new)
            m = new
        y[i, 0] = z
        y[i, 1] = m


STAY = [
    the_maximum_begins_anew,
    the_sum_begins_anew_with_scores,
    the_maximum_begins_anew_with_scores,
    elements_read_before_they_are_scaled,
    what_a_loop_of_sums_leaves,
    a_branch_goes_on_with_a_variable,
    a_loop_of_sums_leaves_a_variable,
    more_elements_in_each_iteration,
    terms_of_the_element_before,
    terms_with_a_count,
    the_maximum_comes_second,
    nothing_is_added,
]


@pytest.mark.parametrize("function", STAY, ids=lambda item: item.__name__)
def test_loops_in_which_something_else_goes_with_maxima_stay(function: Callable[..., None]) -> None:
    assert not is_changed(function, whole(4, 9), whole(9, 3, step=5), whole(4, 3))
