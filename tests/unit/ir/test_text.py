"""Printed IR reads as what was written, and parses back to the same program."""

from __future__ import annotations

import math

import pytest

from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64, UINT64
from brickwork.ir.nodes import Constant, For, If, Kernel, Read, Reduction, Role, Store, Symbol, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from brickwork.ir.parse import parse_kernel, parse_program
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_kernel, print_program
from support.kernels import SUITE
from support.tensors import argument_type

X = Tensor("x", 4, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0))
I, S = Symbol("i", 0, INT64), Symbol("2 odd[0]", 7, FLOAT32)


def kernel(*body):
    return Kernel(name="k", tensors=(X,), scalars=(S,), facts=(), body=body, may_alias=True)


def store(value):
    return Store(tensor=X, indices=(Read(symbol=I),), value=value, access=3)


def loop(*body):
    return For(
        index=I,
        start=Constant(value=-1, dtype=INT64),
        stop=Constant(value=5, dtype=INT64),
        body=body,
        claimed=True,
        role=Role.VECTOR,
        width=8,
        reductions=(Reduction(S, OPERATORS["add"]),),
    )


@pytest.mark.parametrize("name", sorted(SUITE))
def test_the_suite_comes_back_the_same(name):
    case = SUITE[name]
    program = lower(define(case.function), Signature(tuple(map(argument_type, case.arguments(2)))))
    text = print_program(program)
    assert print_program(parse_program(text)) == text
    assert parse_program(text) == program or "nan" in text


def test_unrolled_loops_come_back():
    bounds = {"start": Constant(value=0, dtype=INT64), "stop": Constant(value=5, dtype=INT64)}
    unrolled = kernel(For(index=I, body=(store(Read(symbol=S)),), unrolled=4, **bounds))
    assert "range(0, 5, unrolled=4)" in print_kernel(unrolled)
    assert parse_kernel(print_kernel(unrolled)) == unrolled


def test_a_schedule_is_printed_and_comes_back():
    scheduled = kernel(loop(store(Read(symbol=S)), If(condition=Constant(value=True, dtype=BOOL), then=())))
    text = print_kernel(scheduled)
    assert parse_kernel(text) == scheduled
    assert "for i_0 in range(-1, 5, claimed=True, role=vector, width=8, reductions=(add(_2_odd_0__7),)):" in text
    assert "x_t4[i_0,] = _2_odd_0__7 @ 3" in text


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(0.1, FLOAT64), (-math.inf, FLOAT32), (2**64 - 1, UINT64), (-0.0, FLOAT32), (-(2**63), INT64)],
)
def test_constants_come_back_the_same(value, dtype):
    written = kernel(loop(store(Constant(value=value, dtype=dtype))))
    assert parse_kernel(print_kernel(written)) == written
    assert str(value) in print_kernel(written)


def test_nan_comes_back():
    written = kernel(loop(store(Constant(value=math.nan, dtype=FLOAT32))))
    assert print_kernel(parse_kernel(print_kernel(written))) == print_kernel(written)


@pytest.mark.parametrize("text", ["program(1)", "x + 1", "program('p')\nwhat(1, 2)", "program('p')\nx_1 = add(3, 4)"])
def test_malformed_text_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"is not understood|begins with"):
        parse_program(text)
