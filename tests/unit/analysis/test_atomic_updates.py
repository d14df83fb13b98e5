"""Which stores are updates of elements by one commuting operator, and which loops do nothing else in the way."""

# pyright: basic
from __future__ import annotations

from dataclasses import replace

import pytest

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates, update_of, update_operator
from brickwork.ir import build
from brickwork.ir.build import read
from brickwork.ir.dtypes import FLOAT32, INT32, INT64
from brickwork.ir.nodes import Break, Local, Store, Tensor, TensorType
from brickwork.transform.unguarded_analysis import careful_analysis
from support.kernels_ir import wrapped
from support.written import extent, kernel, let, load, loop, op, repeat, store, symbol, when

X, Y = (Tensor(name, number, TensorType(FLOAT32, 1)) for number, name in enumerate("xy"))
WIDE, NARROW = Tensor("wide", 2, TensorType(INT64, 1)), Tensor("narrow", 3, TensorType(INT32, 1))
PLANE, ALONE = Tensor("plane", 4, TensorType(FLOAT32, 2)), Tensor("alone", 5, TensorType(FLOAT32, 0))
AT = Tensor("at", 6, TensorType(INT64, 1))
HELD = Tensor("held", 7, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0), (8,))
I, J, K = symbol("i"), symbol("j"), symbol("k")
HALF = build.constant(0.5, FLOAT32)


def put(name: str, tensor: Tensor, *, first: bool = True, other=None) -> Store:
    """Update an element, which stands `first` or second."""
    other = other if other is not None else build.constant(3, load(tensor, I).dtype)
    operands = (load(tensor, I), other) if first else (other, load(tensor, I))
    return store(tensor, (I,), op(name, *operands))


@pytest.mark.parametrize(
    ("update", "name"),
    [
        (put("add", X), "add"),
        (put("add", X, first=False), "add"),
        (put("sub", X), "add"),
        (put("sub", X, first=False), None),
        (put("truediv", X), None),
        (put("minimum", X), "minimum"),
        (put("maximum", X), "maximum"),
        (put("minimum", X, first=False), None),
        (put("maximum", X, first=False), None),
        (put("minimum", WIDE, first=False), "minimum"),
        (put("maximum", WIDE, first=False), "maximum"),
        (put("add", NARROW), "add"),
        (put("minimum", NARROW), None),
        (put("maximum", NARROW), None),
        (put("bit_or", WIDE), "bit_or"),
        (put("bit_and", WIDE, first=False), "bit_and"),
        (put("bit_xor", NARROW), "bit_xor"),
        (put("shift_left", WIDE), None),
        (put("add", X, other=load(Y, I)), "add"),
        (store(X, (I,), op("add", load(X, J), HALF)), None),
        (store(X, (I,), op("add", load(Y, I), HALF)), None),
        (store(PLANE, (I, J), op("add", load(PLANE, I, J), HALF)), "add"),
        (store(PLANE, (I, J), op("add", load(PLANE, I, K), HALF)), None),
        (store(ALONE, (), op("add", load(ALONE), HALF)), "add"),
        (store(X, (I,), op("neg", load(X, I))), None),
    ],
)
def test_what_an_update_is(update: Store, name: str | None):
    found = update_of(update, {})
    if name is None:
        assert found is None
    else:
        assert found is not None
        assert found[0] == name


def test_what_is_subtracted_is_added_negated():
    three = build.constant(3, FLOAT32)
    assert update_of(put("add", X), {}) == ("add", three)
    assert update_of(put("sub", X), {}) == ("add", op("neg", three))


def test_updates_are_found_wherever_they_stand():
    positive = op("gt", J, 0)
    for body in (
        (when(positive, (put("add", X),)),),
        (when(positive, (), (put("add", X),)),),
        (loop(J, 0, 4, put("add", X)),),
        (repeat(positive, put("add", X), prelude=(put("add", X),)),),
        (repeat(positive, prelude=(put("add", X),)),),
        (let(J, I), store(X, (J,), op("add", load(X, I), HALF))),
        (put("add", X), put("mul", Y)),
    ):
        found = update_operator(loop(I, 0, 9, *body), X)
        assert found is not None, body
        assert found.name == "add"
    for body in (
        (put("add", X), put("mul", X)),
        (put("add", X), store(Y, (I,), load(X, I))),
        (put("add", X), store(X, (I,), HALF)),
        (put("add", Y),),
    ):
        assert update_operator(loop(I, 0, 9, *body), X) is None


def counted(*more, claimed: bool = False, only: bool = False):
    """The verdict of a loop that updates elements of `x` that are found in another tensor."""
    place = load(AT, I)
    update = store(X, (place,), op("add", load(X, place), HALF))
    made = replace(loop(I, 0, extent(AT), update, *more), claimed=claimed)
    whole = kernel((X, Y, AT), made)
    return find_updates(whole, analyse(whole), claimed=only).loops[I]


def test_only_what_is_in_conflict_is_updated():
    assert (counted().independent, counted().updates) == (True, (X,))
    assert counted(put("add", Y)).updates == (X,)
    carried = store(Y, (op("add", I, 1),), load(Y, I))
    assert (counted(carried).independent, counted(carried).updates) == (False, ())
    assert counted(carried, claimed=True).updates == (X,)


def test_what_leaves_a_loop_or_is_carried_is_in_the_way_of_updates():
    total = symbol("total")
    for claimed in (False, True):
        leaves = counted(when(op("gt", load(AT, I), 3), (Break(),)), claimed=claimed)
        carried = counted(store(Y, (I,), build.cast(read(total), FLOAT32)), let(total, I), claimed=claimed)
        assert (leaves.independent, leaves.updates) == (carried.independent, carried.updates) == (False, ())


def test_loops_that_no_one_claims_stay_in_order_where_only_claims_count():
    assert (counted(only=True).independent, counted(only=True).updates) == (False, (X,))
    assert (counted(claimed=True, only=True).independent, counted(claimed=True, only=True).updates) == (True, (X,))


def test_what_a_thread_holds_alone_is_not_updated():
    place = load(AT, I)
    update = store(HELD, (place,), op("add", load(HELD, place), HALF))
    whole = kernel((AT,), Local(tensor=HELD), loop(I, 0, extent(AT), update))
    verdict = find_updates(whole, analyse(whole)).loops[I]
    assert (verdict.independent, verdict.updates) == (False, ())


def rows(*more, read_row, updates=("add",), only: bool = False, after=()):
    """The verdict of a loop that updates one row of `plane`, where another tensor says, by what is in a row."""
    place = load(AT, I)
    value = load(PLANE, read_row, I)
    made = [store(PLANE, (J, place), op(name, load(PLANE, J, place), value)) for name in updates]
    whole = kernel((PLANE, AT, X), loop(J, 0, 9, loop(I, 0, extent(AT), *made, *more), *after))
    verdict = find_updates(whole, analyse(whole), claimed=only).loops[I]
    return verdict.independent, verdict.updates


def test_other_rows_may_be_read():
    following = op("add", J, 1)
    assert rows(read_row=following) == (True, (PLANE,))
    assert rows(read_row=following, updates=("add", "add")) == (True, (PLANE,))
    assert rows(put("mul", X), read_row=following) == (True, (PLANE,))
    assert rows(read_row=following, after=(store(X, (J,), load(PLANE, J, 0)),)) == (True, (PLANE,))


def test_other_rows_may_be_stored_into_by_each_iteration_for_itself():
    following = op("add", J, 1)
    assert rows(store(PLANE, (following, I), HALF), read_row=following) == (True, (PLANE,))
    assert rows(store(PLANE, (following, 0), HALF), read_row=following) == (False, ())
    moved = store(PLANE, (following, I), load(PLANE, following, op("add", I, 1)))
    assert rows(moved, read_row=following) == (False, ())


def test_what_is_updated_is_not_read_and_copies_have_no_other_rows():
    following = op("add", J, 1)
    assert rows(read_row=J) == (False, ())
    assert rows(read_row=load(AT, J)) == (False, ())
    assert rows(store(X, (I,), load(PLANE, J, I)), read_row=following) == (False, ())
    assert rows(read_row=following, updates=("add", "mul")) == (False, ())
    assert rows(store(PLANE, (J, I), HALF), read_row=following) == (False, ())
    assert rows(read_row=following, only=True) == (False, ())


def test_a_row_is_another_only_where_a_guard_holds():
    """A row that counts from the end may be the one that is updated."""
    place, row = load(AT, I), wrapped(op("add", J, K), PLANE, 0)
    before = wrapped(op("sub", op("add", J, K), 1), PLANE, 0)
    update = store(PLANE, (row, place), op("add", load(PLANE, row, place), load(PLANE, before, I)))
    whole = kernel((PLANE, AT), loop(J, 0, 9, loop(I, 0, extent(AT), update)), scalars=(K,))
    guarded = find_updates(whole, analyse(whole))
    assert guarded.loops[I].independent
    assert not careful_analysis(guarded).loops[I].independent
