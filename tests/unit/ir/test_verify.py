"""Each rule of the IR is found when it is broken; what the frontend writes breaks none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from brickwork.diagnostics.errors import InternalError
from brickwork.diagnostics.location import NOWHERE
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.build import apply, cast, integer, read
from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Break,
    Constant,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Program,
    Reduction,
    Role,
    Select,
    Size,
    Store,
    Symbol,
    Tensor,
    TensorParameter,
    TensorType,
    While,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.signature import Signature
from brickwork.ir.verify import verify_kernel, verify_program
from support.kernels import SUITE
from support.tensors import argument_type

X = Tensor("x", 0, TensorType(FLOAT32, 1))
Y = replace(X, number=1)
HERE = replace(NOWHERE, file="here.py")
I, S, C = Symbol("i", 0, INT64), Symbol("s", 1, FLOAT32), Symbol("c", 2, BOOL)
ZERO = Constant(value=0.0, dtype=FLOAT32)
TRUE = Constant(value=True, dtype=BOOL)


def kernel(*body):
    return Kernel(name="k", tensors=(X,), scalars=(C,), facts=(), body=body)


def load(access=0, index=None, dtype=FLOAT32):
    return Load(tensor=X, indices=(index or integer(0),), access=access, dtype=dtype)


def store(value, access=1):
    return Store(tensor=X, indices=(integer(0),), value=value, access=access)


def loop(*body, **options):
    return For(index=I, start=integer(0), stop=integer(3), body=body, **options)


J = Symbol("j", 3, INT64)
SET = Assign(symbol=J, value=integer(1))
LET = Assign(symbol=S, value=ZERO)
SUM = Assign(symbol=S, value=apply("add", read(S), load()))


@pytest.mark.parametrize("name", sorted(SUITE))
def test_the_frontend_keeps_the_rules(name):
    case = SUITE[name]
    verify_program(lower(define(case.function), Signature(tuple(map(argument_type, case.arguments(2))))))


@pytest.mark.parametrize(
    "body",
    [
        (LET, loop(SUM), store(read(S))),
        (loop(LET), store(read(S))),
        (LET, loop(SUM, role=Role.PARALLEL, reductions=(Reduction(S, OPERATORS["add"]),)), store(read(S))),
        (If(condition=read(C), then=(LET,), otherwise=(LET,)), store(read(S))),
        (loop(If(condition=read(C), then=(LET,), otherwise=(Break(),)), store(read(S))),),
        (If(condition=read(C), then=(store(ZERO),), otherwise=(store(ZERO),)),),
        (If(condition=read(C), then=(SET,), otherwise=(replace(LET, symbol=replace(S, number=3)),)),),
        (While(prelude=(LET,), condition=TRUE, body=(store(read(S)),)), store(read(S), 2)),
        (store(load()), replace(store(load(index=integer(1))), indices=(integer(1),))),
        (store(load()), replace(store(replace(load(), loc=HERE)), loc=HERE, access=2)),
        (replace(store(ZERO), loc=HERE), replace(store(ZERO), loc=HERE, tensor=Y)),
    ],
)
def test_legal_kernels(body):
    verify_kernel(replace(kernel(*body), tensors=(X, Y)))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((store(read(S)),), "read before it is assigned"),
        ((If(condition=read(C), then=(LET,)), store(read(S))), "read before it is assigned"),
        ((replace(loop(LET), stop=Size(tensor=X, axis=0)), store(read(S))), "read before it is assigned"),
        ((LET, loop(SUM, role=Role.PARALLEL)), "read before it is assigned"),
        ((loop(Assign(symbol=I, value=integer(0))),), "loop index `i` is assigned"),
        ((Assign(symbol=C, value=TRUE),), "scalar `c` is assigned"),
        ((store(load(access=1)),), "number 1"),
        ((store(ZERO), replace(store(ZERO), tensor=Y)), "number 1"),
        ((store(ZERO), replace(store(TRUE), loc=HERE)), "number 1"),
        ((SET, replace(LET, symbol=replace(S, number=3))), "has the number of"),
        ((Assign(symbol=replace(J, number=2), value=integer(1)),), "has the number of"),
        ((store(Constant(value=0.0, dtype=FLOAT64)),), "float64 stands where float32"),
        ((store(Constant(value=0, dtype=FLOAT32)),), "0 is no float32"),
        ((store(load(index=ZERO)),), "float32 stands where int64"),
        ((store(load(dtype=FLOAT64)),), "float64 stands where float32"),
        ((store(replace(load(), indices=())),), "takes 1 indices"),
        ((store(Apply(operator=OPERATORS["add"], operands=(ZERO,), dtype=FLOAT32)),), "takes 2 operands"),
        ((store(Apply(operator=OPERATORS["bit_not"], operands=(ZERO,), dtype=FLOAT32)),), "does not take float32"),
        ((store(Select(condition=ZERO, then=ZERO, otherwise=ZERO)),), "float32 stands where bool"),
        ((Assign(symbol=I, value=Size(tensor=X, axis=1)),), "no such axis"),
        ((Break(),), "outside of a loop"),
        ((replace(loop(), stop=cast(load(), INT64)),), "a bound reads an element"),
        ((SET, replace(loop(SET), start=read(J))), "a loop changes its bounds"),
        ((loop(width=4),), "have no lanes"),
        ((loop(unrolled=3),), "powers of two"),
        ((loop(role=Role.PARALLEL, unrolled=4),), "powers of two"),
        ((LET, loop(role=Role.PARALLEL, reductions=(Reduction(S, OPERATORS["sub"]),))), "no reduction by `sub`"),
        ((loop(role=Role.PARALLEL, reductions=(Reduction(S, OPERATORS["add"]),)),), "has no start"),
        ((LET, loop(SUM, role=Role.PARALLEL, reductions=(Reduction(S, OPERATORS["add"]),) * 2)), "reduced twice"),
        ((replace(store(ZERO), tensor=replace(X, number=9)),), "not known here"),
    ],
)
def test_broken_rules_are_named(body, message):
    with pytest.raises(InternalError, match=message):
        verify_kernel(kernel(*body))


def test_a_kernel_does_not_leave_the_loop_that_launches_it():
    leaves = replace(kernel(If(condition=apply("eq", integer(0), Size(tensor=X, axis=0)), then=(Break(),))), scalars=())
    program = Program(name="p", parameters=(TensorParameter(X),), body=(loop(Launch(kernel=leaves)),))
    with pytest.raises(InternalError, match="outside of a loop"):
        verify_program(program)
