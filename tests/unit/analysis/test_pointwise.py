"""Straight code of pointwise programs: what it computes for random elements, and what it is refused for."""

import random
import re

import pytest
import torch

import brickwork as bw
from brickwork.analysis.pointwise import OpaqueError, pointwise
from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.nodes import Apply, Cast, Constant, Load, Read, Select, TensorParameter, TensorType
from brickwork.ir.scalar_semantics import cast, evaluate
from brickwork.ir.signature import ScalarType, Signature
from support.shared import define, lower


def code_of(function, ranks):
    arguments = tuple(TensorType(FLOAT64, rank) if rank is not None else ScalarType(FLOAT64) for rank in ranks)
    return pointwise(lower(define(function), Signature(arguments)))


def value_of(expression, loaded, variables):
    """Return what an expression of straight code is at one place."""

    def inner(each):
        return value_of(each, loaded, variables)

    match expression:
        case Constant(value=value):
            return value
        case Read(symbol=symbol):
            return variables[symbol]
        case Load(tensor=tensor):
            return loaded[tensor]
        case Cast(operand=operand, dtype=dtype):
            return cast(inner(operand), dtype)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return inner(then) if inner(condition) else inner(otherwise)
        case Apply(operator=operator, operands=operands):
            return evaluate(operator, [inner(each) for each in operands], operands[0].dtype)


def clipped(x: torch.Tensor, y: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(len(x)):
        v = x[i]
        if v > 1.0:
            v = 1.0
            w = 2.0
        elif v < y[i]:
            v = y[i]
            w = v
        else:
            w = 0.0
        out[i] = v + w
    return out


def summed(x: torch.Tensor, y: torch.Tensor):
    out = torch.zeros_like(x)
    half = torch.empty_like(x)
    for i in range(len(x)):
        half[i] = x[i] / 2
        if x[i] > y[i]:
            out[i] += half[i]
    for i in range(len(x)):
        if out[i] != 0.0 and y[i] > 0:
            out[i] = out[i] * half[i] - y[i]
    return out


@pytest.mark.parametrize("function", [clipped, summed])
def test_straight_code_computes_what_the_program_does(function):
    code = code_of(function, (1, 1))
    assert not any(isinstance(node, Load) and node.indices == () for nest in code.nests for node in nest.body)
    draw = random.Random(0)
    tensors = [item.tensor for item in code.program.parameters if isinstance(item, TensorParameter)]
    for _ in range(50):
        values = [draw.uniform(-2, 2) for _ in tensors]
        loaded = dict(zip(tensors, values, strict=True))
        loaded |= {each.tensor: each.fill.value for each in code.allocated if each.fill is not None}
        for nest in code.nests:
            variables = {}
            for assign in nest.body:
                assert assign.symbol not in variables
                variables[assign.symbol] = value_of(assign.value, loaded, variables)
            loaded |= {each.tensor: value_of(each.value, loaded, variables) for each in nest.written}
        expected = function(*(torch.tensor([value], dtype=torch.float64) for value in values))
        assert loaded[code.results[0]] == pytest.approx(expected.item(), abs=1e-15)


def test_axes_of_loads_and_stores():
    def turned(x: torch.Tensor, w: torch.Tensor):
        out = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype)
        for i in range(x.shape[0]):
            s = x[i, 0] if False else w[i]
            for j in range(x.shape[1]):
                out[j, i] = x[i, j] * s
        return out

    (nest,) = (each for each in code_of(turned, (2, 1)).nests if each.axes)
    assert [axis.index.name for axis in nest.axes] == ["i", "j"]
    assert [symbol.name for symbol in nest.written[0].axes] == ["j", "i"]


REFUSED = []


def refused(reason):
    def enter(function):
        REFUSED.append((function, reason))
        return function

    return enter


@refused("`s` goes from one iteration to the next")
def running_sum(x: torch.Tensor):
    out = torch.empty_like(x)
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        out[i] = s
    return out


@refused("`s` goes from one iteration to the next")
def left_by_a_loop(x: torch.Tensor):
    out = torch.empty_like(x)
    s = 0.5
    for i in range(len(x)):
        s = x[i] * 2.0
        out[i] = s
    for k in range(len(x)):
        out[k] = s
    return out


@refused("`out` is read where other iterations store into it")
def mirrored(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + out[j, i]
    return out


@refused("`out` is stored into at several places")
def both_ways(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]
            out[j, i] = x[i, j]
    return out


@refused("`out` is indexed twice by a loop")
def diagonal(x: torch.Tensor):
    out = torch.zeros(len(x), len(x))
    for i in range(len(x)):
        out[i, i] = x[i]
    return out


@refused("`out` is not stored into as a whole")
def nothing(x: torch.Tensor):
    out = torch.empty_like(x)
    other = torch.empty_like(x)
    for i in range(len(x)):
        other[i] = x[i]
    return out, other


@refused("`out` is stored into under a condition")
def sometimes(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(len(x)):
        if x[i] > 0:
            out[i] = x[i]
    return out


@refused("an element is stored more than once")
def often(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            out[i] = x[j]
    return out


@refused("a loop stands beside or in other statements of a loop")
def in_front(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(len(x)):
        v = x[i]
        for _ in range(3):
            v = v * v
        out[i] = v
    return out


@refused("the index `i` is used as a number")
def numbered(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * i
    return out


@refused("it stores into the argument `x`")
def in_place(x: torch.Tensor):
    for i in range(len(x)):
        x[i] = 0.0


@refused("it draws random numbers")
def drawn(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = bw.rand()
    return out


@pytest.mark.parametrize(("function", "reason"), REFUSED)
def test_refusals(function, reason):
    rank = 2 if "j" in function.__code__.co_varnames and function is not often else 1
    with pytest.raises(OpaqueError, match=re.escape(reason)):
        code_of(function, (rank,))
