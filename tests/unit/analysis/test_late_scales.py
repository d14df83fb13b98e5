"""A sum that is scaled and begun late differs from the source's in signs of zeros, and where small products vanish."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
import torch

from brickwork.analysis.contractions import TILED, Contraction, find_contraction
from brickwork.analysis.late_scales import differs_late, may_begin_with_negative_zero
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Apply, Constant, Expression, For, Load, Read, Symbol
from brickwork.ir.scalar_semantics import evaluate
from support.lowering import numbers
from support.scheduling import kernel_of

Tensor = torch.Tensor
ROWS, FEW, RESULT = numbers(4, 4), numbers(4), numbers(4, 4)
SUM = Symbol("sum", -1, FLOAT32)


def begun_by_elements(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = y[i, j]
            for k in range(4):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def begun_by_negative_zero(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = -0.0
            for k in range(4):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def scaled_by_a_row(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = 0.0
            for k in range(4):
                s += d[i] * a[i, k] * b[k, j]
            y[i, j] = s


def scaled_by_rows_and_columns(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = 0.0
            for k in range(4):
                s += a[i, k] * b[k, j] * d[i] * d[j]
            y[i, j] = s


def divided(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = 0.0
            for k in range(4):
                s += a[i, k] * b[k, j] / d[i]
            y[i, j] = s


def scaled_by_what_is_computed(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = 0.0
            for k in range(4):
                s += a[i, k] * b[k, j] * abs(d[i])
            y[i, j] = s


def scaled_by_a_number(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = 0.0
            for k in range(4):
                s += a[i, k] * b[k, j] * 65536.0
            y[i, j] = s


def scaled_by_a_large_number(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = 0.0
            for k in range(4):
                s += a[i, k] * b[k, j] * 65537.0
            y[i, j] = s


def scaled_by_both(a: Tensor, d: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(4):
        for j in range(4):
            s = 0.0
            for k in range(4):
                s += a[i, k] * b[k, j] * d[i] * 256.0
            y[i, j] = s


def _found(function: Callable[..., None]) -> Contraction:
    (rows,) = kernel_of(function, ROWS, FEW, ROWS, RESULT).body
    assert isinstance(rows, For)
    (columns,) = rows.body
    assert isinstance(columns, For)
    found = find_contraction(columns.body, frozenset({rows.index}), frozenset({columns.index}), (rows, columns), TILED)
    assert found is not None
    return found


def _value(expression: Expression, total: float, elements: dict[str, float]) -> float:
    match expression:
        case Constant(value=value):
            return value
        case Read(symbol=symbol):
            return total if symbol == SUM else elements["begun"]
        case Load(indices=(Read(symbol=symbol),)):
            return elements[symbol.name]
        case Apply(operator=operator, operands=operands):
            return evaluate(operator, [_value(each, total, elements) for each in operands], expression.dtype)
        case _:
            raise AssertionError(expression)


def _differs(function: Callable[..., None], total: float, **elements: float) -> bool:
    asked = differs_late(_found(function), SUM)
    return asked is not None and bool(_value(asked, total, {"begun": 0.0, "i": 1.0, "j": 1.0, **elements}))


@pytest.mark.parametrize(
    ("total", "begun", "differs"),
    [(0.0, -0.0, True), (0.0, 0.0, False), (1.0, -0.0, False), (0.0, -1.0, False), (-1.0, 0.0, False)],
)
def test_zeros_that_are_added_to_negative_zeros_may_have_another_sign(
    total: float, begun: float, differs: bool
) -> None:
    assert _differs(begun_by_elements, total, begun=begun) is differs
    assert _differs(begun_by_negative_zero, total, begun=begun) is differs


def test_sums_that_begin_with_other_numbers_have_the_sign_of_the_source() -> None:
    assert may_begin_with_negative_zero(_found(begun_by_elements))
    assert may_begin_with_negative_zero(_found(begun_by_negative_zero))
    assert not may_begin_with_negative_zero(_found(scaled_by_a_row))


@pytest.mark.parametrize(
    ("total", "scale", "differs"),
    [
        (0.0, 1e30, True),
        (1e-38, -1e30, True),
        (1e-38, 65536.0, False),
        (1e-38, 1e-30, False),
        (1e-20, 1e30, False),
        (1e-38, inf, True),
    ],
)
def test_products_that_may_have_vanished_are_summed_up_again_under_large_scales(
    total: float, scale: float, differs: bool
) -> None:
    assert _differs(scaled_by_a_row, total, i=scale) is differs


def test_products_between_scales_may_vanish() -> None:
    assert _differs(scaled_by_rows_and_columns, 1.0, i=1e-38, j=1e30)
    assert _differs(scaled_by_rows_and_columns, 1e-38, i=300.0, j=300.0)
    assert not _differs(scaled_by_rows_and_columns, 1.0, i=1e-38, j=2.0)
    assert not _differs(scaled_by_rows_and_columns, 1.0, i=1e-20, j=1e30)


@pytest.mark.parametrize(
    ("total", "divisor", "differs"),
    [(1.0, 2.0**120, True), (1.0, 2.0**99, False), (1e-38, 2.0**-20, True), (1e-38, 2.0**-16, False)],
)
def test_divisors_whose_inverse_may_vanish_divide_each_product(total: float, divisor: float, differs: bool) -> None:
    assert _differs(divided, total, i=divisor) is differs
    assert _differs(scaled_by_what_is_computed, total, i=1 / divisor) is (differs and divisor < 1)


def test_numbers_scale_sums_late_unless_they_are_large() -> None:
    assert differs_late(_found(scaled_by_a_number), SUM) is None
    assert _differs(scaled_by_a_large_number, 1e-38)
    assert not _differs(scaled_by_a_large_number, 1e-20)
    assert _differs(scaled_by_both, 1e-38, i=257.0)
    assert not _differs(scaled_by_both, 1e-38, i=256.0)
