"""Sums that a running maximum scales stay where terms follow it by more than one power, or not all elements are scaled.

With powers of two all sums are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Program
from brickwork.ir.signature import Signature
from brickwork.transform.canonical.form import canonical
from brickwork.transform.running_extremes import with_running_extremes
from support.lowering import argument_type, memory, nested
from support.scheduling import GPU, way

Tensor = torch.Tensor
X = memory([[1.0, -2.0, 3.0, 2.0, -1.0], [2.0, 1.0, 0.0, 3.0, 4.0]])
W = memory([[1.0, 2.0, 3.0], [2.0, -1.0, 1.0], [3.0, 1.0, 1.0], [1.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
Y = memory([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
AT = memory([1, 1], INT64)


def some_are_scaled(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            for d in range(2):
                y[i, d] *= math.exp2(m - new)
            for d in range(y.shape[1]):
                y[i, d] += w[j, d] * math.exp2(x[i, j] - new)
            m = new


def another_is_scaled(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            y[i, 0] *= math.exp2(m - new)
            y[i, 1] += w[j, 0] * math.exp2(x[i, j] - new)
            m = new


def scaled_by_another_power(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            for d in range(y.shape[1]):
                y[i, d] *= math.exp2((m - new) * 2.0)
            for d in range(y.shape[1]):
                y[i, d] += w[j, d] * math.exp2(x[i, j] - new)
            m = new


def scaled_terms(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new) * math.exp2(m - new)
            m = new
        y[i, 0] = z


def distances(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new) * (x[i, j] - new)
            m = new
        y[i, 0] = z


def squares(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            p = math.exp2(x[i, j] - new)
            z = z * math.exp2(m - new) + p * (1.0 + p)
            m = new
        y[i, 0] = z


def scores_are_factors(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2((m - new) * x[i, j]) + math.exp2((x[i, j] - new) * x[i, j])
            m = new
        y[i, 0] = z


def steps_are_factors(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2((m - new) * (m - x[i, j])) + math.exp2((x[i, j] - new) * (m - x[i, j]))
            m = new
        y[i, 0] = z


def a_distance_is_told(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -3.0
        z = 0.0
        right = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            if j == at[i]:
                right = x[i, j] - new
            m = new
        y[i, 0] = z + right


def fewer_are_zero(x: Tensor, w: Tensor, at: Tensor, y: Tensor) -> None:
    """The loop that stores zeros has the bounds of the one that adds, which are others by then."""
    for i in range(x.shape[0]):
        m = -3.0
        n = 0
        for k in range(1):
            n += at[k]
        for d in range(n):
            y[i, d] = 0.0
        for k in range(2):
            n += at[k]
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            for d in range(n):
                y[i, d] = y[i, d] * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new


def _changed(function: Callable[..., None]) -> tuple[Program, Program]:
    signature = Signature(tuple(map(argument_type, (X, W, AT, Y))), device="cuda", narrow=True, aligned=True)
    program = canonical(way(function, signature), sizes=True)
    return program, with_running_extremes(program, GPU)[0]


def _left(program: Program) -> object:
    copies: list[Memory] = [memory(nested(item), item.dtype) for item in (X, W, AT, Y)]
    run_program(program, copies, check=True)
    return nested(copies[-1])


@pytest.mark.parametrize(
    "function",
    [
        some_are_scaled,
        another_is_scaled,
        scaled_by_another_power,
        scaled_terms,
        distances,
        squares,
        scores_are_factors,
        steps_are_factors,
        a_distance_is_told,
    ],
    ids=lambda item: item.__name__,
)
def test_other_sums_stay(function: Callable[..., None]) -> None:
    program, found = _changed(function)
    assert found == program


def test_elements_that_did_not_begin_with_zeros_are_scaled() -> None:
    program, found = _changed(fewer_are_zero)
    assert found != program
    assert _left(found) == _left(program)
