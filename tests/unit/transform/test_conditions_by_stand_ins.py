"""What analyses and passes conclude from what others say, for which stand-ins speak here."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from brickwork.analysis import extremes
from brickwork.analysis.inverse import _Turn
from brickwork.analysis.polyhedral_model import Floor
from brickwork.analysis.polynomial import IndexAtom, UnknownAtom, number, of_atom
from brickwork.analysis.verdicts import Bound, BoundVerdict
from brickwork.codegen import memory
from brickwork.codegen.wide_loads import begins_at_chunk
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Role, Tensor, TensorType
from brickwork.transform import privatise, promote, residues, separate_sums, unswitch
from brickwork.transform.host_scalars import _is_of_scalars
from brickwork.transform.interior import _may_be_cut
from brickwork.transform.privatise import OwnerFinder
from brickwork.transform.residues import SumNest
from brickwork.transform.schedule.lockstep import _step
from brickwork.transform.strips import _Cutter
from brickwork.transform.sums import Sum
from support.written import let, load, loop, op, store, symbol, when

ROW = TensorType(FLOAT32, 1, True, 0)
X, Y = Tensor("x", 0, ROW), Tensor("y", 1, ROW)
I, J, K, M, N = (symbol(name) for name in "ijkmn")
S = symbol("s", FLOAT32)
ONE = build.constant(1.0, FLOAT32)


# ---------------------------------------------------------------- extremes of quotients


@pytest.mark.parametrize("changed", [{}, {"lowest": None}, {"room": None}, {"values": False}, {"natural": False}])
def test_a_guard_is_made_of_what_can_be_computed(monkeypatch, changed):
    said = {"lowest": number(0), "room": number(3), "values": True, "natural": True} | changed
    answers = iter([said["lowest"], said["room"]])

    def least(self, goal):
        if said["values"]:
            self.values[UnknownAtom(-1, 0)] = build.read(N)
        return next(answers)

    monkeypatch.setattr(extremes._Extremes, "least", least)
    monkeypatch.setattr(extremes._Extremes, "is_natural", lambda *_: said["natural"])
    model, axis = SimpleNamespace(origins={}), SimpleNamespace(value=number(1), size=number(9))
    found = extremes.guard_of_extremes(model, SimpleNamespace(loops=()), axis, lambda _: True)
    assert (found is None) is bool(changed)


DIVIDED = of_atom(IndexAtom(I, 0, 0))
POSITIVE, NEGATIVE, UNSURE = number(3), number(-3), number(0)


@pytest.mark.parametrize(
    ("factor", "remainder", "changed", "least"),
    [
        (POSITIVE, False, {}, number(0)),
        (POSITIVE, False, {"divisor": None}, None),
        (POSITIVE, False, {"dividend": False}, None),
        (UNSURE, False, {}, None),
        (NEGATIVE, True, {}, number(6)),
        (NEGATIVE, True, {"fixed": None}, None),
        (NEGATIVE, False, {}, number(5)),
        (NEGATIVE, False, {"most": None}, None),
        (NEGATIVE, False, {"most": number(1 << 62)}, None),
    ],
)
def test_the_least_quotient_has_a_known_divisor_and_a_factor_of_one_sign(
    monkeypatch, factor, remainder, changed, least
):
    said = {"divisor": build.read(N), "dividend": True, "fixed": number(7), "most": number(-5)} | changed
    monkeypatch.setattr(extremes._Extremes, "divisor", lambda *_: said["divisor"])
    monkeypatch.setattr(extremes._Extremes, "fixed", lambda *_: said["fixed"])
    monkeypatch.setattr(extremes._Extremes, "computed", lambda _, __, dividend, ___: dividend)
    monkeypatch.setattr(extremes, "lower_corner", lambda *_: said["most"])

    def is_natural(polynomial):
        return said["dividend"] if polynomial == DIVIDED else polynomial == POSITIVE

    atom = UnknownAtom(1, 0)
    model = SimpleNamespace(origins={atom: Floor(DIVIDED, number(7), remainder)}, is_natural=is_natural)
    assert extremes._Extremes(model, ()).extreme(atom, factor) == least


# ---------------------------------------------------------------- what an equation says


@pytest.mark.parametrize("missing", [None, "unit", "free", "natural", "index"])
def test_an_equation_says_what_the_index_of_a_loop_is(monkeypatch, missing):
    monkeypatch.setattr(_Turn, "is_unit", lambda *_: missing != "unit", raising=False)
    monkeypatch.setattr(_Turn, "bounds_fixed", lambda *_: missing == "free", raising=False)
    inside = SimpleNamespace(is_natural=lambda _: missing != "natural")
    monkeypatch.setattr(_Turn, "inside", inside, raising=False)
    atom = UnknownAtom(1, 0) if missing == "index" else IndexAtom(I, 0, 0)
    turn = object.__new__(_Turn)
    assert turn.is_solved_by(SimpleNamespace(polynomial=of_atom(atom)), atom) is (missing is None)


# ---------------------------------------------------------------- what the host knows, where memory begins


def test_the_host_computes_what_never_fails():
    scalars = frozenset((M, N, S))
    quotient = op("floordiv", M, N)
    halves = op("floordiv", S, build.constant(2.0, FLOAT32))
    for each in (op("mul", M, N), op("add", halves, S)):
        assert _is_of_scalars(each, scalars)
    for each in (quotient, op("add", build.cast(quotient, FLOAT32), halves), op("mul", I, N), load(X, 0)):
        assert not _is_of_scalars(each, scalars)


@pytest.mark.parametrize(("aligned", "part", "bytes_"), [(True, 0, 8), (True, 1, 4), (False, 0, 4)])
def test_the_real_part_of_an_aligned_pair_lies_at_a_multiple_of_the_pair(monkeypatch, aligned, part, bytes_):
    monkeypatch.setattr(memory.pair_access, "part_at", lambda *_: part)
    state = SimpleNamespace(kernel=SimpleNamespace(aligned=frozenset((X,)) if aligned else frozenset()))
    assert memory._least_alignment(state, X, ()) == bytes_


def test_a_tensor_begins_at_a_chunk_where_it_lies_in_memory():
    def begins(tensor, rows=(), aligned=(X,)):
        return begins_at_chunk(SimpleNamespace(rows={*rows}, kernel=SimpleNamespace(aligned={*aligned})), tensor)

    assert begins(X)
    assert not begins(X, rows=(X,))
    assert not begins(X, aligned=())
    assert not begins(
        replace(X, type=TensorType(FLOAT32, 1, False, 0)), aligned=(replace(X, type=TensorType(FLOAT32, 1, False, 0)),)
    )


def test_loops_of_lanes_are_cut_between_lanes():
    plain = loop(K, 0, N, store(X, (K,), ONE))
    assert _may_be_cut(plain)
    assert _may_be_cut(replace(plain, role=Role.VECTOR, width=4))
    assert not _may_be_cut(replace(plain, role=Role.VECTOR, width=1))
    assert not _may_be_cut(replace(plain, role=Role.PARALLEL))


@pytest.mark.parametrize("role", [Role.THREAD, Role.WARP])
def test_threads_and_warps_do_not_pass_together(role):
    way = _step(replace(loop(K, 0, N, store(X, (K,), ONE)), role=role), frozenset())
    assert way is not None
    assert not way.passes


# ---------------------------------------------------------------- what is reached, written and known


def test_conditions_are_known_before_a_block_that_read_nothing_of_it():
    read = let(S, load(Y, I))
    numbers = frozenset((read.value.access,))
    asked = op("lt", N, 3)
    assert promote.reached((when(asked, (read,)),), numbers) == (asked,)
    for block in (
        (when(op("lt", load(X, 0), ONE), (read,)),),
        (let(N, 3), when(asked, (read,))),
        (loop(K, 0, load(Tensor("at", 2, TensorType(INT64, 1, True, 0)), 0), read),),
    ):
        assert promote.reached(block, numbers) is None


@pytest.mark.parametrize(
    ("bound", "guard", "wrong"),
    [(Bound.PROVED, (), False), (Bound.CHECKED, (), True), (Bound.GUARDED, (build.read(N),), True)],
)
def test_elements_that_may_not_be_there_stay_in_their_loops(monkeypatch, bound, guard, wrong):
    monkeypatch.setattr(promote, "analyse", lambda kernel: kernel.analysis)
    monkeypatch.setattr(promote, "find_updates", lambda _, analysis: analysis)
    nest = (loop(I, 0, N, let(S, ONE)),)
    loops = {I: SimpleNamespace(independent=True)}
    before, after = (
        SimpleNamespace(body=nest, analysis=SimpleNamespace(bounds={(7, 0): verdict}, loops=loops))
        for verdict in (BoundVerdict(Bound.PROVED), BoundVerdict(bound, guard))
    )
    taken = {(I, 1): frozenset((7,))}
    assert promote._wrong(after, taken, before) == (frozenset(taken) if wrong else frozenset())


def test_a_condition_computed_ahead_is_not_what_it_says_of_the_new_value():
    more, put = let(I, op("add", I, 1)), store(X, (I,), ONE)
    assert unswitch._guarded((let(J, op("add", I, 1)), when(op("lt", J, 3), (put,)))) is not None
    assert unswitch._guarded((more, when(op("lt", I, 3), (store(X, (0,), ONE),)))) is None
    assert unswitch._guarded((more, when(op("lt", N, 3), (put,)))) is None


def test_a_condition_that_stays_is_asked_once():
    branch = when(op("lt", N, 3), (store(X, (K,), ONE),))
    inner = loop(K, 0, M, branch)
    assert unswitch._lifted(inner, branch, frozenset()) == replace(branch, then=(replace(inner, body=branch.then),))


@pytest.mark.parametrize("moving", [None, "start", "stop", "axis"])
def test_stores_of_iterations_before_are_all_alike(monkeypatch, moving):
    stays, moves = (IndexAtom(each, place, place) for place, each in enumerate((I, J)))
    monkeypatch.setattr(privatise, "_is_fixed", lambda atom, _: atom == stays)
    ends = {name: of_atom(moves if moving == name else stays) for name in ("start", "stop", "axis")}
    outer, inner = (
        SimpleNamespace(atom=IndexAtom(each, 5 + place, place), start=ends["start"], stop=ends["stop"])
        for place, each in enumerate((K, M))
    )
    access = SimpleNamespace(axes=(SimpleNamespace(value=ends["axis"]),))
    written = privatise._Written(access, (outer, inner))
    monkeypatch.setattr(OwnerFinder, "writes", lambda *_: iter((written,)))
    found = [*OwnerFinder.earlier(object.__new__(OwnerFinder), None, X)]
    assert found == ([replace(written, earlier=True)] if moving is None else [])


def test_a_value_is_the_same_that_is_known_and_of_nothing_inside():
    def same(value, acts=False, known=True):
        cutter = SimpleNamespace(acts=acts, is_known=lambda _: known, inside=frozenset((I,)))
        return _Cutter.is_same(cutter, value)

    assert same(build.read(N))
    assert not same(build.read(I))
    assert not same(build.read(N), known=False)
    assert not same(build.read(N), acts=True)


@pytest.mark.parametrize(
    ("start", "stop", "block", "needless"),
    [
        (0, N, let(S, load(Y, I)), (J,)),
        (0, N, let(S, load(Y, J)), (I,)),
        (I, N, let(S, load(Y, 0)), ()),
        (0, I, let(S, load(Y, 0)), ()),
        (0, N, let(S, load(Y, M)), ()),
        (0, N, let(S, load(X, 0)), ()),
        (0, N, store(Y, (0,), ONE), ()),
    ],
)
def test_a_block_goes_with_the_loops_that_it_and_their_bounds_read(start, stop, block, needless):
    known = SimpleNamespace(fixed=frozenset((N,)))
    cutter = SimpleNamespace(kept=[], changed=frozenset((X,)), known=known)
    place = SimpleNamespace(loops=(loop(I, 0, N), loop(J, start, stop)))
    assert separate_sums._Cutter.needless(cutter, (block,), place) == {*needless}


# ---------------------------------------------------------------- remainders


def sums(band=(0, N), fixed=(N,), limits=(I, K, N), masks=()):
    known = dict.fromkeys((*fixed,), 10)
    nest = loop(I, *band), loop(K, 0, 4)
    return SumNest(
        known, known | dict.fromkeys(limits, 10), nest[:1], (), nest[1:], S, ONE, masks, (store(X, (I,), S),)
    )


def test_a_loop_is_two_where_its_ends_and_those_of_the_sum_have_limits(monkeypatch):
    monkeypatch.setattr(residues, "_asked", lambda *_: (Sum(), 2))
    names = residues.Names(*(iter(range(900, 999)) for _ in range(3)))
    assert residues.split(sums(), names) is not None
    assert residues.split(sums(band=(N, 9)), names) is not None
    for nest in (sums(fixed=()), sums(band=(N, 9), fixed=()), sums(limits=(I, N))):
        assert residues.split(nest, names) is None


def test_a_condition_goes_where_all_loops_inside_begin_without_it():
    def remainder(rest=1, limits=(I, J, K), inner=(loop(J, 0, 3),)):
        asked = op("eq", op("mod", op("add", I, K), 2), rest)
        nest = sums(limits=limits)
        return residues._remainder(nest, asked, nest.sums[0], inner)

    assert remainder() == (Sum(((build.read(I), 1),)), 1, 2, 1)
    assert remainder(rest=2) is None
    assert remainder(limits=(I, K)) is None
    assert remainder(limits=(I, J)) is None
    assert remainder(inner=(loop(I, 0, 3),)) is None
