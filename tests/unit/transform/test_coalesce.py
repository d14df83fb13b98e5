"""Temporaries that only pass a value on give way to the variable that takes it, in branches too."""

# pyright: basic
from __future__ import annotations

import pytest

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Assign, Break, Continue, If, Symbol
from brickwork.transform.canonical.coalesce import coalesce

V, S, T = (Symbol(name, number, INT64) for number, name in enumerate("vst"))
U = Symbol("u", 4, INT64)
FLAG = Symbol("flag", 3, BOOL)


def assign(symbol, value):
    return Assign(symbol=symbol, value=build.integer(value) if isinstance(value, int) else build.read(value))


@pytest.mark.parametrize(
    "between",
    [
        assign(S, 5),
        assign(T, S),
        If(condition=build.read(FLAG), then=(Break(),)),
        If(condition=build.read(FLAG), then=(), otherwise=(Continue(),)),
    ],
)
def test_a_temporary_stays_where_its_variable_is_needed_before(between):
    block = (assign(V, 1), between, assign(S, V))
    assert coalesce(block) == block
    assert coalesce((assign(V, 1), assign(T, 2), assign(S, V))) == (assign(S, 1), assign(T, 2))


def branch(then, otherwise):
    return If(condition=build.read(FLAG), then=then, otherwise=otherwise)


def test_a_temporary_of_two_branches_gives_way():
    chosen = branch((assign(V, 1), assign(T, 2)), (assign(V, S),))
    assert coalesce((chosen, assign(S, V))) == (branch((assign(S, 1), assign(T, 2)), ()),)
    both = branch((assign(V, S),), (assign(T, 2), assign(V, U)))
    assert coalesce((both, assign(T, 7), assign(S, V))) == (
        branch((), (assign(T, 2), assign(S, U))),
        assign(T, 7),
    )


@pytest.mark.parametrize(
    "block",
    [
        (branch((assign(V, 1), assign(T, S)), (assign(V, S),)), assign(S, V)),
        (branch((assign(V, 1),), (assign(V, S), assign(S, 4))), assign(S, V)),
        (branch((assign(V, 1),), (assign(V, S), Break())), assign(S, V)),
        (branch((assign(V, 1),), (assign(V, S),)), assign(T, S), assign(S, V)),
        (branch((assign(V, 1),), (assign(V, S),)), assign(S, 3), assign(S, V)),
        (branch((assign(V, 1),), (assign(T, S),)), assign(S, V)),
        (branch((assign(V, 1),), (assign(V, S),)), assign(S, V), assign(T, V)),
        (branch((assign(V, 1), assign(V, 2)), (assign(T, 1),)), assign(S, V)),
        (branch((assign(V, 1), assign(V, 2)), (assign(V, 1),)), assign(S, V)),
        (branch((branch((assign(V, 1),), ()),), (assign(V, 3),)), assign(S, V)),
        (assign(V, 1), branch((assign(V, 2),), ()), assign(S, V)),
    ],
)
def test_other_temporaries_of_branches_stay(block):
    assert coalesce(block) == block


def test_a_temporary_that_takes_a_value_of_branches_and_is_assigned_again_stays():
    chosen, again = branch((assign(V, 1),), (assign(V, 2),)), branch((assign(U, 3),), ())
    assert coalesce((chosen, assign(U, V), again, assign(S, U))) == (
        branch((assign(U, 1),), (assign(U, 2),)),
        again,
        assign(S, U),
    )
