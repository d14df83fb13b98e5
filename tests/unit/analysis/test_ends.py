"""Where masks say that the depth of a factor ends in a row: bounds of which all else that is copied is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.contractions import find_contraction
from brickwork.ir.nodes import For
from support.lowering import memory
from support.scheduling import kernel_of

Tensor = torch.Tensor
N = 4


def plain(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def ends_at_the_row(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(i + 1):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def begins_at_the_row(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(i, N):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def ends_here_and_there(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if k < i % 2:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def the_row_ends(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if i < k + 1:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def ends_at_an_outer_term(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                for m in range(2):
                    if k < i + m:
                        s += a[i, k] * b[k, m] * b[m, j]
            y[i, j] = s


def ends_at_an_element(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if k < i + int(a[0, 0]):
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def ends_before_the_last(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if k < a.shape[1] - 1:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def ends_elsewhere(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                for m in range(2):
                    if m < i + 1:
                        s += a[i, k] * b[k, j]
            y[i, j] = s


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (plain, 0),
        (ends_at_the_row, 1),
        (begins_at_the_row, None),
        (ends_here_and_there, None),
        (the_row_ends, None),
        (ends_at_an_outer_term, None),
        (ends_at_an_element, None),
        (ends_before_the_last, None),
        (ends_elsewhere, None),
    ],
)
def test_where_the_depth_ends_in_a_row(function: Callable[..., None], count: int | None) -> None:
    square = memory([[0.5] * N for _ in range(N)])
    (rows,) = (item for item in kernel_of(function, square, square, square).body if isinstance(item, For))
    (columns,) = (item for item in rows.body if isinstance(item, For))
    row = rows.index
    found = find_contraction(columns.body, frozenset({row}), frozenset({columns.index}))
    assert found is not None
    ends = found.factors[0].ends(found.sums[0].index, frozenset(loop.index for loop in found.sums), row)
    assert (None if ends is None else len(ends)) == count
