"""Conditions of transforms that small pieces of IR decide: what may move, be copied, exchanged, or run at once."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from brickwork.analysis.found_places import divides
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT16, FLOAT32, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Break,
    Continue,
    Draw,
    Local,
    Random,
    Rebind,
    Role,
    Select,
    Tensor,
    TensorType,
)
from brickwork.ir.operators import OPERATORS
from brickwork.transform import interchange, unguarded_analysis
from brickwork.transform.autodiff.extremes import _is_taken
from brickwork.transform.autodiff.fold_zero_sums import _added
from brickwork.transform.autodiff.separate_updates import SeparateUpdates
from brickwork.transform.autodiff.single_stores import _copy
from brickwork.transform.autodiff.store_forwarding import is_exact
from brickwork.transform.autodiff.varying_loads import _Around
from brickwork.transform.batch_loop import _is_apart, _is_shared, _is_uniform
from brickwork.transform.canonical.choices import is_simple
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.outline import _follows
from brickwork.transform.predicate import _jumps_by_elements
from brickwork.transform.schedule.loop_order import Nest
from brickwork.transform.unguarded_analysis import _is_apart as is_apart_unguarded
from brickwork.transform.verbs.reorder import is_nest
from support.written import check, extent, let, load, loop, op, repeat, store, symbol, when

ROW, MATRIX = TensorType(FLOAT32, 1, True, 0), TensorType(FLOAT32, 2, True, 1)
X, Y = (Tensor(name, number, ROW) for number, name in enumerate("xy"))
A, B = (Tensor(name, number, MATRIX) for number, name in enumerate("ab", 2))
OWN = Tensor("own", 9, ROW, (4,))
I, J, K, N, S, T = symbol("i"), symbol("j"), symbol("k"), symbol("n"), symbol("s", FLOAT32), symbol("t", FLOAT32)
ONE = build.constant(1.0, FLOAT32)
DRAWN = Random(
    key=build.integer(1), counter=build.integer(1), extra=build.integer(1), site=0, draw=Draw.UNIFORM, dtype=FLOAT32
)


# ---------------------------------------------------------------- statements


def test_what_is_simple_assigns_stores_chooses_and_runs_to_its_end():
    add = store(X, (I,), load(X, I))
    assert effects(loop(I, 0, N, when(op("lt", I, 3), (add, let(S, ONE))))).simple
    others = (
        check(op("lt", I, 3)),
        loop(I, 0, N, when(op("lt", I, 3), (Break(),))),
        loop(I, 0, N, when(op("lt", I, 3), (Continue(),))),
        repeat(op("lt", I, 3), let(I, op("add", I, 1))),
        Rebind(targets=(X,), sources=(Y,)),
        Local(tensor=OWN),
    )
    for each in others:
        assert not effects((add, each)).simple


# ---------------------------------------------------------------- expressions


def test_divisors_that_may_be_0_are_no_literals():
    assert [divides(op(name, I, 0)) for name in ("floordiv", "mod", "add")] == [True, True, False]
    assert [divides(op("floordiv", I, each)) for each in (J, 3)] == [True, False]
    assert not divides(build.read(I))


def test_expressions_that_may_be_asked_early_are_simple():
    whole = op("lt", op("add", I, extent(X)), 3)
    for expression in (whole, Select(condition=whole, then=build.read(I), otherwise=build.read(J))):
        assert is_simple(expression)
    element = load(Tensor("e", 8, TensorType(INT64, 1, True, 0)), 0)
    for expression in (element, op("lt", element, 3), op("floordiv", I, J), build.read(S), op("lt", S, ONE), DRAWN):
        assert not is_simple(expression)


def test_an_extreme_is_taken_where_a_branch_assigns_what_was_compared():
    value = op("add", I, 1)
    assert _is_taken((let(K, value), let(N, I)), K, value)
    assert not _is_taken((let(K, I),), K, value)
    assert not _is_taken((let(K, value), let(K, I)), K, value)
    assert not _is_taken((let(K, value), when(op("lt", I, 3), (let(K, I),))), K, value)
    assert not _is_taken((when(op("lt", I, 3), (let(K, value),)),), K, value)
    assert not _is_taken((let(N, value),), K, value)
    assert not _is_taken((let(I, 3), let(K, value)), K, value)
    assert not _is_taken((loop(N, 0, 3), let(I, 3), let(K, value)), K, value)


def test_a_sum_begins_with_what_is_added_to_zero():
    assert _added(let(S, op("add", S, T))) == build.read(T)
    for value in (op("sub", S, T), op("add", T, T), op("add", T, S), op("add", S, S), build.read(T)):
        assert _added(let(S, value)) is None


# ---------------------------------------------------------------- stores


def test_a_load_finds_what_was_stored_where_nothing_is_rounded_or_added():
    half = Tensor("h", 7, TensorType(FLOAT16, 1, True, 0))
    assert is_exact(store(X, (I,), ONE))
    assert not is_exact(replace(store(X, (I,), ONE), combine=OPERATORS["add"]))
    assert not is_exact(store(half, (I,), ONE))
    assert not is_exact(store(X, (I,), build.integer(1)))


def copied(stops=(extent(A, 0), extent(A, 1)), read=(I, J), written=(I, J), start=0, combine=None, *more):
    inner = loop(J, start, stops[1], replace(store(B, written, load(A, *read)), combine=combine), *more)
    return loop(I, 0, stops[0], inner)


def test_a_copy_is_of_all_elements_and_of_nothing_else():
    assert _copy(copied()) == (A, B)
    for other in (
        copied(stops=(extent(A, 0), extent(B, 1))),
        copied(read=(J, I)),
        copied(written=(J, I)),
        copied(start=1),
        copied(combine=OPERATORS["add"]),
        copied((extent(A, 0), extent(A, 1)), (I, J), (I, J), 0, None, let(S, ONE)),
        loop(I, 0, extent(A, 0), let(S, ONE)),
    ):
        assert _copy(other) is None
    first = store(B, (I, J), load(A, I, J))
    assert _copy(loop(I, 0, extent(A, 0), loop(J, 0, extent(A, 1), first, let(S, ONE)))) is None
    assert _copy(loop(I, 1, extent(A, 0), loop(J, 0, extent(A, 1), first))) is None


@pytest.mark.parametrize("moving", [("i", "j"), ("i",), ("j",), ()])
def test_accesses_are_in_one_iteration_where_all_loops_move_them(monkeypatch, moving):
    monkeypatch.setattr(SeparateUpdates, "moves", lambda _, __, ___, each: each in moving)
    updates = object.__new__(SeparateUpdates)
    one, other = SimpleNamespace(loops=("i", "j")), SimpleNamespace(loops=("i", "k"))
    assert updates.is_same_iteration(one, one, 0) is (moving == ("i", "j"))
    assert updates.is_same_iteration(one, one, 1) is ("j" in moving)
    assert not updates.is_same_iteration(one, other, 0)


def test_a_load_varies_with_what_the_loop_changes():
    around = _Around(loop(I, 0, 9, let(K, 3), store(X, (I,), ONE)))
    assert around.moves(load(Y, I))
    assert around.moves(load(Y, K))
    assert around.moves(load(X, N))
    assert not around.moves(load(Y, N))


# ---------------------------------------------------------------- loops


def test_loops_stand_inside_of_those_that_their_bounds_need():
    i, j = loop(I, 0, N), loop(J, I, N)
    k = loop(K, 0, J)
    nest = Nest((i, j, k), frozenset({I, J, K}), ())
    assert nest.allows((I, J, K))
    for order in ((J, I, K), (I, K, J), (K, J, I)):
        assert not nest.allows(order)


def test_a_nest_is_reordered_where_nothing_stands_beside_its_loops():
    verb = SimpleNamespace(order=(I, J))
    assert is_nest(loop(I, 0, 9, loop(J, 0, 9, let(S, ONE), let(S, ONE))), verb)
    assert is_nest(loop(J, 0, 9, loop(I, 0, 9, loop(K, 0, 9))), verb)
    assert not is_nest(loop(I, 0, 9, loop(J, 0, 9), let(S, ONE)), verb)
    assert not is_nest(loop(I, 0, 9, let(S, ONE), loop(J, 0, 9)), verb)
    assert not is_nest(loop(I, 0, 9, loop(K, 0, 9, loop(J, 0, 9))), verb)
    assert not is_nest(loop(I, 0, 9), verb)
    assert not is_nest(loop(I, 0, 9, let(S, ONE)), verb)


@pytest.mark.parametrize("jump", [Break(), Continue()])
def test_elements_end_a_loop_where_a_condition_that_they_decide_leads_to_a_jump(jump):
    places = Partition(frozenset({S}))
    known, found = op("lt", I, 3), op("lt", S, ONE)
    for block, jumps in (
        ((jump,), False),
        ((when(known, (jump,)),), False),
        ((when(found, (let(K, 1),)),), False),
        ((when(found, (jump,)),), True),
        ((when(known, (when(found, (jump,)),)),), True),
        ((when(known, (), (when(found, (jump,)),)),), True),
        ((loop(J, 0, 9, when(found, (jump,))),), False),
    ):
        assert _jumps_by_elements(block, places) is jumps, block


def test_a_statement_follows_a_join_in_lockstep():
    joined = replace(loop(I, 0, 9, let(T, op("add", T, load(X, I)))), role=Role.THREAD)
    assert _follows([joined], let(S, T))
    assert not _follows([joined], loop(J, 0, 9, let(S, T)))
    assert not _follows([joined], check(op("lt", T, ONE)))
    assert not _follows([let(T, load(X, 0))], store(X, (0,), ONE))
    assert _follows([let(T, load(X, 0))], let(S, T))


@pytest.mark.parametrize("updated", [(X,), (X, Y), ()])
def test_updates_that_hold_without_guards_do_not_meet(monkeypatch, updated):
    seen = []

    def races(facts, _, may_alias, accesses):
        assert not may_alias
        seen.append([each.tensor for each in accesses])
        return "race" if any(each.tensor is Y for each in accesses) else None

    monkeypatch.setattr(unguarded_analysis, "is_updated", lambda _, __, tensor: tensor in updated)
    monkeypatch.setattr(unguarded_analysis, "find_race", races)
    facts = SimpleNamespace(model=SimpleNamespace(accesses=[SimpleNamespace(tensor=each) for each in (X, Y)]))
    verdict = SimpleNamespace(updates={X: None, Y: None})
    assert is_apart_unguarded(facts, SimpleNamespace(), verdict) is (Y in updated)
    assert seen == [[each for each in (X, Y) if each not in updated]]


# ---------------------------------------------------------------- samples


SAMPLES = SimpleNamespace(whole={X: X})
"""Each sample has its own x; they share y."""


def test_what_samples_share_reads_nothing_of_their_own():
    own = frozenset({S})
    for value, same in ((op("add", T, load(Y, I)), True), (load(X, I), False), (load(OWN, I), False), (DRAWN, False)):
        assert _is_uniform(value, own, SAMPLES) is same
    assert not _is_uniform(op("add", T, build.read(S)), own, SAMPLES)


def test_exchanges_jumps_and_what_is_the_same_stand_outside_of_the_loop_over_samples():
    swap, local = Rebind(targets=(X, A), sources=(A, X)), Rebind(targets=(OWN,), sources=(OWN,))
    same = frozenset({K})
    for statement, shared in (
        (let(K, 1), True),
        (let(N, 1), False),
        (swap, True),
        (local, False),
        (loop(I, 0, 9, swap), True),
        (loop(I, 0, 9), False),
        (Break(), True),
        (when(op("lt", I, 3), (Continue(),)), True),
    ):
        assert _is_shared(statement, same) is shared, statement


def test_samples_make_the_same_exchanges_and_keep_nothing_between_them():
    swap = Rebind(targets=(X, A), sources=(A, X))
    own, mine = symbol("own"), load(Tensor("w", 12, TensorType(INT64, 1, True, 0)), I)
    samples = SimpleNamespace(whole={X: X, A: A, mine.tensor: mine.tensor})
    declared, filled, used = Local(tensor=OWN), store(OWN, (0,), ONE), let(T, load(OWN, 0))
    for body, apart in (
        ((loop(K, 0, N, swap, let(S, load(X, K)), let(T, S)),), True),
        ((repeat(op("lt", I, 3), swap),), False),
        ((let(own, mine), loop(K, 0, own, swap)), False),
        ((let(own, mine), loop(K, own, N, swap)), False),
        ((loop(K, 0, mine, swap),), False),
        ((loop(K, 0, mine), swap), True),
        ((when(op("lt", I, 3), (swap,)),), True),
        ((when(op("lt", mine, 3), (swap,)),), False),
        ((let(S, load(X, I)), swap, let(T, S)), False),
        ((let(S, load(X, I)), swap, let(S, load(X, I)), let(T, S)), True),
        ((declared, filled, used, swap), True),
        ((declared, filled, swap, used), False),
        ((declared, swap, filled), False),
        ((filled, swap, filled), False),
        ((used, swap, used), False),
        ((let(T, load(Y, 0)), store(Y, (0,), T), swap, let(T, load(Y, 0)), store(Y, (0,), T)), True),
    ):
        assert _is_apart(body, frozenset(), samples) is apart, body


# ---------------------------------------------------------------- orders on grids


def freed(monkeypatch, free, more, *, updates=True, inner=True):
    """The loops that can stand anywhere: `free`, or `more` where updates may be atomic."""
    monkeypatch.setattr(interchange, "update_operator", lambda _, item: "add" if updates and item is X else None)
    inside = loop(K, 0, 9, store(X, (K,), ONE)) if inner else store(X, (0,), ONE)
    body = (inside, store(Y, (I,), ONE))
    band = [loop(index, 0, 9, *body) for index in (I, J, N)]
    asked = []

    def answer(_, updated=frozenset()):
        asked.append(updated)
        return frozenset(more if updated else free)

    update = SimpleNamespace(store=True, tensor=X, loops=())
    found = interchange._Chooser.free_on_grids(SimpleNamespace(free=answer, accesses=lambda _: [update]), band)
    assert all(updated <= {X} for updated in asked)
    return found


def test_loops_that_are_launched_belong_to_no_nest():
    nest = loop(I, 0, 9, loop(J, 0, 9, store(Y, (I,), ONE)))
    assert interchange._band(nest, frozenset()) == (nest, nest.body[0])
    assert interchange._band(nest, frozenset((J,))) == (nest, nest.body[0])
    assert interchange._band(nest, frozenset((I,))) == ()
    assert interchange._band(replace(nest, claimed=True), frozenset()) == ()


def test_updates_are_atomic_where_a_loop_in_order_keeps_all_others_from_threads(monkeypatch):
    assert freed(monkeypatch, (), (I,)) == {I}
    assert freed(monkeypatch, (I,), (I,)) == {I}
    assert freed(monkeypatch, (I,), (I, J, N)) == {I}
    assert freed(monkeypatch, (I,), (I, N)) == {I, N}
    assert freed(monkeypatch, (J,), ()) == {J}
    assert freed(monkeypatch, (), (I,), updates=False) == set()
    assert freed(monkeypatch, (), (I,), inner=False) == set()
