"""Factors that go with the sum or the difference of a row and a term alone, and those that only look like it.

Of a factor of the second kind the distinct numbers would be other ones in other rows.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.contractions import find_contraction, reached
from brickwork.analysis.meeting import meeting
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import For
from support.lowering import memory
from support.scheduling import kernel_of

Tensor = torch.Tensor
N = 4


def differences(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(i + 1):
                s += a[2, N - 1 - i + k] * b[k, j]
            y[i, j] = s


def sums(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += 2.0 * a[0, k + i] * b[k, j]
            y[i, j] = s


def strides(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i - k + 1, 2 * k - 2 * i] * b[k, j]
            y[i, j] = s


def masked_alike(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if 0 <= i + k < N:
                    if i > 1 - k:
                        s += a[0, k + i] * b[k, j]
            y[i, j] = s


def the_rows_stride(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[0, k + 2 * i] * b[k, j]
            y[i, j] = s


def the_row_is_another_axis(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k + i] * b[k, j]
            y[i, j] = s


def both_ways(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[k - i, k + i] * b[k, j]
            y[i, j] = s


def the_mask_is_of_the_row(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if i < 2:
                    s += a[0, k + i] * b[k, j]
            y[i, j] = s


def the_bound_goes_the_other_way(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(i + 1):
                s += a[0, k + i] * b[k, j]
            y[i, j] = s


def the_factor_has_another_element(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += (a[0, k + i] + a[1, i]) * b[k, j]
            y[i, j] = s


def it_is_divided(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[0, (k + i) // 2 - i // 2] * b[k, j]
            y[i, j] = s


def it_is_looked_up(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[0, n[k + i]] * b[k, j]
            y[i, j] = s


def the_row_is_computed(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            r = i * i
            for k in range(N):
                s += a[r, k + i] * b[k, j]
            y[i, j] = s


def nothing_is_read(a: Tensor, b: Tensor, n: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += float(k + i) * b[k, j]
            y[i, j] = s


MEETING = {differences: -1, sums: 1, strides: -1, masked_alike: 1}
APART = [
    the_rows_stride,
    the_row_is_another_axis,
    both_ways,
    the_mask_is_of_the_row,
    the_bound_goes_the_other_way,
    the_factor_has_another_element,
    it_is_divided,
    it_is_looked_up,
    the_row_is_computed,
    nothing_is_read,
]


def _meeting(function: Callable[..., None]) -> int:
    square = memory([[0.5] * N for _ in range(N)], FLOAT32)
    kernel = kernel_of(function, square, square, memory([0] * N, INT64), square)
    (outer,) = (item for item in kernel.body if isinstance(item, For))
    (inner,) = (item for item in outer.body if isinstance(item, For))
    rows = frozenset({outer.index})
    found = find_contraction(inner.body, rows, frozenset({inner.index}))
    assert found is not None
    return meeting(found.factors[0], outer.index, reached(found.before, rows), found.sums[0].index)


@pytest.mark.parametrize("function", MEETING)
def test_rows_and_terms_meet(function: Callable[..., None]) -> None:
    assert _meeting(function) == MEETING[function]


@pytest.mark.parametrize("function", APART)
def test_rows_and_terms_stay_apart(function: Callable[..., None]) -> None:
    assert _meeting(function) == 0
