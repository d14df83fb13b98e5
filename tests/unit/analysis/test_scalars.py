"""What is live at a place, and which variables a loop accumulates into."""

# pyright: basic
from __future__ import annotations

from dataclasses import replace

import pytest

from brickwork.analysis.scalars import live_after_loops, live_before, scalar_verdict
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Block, Break, Continue, For, Reduction, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from support.kernels_ir import KernelBuilder
from support.written import let, load, loop, op, repeat, store, symbol, when

NONE = frozenset()
X = Tensor("x", 0, TensorType(FLOAT32, 1))
Y = Tensor("y", 1, TensorType(FLOAT32, 1))
A, S, T, I, J = symbol("a"), symbol("s"), symbol("t"), symbol("i"), symbol("j")
SUM, VALUE = symbol("sum", FLOAT32), symbol("value", FLOAT32)
POSITIVE = op("gt", A, 0)
JUMP = (when(POSITIVE, (Break(),)), let(S, 1))
SKIP = (when(POSITIVE, (Continue(),)), let(S, 1))


@pytest.mark.parametrize(
    ("block", "live"),
    [
        ((loop(I, S, T, let(A, I)),), {S, T}),
        ((repeat(POSITIVE, let(T, 1), prelude=(let(A, S),)),), {S}),
        ((repeat(POSITIVE, let(A, S), let(S, 1)),), {A, S}),
        ((let(S, 1), let(T, S)), set()),
    ],
)
def test_what_is_read_first_is_live(block: Block, live):
    assert live_before(block, NONE) == live


def test_what_is_live_after_a_statement_is_live_before_it():
    assert live_before((let(S, 1),), frozenset({T, S})) == {T}
    assert live_before((when(POSITIVE, (), (let(S, T),)),), frozenset({S})) == {A, S, T}
    assert live_before((loop(I, 0, 4, let(S, T)),), frozenset({A, S})) == {A, S, T}
    assert live_before((store(X, (I,), VALUE),), frozenset({S})) == {I, S, VALUE}


def test_what_a_reduction_begins_with_is_live():
    summed = replace(loop(I, 0, 4, let(T, I)), reductions=(Reduction(symbol=S, operator=OPERATORS["add"]),))
    assert live_before((summed,), NONE) == {S}


def test_jumps_go_where_other_variables_are_live():
    for block, ends in ((JUMP, (frozenset({S}), NONE)), (SKIP, (NONE, frozenset({S})))):
        assert live_before(block, NONE, *ends) == {A, S}
        assert live_before(block, NONE) == {A}


def test_what_a_while_or_what_follows_it_reads_is_live_in_it():
    inner = loop(I, 0, 4, let(T, I))
    assert live_after_loops((repeat(POSITIVE, let(A, T), inner),))[I] >= {T}
    assert live_after_loops((repeat(POSITIVE, inner, Continue()), let(A, T)))[I] >= {T}


E, F = load(X, I), load(Y, I)
NUMBER = build.constant(2.0, FLOAT32)


def add(*operands):
    return let(SUM, op("add", *operands))


def reductions(*body, live=frozenset({SUM})) -> list[str] | None:
    """The operators of a loop's reductions; None where a variable is carried."""
    found, carried = scalar_verdict(For(index=I, start=build.integer(0), stop=build.integer(9), body=body), live)
    return None if carried is not None else [item.operator.name for item in found]


@pytest.mark.parametrize(
    ("body", "operator"),
    [
        ((add(E, SUM),), "add"),
        ((add(op("add", SUM, E), F),), "add"),
        ((let(VALUE, E), add(SUM, VALUE)), "add"),
        ((loop(J, 0, 3, add(SUM, E)),), "add"),
        ((let(SUM, op("minimum", SUM, E)),), "minimum"),
        ((when(op("gt", SUM, E), (let(SUM, E),)),), "minimum"),
        ((repeat(POSITIVE, add(SUM, E), prelude=(add(SUM, F),)),), "add"),
        ((when(POSITIVE, (add(SUM, E),), (add(SUM, F),)),), "add"),
    ],
)
def test_accumulations(body, operator):
    assert reductions(*body) == [operator]


@pytest.mark.parametrize(
    "body",
    [
        (add(SUM, SUM),),
        (add(SUM, op("mul", SUM, E)),),
        (let(SUM, op("truediv", SUM, E)),),
        (let(SUM, op("neg", SUM)),),
        (let(SUM, op("minimum", E, SUM)),),
        (let(SUM, op("maximum", E, SUM)),),
        (let(SUM, op("sub", E, SUM)),),
        (add(SUM, E), when(POSITIVE, (), (let(SUM, NUMBER),))),
        (add(SUM, E), repeat(POSITIVE, let(SUM, NUMBER))),
        (add(SUM, E), repeat(POSITIVE, prelude=(let(SUM, NUMBER),))),
        (when(op("lt", E, NUMBER), (let(SUM, E),)),),
        (when(op("lt", NUMBER, E), (let(SUM, E),)),),
        (when(op("lt", SUM, E), (let(SUM, F),)),),
        (when(op("eq", E, SUM), (let(SUM, E),)),),
        (when(op("lt", op("add", SUM, E), SUM), (let(SUM, op("add", SUM, E)),)),),
        (let(VALUE, NUMBER), when(op("lt", E, SUM), (let(VALUE, E),)), let(SUM, op("minimum", SUM, E))),
        (let(SUM, NUMBER),),
        (let(SUM, NUMBER), add(SUM, E)),
        (let(SUM, op("add", E, VALUE)),),
        (when(POSITIVE, (let(SUM, op("add", op("add", E, VALUE), F)),)),),
    ],
)
def test_other_assignments_are_no_accumulations(body):
    assert reductions(*body) is None


def test_integers_are_accumulated_from_either_side():
    (index,) = (load(Tensor("at", 2, TensorType(INT64, 1)), I),)
    for name in ("minimum", "maximum"):
        assert reductions(let(S, op(name, index, S)), live=frozenset({S})) == [name]


def test_the_variable_in_the_way_is_named_where_it_is_assigned():
    make = KernelBuilder()
    first, second = make.assign(VALUE, E), make.assign(SUM, E)
    made = For(index=I, start=build.integer(0), stop=build.integer(9), body=(first, store(Y, (I,), E), second))
    _, carried = scalar_verdict(made, frozenset({SUM}))
    assert carried is not None
    assert (carried.symbol, carried.loc) == (SUM, second.loc)
    assert carried.after
