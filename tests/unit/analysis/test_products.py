"""Products however they are spelled: signs, divisors, choices over zero; and what is none, as its name tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.contractions import Contraction, accumulated, accumulation, find_contraction
from brickwork.analysis.products import is_finite, terms_of
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, DType
from brickwork.ir.nodes import Apply, Assign, Constant, Expression, For, If, Load, Statement, Symbol, TensorType
from brickwork.ir.nodes import Tensor as Place
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


def zeroed(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                v = a[i, k]
                if k > i:
                    v = 0.0
                s += v * b[k, j]
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
    (zeroed, 0, 0),
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


def another_difference(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s = a[i, k] - a[i, k] * b[k, j]
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
    another_difference,
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


def by_three(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j] / 0.75
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
    assert _found(by_three, scaled=False) is None
    assert _found(halved, scaled=False) is not None
    assert _found(taken_away, scaled=False) is not None


def integers(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * a[k, j] * b[i, 0]
            c[i, j] = s


@pytest.mark.parametrize(("dtype", "known"), [(INT8, True), (INT16, False), (INT64, False)])
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


I, J, K, M, P = (Symbol(name, number, INT64) for number, name in enumerate("ijkmp", 1))
S, T, U = (Symbol(name, number, FLOAT32) for number, name in enumerate("stu", 11))
k, t, u = (build.read(symbol) for symbol in (K, T, U))
ZERO, NULL = build.constant(0.0, FLOAT32), build.integer(0)
EARLY = build.apply("lt", k, build.integer(2))
ELEMENT = Load(
    tensor=Place("a", 1, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0)), indices=(k,), access=1, dtype=FLOAT32
)


def _assign(symbol: Symbol, value: Expression) -> Assign:
    return Assign(symbol=symbol, value=value)


def _loop(index: Symbol, *body: Statement, start: Expression = NULL, stop: Expression | None = None) -> For:
    return For(index=index, start=start, stop=stop or build.integer(4), body=body)


def _either(*then: Statement, otherwise: tuple[Statement, ...] = ()) -> If:
    return If(condition=EARLY, then=then, otherwise=otherwise)


ADD = _assign(S, build.add(build.read(S), build.mul(t, ELEMENT)))
CHOICE = _either(_assign(T, ELEMENT), otherwise=(_assign(T, ZERO),))
HIDING = _either(_assign(U, ELEMENT), _assign(T, build.mul(u, u)), otherwise=(_assign(T, ZERO),))
PLACED = _either(_assign(P, k), _assign(T, ELEMENT), otherwise=(_assign(T, ZERO),))


@pytest.mark.parametrize(
    "total",
    [
        _loop(K, CHOICE, ADD),
        _loop(K, HIDING, ADD),
        _loop(K, _assign(T, t), _loop(M, CHOICE, ADD)),
        _loop(K, PLACED, ADD),
    ],
    ids=["choice", "hiding", "assigned anew", "places"],
)
def test_choices_over_zero(total: For) -> None:
    found = accumulated(total)
    if total.body[0] == _assign(T, t):
        assert found is None  # what passes from one iteration to the next has an order
        return
    assert found is not None
    assert [zero.condition for zero in found.zeros] == [EARLY]


@pytest.mark.parametrize(
    "total",
    [
        _loop(K, HIDING, _assign(S, build.add(build.read(S), build.mul(t, u)))),
        _loop(K, HIDING, _either(_assign(U, ELEMENT), otherwise=(_assign(U, ZERO),)), ADD),
        _loop(K, PLACED, _loop(M, ADD, stop=build.read(P))),
        _loop(K, PLACED, _loop(M, ADD, start=build.read(P))),
        _loop(K, HIDING, If(condition=build.apply("lt", u, t), then=(ADD,))),
        _loop(K, _assign(T, ZERO), _loop(M, _either(_assign(T, ELEMENT)), ADD)),
        _loop(K, _assign(T, ELEMENT), _loop(M, _either(_assign(T, ZERO)), ADD)),
        _loop(K, _either(_assign(T, ZERO)), ADD),
        _loop(K, _either(_assign(T, ELEMENT)), ADD),
        _loop(K, _assign(T, ZERO), _either(_assign(T, ELEMENT), otherwise=(_assign(T, build.mul(u, u)),)), ADD),
        _loop(K, _either(otherwise=(_assign(T, ZERO),)), ADD),
        _loop(K, _either(CHOICE, otherwise=(_assign(T, ZERO),)), ADD),
        _loop(K, _assign(S, build.add(build.read(S), build.mul(build.read(S), ELEMENT)))),
        _loop(K, _assign(S, build.sub(build.read(S), build.read(S)))),
        _loop(K, _assign(T, build.read(S)), ADD),
        _loop(K, _either(_assign(T, build.read(S)), otherwise=(_assign(T, ZERO),)), ADD),
        _loop(K, If(condition=build.apply("lt", build.read(S), ELEMENT), then=(ADD,))),
        _loop(K, _assign(J, build.add(build.read(J), k)), stop=build.read(J)),
    ],
    ids=[
        "a hidden variable is read",
        "a hidden variable is chosen",
        "a loop ends at a hidden one",
        "a loop begins at a hidden one",
        "a mask is a choice",
        "zero before a loop",
        "zeroed in a loop",
        "zero passes on",
        "an element passes on",
        "another number where it does not hold",
        "nothing is assigned",
        "a choice in a choice",
        "a product with the sum",
        "the sum goes",
        "a factor is the sum",
        "a choice is the sum",
        "a mask asks the sum",
        "the sum ends the loop",
    ],
)
def test_no_choices_over_zero(total: For) -> None:
    assert accumulated(total) is None


# ---------------------------------------------------------------- factors of a term


def _whole(dtype: DType) -> Load:
    """Return an element that is a whole number."""
    kind = TensorType(dtype, 1, contiguous=True, unit_axis=0)
    return Load(tensor=Place("n", 2, kind), indices=(k,), access=2, dtype=INT64)


def _factors(value: Expression) -> list[Expression]:
    return [term.value for term in terms_of(value) if not term.divides]


def test_other_functions_are_factors_as_they_are() -> None:
    positive = build.apply("abs", build.mul(ELEMENT, t))
    assert _factors(build.mul(positive, t)) == [positive, t]
    assert _factors(build.apply("neg", build.mul(ELEMENT, t))) == [build.constant(-1.0, FLOAT32), ELEMENT, t]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_floats_of_products_of_integers(dtype: DType) -> None:
    small, wide = _whole(INT8), _whole(INT32)
    assert _factors(build.cast(build.mul(small, small), dtype)) == [build.cast(small, dtype)] * 2
    none = build.apply("bit_and", small, build.integer(0))
    for other in (build.add(small, small), build.mul(small, wide), build.mul(none, wide)):
        assert _factors(build.cast(other, dtype)) == [build.cast(other, dtype)]


@pytest.mark.parametrize(
    ("divisor", "is_factor"), [(2.0**100, True), (2.0**-100, True), (2.0**101, False), (2.0**-101, False)]
)
def test_powers_of_two_that_divide_are_factors_but_near_the_ends_of_the_range(
    divisor: float, *, is_factor: bool
) -> None:
    value = build.apply("truediv", t, build.constant(divisor, FLOAT32))
    assert (len(_factors(value)) == 2) == is_factor


def test_what_is_known_to_be_finite() -> None:
    double = build.cast(ELEMENT, FLOAT64)
    finite = build.constant(-1.0, FLOAT32), _whole(INT32), build.cast(_whole(INT32), FLOAT32)
    others = build.constant(math.inf, FLOAT32), build.constant(math.nan, FLOAT32), ELEMENT, double, t
    assert all(map(is_finite, finite))
    assert not any(map(is_finite, others))
