"""What pieces of IR say of values, places and blocks: which are known, the same, apart, or may be read elsewhere."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from brickwork.analysis.expressions import Values
from brickwork.analysis.polynomial import number
from brickwork.analysis.verdicts import LoopVerdict
from brickwork.codegen.row_accesses import _are_given
from brickwork.codegen.tile_reads import _is_modular
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32, INT64
from brickwork.ir.nodes import Allocate, Apply, Continue, Launch, Local, Rebind, Return, Role, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import walk
from brickwork.transform import argument_checks, ascending, register_lists, residue_nests
from brickwork.transform.autodiff.separate_updates import SeparateUpdates
from brickwork.transform.canonical.choices import negated
from brickwork.transform.canonical.dead import _goes_along
from brickwork.transform.canonical.digits import ONE as WHOLE_NUMBER
from brickwork.transform.canonical.digits import _Digits, _Known, _Product, _radices, _Reader
from brickwork.transform.canonical.sizes import _is_size
from brickwork.transform.nest_parts import _is_assigned
from brickwork.transform.padded_rows import _does_nothing_without
from brickwork.transform.product_nests import _added, _partial
from brickwork.transform.rectangle import _after, _window
from brickwork.transform.recurrences import reads_as_before
from brickwork.transform.replicate_reductions import may_have_copies
from brickwork.transform.schedule.contract_loops import opened
from brickwork.transform.schedule.lockstep import _step
from brickwork.transform.strips import _Cutter
from support.written import extent, kernel, let, load, loop, op, store, symbol, when

ROW = TensorType(FLOAT32, 1, True, 0)
X, Y, AT = Tensor("x", 0, ROW), Tensor("y", 1, ROW), Tensor("at", 2, TensorType(INT64, 1, True, 0))
LIST = Tensor("list", 3, ROW, (8,))
I, J, K, M, N = (symbol(name) for name in "ijkmn")
S, T, ASKED = symbol("s", FLOAT32), symbol("t", FLOAT32), symbol("asked", BOOL)
ONE = build.constant(1.0, FLOAT32)
NOUGHT = build.constant(0.0, FLOAT32)


# ---------------------------------------------------------------- values


def test_powers_of_two_are_positive():
    values = object.__new__(Values)
    assert [each for each in (-8, -1, 0, 1, 2, 6, 7, 8) if values._is_power(number(each))] == [1, 2, 8]


def test_indices_are_given_of_variables_that_stay():
    assert _are_given((op("add", I, 1),), frozenset((J,)))
    assert not _are_given((op("add", J, 1),), frozenset((J,)))
    assert not _are_given((load(AT, I),), frozenset((J,)))


def test_parts_of_sums_and_products_alone_may_wrap():
    whole = op("neg", op("sub", op("add", I, extent(X)), op("mul", J, 3)))
    assert all(map(_is_modular, walk(whole)))
    for node in (op("floordiv", I, J), op("maximum", I, J), load(AT, I)):
        assert not _is_modular(node)


def test_conditions_of_arguments_have_an_answer_whatever_these_are():
    scalars = kernel((AT,), scalars=(N, M))
    assert argument_checks._is_of_arguments(op("lt", N, M), scalars)
    for each in (op("lt", N, I), op("lt", N, load(AT, 0)), op("lt", N, op("shift_left", 1, M))):
        assert not argument_checks._is_of_arguments(each, scalars)


def test_the_opposite_of_a_condition():
    assert negated(op("lt", I, J)) == op("ge", I, J)
    assert negated(op("logical_not", ASKED)) == build.read(ASKED)
    assert negated(op("logical_and", op("lt", I, J), ASKED)) == op(
        "logical_or", op("ge", I, J), op("logical_not", ASKED)
    )
    for each in (op("lt", S, T), op("isnan", S)):
        assert negated(each) == Apply(operator=OPERATORS["logical_not"], operands=(each,), dtype=BOOL)


def test_values_differ_by_an_index_that_is_added_once():
    assert _goes_along(op("sub", 5, op("add", I, J)), I)
    for each in (op("add", op("floordiv", I, 2), 3), op("add", I, I), op("add", J, 1), op("mul", I, 2)):
        assert not _goes_along(each, I)


def test_sizes_are_integers_of_sizes_and_arguments():
    given = frozenset((N, ASKED))
    assert _is_size(op("mul", extent(X), op("sub", N, 1)), given)
    for each in (op("lt", N, 3), build.read(ASKED), op("add", N, M), op("add", N, load(AT, 0))):
        assert not _is_size(each, given)


def test_a_variable_does_not_stand_for_what_it_was_before():
    assert _after(let(J, op("add", I, 1)), {I: build.read(M)}) == {I: build.read(M), J: op("add", M, 1)}
    for value in (op("add", I, 1), load(AT, J)):
        assert _after(let(I, value), {}) == {}


# ---------------------------------------------------------------- digits


KNOWN = _Known.of((), frozenset((I,)))


def test_digits_are_joined_by_the_product_alone_and_in_either_order():
    reader = _Reader(KNOWN)
    digits = {I: _Digits()}
    high, low = op("floordiv", I, N), op("mod", I, N)
    for whole in (op("add", op("mul", high, N), low), op("add", low, op("mul", N, high))):
        assert reader.digits(whole, digits) == _Digits()
    for other in (
        op("add", op("add", high, N), low),
        op("add", op("mul", high, M), low),
        op("add", op("mul", M, N), low),
    ):
        assert reader.digits(other, digits) is None


def test_no_digit_has_a_place_of_0():
    assert KNOWN.product(op("mul", N, 3)) == _Product(3, frozenset(((build.read(N), 1),)))
    for each in (build.integer(0), build.integer(-2), op("mul", I, 3), load(AT, 0)):
        assert KNOWN.product(each) is None


def test_places_that_are_no_digits_are_beyond_all_digits():
    def places(*numbers):
        return [(place.number, radix.number) for place, radix in _radices(map(_Product, numbers), _Product(24))]

    assert places(4, 16) == [(1, 4), (4, 6)]
    assert places(4, 16, 32) == [(1, 4), (4, 6)]
    assert places(4, 9, 16) == []
    assert _radices((), WHOLE_NUMBER) == []


# ---------------------------------------------------------------- blocks


def test_a_variable_is_assigned_whatever_is_chosen():
    give, none = (let(S, ONE),), (let(T, ONE),)
    for then in (give, none):
        for otherwise in (give, none):
            block = (let(T, ONE), when(op("lt", I, 3), then, otherwise))
            assert _is_assigned(S, block) is (then == otherwise == give)
    assert not _is_assigned(S, (loop(I, 0, N, let(S, ONE)),))


def test_what_does_nothing_without_a_loop():
    inner = loop(I, M, N, let(S, ONE))
    runs = op("lt", M, N)
    for each in (loop(J, M, N), let(S, op("add", S, ONE)), when(runs, (store(X, (0,), ONE),))):
        assert _does_nothing_without(inner, each)
    for each in (
        loop(J, M, K),
        loop(J, K, N),
        let(S, load(X, 0)),
        when(op("lt", N, M), (store(X, (0,), ONE),)),
        when(runs, (), (store(X, (0,), ONE),)),
        store(X, (0,), ONE),
    ):
        assert not _does_nothing_without(inner, each)


def test_what_is_stored_is_not_read_by_what_comes_ahead():
    adds = replace(store(X, (I,), ONE), combine=OPERATORS["add"])
    for nest, read, same in (
        (loop(I, 0, N, store(X, (I,), ONE)), X, True),
        (loop(I, 0, N, adds), X, False),
        (loop(I, 0, N, adds), Y, True),
    ):
        assert reads_as_before((let(S, load(read, I)),), nest) is same


def test_copies_are_added_to_and_not_read():
    adds = replace(store(X, (I,), ONE), combine=OPERATORS["add"])
    assert may_have_copies(X, (adds,))
    assert not may_have_copies(X, (adds, store(X, (I,), ONE)))
    assert not may_have_copies(X, (adds, let(S, load(X, I))))
    assert not may_have_copies(LIST, (replace(adds, tensor=LIST),))


def test_what_a_choice_asks_is_not_stored_in_it():
    asked = op("lt", load(X, 0), ONE)
    for inside, told in ((Y, True), (X, False)):
        assert (_step(when(asked, (store(inside, (0,), ONE),)), frozenset()) is not None) is told
        assert (_step(when(asked, (), (store(inside, (0,), ONE),)), frozenset()) is not None) is told


def test_a_sum_in_a_branch_is_opened_where_it_leaves_what_is_asked():
    total = loop(K, 0, N, let(S, op("add", S, load(X, K))))
    for asked, before, fits in (
        (op("lt", M, 3), (let(T, ONE), let(S, NOUGHT)), True),
        (op("lt", M, 3), (), True),
        (op("lt", T, ONE), (let(T, ONE), let(S, NOUGHT)), False),
        (op("lt", S, ONE), (), False),
    ):
        body = (when(asked, (*before, total, store(Y, (I,), S))),)
        assert (opened(body) != body) is fits


# ---------------------------------------------------------------- what a nest adds


def test_an_element_is_added_to_by_itself():
    adds = store(X, (I,), op("add", load(X, I), ONE))
    assert _added(adds, {}) is not None
    for other in (
        replace(adds, combine=OPERATORS["add"]),
        store(X, (I,), op("add", load(X, J), ONE)),
        store(X, (I,), op("add", load(X, I), load(X, J))),
    ):
        assert _added(other, {}) is None


def test_terms_of_a_sum_are_added_one_by_one_where_that_is_all():
    def parts(added=S, into=S, asked=None, stop=N, term=load(Y, K)):
        step = let(into, op("add", into, term))
        total = loop(K, 0, stop, step if asked is None else when(asked, (step,)))
        return _partial((let(S, NOUGHT), total, store(X, (I,), op("add", load(X, I), added))), {})

    assert parts() is not None
    assert parts(asked=op("lt", K, 3)) is not None
    assert parts(added=op("mul", S, build.constant(2.0, FLOAT32))) is None
    assert parts(into=T) is None
    assert parts(asked=op("lt", load(AT, K), 3)) is None
    assert parts(stop=load(AT, 0)) is None
    assert parts(term=load(X, K)) is None


# ---------------------------------------------------------------- what programs and nests keep


def test_tensors_are_unread_that_nothing_behind_a_launch_names():
    made = Allocate(tensor=X, sizes=(build.integer(4),))
    launch = Launch(kernel=kernel((X,), store(X, (0,), ONE)))

    def unread(*later):
        return ascending._unread(SimpleNamespace(body=(made, launch, *later)), launch)

    assert unread(Return(tensors=(Y,))) == {X}
    for later in (Return(tensors=(X,)), let(I, extent(X)), let(S, load(X, 0))):
        assert unread(later) == frozenset()
    assert ascending._unread(SimpleNamespace(body=(made,)), launch) == frozenset()
    assert unread(Rebind(targets=(X,), sources=(Y,)), Return(tensors=(Y,))) == frozenset()


def test_variables_stand_in_the_bounds_of_a_row_that_nothing_else_reads():
    row = loop(K, I, J, store(X, (K,), ONE))
    assert ascending._stand_in_bounds((let(I, load(AT, N)),), row)
    assert not ascending._stand_in_bounds((let(I, load(AT, N)), let(J, op("add", I, 1))), row)
    assert not ascending._stand_in_bounds((let(I, load(AT, N)), store(Y, (0,), ONE)), row)
    assert not ascending._stand_in_bounds((let(I, load(AT, N)),), loop(K, I, J, store(X, (I,), ONE)))


def test_reads_that_are_not_known_may_be_of_the_same_element():
    updates = object.__new__(SeparateUpdates)
    one = SimpleNamespace()
    object.__setattr__(updates, "accesses", {1: one, 2: one})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SeparateUpdates, "is_disjoint", lambda *_: True)
        assert [updates.are_others([first], [second], 0) for first, second in ((1, 2), (1, 3), (3, 1))] == [
            True, False, False
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("independent", "reductions", "parts"),
    [(True, (), True), (False, (), True), (True, (S,), True), (True, (), False)],
)
def test_loops_in_one_another_may_be_reordered_if_each_is_free(monkeypatch, independent, reductions, parts):
    monkeypatch.setattr(residue_nests, "may_have_parts", lambda _: parts)
    free, inner = LoopVerdict(independent=True), LoopVerdict(independent=independent, reductions=reductions)
    analysis = SimpleNamespace(loops={I: free, J: inner})
    nest = loop(I, 0, N, loop(J, 0, N))
    assert residue_nests.may_be_reordered((nest, nest.body[0]), analysis) is (independent and not reductions and parts)


FREE = {"independent": True, "reductions": (), "updates": ()}
CLIPPED = op("maximum", I, 0), op("minimum", op("add", I, 3), N)


@pytest.mark.parametrize(
    ("verdict", "ends", "body", "known"),
    [
        ({}, CLIPPED, (store(X, (J,), ONE),), True),
        ({"independent": False}, CLIPPED, (store(X, (J,), ONE),), False),
        ({"reductions": (S,)}, CLIPPED, (store(X, (J,), ONE),), False),
        ({"updates": (X,)}, CLIPPED, (store(X, (J,), ONE),), False),
        ({}, CLIPPED, (Continue(),), False),
        ({}, CLIPPED, (store(X, (J,), ONE), let(I, 3)), False),
        ({}, (op("maximum", load(AT, I), 0), CLIPPED[1]), (store(X, (J,), ONE),), False),
        ({}, (build.integer(0), build.read(N)), (store(X, (J,), ONE),), False),
    ],
)
def test_windows_are_known_where_their_iterations_are_free(verdict, ends, body, known):
    window = loop(J, *ends, *body)
    analysis = SimpleNamespace(loops={J: SimpleNamespace(**FREE | verdict)})
    assert (_window(window, analysis, frozenset((I,)), {}) is not window) is known


# ---------------------------------------------------------------- short lists and loops


def test_loops_are_short_that_run_to_a_known_end():
    short = loop(K, 0, 4, let(S, ONE))
    assert _Cutter.is_short(None, short, ())
    assert _Cutter.is_short(None, short, (loop(J, 0, 2, short),))
    for each, around in (
        (replace(short, claimed=True), ()),
        (replace(short, body=(Continue(),)), ()),
        (replace(short, stop=build.read(N)), ()),
        (short, (loop(J, 0, N, short),)),
        (replace(short, stop=build.integer(1 << 20)), ()),
    ):
        assert not _Cutter.is_short(None, each, around)


def test_lists_are_in_registers_where_loops_over_them_are_written_out():
    def versions(*body, stop=N, indices=()):
        return register_lists.literal_lists((Local(tensor=own), loop(K, 0, stop, *body)), frozenset(indices))

    own = replace(LIST, sizes=(64,))
    item = store(own, (K,), op("add", load(own, K), ONE))
    most = versions(item)
    assert {each.version for each in most} == {
        register_lists.list_version(own, items, exact=exact) for items, exact in register_lists.LENGTHS
    }
    small = replace(own, sizes=(register_lists.FEW,))
    few = store(small, (K,), op("add", load(small, K), ONE))
    assert len(register_lists.literal_lists((Local(tensor=small), loop(K, 0, N, few)), frozenset())) == 2
    assert versions(item, stop=4) == []
    assert versions(item, indices=(N,)) == []
    assert versions(item, stop=load(AT, 0)) == []
    assert versions(item, store(own, (M,), ONE)) == []
    assert versions(item, store(own, (load(AT, K),), ONE)) == []
    both = loop(J, 0, 3, loop(K, 1, N, item), loop(K, 0, N, item))
    for each in (both, loop(K, 1, N, item), replace(loop(K, 0, N, item), role=Role.THREAD)):
        assert register_lists.literal_lists((Local(tensor=own), each), frozenset()) == []
    given = Local(tensor=own, values=(ONE,) * 64)
    assert register_lists.literal_lists((given, loop(K, 0, N, item)), frozenset()) == []
