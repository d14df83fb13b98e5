"""Variables that only carry another one through a statement give way to it."""

# pyright: basic
from __future__ import annotations

from dataclasses import replace

import pytest

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32, INT64
from brickwork.ir.nodes import Assign, Break, For, If, Symbol
from brickwork.transform.canonical.carried_copies import without_carried_copies

S, T, U, V = (Symbol(name, number, FLOAT32) for number, name in enumerate("stuv"))
WHOLE = Symbol("whole", 9, INT64)
I, J, K = (Symbol(name, number, INT64) for number, name in enumerate("ijk", start=4))
FLAG = Symbol("flag", 7, BOOL)


def copied(symbol, source):
    return Assign(symbol=symbol, value=build.read(source))


def added(symbol):
    return Assign(symbol=symbol, value=build.add(build.read(symbol), build.constant(1.0, FLOAT32)))


def loop(index, *body):
    return For(index=index, start=build.integer(0), stop=build.integer(5), body=body)


def test_sums_over_several_loops_are_one_variables():
    inner = loop(J, copied(U, T), loop(K, added(U)), copied(T, U))
    assert without_carried_copies((copied(T, S), inner, copied(S, T))) == (loop(J, loop(K, added(S))),)
    around = loop(I, copied(T, S), inner, copied(S, T))
    assert without_carried_copies((around,)) == (loop(I, loop(J, loop(K, added(S)))),)


def test_several_statements_may_stand_between():
    block = (copied(T, S), loop(J, added(T)), added(V), added(T), copied(S, T))
    assert without_carried_copies(block) == (loop(J, added(S)), added(V), added(S))


def test_a_variable_may_carry_at_several_places():
    carried = (copied(T, S), loop(J, added(T)), copied(S, T))
    choice = If(condition=build.read(FLAG), then=carried, otherwise=carried)
    assert without_carried_copies((choice,)) == (
        replace(choice, then=(loop(J, added(S)),), otherwise=(loop(J, added(S)),)),
    )
    besides = (replace(choice, otherwise=(copied(V, T),)),)
    assert without_carried_copies(besides) == besides


@pytest.mark.parametrize(
    "block",
    [
        (copied(T, S), loop(J, copied(T, U), added(T), copied(U, T)), copied(S, T)),
        (copied(T, S), loop(J, added(T), copied(V, S)), copied(S, T)),
        (copied(T, S), loop(J, added(T)), added(S), copied(S, T)),
        (copied(T, S), loop(J, added(T)), copied(S, V), copied(S, T)),
        (copied(T, S), loop(J, added(T)), copied(S, T), copied(V, T)),
        (copied(V, T), copied(T, S), loop(J, added(T)), copied(S, T)),
        (copied(T, S), loop(J, added(T)), copied(U, T)),
        (copied(T, S), loop(J, added(T)), copied(S, V)),
        (copied(T, S), added(T)),
    ],
)
def test_a_variable_with_another_use_stays(block):
    assert without_carried_copies(block) == block


def test_what_may_leave_between_keeps_the_variable():
    ends = If(condition=build.read(FLAG), then=(Break(),))
    block = (loop(I, copied(T, S), added(T), ends, copied(S, T)),)
    assert without_carried_copies(block) == block
    inside = (loop(I, copied(T, S), loop(J, added(T), ends), copied(S, T)),)
    assert without_carried_copies(inside) == (loop(I, loop(J, added(S), ends)),)


def test_a_copy_of_another_type_stays():
    block = (copied(WHOLE, S), added(V), copied(S, WHOLE))
    assert without_carried_copies(block) == block
