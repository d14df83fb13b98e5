"""Products however they are spelled: signs, divisors, choices over zero; and what is none, as its name tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.contractions import Contraction, accumulated, accumulation, find_contraction
from brickwork.ir.dtypes import FLOAT32, INT8, INT16, DType
from brickwork.ir.nodes import Apply, Constant, For, Load
from brickwork.ir.walk import read_symbols
from support.lowering import memory
from support.scheduling import kernel_of

Tensor = torch.Tensor
N = 4


def taken_away(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s -= a[i, k] * b[k, j]
            c[i, j] = s


def negative(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += -(a[i, k] * b[k, j])
            c[i, j] = s


def divided(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j] / 3.0
            c[i, j] = s


def divided_along(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] / b[k, j]
            c[i, j] = s


def chosen(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j] if a[k, 0] > 0.0 else 0.0
            c[i, j] = s


def chosen_factor(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k + 1] if k + 1 < N else 0.0
                s += v * b[k, j]
            c[i, j] = s


def zero_first(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = 0.0
                if k + 1 < N:
                    w = a[i, k + 1]
                    v = w * 2.0
                s += v * b[k, j]
            c[i, j] = s


def zero_where_it_holds(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if k + 1 >= N:
                    v = 0.0
                else:
                    v = a[i, k + 1]
                s += b[k, j] * v
            c[i, j] = s


def one_in_another(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k] if k > i else 0.0
                w = v * b[k, j] if k > 1 else 0.0
                s += w
            c[i, j] = s


CONTRACTIONS = [
    (taken_away, 0, 0),
    (negative, 0, 0),
    (divided, 0, 0),
    (divided_along, 0, 0),
    (chosen, 1, 0),
    (chosen_factor, 1, 1),
    (zero_first, 1, 1),
    (zero_where_it_holds, 1, 1),
    (one_in_another, 2, 1),
]


def another_number(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k + 1] if k + 1 < N else 1.0
                s += v * b[k, j]
            c[i, j] = s


def another_variable_is_zero(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = 2.0
                w = 3.0
                if a[k, 0] > 0.0:
                    v = a[i, k]
                else:
                    w = 0.0
                s += v * w * b[k, j]
            c[i, j] = s


def no_factor(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k + 1] if k + 1 < N else 0.0
                s += (v + 1.0) * b[k, j]
            c[i, j] = s


def a_divisor(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k + 1] if k + 1 < N else 0.0
                s += b[k, j] / v
            c[i, j] = s


def in_a_mask(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k + 1] if k + 1 < N else 0.0
                if v > 0.5:
                    s += v * b[k, j]
            c[i, j] = s


def of_an_element(a: Tensor, b: Tensor, c: Tensor) -> None:
    """The zero meets what is not finite."""
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k] if j <= i else 0.0
                s += v * b[k, j]
            c[i, j] = s


def of_a_branch(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                w = 1.0
                if k > 1:
                    w = a[i, k]
                    v = w * 2.0
                else:
                    v = 0.0
                s += v * w * b[k, j]
            c[i, j] = s


def passed_on(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            v = 0.0
            for k in range(N):
                if k > 1:
                    v = a[i, k]
                s += v * b[k, j]
            c[i, j] = s


def changed_from_turn_to_turn(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                t = a[i, k]
                for m in range(N):
                    t = t * 0.5
                    s += t * b[m, j]
            c[i, j] = s


def taken_from(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s = a[i, k] * b[k, j] - s
            c[i, j] = s


OTHERS = [
    another_number,
    another_variable_is_zero,
    no_factor,
    a_divisor,
    in_a_mask,
    of_an_element,
    of_a_branch,
    passed_on,
    changed_from_turn_to_turn,
    taken_from,
]


def _nest(function: Callable[..., None], dtype: DType) -> tuple[For, For]:
    factor, result = memory([[0.5] * N for _ in range(N)], dtype), memory([[0.5] * N for _ in range(N)], FLOAT32)
    (rows,) = (item for item in kernel_of(function, factor, factor, result).body if isinstance(item, For))
    (columns,) = (item for item in rows.body if isinstance(item, For))
    return rows, columns


def _found(function: Callable[..., None], dtype: DType = FLOAT32, *, scaled: bool = True) -> Contraction | None:
    rows, columns = _nest(function, dtype)
    return find_contraction(columns.body, frozenset({rows.index}), frozenset({columns.index}), scaled=scaled)


@pytest.mark.parametrize(("function", "masks", "zeros"), CONTRACTIONS, ids=lambda item: getattr(item, "__name__", None))
def test_products_are_factors_however_they_are_spelled(function: Callable[..., None], masks: int, zeros: int) -> None:
    found = _found(function)
    assert found is not None
    assert sum(len(factor.masks) for factor in found.factors) == masks
    left, right = ({symbol.name for symbol in read_symbols((each.value, *each.masks))} for each in found.factors)
    assert left <= {"i", "k"}
    assert right <= {"j", "k"}
    columns = _nest(function, FLOAT32)[1]
    (total,) = (item for item in columns.body if isinstance(item, For))
    assert (accumulation(total) is None) == bool(zeros)


@pytest.mark.parametrize("function", OTHERS, ids=lambda item: item.__name__)
def test_others_are_none(function: Callable[..., None]) -> None:
    assert _found(function) is None


def test_signs_and_divisors_scale_the_sum() -> None:
    for function, scale in ((taken_away, -1.0), (negative, -1.0), (divided, 1.0 / 3.0)):
        found = _found(function)
        assert found is not None
        (each,) = found.scale
        assert isinstance(each, Constant)
        assert each.value == pytest.approx(scale)


def test_what_goes_along_the_depth_is_divided_by_on_its_side() -> None:
    found = _found(divided_along)
    assert found is not None
    assert not found.scale
    assert isinstance(found.factors[0].value, Load)
    value = found.factors[1].value
    assert isinstance(value, Apply)
    assert value.operator.name == "truediv"


def halved(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j] / -8.0
            c[i, j] = s


def far_divided(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j] / 1.4012984643248170709e-45
            c[i, j] = s


def test_nothing_is_divided_otherwise_where_sums_keep_their_order() -> None:
    """What a power of two divides is multiplied, if that is a number of the type."""
    assert _found(divided, scaled=False) is None
    assert _found(far_divided, scaled=False) is None
    assert _found(halved, scaled=False) is not None
    assert _found(taken_away, scaled=False) is not None


def integers(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * a[k, j] * b[i, 0]
            c[i, j] = s


@pytest.mark.parametrize(("dtype", "known"), [(INT8, True), (INT16, False)])
def test_a_float_of_a_product_of_small_integers_is_a_product_of_floats(dtype: DType, *, known: bool) -> None:
    one, other = (memory([[1] * N for _ in range(N)], each) for each in (dtype, FLOAT32))
    (rows,) = (item for item in kernel_of(integers, one, other, other).body if isinstance(item, For))
    (columns,) = (item for item in rows.body if isinstance(item, For))
    found = find_contraction(columns.body, frozenset({rows.index}), frozenset({columns.index}))
    assert (found is not None) == known


def test_a_variable_is_chosen_once() -> None:
    """What was computed from the first choice is another number."""
    columns = _nest(chosen_factor, FLOAT32)[1]
    (total,) = (item for item in columns.body if isinstance(item, For))
    (choice, *rest) = total.body
    assert accumulated(total) is not None
    assert accumulated(replace(total, body=(choice, choice, *rest))) is None
