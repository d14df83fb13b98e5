"""Which integers are sums, how great they are at most, and what their quotients are."""

from __future__ import annotations

import pytest

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Expression, Read, Symbol, Tensor, TensorType
from brickwork.transform.canonical.copies import substituted
from brickwork.transform.residues import divided
from brickwork.transform.sums import Sum, limit_of, linear, sum_of

N, M = (build.read(Symbol(name, place, INT64)) for place, name in enumerate("nm"))
LENGTH = build.size(Tensor("x", 1, TensorType(FLOAT64, 1)), 0)
H = build.read(Symbol("h", 2, FLOAT64))


def test_sums_are_of_integers_that_are_added_up():
    total = build.sub(build.add(N, build.integer(3)), build.add(M, N))
    assert sum_of(total) == Sum(((M, -1),), 3)
    assert sum_of(build.add(LENGTH, N)) == Sum(((LENGTH, 1), (N, 1)))
    product = build.mul(N, M)
    for value in (product, build.add(N, product), build.add(product, N)):
        assert sum_of(value) is None
    for value in (H, build.constant(2.0, FLOAT64), build.add(H, H)):
        assert sum_of(value) is None


K, Q = (build.read(Symbol(name, place, INT64)) for place, name in enumerate("kq", 5))
FOUR = build.integer(4)
LIMITS = {K.symbol: 100, N.symbol: 2**31}


def apply(name: str, left: Expression, right: Expression) -> Expression:
    return build.apply(name, left, right)


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (build.integer(-7), 7),
        (K, 100),
        (Q, None),
        (build.add(K, Q), None),
        (build.sub(Q, K), None),
        (build.sub(K, FOUR), 104),
        (build.mul(FOUR, N), 2**33),
        (build.mul(build.mul(N, N), N), None),
        (apply("maximum", K, FOUR), 100),
        (apply("minimum", FOUR, K), 100),
        (apply("floordiv", K, FOUR), 100),
        (apply("floordiv", K, build.integer(-4)), None),
        (apply("floordiv", FOUR, K), None),
        (apply("mod", K, FOUR), 4),
        (apply("mod", K, N), None),
        (apply("bit_and", K, N), None),
        (H, None),
        (build.constant(1.0, FLOAT64), None),
        (LENGTH, 2**48),
    ],
)
def test_limits_of_integers(value: Expression, limit: int | None) -> None:
    assert limit_of(value, LIMITS) == limit


def test_sums_are_of_what_is_added_up() -> None:
    quotient = apply("floordiv", FOUR, K)
    value = build.sub(build.add(build.mul(FOUR, K), build.mul(N, build.integer(3))), build.sub(quotient, K))
    assert dict(linear(value).terms) == {K: 5, N: 3, quotient: -1}
    assert linear(build.mul(K, N)) == Sum(((build.mul(K, N), 1),))
    assert linear(value).along(symbol(N)) == (3, linear(value).plus(Sum(((N, 3),)), -1))
    assert linear(value).along(symbol(K)) is None
    assert Sum().along(symbol(K)) == (0, Sum())


def symbol(item: Expression) -> Symbol:
    assert isinstance(item, Read)
    return item.symbol


@pytest.mark.parametrize("name", ["floordiv", "mod"])
@pytest.mark.parametrize(
    "value",
    [
        build.add(build.mul(FOUR, K), N),
        build.add(build.mul(FOUR, K), build.mul(build.integer(2), N)),
        build.add(build.mul(FOUR, K), build.add(N, build.integer(5))),
        build.sub(build.mul(FOUR, K), build.integer(5)),
        build.sub(K, N),
    ],
)
def test_quotients_of_sums_are_those_of_their_parts(name: str, value: Expression) -> None:
    for small in (3, 4, 5):
        made = divided(name, linear(value), 4, {symbol(N): small})
        whole = apply(name, value, FOUR)
        for k in range(-3, 4):
            for n in range(small):
                given = {symbol(K): build.integer(k), symbol(N): build.integer(n)}
                assert substituted(made, given) == substituted(whole, given)


def test_small_variables_are_not_divided() -> None:
    value = linear(build.add(build.mul(FOUR, K), N))
    assert divided("floordiv", value, 4, {symbol(N): 4}) == K
    assert divided("mod", value, 4, {symbol(N): 4}) == N
    assert divided("mod", linear(build.mul(FOUR, K)), 4, {}) == build.integer(0)
    assert divided("mod", value, 4, {symbol(N): 5}) == apply("mod", N, FOUR)
