"""Conditions of contractions that only IR shows: bounds as masks, ranges of accesses, and what lies along memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from brickwork.analysis.contractions import Contraction, Factor, find_contraction
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Assign, Expression, For, If, Load, Role, Size, Statement, Store, Symbol, Tensor
from brickwork.ir.nodes import TensorType as Type

I, J, K, M, P = (Symbol(name, number, INT64) for number, name in enumerate("ijkmp", 1))
S = Symbol("s", 11, FLOAT32)
DENSE = Type(FLOAT32, 2, contiguous=True, unit_axis=1)
A, B, Y = (Tensor(name, number, DENSE) for number, name in enumerate("aby", 1))
LOCAL = Tensor("held", 4, DENSE, (8, 8))
ZERO, ONE, SEVEN = (build.integer(number) for number in (0, 1, 7))
i, j, k, m, p = (build.read(symbol) for symbol in (I, J, K, M, P))


def load(tensor: Tensor, *indices: Expression) -> Load:
    return Load(tensor=tensor, indices=indices, access=1, dtype=FLOAT32)


def store(tensor: Tensor, row: Expression, column: Expression) -> Store:
    return Store(tensor=tensor, indices=(row, column), value=build.read(S), access=2)


def loop(index: Symbol, start: Expression, stop: Expression, *body: Statement, role: Role = Role.SEQUENTIAL) -> For:
    return For(index=index, start=start, stop=stop, body=body, role=role)


def add(*factors: Expression) -> Assign:
    return Assign(symbol=S, value=build.add(build.read(S), build.product(factors)))


PRODUCT = add(load(A, i, k), load(B, k, j))
BEGIN = Assign(symbol=S, value=build.constant(0.0, FLOAT32))


def found(
    *statements: Statement,
    rows: Sequence[Symbol] = (I,),
    around: Sequence[For] | None = None,
    facts: Sequence[Expression] = (),
) -> Contraction | None:
    return find_contraction((BEGIN, *statements), frozenset(rows), frozenset({J}), around, facts=facts)


def masks(contraction: Contraction | None) -> list[tuple[Expression, ...]]:
    assert contraction is not None
    return [factor.masks for factor in contraction.factors]


# ---------------------------------------------------------------- bounds of the sum


@pytest.mark.parametrize(
    "bound",
    [
        i,
        build.add(i, ONE),
        build.sub(SEVEN, i),
        build.apply("minimum", build.mul(i, build.integer(2)), SEVEN),
        build.apply("maximum", ZERO, build.sub(i, ONE)),
        build.apply("floordiv", build.add(i, ONE), build.integer(2)),
    ],
    ids=["index", "add", "sub", "minimum", "maximum", "floordiv"],
)
def test_a_monotone_bound_is_a_mask(bound: Expression) -> None:
    assert masks(found(loop(K, bound, SEVEN, PRODUCT))) == [(build.apply("ge", k, bound),), ()]
    assert masks(found(loop(K, ZERO, bound, PRODUCT))) == [(build.apply("lt", k, bound),), ()]


def test_a_bound_of_columns_is_a_mask_of_the_second_factor() -> None:
    assert masks(found(loop(K, ZERO, j, PRODUCT))) == [(), (build.apply("lt", k, j),)]


@pytest.mark.parametrize(
    "bound",
    [
        build.apply("mod", i, build.integer(3)),
        build.add(build.apply("mod", i, build.integer(3)), ONE),
        build.mul(i, build.sub(SEVEN, i)),
        build.add(i, j),
        build.apply("floordiv", i, p),
        build.apply("floordiv", i, build.integer(-2)),
        build.apply("floordiv", SEVEN, i),
    ],
    ids=["mod", "mod inside", "rises and falls", "of both", "by a variable", "by a negative number", "divides"],
)
def test_other_bounds_are_no_masks(bound: Expression) -> None:
    assert found(loop(K, bound, SEVEN, PRODUCT)) is None
    assert found(loop(K, ZERO, bound, PRODUCT)) is None


@pytest.mark.parametrize("value", [build.apply("mod", i, build.integer(3)), build.add(m, ONE)], ids=["row", "other"])
def test_no_bound_is_a_variable_of_the_body(value: Expression) -> None:
    assign = Assign(symbol=P, value=value)
    for bound in (p, build.apply("minimum", p, SEVEN)):
        assert found(assign, loop(K, ZERO, bound, PRODUCT)) is None
        assert found(assign, loop(K, bound, SEVEN, PRODUCT)) is None
    assert found(assign, loop(K, ZERO, SEVEN, PRODUCT)) is not None


@pytest.mark.parametrize("bounds", [(p, SEVEN), (ZERO, p)], ids=["start", "stop"])
def test_a_bound_is_known_before_the_sum(bounds: tuple[Expression, Expression]) -> None:
    assign = Assign(symbol=P, value=build.add(k, ONE))
    terms = add(load(A, i, m), load(B, k, j))
    assert found(loop(K, ZERO, SEVEN, assign, loop(M, *bounds, terms))) is None
    assert found(loop(K, ZERO, SEVEN, assign, loop(M, ZERO, SEVEN, terms))) is not None


# ---------------------------------------------------------------- tensors that are read and stored


def test_no_factor_is_in_an_array_of_the_iteration() -> None:
    assert found(loop(K, ZERO, SEVEN, add(load(A, i, k), load(LOCAL, k, j)))) is None
    assert found(loop(K, ZERO, SEVEN, add(load(LOCAL, i, k), load(LOCAL, k, j)))) is None


def test_no_factor_is_stored_among_others() -> None:
    assert found(loop(K, ZERO, SEVEN, PRODUCT), store(Y, i, j), store(A, i, j)) is None
    assert found(loop(K, ZERO, SEVEN, PRODUCT), store(Y, i, j)) is not None


# ---------------------------------------------------------------- accesses that a mask of the other factor guards

ROWS, DEPTH, COLUMNS = Size(tensor=A, axis=0), Size(tensor=A, axis=1), Size(tensor=B, axis=1)
GUARD = build.apply("le", k, j)
"""A mask of columns."""


def in_range(index: Expression, size: Expression) -> tuple[Expression, Expression]:
    return build.apply("ge", index, ZERO), build.apply("lt", index, size)


def row_masks(
    rows: For,
    depth: tuple[Expression, Expression] = (ZERO, DEPTH),
    index: Expression = i,
    guard: Expression = GUARD,
    facts: Sequence[Expression] = (),
) -> tuple[Expression, ...]:
    """Return the masks of the first factor, which a mask of the other one guards."""
    terms = add(load(A, index, k), load(B, k, j))
    sums = loop(K, *depth, If(condition=guard, then=(terms,)))
    return masks(found(sums, around=(rows, loop(J, ZERO, COLUMNS)), facts=facts))[0]


def test_loops_over_sizes_that_are_the_same_keep_accesses_in_range() -> None:
    other, third = Size(tensor=B, axis=0), Size(tensor=Y, axis=0)
    equal = build.apply("eq", ROWS, other), build.apply("eq", other, third)
    assert row_masks(loop(I, ZERO, other), facts=equal[:1]) == ()
    assert row_masks(loop(I, ZERO, third), facts=equal[::-1]) == ()
    assert row_masks(loop(I, ZERO, third), facts=equal[:1]) == in_range(i, ROWS)
    unlike = build.apply("lt", ROWS, other), build.apply("eq", ROWS, SEVEN)
    assert row_masks(loop(I, ZERO, other), facts=unlike) == in_range(i, ROWS)


def test_loops_over_sizes_keep_accesses_in_range() -> None:
    assert row_masks(loop(I, ZERO, ROWS)) == ()
    tile = build.apply("minimum", build.add(p, SEVEN), ROWS)
    assert row_masks(loop(I, p, tile, role=Role.TILE)) == ()


@pytest.mark.parametrize(
    "rows",
    [
        loop(I, ZERO, SEVEN),
        loop(I, build.integer(-1), ROWS),
        loop(I, p, SEVEN, role=Role.TILE),
        loop(I, p, build.apply("minimum", build.add(p, SEVEN), ROWS)),
        loop(I, p, build.apply("maximum", SEVEN, ROWS), role=Role.TILE),
        loop(I, p, build.apply("minimum", build.add(p, SEVEN), DEPTH), role=Role.TILE),
    ],
    ids=["other stop", "other start", "tile of a number", "no tile", "no minimum", "tile of another size"],
)
def test_other_loops_leave_masks(rows: For) -> None:
    assert row_masks(rows) == in_range(i, ROWS)


def test_other_indices_leave_masks() -> None:
    after = build.add(i, ONE)
    assert row_masks(loop(I, ZERO, ROWS), index=after) == in_range(after, ROWS)
    assert row_masks(loop(I, ZERO, ROWS), depth=(ZERO, SEVEN)) == in_range(k, DEPTH)


def test_its_own_masks_guard_a_factor() -> None:
    own = build.apply("le", k, i)
    assert row_masks(loop(I, ZERO, SEVEN), guard=own) == (own,)


def test_no_mask_keeps_accesses_in_range_where_none_asks() -> None:
    sums = loop(K, ZERO, SEVEN, If(condition=GUARD, then=(PRODUCT,)))
    assert masks(found(sums)) == [(), (GUARD,)]


# ---------------------------------------------------------------- what lies along memory


@pytest.mark.parametrize(
    ("indices", "axis", "lies"),
    [
        ((i, k), 1, True),
        ((k, i), 0, True),
        ((i, k), None, False),
        ((k, i), 1, False),
        ((i, build.mul(k, build.integer(2))), 1, False),
        ((k, k), 1, False),
        ((k, i, k), 2, False),
    ],
    ids=["last", "first", "no unit axis", "other axis", "strided", "diagonal", "diagonal of a cube"],
)
def test_neighbours_along_a_loop_are_neighbours_in_memory(
    indices: Sequence[Expression], axis: int | None, lies: bool
) -> None:
    tensor = Tensor("x", 5, Type(FLOAT32, len(indices), unit_axis=axis))
    element = load(tensor, *indices)
    assert Factor(element, ()).lies_along(element, K) is lies
