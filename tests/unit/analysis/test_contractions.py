"""What is a contraction: rows, columns, depth, factors, masks and scale; and what only looks like one.

Each function of the second kind would be staged or summed wrongly in tiles, for the reason that its name tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

from brickwork.analysis.contractions import Contraction, find_contraction
from brickwork.ir import build
from brickwork.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT64, DType
from brickwork.ir.nodes import Assign, Block, Expression, For, If, Kernel, Select, Symbol
from brickwork.ir.walk import read_symbols, walk
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


def with_epilogue(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            first = a[i, 0] + b[0, j]
            s = first
            for k in range(N):
                s = b[k, j] * a[i, k] + s
            if s > 0.0:
                y[i, j] = s * 2.0


def rows_of_factors(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                left = a[i, k] * a[k, 0]
                right = b[j, k]
                s += left * (right * b[k, 1])
            y[i, j] = s


def over_two_loops(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(2):
                for m in range(2):
                    s += a[i, k + m] * b[k * 2 + m, j]
            y[i, j] = s


def masked(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if i + k < N and k <= j:
                    if k > 0:
                        s += a[i, k] * b[k, j]
            y[i, j] = s


def scaled(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            w = y[i, j] + 1.0
            s = 0.0
            for k in range(N):
                s += w * a[i, k] * b[k, j] * 0.5
            y[i, j] = s


def computed_places(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            p = N - 1 - i
            q = p * 2 + 1
            s = 0.0
            for k in range(N):
                s += a[q % N, k] * b[k, j]
            y[i, j] = s


def a_mask_stands_around_a_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if a[i, k] > 0.0:
                    for m in range(N):
                        s += a[i, m] * b[m, j]
            y[i, j] = s


def the_depth_begins_at_the_row(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(i, N):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def the_depth_ends_at_the_column(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(j):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def a_variable_stands_around_a_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                t = a[i, k]
                for m in range(N):
                    s += t * b[m, j]
            y[i, j] = s


def a_mask_stands_around_all_of_the_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            if i > 0 and j < N - 1:
                for k in range(N):
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def a_variable_changes(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                t = a[i, k]
                t = t * t + t
                s += t * b[k, j]
            y[i, j] = s


CONTRACTIONS = [
    a_variable_changes,
    a_mask_stands_around_all_of_the_sum,
    the_depth_begins_at_the_row,
    the_depth_ends_at_the_column,
    a_variable_stands_around_a_sum,
    a_mask_stands_around_a_sum,
    plain,
    with_epilogue,
    rows_of_factors,
    over_two_loops,
    masked,
    scaled,
    computed_places,
]


# ---------------------------------------------------------------- what only looks like one


def there_is_no_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            y[i, j] = a[i, 0] * b[0, j]


def another_sum_is_taken(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 1.0
            for k in range(N):
                s *= a[i, k] * b[k, j]
            y[i, j] = s


def the_sum_is_added_twice(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 1.0
            for _ in range(N):
                s = s + s
            y[i, j] = s


def nothing_is_accumulated(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s = a[i, k] * b[k, j] + a[i, k]
            y[i, j] = s


def an_element_is_stored_before(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            y[i, j] = 1.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[i, j] = y[i, j] + s


def an_element_is_stored_between(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                y[i, k] = 1.0
                s += a[i, k] * b[k, j]


def a_recurrence(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 1.0
            for k in range(N):
                s += a[i, k] * b[k, j] * s
            y[i, j] = s


def the_depth_ends_at_an_outer_one(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                for m in range(k):
                    s += a[i, m] * b[k, j]
            y[i, j] = s


def a_factor_is_stored(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            a[i, j] = s


def a_mask_is_stored(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if y[i, k] > 0.0:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def a_factor_goes_with_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j] * a[k, (i + j) % N]
            y[i, j] = s


def a_mask_goes_with_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if i + j < k + 2:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def a_mask_apart_from_the_depth_goes_with_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if j <= i:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def no_factor_goes_with_the_column(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, 0]
            y[i, j] = s


def no_factor_goes_with_the_row(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[0, k] * b[k, j]
            y[i, j] = s


def one_factor_alone(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += b[k, j] * a[i, 0]
            y[i, j] = s


def a_variable_goes_with_the_row(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            p = i + 1
            q = p % N
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, (j + q) % N]
            y[i, j] = s


def the_mask_has_another_way(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if k < 2:
                    s += a[i, k] * b[k, j]
                else:
                    s += 1.0
            y[i, j] = s


def the_sum_begins_anew(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s = 0.5
                s += a[i, k] * b[k, j]
            y[i, j] = s


def another_sum_is_taken_otherwise(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            if i > 0:
                for k in range(N):
                    s += a[i, k] * b[k, j]
            else:
                s = 1.0
            y[i, j] = s


def something_else_is_conditional(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            if i > 0:
                for k in range(N):
                    s += a[i, k] * b[k, j]
                s += 1.0
            y[i, j] = s


OTHERS = [
    another_sum_is_taken_otherwise,
    something_else_is_conditional,
    there_is_no_sum,
    another_sum_is_taken,
    the_sum_is_added_twice,
    nothing_is_accumulated,
    an_element_is_stored_before,
    an_element_is_stored_between,
    a_recurrence,
    the_depth_ends_at_an_outer_one,
    a_factor_is_stored,
    a_mask_is_stored,
    a_factor_goes_with_both,
    a_mask_goes_with_both,
    no_factor_goes_with_the_column,
    no_factor_goes_with_the_row,
    one_factor_alone,
    a_variable_goes_with_the_row,
    the_mask_has_another_way,
    the_sum_begins_anew,
]


def _square(dtype: DType = FLOAT32):
    return memory([[0.5] * N for _ in range(N)], dtype)


def _nest(kernel: Kernel) -> tuple[Symbol, Symbol, Block]:
    """Return rows, columns and the body of a nest of two loops."""
    (rows,) = [item for item in kernel.body if isinstance(item, For)]
    (columns,) = rows.body
    assert isinstance(columns, For)
    return rows.index, columns.index, columns.body


def _found(function: Callable[..., None], *dtypes: DType) -> Contraction | None:
    kernel = kernel_of(function, *(_square(dtype) for dtype in dtypes or [FLOAT32] * 3))
    rows, columns, body = _nest(kernel)
    return find_contraction(body, frozenset({rows}), frozenset({columns}))


def _names(parts: Sequence[Expression]) -> set[str]:
    return {symbol.name for symbol in read_symbols(parts)}


@pytest.mark.parametrize("function", CONTRACTIONS, ids=lambda item: item.__name__)
def test_factors_go_with_rows_or_columns(function: Callable[..., None]) -> None:
    found = _found(function)
    assert found is not None
    left, right = ({*_names([factor.value]), *_names(factor.masks)} for factor in found.factors)
    assert "j" not in left
    assert not {"i", "p", "q"} & right
    assert {loop.index.name for loop in found.sums} <= left | right


def test_what_a_contraction_is_made_of() -> None:
    found = _found(with_epilogue)
    assert found is not None
    assert found.symbol.name == "s"
    assert [type(item) for item in found.before] == [Assign, Assign]
    assert [type(item) for item in found.after] == [If]
    assert not found.scale
    found = _found(scaled)
    assert found is not None
    assert len(found.scale) == 2
    assert _names(found.scale) == {"w"}
    found = _found(masked)
    assert found is not None
    assert [len(factor.masks) for factor in found.factors] == [2, 1]
    assert [_names(factor.masks) for factor in found.factors] == [{"i", "k"}, {"j", "k"}]
    found = _found(over_two_loops)
    assert found is not None
    assert [loop.index.name for loop in found.sums] == ["k", "m"]


@pytest.mark.parametrize("function", OTHERS, ids=lambda item: item.__name__)
def test_what_only_looks_like_a_contraction(function: Callable[..., None]) -> None:
    assert _found(function) is None


@pytest.mark.parametrize("dtype", [FLOAT64, INT64])
def test_sums_are_of_single_floats(dtype: DType) -> None:
    assert _found(plain, FLOAT32, FLOAT32, dtype) is not None
    assert _found(plain, dtype, dtype, FLOAT32) is None


@pytest.mark.parametrize(
    ("left", "right", "product"),
    [
        (FLOAT16, FLOAT16, FLOAT16),
        (BFLOAT16, BFLOAT16, BFLOAT16),
        (INT8, FLOAT16, FLOAT16),
        (FLOAT16, FLOAT32, FLOAT32),
        (BFLOAT16, FLOAT32, BFLOAT16),
        (INT16, FLOAT32, FLOAT32),
    ],
    ids=str,
)
def test_products_are_taken_in_a_type_that_has_all_numbers_of_both(left: DType, right: DType, product: DType) -> None:
    found = _found(plain, left, right, FLOAT32)
    assert found is not None
    assert found.dtype is product


@pytest.mark.parametrize(
    ("left", "right", "result", "parts"),
    [
        (BFLOAT16, BFLOAT16, FLOAT32, (1, 1)),
        (BFLOAT16, FLOAT32, BFLOAT16, (1, 2)),
        (FLOAT32, BFLOAT16, FLOAT16, (2, 1)),
        (BFLOAT16, FLOAT32, FLOAT32, (1, 3)),
        (BFLOAT16, FLOAT16, FLOAT32, (1, 2)),
        (FLOAT32, FLOAT32, FLOAT32, (1, 1)),
    ],
    ids=str,
)
def test_a_factor_is_taken_in_parts_that_have_as_many_bits_as_results_show(
    left: DType, right: DType, result: DType, parts: tuple[int, int]
) -> None:
    found = _found(plain, left, right, result)
    assert found is not None
    assert (found.parts(0), found.parts(1)) == parts


def not_counted_from_the_end(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if 0 <= i + k - 1 and k - i >= 0:
                    s += a[i + k - 1, k - i] * b[k, j]
            y[i, j] = s


def perhaps_counted_from_the_end(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if k - i >= -1:
                    s += a[0, k - i] * b[k, j]
            y[i, j] = s


def another_choice(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if i >= k:
                    left = 2.0 if i > k else 1.0
                    s += (a[i, k] * left) * b[k, j]
            y[i, j] = s


@pytest.mark.parametrize(
    ("function", "choices"),
    [(not_counted_from_the_end, 0), (perhaps_counted_from_the_end, 1), (another_choice, 1)],
)
def test_masks_decide_choices(function: Callable[..., None], choices: int) -> None:
    found = _found(function)
    assert found is not None
    assert sum(isinstance(node, Select) for node in walk(found.factors[0].value)) == choices


def test_a_loop_without_statements() -> None:
    index = Symbol("k", 0, INT64)
    empty = For(index=index, start=build.integer(0), stop=build.integer(4), body=())
    assert find_contraction((empty,), frozenset(), frozenset()) is None
