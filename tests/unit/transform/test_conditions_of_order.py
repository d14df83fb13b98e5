"""Conditions that keep iterations and threads apart, and statements in their order: each forbids something alone."""

# pyright: reportArgumentType=false, reportPrivateUsage=false
from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from brickwork.codegen import row_accesses
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Local, Role, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from brickwork.transform import carried_elements, hoist_bounds, last_stores, register_lists
from brickwork.transform.autodiff import slices
from brickwork.transform.privatise import OwnerFinder, copied_extents
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.separate_sums import _Cutter
from support.written import let, load, loop, op, store, symbol, when

ROW = TensorType(FLOAT32, 1, True, 0)
X, Y, Z = (Tensor(name, place, ROW) for place, name in enumerate("xyz"))
AT = Tensor("at", 7, TensorType(INT64, 1, True, 0))
I, J, K, M, N = (symbol(name) for name in "ijkmn")
S, T = symbol("s", FLOAT32), symbol("t", FLOAT32)
ONE = build.constant(1.0, FLOAT32)
NONE = frozenset()


# ---------------------------------------------------------------- threads of a block

BARRIER = replace(loop(K, 0, N, store(Y, (K,), ONE)), role=Role.THREAD)
READ, WRITE, AFTER = let(S, load(X, 0)), store(X, (1,), ONE), let(T, ONE)
ASKED = op("gt", N, 3)


@pytest.mark.parametrize("ways", [((BARRIER,), ()), ((), (BARRIER,))])
def test_a_way_without_a_barrier_passes(ways):
    assert not runs_in_lockstep((READ, when(ASKED, *ways), WRITE))


@pytest.mark.parametrize("way", [(BARRIER,), (BARRIER, AFTER), (AFTER, BARRIER)])
def test_barriers_on_both_ways_end_what_was_read(way):
    condition = op("gt", load(X, 0), ONE)
    assert runs_in_lockstep((READ, when(condition, way, way), WRITE))


def test_a_barrier_before_a_write_is_one_for_the_iteration_before():
    assert runs_in_lockstep((loop(J, 0, N, BARRIER, when(ASKED, (WRITE,)), READ),))
    assert not runs_in_lockstep((loop(J, 0, N, when(ASKED, (WRITE,)), READ),))
    assert not runs_in_lockstep((loop(J, 0, N, when(ASKED, (WRITE,)), when(ASKED, (store(Z, (0,), ONE),)), READ),))


# ---------------------------------------------------------------- tensors of an iteration


@pytest.mark.parametrize("independent", [True, False])
def test_an_owner_fills_what_is_its_own(independent):
    finder = SimpleNamespace(
        tensors=frozenset((X,)),
        independent=independent,
        facts=SimpleNamespace(model=SimpleNamespace(accesses=(SimpleNamespace(tensor=X),))),
        is_apart=lambda _, tensors: X in tensors,
        fills=lambda *_: False,
    )
    assert OwnerFinder._is_owner(finder, loop(I, 0, N)) is not independent


@pytest.mark.parametrize(("items", "extents"), [(100, (100,)), (20_000, ())])
def test_copies_have_a_largest_size(items, extents):
    kernel = SimpleNamespace(facts=(op("eq", build.size(X, 0), items),))
    assert copied_extents(kernel, X, None, grid=True) == extents


# ---------------------------------------------------------------- what runs once, before a loop

SETS, USES = let(S, load(X, 0)), store(Y, (0,), S)
HERE = loop(I, 0, N)


@pytest.mark.parametrize(
    ("own", "block", "live", "contracts", "taken"),
    [
        ((SETS,), (SETS, AFTER), NONE, True, True),
        ((SETS,), (SETS, AFTER), NONE, False, False),
        ((SETS,), (let(T, S), SETS), NONE, True, False),
        ((mine := let(S, op("add", S, ONE)),), (mine, AFTER), NONE, True, False),
        ((SETS, USES), (SETS, let(T, S), USES), NONE, True, False),
        ((SETS,), (SETS, let(T, S), let(S, ONE)), NONE, True, False),
        ((SETS,), (SETS, let(S, ONE)), frozenset((S,)), True, False),
        ((SETS,), (SETS, AFTER), frozenset((S,)), True, True),
    ],
)
def test_what_is_taken_out_of_a_loop_leaves_variables_as_they_are(own, block, live, contracts, taken):
    cutter = SimpleNamespace(
        needless=lambda *_: {I}, live={I: live}, has_contraction=lambda *_: contracts, without={}, kept=[]
    )
    assert _Cutter.may_be_taken_out(cutter, own, block, HERE, None) is taken


def test_bounds_are_hoisted_if_each_is_assigned_once():
    nest = loop(J, 0, M)
    assert hoist_bounds._are_fixed(loop(I, 0, N, let(M, 5), nest), NONE)
    assert not hoist_bounds._are_fixed(loop(I, 0, N, let(M, 5), let(M, 6), nest), NONE)


# ---------------------------------------------------------------- last stores


@pytest.mark.parametrize(("start", "stop", "known"), [(0, N, 1), (load(AT, 0), N, 0), (0, load(AT, 0), 0)])
def test_the_last_iteration_is_known_where_ends_are(monkeypatch, start, stop, known):
    monkeypatch.setattr(last_stores, "_fixed_loops", lambda _: ())
    item = SimpleNamespace(store=store(X, (load(AT, I),), ONE), before=None)
    assert len(last_stores._orders([loop(I, start, stop)], item)) == known


# ---------------------------------------------------------------- elements in variables


@pytest.mark.parametrize(("place", "known"), [(I, True), (load(AT, I), False)])
def test_first_values_are_read_at_places_that_no_element_says(place, known):
    read = load(X, place)
    around, carried = loop(I, 0, N, let(T, read)), SimpleNamespace(loads={0: [read]})
    names = SimpleNamespace(load=load)
    assert (carried_elements._first(around, carried, {0: S}, names) is not None) is known


# ---------------------------------------------------------------- lists in registers

LIST = Tensor("list", 8, ROW, sizes=(64,))
OTHER = Tensor("other", 9, ROW, sizes=(64,))
FILL = store(LIST, (I,), ONE)


@pytest.mark.parametrize(
    ("accesses", "literal"),
    [
        ((FILL,), True),
        ((FILL, let(S, load(LIST, M))), False),
        ((let(S, load(LIST, I)), store(LIST, (M,), ONE)), False),
        ((let(S, load(LIST, op("add", I, M))),), False),
        ((let(S, load(LIST, op("add", I, build.size(Y, 0)))),), False),
    ],
)
def test_items_in_registers_are_literals_wherever_they_are_accessed(accesses, literal):
    around = loop(I, 0, N, *accesses)
    assert register_lists._is_indexed_by(LIST, (around,), [around]) is literal


def test_lists_in_registers_are_of_a_length_that_stays_and_of_literal_items_all():
    local, other = (Local(tensor=tensor) for tensor in (LIST, OTHER))
    found = register_lists.literal_lists((local, loop(I, 0, M, FILL)), NONE)
    assert found
    assert not register_lists.literal_lists((local, let(M, 3), loop(I, 0, M, FILL)), NONE)
    beside = loop(J, 0, M, store(OTHER, (op("add", J, N),), ONE))
    assert not register_lists.literal_lists((local, other, loop(I, 0, M, FILL), beside), NONE)


# ---------------------------------------------------------------- rows of threads


def test_an_update_is_no_certain_access():
    plain = store(X, (I,), ONE)
    update = replace(plain, combine=OPERATORS["add"])
    accesses = [row_accesses._Access(node, node.indices, {}, certain=True) for node in (plain, update)]
    assert [row_accesses._are_certain([each]) for each in accesses] == [True, False]


@pytest.mark.parametrize(("changing", "goes_on"), [((), True), ((let(M, 1),), False)])
def test_steps_begin_at_what_stays(changing, goes_on):
    rows = Tensor("rows", 6, TensorType(FLOAT32, 2, True, 1))
    node = load(rows, I, op("add", K, M))
    around = loop(K, 0, N, let(S, node), *changing)
    access = row_accesses._Access(node, node.indices, {}, certain=True)
    assert (row_accesses._steps([access], around, NONE | {I}, [I]) is not None) is goes_on


def test_the_newest_of_steps_backwards_is_the_first():
    rows = Tensor("rows", 6, TensorType(FLOAT32, 2, True, 1))
    nodes = [store(rows, (I, op("sub", 11, K)), ONE), load(rows, I, op("sub", 12, K))]
    accesses = [row_accesses._Access(node, node.indices, {}, certain=True) for node in nodes]
    found = row_accesses._steps(accesses, loop(K, 0, N, nodes[0], let(S, nodes[1])), NONE | {I}, [I])
    assert found is not None
    assert found.step == -1


# ---------------------------------------------------------------- slices of gradients


def test_what_branches_assign_in_any_case():
    one, other = let(S, ONE), let(T, ONE)
    assert slices._assigned_in_any_case(when(ASKED, (one, other), (one,))) == {S}
    assert slices._assigned_in_any_case(when(ASKED, (one,))) == NONE


def test_updates_that_combine_have_no_read_of_their_own():
    update = replace(store(X, (I,), ONE), combine=OPERATORS["add"])
    assert slices._apart([update], [update], None) == [update]
