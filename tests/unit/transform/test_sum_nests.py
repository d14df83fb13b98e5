"""What is a nest around one sum, which sums of a loop are apart, and which integers are written as sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Assign, Expression, For, If, Symbol
from brickwork.transform.residues import SumNest, simplified, sum_nest
from brickwork.transform.sums_apart import sums_of
from support.lowering import memory, numbers
from support.scheduling import kernel_of, loops_of

Tensor = torch.Tensor
X, Y, E = numbers(4, 3), numbers(4), memory([0, 2, 1], INT64)


def plain(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        q = i % 4
        s = 0.0
        for k in range(x.shape[1]):
            if (q + k) % 2 == 0:
                s += x[i, k]
        y[i] = s


def two_loops(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            y[i] = x[i, k]
        for k in range(x.shape[1]):
            y[i] += x[i, k]


def followed(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = 0.0
            for k in range(x.shape[1]):
                s += x[i, k]
            x[i, j] = s
        y[i] = 1.0


def no_sum(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        y[i] = x[i, 0]


def one_term(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        if i % 2 == 0:
            s += x[i, 0]
        y[i] = s


def asks_elements(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(x.shape[1]):
            if e[k] == 0:
                s += x[i, k]
        y[i] = s


def moved_by_an_element(x: Tensor, y: Tensor, e: Tensor) -> None:
    for i in range(x.shape[0]):
        q = i % 4
        q = q + e[0]
        s = 0.0
        for k in range(x.shape[1]):
            if (q + k) % 2 == 0:
                s += x[i, k]
        y[i] = s


def nest_of(function: Callable[..., object]) -> SumNest | None:
    (statement,) = kernel_of(function, X, Y, E).body
    return sum_nest(statement, {})


def limits_of(function: Callable[..., object]) -> dict[str, int]:
    found = nest_of(function)
    assert found is not None
    return {symbol.name: limit for symbol, limit in found.limits.items()}


def test_a_nest_has_one_sum() -> None:
    found = nest_of(plain)
    assert found is not None
    assert [loop.index.name for loop in (*found.band, *found.sums)] == ["i", "k"]
    assert len(found.after) == 1


@pytest.mark.parametrize("function", [two_loops, followed, no_sum, one_term, asks_elements])
def test_what_is_no_such_nest(function: Callable[..., object]) -> None:
    assert nest_of(function) is None


def test_a_nest_begins_with_a_loop_and_has_a_sum_behind_what_it_assigns() -> None:
    loop = loops_of(kernel_of(plain, X, Y, E))["i"]
    ahead = tuple(item for item in loop.body if isinstance(item, Assign))
    sums = next(item for item in loop.body if isinstance(item, For))
    asked = build.apply("lt", build.read(loop.index), build.integer(2))
    assert sum_nest(replace(loop, body=ahead), {}) is None
    assert sum_nest(If(condition=asked, then=(sums,)), {}) is None


def test_what_an_element_has_moved_has_no_limit() -> None:
    assert limits_of(plain)["q"] == 4
    assert "q" not in limits_of(moved_by_an_element)


def of_one_value(x: Tensor, y: Tensor, e: Tensor) -> None:
    s, t = 0.0, 0.0
    for k in range(x.shape[1]):
        v = x[0, k] * 2.0
        s += v * x[1, k]
        t += v * x[2, k]
    y[0], y[1] = s, t


def of_two_values(x: Tensor, y: Tensor, e: Tensor) -> None:
    s, t = 0.0, 0.0
    for k in range(x.shape[1]):
        v = x[0, k] * 2.0
        s += v * x[1, k]
        v = x[3, k] * 3.0
        t += v * x[2, k]
    y[0], y[1] = s, t


def of_the_value_before(x: Tensor, y: Tensor, e: Tensor) -> None:
    s, v = 0.0, 1.0
    for k in range(x.shape[1]):
        s += v * x[1, k]
        v = x[0, k] * 2.0
    y[0] = s


@pytest.mark.parametrize(("function", "parts"), [(of_one_value, 2), (of_two_values, 0), (of_the_value_before, 0)])
def test_sums_are_apart_where_each_iteration_has_one_value(function: Callable[..., object], parts: int) -> None:
    """As the frontend writes them: later passes give each value a variable of its own."""
    loop = loops_of(kernel_of(function, X, Y, E))["k"]
    assert len(sums_of(loop)) == parts


K, M = Symbol("k", 1, INT64), Symbol("m", 2, INT64)


def whole(name: str, left: Expression, right: Expression | int) -> Expression:
    return build.apply(name, left, build.integer(right) if isinstance(right, int) else right)


def test_quotients_and_remainders_of_sums_are_taken_apart_where_nothing_wraps() -> None:
    k = build.read(K)
    doubled = whole("add", whole("mul", k, 2), 2)
    for value, expected in (
        (whole("floordiv", doubled, 2), whole("add", k, 1)),
        (whole("mod", doubled, 2), build.integer(0)),
        (whole("sub", whole("add", k, 3), 3), k),
    ):
        assert simplified(value, {K: 9}, {}) == expected
        assert simplified(value, {}, {}) == value
        assert simplified(value, {K: 2**62}, {}) == value


@pytest.mark.parametrize("divisor", [0, -2])
@pytest.mark.parametrize("name", ["floordiv", "mod"])
def test_divisors_are_positive(name: str, divisor: int) -> None:
    value = whole(name, whole("mul", build.read(K), 2), divisor)
    assert simplified(value, {K: 9}, {}) == value


def test_other_operators_stay() -> None:
    for name in ("mul", "maximum", "floordiv"):
        value = whole(name, build.read(K), build.read(M))
        assert simplified(value, {K: 9, M: 9}, {}) == value
