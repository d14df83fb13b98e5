"""What a condition chooses over zero is a factor where the zero meets all that may be infinite, and else is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.contractions import Contraction, find_contraction
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import For
from support.lowering import memory
from support.scheduling import kernel_of

Tensor = torch.Tensor
N = 4


def a_row_is_chosen(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k] * 2.0 if i + k < 5 else 0.0
                s -= v * b[k, j]
            y[i, j] = s


def a_column_is_chosen(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = b[k, j] if k < 3 else 0.0
                s += a[i, k] * v
            y[i, j] = s


def both_are_chosen(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                u = a[i, k] if k < 3 else 0.0
                v = b[k, j] if k < 3 else 0.0
                s += u * v
            y[i, j] = s


def the_other_side_chooses(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k] if j + k < 5 else 0.0
                s += v * b[k, j]
            y[i, j] = s


def another_factor_of_the_side(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k] if i + k < 5 else 0.0
                s += v * a[k, i] * b[k, j]
            y[i, j] = s


def the_same_factor_again(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k] if i + k < 5 else 0.0
                s += v * a[i, k] * b[k, j]
            y[i, j] = s


def another_factor_of_a_chosen_side(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k] * b[k, j] if i + k < 5 else 0.0
                s += v * b[j, k]
            y[i, j] = s


CHOSEN = [a_row_is_chosen, a_column_is_chosen, both_are_chosen]
NOT_CHOSEN = [
    the_other_side_chooses,
    another_factor_of_the_side,
    the_same_factor_again,
    another_factor_of_a_chosen_side,
]


def _found(function: Callable[..., None]) -> Contraction | None:
    square = memory([[0.5] * N for _ in range(N)], FLOAT32)
    (rows,) = kernel_of(function, square, square, square).body
    assert isinstance(rows, For)
    (columns,) = rows.body
    assert isinstance(columns, For)
    return find_contraction(columns.body, frozenset({rows.index}), frozenset({columns.index}))


@pytest.mark.parametrize("function", CHOSEN, ids=lambda item: item.__name__)
def test_zeros_meet_the_other_factor(function: Callable[..., None]) -> None:
    found = _found(function)
    assert found is not None
    assert [len(factor.masks) for factor in found.factors] == {
        a_row_is_chosen: [1, 0],
        a_column_is_chosen: [0, 1],
        both_are_chosen: [2, 0],
    }[function]


@pytest.mark.parametrize("function", NOT_CHOSEN, ids=lambda item: item.__name__)
def test_zeros_would_not_meet_what_may_be_infinite(function: Callable[..., None]) -> None:
    assert _found(function) is None
