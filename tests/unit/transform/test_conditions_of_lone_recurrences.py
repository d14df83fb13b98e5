"""A loop that passes on what is linear in itself may be cut by itself; each condition of that is asked alone here."""

from dataclasses import replace

import pytest

from brickwork.ir.dtypes import BOOL, FLOAT32, INT64
from brickwork.ir.nodes import Break, Draw, Local, Random, Rebind, Symbol, Tensor, TensorType
from brickwork.transform.lone_recurrences import may_be_cut
from support.written import check, let, load, loop, op, repeat, store, symbol, when, whole

X, Y, Z = (Tensor(name, number, TensorType(INT64, 1)) for number, name in enumerate("xyz"))
LIST = Tensor("w", 3, TensorType(INT64, 1), sizes=(4,))
T, I, N, S, R, K = map(symbol, "tinsrk")
P, F = Symbol("p", 90, BOOL), Symbol("f", 91, FLOAT32)
NONE = frozenset[Symbol]()
STEP = let(S, op("add", op("mul", S, 3), load(X, T)))
TOLD = store(Y, (T,), S)
DRAWN = Random(
    draw=Draw.INTEGER, key=whole(N), counter=whole(T), extra=whole(0), site=0, bounds=(whole(0), whole(9)), dtype=INT64
)


def over(*body):
    return loop(T, 0, N, *body)


@pytest.mark.parametrize(
    ("cut", "after"),
    [
        (over(STEP, TOLD), {S}),
        (over(STEP, let(R, S), store(Y, (T,), R)), NONE),
        (over(STEP, let(K, op("add", K, 1)), TOLD), {S, K}),
        (over(let(S, op("sub", load(X, T), S)), store(X, (T,), S)), NONE),
        (over(when(op("lt", T, 5), (let(S, op("sub", load(X, T), S)), store(X, (T,), S)))), NONE),
        (over(store(X, (T,), 3), STEP, TOLD), None),
        (over(when(op("lt", T, 5), (store(X, (T,), 3), STEP)), TOLD), None),
        (over(when(op("lt", T, 5), (store(X, (T,), 3),)), STEP, TOLD), None),
    ],
)
def test_what_may_be_cut(cut, after):
    assert may_be_cut(cut, frozenset(after or ())) is (after is not None)


@pytest.mark.parametrize(
    "body",
    [
        (STEP, loop(I, 0, 3, store(Y, (I,), S))),
        (STEP, repeat(op("lt", S, 0), store(Z, (0,), S)), TOLD),
        (STEP, TOLD, when(op("lt", load(X, T), 0), (Break(),))),
        (STEP, TOLD, check(op("lt", T, 9))),
        (STEP, TOLD, Rebind(targets=(Y, Z), sources=(Z, Y))),
        (STEP, store(Y, (T,), DRAWN)),
        (STEP, Local(tensor=LIST), TOLD),
        (let(S, op("add", S, load(X, T))),),
        (let(S, op("mul", S, S)), TOLD),
    ],
)
def test_what_stays(body):
    assert not may_be_cut(over(*body), NONE)


def test_what_is_left_for_later_is_passed_on():
    assert not may_be_cut(over(STEP, let(R, S), TOLD), frozenset((R,)))


def test_states_are_numbers():
    turned = over(STEP, let(P, op("logical_not", P)), TOLD)
    assert not may_be_cut(turned, NONE)
    assert may_be_cut(replace(turned, body=(STEP, TOLD)), NONE)
