"""Which loads a turn may make before its steps."""

from types import SimpleNamespace

import pytest

from brickwork.codegen.early_reads import early_reads
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import (
    Assign,
    Break,
    Check,
    Draw,
    Failure,
    FailureKind,
    For,
    If,
    Load,
    Random,
    Rebind,
    Store,
    Symbol,
    Tensor,
    TensorType,
    While,
)

X, Y = (Tensor(name, n, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0)) for n, name in enumerate("xy"))
PLACES = Tensor("places", 2, TensorType(INT64, 1, contiguous=True, unit_axis=0))
OWN = Tensor("own", 3, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0), sizes=(4,))
T, S, K = Symbol("t", 1, INT64), Symbol("s", 2, FLOAT32), Symbol("k", 3, INT64)
STATE = SimpleNamespace(
    target=SimpleNamespace(grid=True), width=1, mask=None, rows=(), writer=SimpleNamespace(alloca=str)
)


def at(tensor, index, access=0):
    return Load(tensor=tensor, indices=(index,), access=access, dtype=FLOAT32 if tensor is not PLACES else INT64)


def divided(load):
    return Assign(symbol=S, value=build.apply("truediv", build.read(S), load))


def early(*body):
    """The loads that a loop with this body makes early."""
    loop = For(index=T, start=build.integer(0), stop=build.size(X, 0), body=body, unrolled=2)
    found = early_reads(STATE, loop)
    return set() if found is None else set(found.loads)


DIRECT = at(X, build.read(T))


def test_what_a_step_reads_in_any_case_is_early():
    assert early(divided(DIRECT)) == {DIRECT}
    back = Assign(symbol=K, value=build.sub(build.size(X, 0), build.read(T)))
    assert early(back, divided(at(X, build.read(K)))) == {at(X, build.read(K))}


def test_a_place_is_known_where_it_is_assigned_before_it_is_read():
    placed = Assign(symbol=K, value=build.add(build.read(T), build.integer(1)))
    there = divided(at(X, build.read(K)))
    assert early(placed, there) == {at(X, build.read(K))}
    assert early(there, placed) == set()
    assert early(there, placed, there) == set()
    assert early(divided(DIRECT), there, placed) == {DIRECT}
    assert early(placed, there, placed) == set()
    placed_by_data = Assign(symbol=K, value=at(PLACES, build.read(T)))
    assert early(placed_by_data, there) == {at(PLACES, build.read(T))}


def test_the_same_element_at_two_places_is_read_once():
    again = at(X, build.read(T), access=1)
    loop = For(
        index=T, start=build.integer(0), stop=build.size(X, 0), body=(divided(DIRECT), divided(again)), unrolled=2
    )
    found = early_reads(STATE, loop)
    assert found is not None
    assert dict(found.loads) == {DIRECT: (DIRECT, again)}


DRAWN = Random(
    draw=Draw.INTEGER,
    key=build.integer(1),
    counter=build.integer(2),
    extra=build.integer(3),
    site=0,
    bounds=(build.integer(0), build.integer(4)),
    dtype=INT64,
)
STORED = Store(tensor=X, indices=(build.read(T),), value=build.read(S), access=5)
BELOW = build.apply("lt", build.read(S), build.read(S))
CHANGED = Assign(symbol=K, value=build.add(build.read(K), build.integer(1)))


@pytest.mark.parametrize(
    "body",
    [
        (divided(DIRECT), STORED),
        (divided(at(OWN, build.read(T))),),
        (divided(at(X, at(PLACES, build.read(T)))), If(condition=build.integer(1), then=())),
        (divided(at(X, DRAWN)),),
        (CHANGED, divided(at(X, build.read(K)))),
        (divided(DIRECT), If(condition=BELOW, then=(Break(),))),
        (
            Check(
                condition=build.apply("gt", build.read(T), build.integer(0)),
                failure=Failure(FailureKind.INDEX, ""),
                values=(),
            ),
            divided(DIRECT),
        ),
        (While(prelude=(), condition=BELOW, body=()), divided(DIRECT)),
        (divided(DIRECT), Rebind(targets=(X,), sources=(Y,))),
    ],
)
def test_what_may_be_another_element_or_not_be_read_is_not(body):
    assert not {load for load in early(*body) if load.tensor is not PLACES}


def test_steps_without_a_branch_are_left_alone():
    assert not early(Assign(symbol=S, value=build.add(build.read(S), DIRECT)))
