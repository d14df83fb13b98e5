"""Which tensors are narrow by a signature and the shapes of what is allocated, and which assumptions that settles."""

# pyright: basic
from __future__ import annotations

import pytest

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import (
    Allocate,
    Expression,
    Program,
    ScalarParameter,
    Size,
    Symbol,
    Tensor,
    TensorParameter,
    TensorType,
)
from brickwork.ir.signature import NARROW_EXTENT, NARROW_SIZE
from brickwork.transform.argument_facts import ArgumentFacts, argument_facts_of, holds
from support.written import op, whole

X, Y, NEW = (Tensor(name, number, TensorType(FLOAT32, 2)) for number, name in enumerate("xyz"))
N, M = Symbol("n", 10, INT64), Symbol("m", 11, INT64)
HEIGHT, WIDTH = (Size(tensor=X, axis=axis) for axis in (0, 1))


def facts(*sizes: Expression | int | Symbol, narrow: bool = True, given: bool = False) -> ArgumentFacts:
    """What is known where a tensor of these sizes is made."""
    made = Allocate(tensor=NEW, sizes=tuple(map(whole, sizes)), given=given)
    parameters = (TensorParameter(X), ScalarParameter(N))
    return argument_facts_of(Program(name="f", parameters=parameters, body=(made,), narrow=narrow))


@pytest.mark.parametrize(
    ("sizes", "narrow"),
    [
        ((), True),
        ((N,), True),
        ((HEIGHT,), True),
        ((HEIGHT, 4), True),
        ((HEIGHT, WIDTH), True),
        ((WIDTH, HEIGHT), False),
        ((HEIGHT, HEIGHT), False),
        ((HEIGHT, Size(tensor=Y, axis=1)), False),
        ((HEIGHT, WIDTH, WIDTH), False),
        ((HEIGHT, N), False),
        ((M,), False),
        ((Size(tensor=Y, axis=0),), False),
        ((Size(tensor=Y, axis=0), Size(tensor=Y, axis=1)), False),
        ((NARROW_SIZE,), False),
        ((NARROW_SIZE - 1,), True),
        ((NARROW_EXTENT >> 10, 1 << 10), False),
        (((NARROW_EXTENT >> 10) - 1, 1 << 10), True),
        ((0, N), True),
    ],
)
def test_new_tensors_are_narrow_where_all_sizes_are_small_or_those_of_a_narrow_one(sizes, narrow: bool):
    assert facts(*sizes).is_narrow(NEW) == narrow


def test_the_callers_tensors_may_lie_in_any_way():
    assert not facts(HEIGHT, WIDTH, given=True).is_narrow(NEW)
    assert not facts(4, given=True).is_narrow(NEW)
    assert not facts(N, narrow=False).is_narrow(NEW)
    assert facts(N, M).short == {(NEW, 0)}


K = op("mul", N, N)


@pytest.mark.parametrize(
    ("condition", "known"),
    [
        (op("ge", NARROW_SIZE, N), True),
        (op("ge", op("add", NARROW_SIZE, N), 0), True),
        (op("ge", NARROW_SIZE - 1, N), False),
        (op("ge", NARROW_SIZE, HEIGHT), True),
        (op("ge", NARROW_SIZE, Size(tensor=NEW, axis=0)), True),
        (op("ge", NARROW_SIZE, Size(tensor=NEW, axis=1)), False),
        (op("ge", NARROW_SIZE, M), False),
        (op("ge", op("add", M, N), 0), False),
        (op("ge", op("add", N, M), 0), False),
        (op("ge", 2 * NARROW_SIZE, op("add", N, N)), True),
        (op("ge", 4 * NARROW_SIZE, K), False),
        (op("ge", NARROW_SIZE**2, K), True),
        (op("ge", NARROW_SIZE**2, op("sub", N, HEIGHT)), False),
        (op("ge", N, 0), False),
        (op("gt", 2 * NARROW_SIZE, N), False),
        (op("eq", NARROW_SIZE, N), False),
        (op("logical_not", op("ge", NARROW_SIZE, N)), False),
        (whole(build.constant(True, op("ge", N, 0).dtype)), False),
    ],
)
def test_assumptions_that_hold_for_all_narrow_arguments(condition: Expression, known: bool):
    assert holds(condition, facts(N, M)) == known
