"""Masks of contractions that are for elements of the result, and factors of which a condition chooses the value."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from brickwork.analysis.contractions import Contraction, find_contraction
from brickwork.analysis.factor_places import _equal
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Assign, Expression, For, If, Load, Role, Statement, Symbol, Tensor
from brickwork.ir.nodes import TensorType as Type

I, J, K = (Symbol(name, number, INT64) for number, name in enumerate("ijk", 1))
S, T = (Symbol(name, number, FLOAT32) for number, name in enumerate("st", 11))
DENSE = Type(FLOAT32, 2, contiguous=True, unit_axis=1)
A, B, M = (Tensor(name, number, DENSE) for number, name in enumerate("abm", 1))
ZERO, SEVEN = build.integer(0), build.integer(7)
NOTHING = build.constant(0.0, FLOAT32)
i, j, k, t = (build.read(symbol) for symbol in (I, J, K, T))


def load(tensor: Tensor, *indices: Expression) -> Load:
    return Load(tensor=tensor, indices=indices, access=1, dtype=FLOAT32)


def loop(index: Symbol, stop: Expression, *body: Statement) -> For:
    return For(index=index, start=ZERO, stop=stop, body=body, role=Role.SEQUENTIAL)


def add(*factors: Expression) -> Assign:
    return Assign(symbol=S, value=build.add(build.read(S), build.product(factors)))


def where(condition: Expression, *then: Statement) -> If:
    return If(condition=condition, then=then)


def found(*statements: Statement, around: Sequence[For] | None = None) -> Contraction | None:
    begin = Assign(symbol=S, value=NOTHING)
    return find_contraction((begin, *statements), frozenset({I}), frozenset({J}), around)


PRODUCT = add(load(A, i, k), load(B, k, j))
BELOW = build.apply("le", j, i)
MARKED = build.apply("gt", load(M, i, j), NOTHING)
EARLY = build.apply("le", k, i)


# ---------------------------------------------------------------- masks of elements


@pytest.mark.parametrize("mask", [BELOW, MARKED], ids=["indices", "elements"])
def test_a_mask_of_rows_and_columns_is_asked_after_the_sum(mask: Expression) -> None:
    contraction = found(loop(K, SEVEN, where(mask, PRODUCT)))
    assert contraction is not None
    assert contraction.where == (mask,)
    assert [factor.masks for factor in contraction.factors] == [(), ()]


def test_other_masks_stay_with_their_factor() -> None:
    contraction = found(loop(K, SEVEN, where(BELOW, where(EARLY, PRODUCT))))
    assert contraction is not None
    assert contraction.where == (BELOW,)
    assert [factor.masks for factor in contraction.factors] == [(EARLY,), ()]
    for index in (i, j):
        contraction = found(loop(K, SEVEN, where(build.apply("le", index, SEVEN), PRODUCT)))
        assert contraction is not None
        assert contraction.where == ()


def test_a_mask_of_all_three_forbids_it() -> None:
    assert found(loop(K, SEVEN, where(build.apply("le", k, build.add(i, j)), PRODUCT))) is None


def test_elements_are_asked_for_where_there_are_terms() -> None:
    """What is read in the sum may be no element where the sum has no term."""
    assert found(loop(K, SEVEN, where(EARLY, where(MARKED, PRODUCT)))) is None
    assert found(loop(K, i, where(MARKED, PRODUCT))) is None
    assert found(loop(K, i, where(BELOW, PRODUCT))) is not None


def test_factors_are_read_whatever_a_mask_of_elements_says() -> None:
    """So they have masks that keep their accesses in range."""
    nest = (loop(I, SEVEN), loop(J, SEVEN))
    contraction = found(loop(K, SEVEN, where(BELOW, PRODUCT)), around=nest)
    assert contraction is not None
    assert all(factor.masks for factor in contraction.factors)
    contraction = found(loop(K, SEVEN, PRODUCT), around=nest)
    assert contraction is not None
    assert not any(factor.masks for factor in contraction.factors)


# ---------------------------------------------------------------- chosen values

TWO = build.constant(2.0, FLOAT32)
TERM = (Assign(symbol=T, value=NOTHING), where(EARLY, Assign(symbol=T, value=TWO)))


def test_a_condition_chooses_a_factor() -> None:
    contraction = found(loop(K, SEVEN, *TERM, add(build.mul(t, load(A, i, k)), load(B, k, j))))
    assert contraction is not None
    assert build.select(EARLY, TWO, NOTHING) in _parts(contraction.factors[0].value)


def _parts(value: Expression) -> list[Expression]:
    return [*getattr(value, "operands", ())]


@pytest.mark.parametrize(
    "statement",
    [
        where(EARLY, Assign(symbol=T, value=load(A, i, k))),
        If(condition=EARLY, then=(Assign(symbol=T, value=TWO),), otherwise=(Assign(symbol=T, value=t),)),
        where(EARLY, Assign(symbol=T, value=NOTHING), Assign(symbol=T, value=t)),
        where(EARLY, Assign(symbol=Symbol("other", 13, FLOAT32), value=t)),
    ],
    ids=["reads", "has another way", "two assignments", "of a variable from before"],
)
def test_other_conditions_choose_none(statement: Statement) -> None:
    terms = (Assign(symbol=T, value=load(A, i, k)), statement, add(t, load(B, k, j)))
    assert found(loop(K, SEVEN, *terms)) is None


def test_sizes_are_equal_where_facts_lead_from_one_to_the_other() -> None:
    first, second, third, fourth = (build.size(tensor, axis) for tensor in (A, B) for axis in (0, 1))
    facts = [build.apply("eq", second, third), build.apply("eq", first, second)]
    assert {*_equal(first, facts)} == {first, second, third}
    assert {*_equal(first, facts[:1])} == {first}
    assert {*_equal(fourth, facts)} == {fourth}
