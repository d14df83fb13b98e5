"""Which loops are searches, what is noted of them, and which place decides between equal values."""

# pyright: basic
from __future__ import annotations

import pytest

from brickwork.analysis.scalars import scalar_verdict
from brickwork.analysis.searches import PLACE_NUMBERS, with_place
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32, INT64
from brickwork.ir.nodes import For, Tensor, TensorType, joined_together
from brickwork.ir.walk import statements
from support.written import let, load, loop, op, store, symbol, when

X = Tensor("x", 0, TensorType(FLOAT32, 1))
Y = Tensor("y", 1, TensorType(FLOAT32, 1))
FLAGS = Tensor("flags", 2, TensorType(BOOL, 1))
I, J, AT, TO, K = symbol("i"), symbol("j"), symbol("at"), symbol("to"), symbol("k")
BEST, OTHER, V = symbol("best", FLOAT32), symbol("other", FLOAT32), symbol("v", FLOAT32)
YES, SET = symbol("yes", BOOL), symbol("set", BOOL)
E, F = load(X, I), load(Y, I)
FLAG = load(FLAGS, I)
ALL = frozenset({BEST, AT, TO, OTHER, YES, SET})
NOTED = (let(BEST, E), let(AT, I))


def of(*body) -> For:
    return For(index=I, start=build.integer(0), stop=build.integer(9), body=body)


def found(*body, live=ALL) -> list[list[str]] | None:
    """The reductions of a loop, those together that go together; None where a variable is carried."""
    reductions, carried = scalar_verdict(of(*body), live)
    groups = joined_together(reductions)
    named = [[f"{item.operator} {item.symbol.name}" for item in group] for group in groups]
    return None if carried is not None else named


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (op("gt", E, BEST), ["maximum best", "minimum at"]),
        (op("ge", E, BEST), ["maximum best", "maximum at"]),
        (op("lt", E, BEST), ["minimum best", "minimum at"]),
        (op("le", E, BEST), ["minimum best", "maximum at"]),
        (op("lt", BEST, E), ["maximum best", "minimum at"]),
        (op("ge", BEST, E), ["minimum best", "maximum at"]),
        (op("logical_and", FLAG, op("gt", E, BEST)), ["maximum best", "minimum at"]),
        (op("logical_and", op("gt", E, BEST), op("logical_and", FLAG, FLAG)), ["maximum best", "minimum at"]),
    ],
)
def test_comparisons(condition, expected):
    assert found(when(condition, NOTED)) == [expected]


GREATER = op("gt", E, BEST)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ((when(GREATER, NOTED), store(X, (I,), F)), [["maximum best", "minimum at"]]),
        ((let(V, E), when(op("gt", V, BEST), (let(AT, I), let(BEST, V)))), [["maximum best", "minimum at"]]),
        ((when(GREATER, (*NOTED, let(OTHER, F))),), [["maximum best", "minimum at", "add other"]]),
        ((when(GREATER, (*NOTED, let(AT, 3), let(AT, I))),), [["maximum best", "minimum at"]]),
        ((when(GREATER, (let(V, F), *NOTED, let(OTHER, V))),), [["maximum best", "minimum at", "add other"]]),
        ((loop(J, 0, 4, when(GREATER, (*NOTED, let(TO, J)))),), [["maximum best", "minimum at", "add to"]]),
        ((when(GREATER, NOTED), when(op("gt", F, BEST), (let(AT, I), let(BEST, F)))), [["maximum best", "minimum at"]]),
        (
            (when(GREATER, NOTED), when(op("le", F, OTHER), (let(TO, I), let(OTHER, F)))),
            [["maximum best", "minimum at"], ["minimum other", "maximum to"]],
        ),
    ],
)
def test_searches(body, expected):
    assert found(*body) == expected


@pytest.mark.parametrize(
    "body",
    [
        (when(op("eq", E, BEST), NOTED),),
        (when(op("logical_or", FLAG, GREATER), NOTED),),
        (when(GREATER, NOTED, (let(AT, I),)),),
        (when(GREATER, NOTED, (store(Y, (I,), E),)),),
        (when(GREATER, (*NOTED, let(TO, op("add", TO, 1)))),),
        (when(GREATER, (*NOTED, store(Y, (I,), E))),),
        (when(GREATER, (let(BEST, F), let(AT, I))),),
        (when(GREATER, (let(BEST, E), let(BEST, F), let(AT, I))),),
        (when(GREATER, (*NOTED, let(OTHER, BEST))),),
        (when(GREATER, NOTED), store(Y, (I,), BEST)),
        (when(GREATER, NOTED), store(Y, (AT,), E)),
        (when(GREATER, NOTED), let(TO, AT)),
        (when(GREATER, NOTED), let(AT, I)),
        (when(GREATER, NOTED), let(BEST, E)),
        (when(GREATER, NOTED), when(op("ge", F, BEST), (let(AT, I), let(BEST, F)))),
        (when(GREATER, NOTED), when(op("lt", F, BEST), (let(AT, I), let(BEST, F)))),
        (when(GREATER, NOTED), when(op("gt", F, BEST), (let(AT, I), let(TO, I), let(BEST, F)))),
        (when(GREATER, NOTED), when(op("gt", F, OTHER), (let(AT, I), let(OTHER, F)))),
        (when(GREATER, (let(AT, J), let(BEST, E))),),
        (let(V, E), when(op("gt", V, BEST), (let(V, F), let(AT, I), let(BEST, V)))),
        (when(op("gt", op("add", E, BEST), BEST), (let(BEST, op("add", E, BEST)), let(AT, I))),),
    ],
)
def test_other_loops_are_none(body):
    assert found(*body) is None


def test_truth_is_not_searched_for():
    arm = when(op("gt", YES, SET), (let(SET, YES), let(AT, I)))
    assert found(let(YES, FLAG), arm, live=frozenset({SET, AT})) is None


def test_what_nothing_reads_is_not_noted():
    arm = when(GREATER, (*NOTED, let(OTHER, F)))
    assert found(arm, live=frozenset({BEST, AT})) == [["maximum best", "minimum at"]]


def test_a_search_that_notes_no_place_gets_one():
    search = of(when(GREATER, (let(BEST, E), let(OTHER, F))))
    begun, changed = with_place(search, frozenset({BEST, OTHER}), iter([PLACE_NUMBERS]))
    assert isinstance(changed, For)
    assert found(*changed.body, live=frozenset({BEST, OTHER})) == [["maximum best", "minimum i_place", "add other"]]
    assert begun.symbol.dtype is INT64  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("body", [(when(GREATER, NOTED),), (when(GREATER, (let(BEST, E),)),), (store(X, (I,), F),)])
def test_others_get_none(body):
    search = of(*body)
    assert with_place(search, ALL, iter(())) == (search,)


def test_each_loop_around_a_search_has_its_own_place():
    inner = loop(J, 0, 4, when(op("gt", E, BEST), (let(BEST, E), let(OTHER, F))))
    numbers = iter(range(PLACE_NUMBERS, PLACE_NUMBERS + 9))
    begun, made = with_place(inner, frozenset({BEST, OTHER}), numbers)
    _, changed = with_place(of(begun, made), frozenset({BEST, OTHER}), numbers)
    assert isinstance(changed, For)
    (within,) = (node for node in statements(changed.body) if isinstance(node, For))
    around, _ = scalar_verdict(changed, frozenset({BEST, OTHER}))
    nested, _ = scalar_verdict(within, frozenset({BEST, OTHER}))
    assert [item.symbol.name for item in around] == ["best", "i_place", "other"]
    assert [item.symbol.name for item in nested] == ["best", "j_place", "other", "i_place"]
