"""Dictionaries whose keys are written: captured ones, those that an operator makes, and tables of functions."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

COST = {0: 1.0, 1: 2.5, 2: 3.5}
SPARSE = {3: 1.5, -1: 2, 10: 4}
INDEX = {(0, 1): 1.0, (1, 0): 2.0, (0, 0): 0.5}
TAPS = {"sobel": (-1, 0, 1), "blur": (1, 2, 1)}


def relu(v: Any) -> Any:
    return max(v, 0.0)


ACTIVATIONS = {
    "relu": relu,
    "tanh": math.tanh,
    "square": lambda v: v * v,
}
OPERATIONS = {0: lambda a, b: a + b, 1: lambda a, b: a * b if a > 0 else b}


class Settings:
    table: ClassVar = {"weight": 2.0, "shift": 0.5}


def dense(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = COST[i % 3] * x[i] + COST.get(i, 0.25) + len(COST) + max(COST.values())
        if i in COST:
            out[i] += 10
        for k, v in COST.items():
            out[i] += k * v * x[i]
        for k in COST:
            out[i] += k
        out[i] += sum(k * v for k, v in COST.items()) + sum(v for v in COST.values()) + sum(k for k in COST.keys())
    return out


def sparse(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        key = 3 if x[i] > 0 else -1
        out[i] = SPARSE[key] * x[i] + SPARSE.get(i, 0.5) + (i - 1 not in SPARSE) + Settings.table["weight"]
    return out


def of_tuples(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = INDEX[i % 2, 0] + INDEX[(0, (i + 1) % 2)] * x[i]
    return out


def named(x: torch.Tensor, kind: str, taps: str = "sobel") -> torch.Tensor:
    w = TAPS[taps]
    out = torch.zeros_like(x)
    for i in range(1, len(x) - 1):
        out[i] = sum(w[k] * x[i + k - 1] for k in range(3))
        out[i] += ACTIVATIONS[kind](x[i]) + OPERATIONS[i % 2](x[i], 2.0)
    return out


X = torch.linspace(-1.0, 1.5, 7)


@pytest.mark.parametrize("function", [dense, sparse, of_tuples], ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_captured(function: Callable[..., Any], dtype: torch.dtype) -> None:
    agree(function, X.to(dtype), plain=function is not sparse)
    agree(function, X[:0].to(dtype))


def made_once(x: torch.Tensor) -> torch.Tensor:
    """Each holds the values of its time."""
    out = torch.zeros_like(x)
    signs = {0: 1.0, 1: -1.0}
    for i in range(len(x)):
        v = x[i]
        table = {0: v, 1: 2.0, 2: x[0] * i}
        v = signs[i % 2] * v
        out[i] = v + table[i % 3] + (table.get(i) if i < 3 else 0.0)
        parts = {"a": x[i], "b": 2.0}
        out[i] += parts["a"] * parts["b"] + len(parts) + {0: x[i], 1: 3.0}[i % 2] + {"low": 1.0}.get("high", 0.5)
        for k, v in parts.items():
            out[i] += v * (2 if k == "a" else 3)
    return out


def test_made():
    agree(made_once, X.double())
    agree(made_once, X)


@pytest.mark.parametrize("kind", ACTIVATIONS)
@pytest.mark.parametrize("taps", TAPS)
def test_named(kind: str, taps: str) -> None:
    agree(named, X, kind, taps)


@pytest.mark.parametrize("key", [4, 0, -2])
def test_a_key_that_is_not_there_is_a_key_error(key: int) -> None:
    def looked_up(x: torch.Tensor, k: int) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] = SPARSE[k] + COST[k + 1]
        return out

    operator = bw.op("dictionaries::looked_up")(looked_up)
    for call in (operator, operator.python):
        with pytest.raises(KeyError, match="this key is not in SPARSE"):
            call(X, key)
        with pytest.raises(KeyError, match="this key is not in COST"):
            call(X, 3)
    assert operator(X[:0], key).numel() == 0


def test_a_text_that_is_no_key_is_a_key_error():
    operator = bw.op("dictionaries::named_wrong")(named)
    with pytest.raises(KeyError, match="this key is not in ACTIVATIONS"):
        operator(X, "gelu")


def test_gradients():
    x = X.double().requires_grad_()
    for function in (sparse, made_once):
        assert torch.autograd.gradcheck(bw.op(f"dictionaries::{function.__name__}_gradient")(function), (x,))


def test_a_captured_dictionary_that_is_changed_is_told():
    table = {0: 1.0, 1: 2.0}

    def read(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] = table[i % 2]
        return out

    operator = bw.op("dictionaries::read")(read)
    before = operator(X)
    table[0] = 5.0
    with pytest.warns(bw.BrickworkWarning, match="`table` was changed"):
        assert torch.equal(operator(X), before)


def test_dictionaries_that_change_are_refused():
    def counted(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(x)):
            counts = {0: 0, 1: 0}
            counts[i % 2] += 1
            out[i] = counts[0]
        return out

    with pytest.raises(CompileError, match="BW003"):
        bw.op("dictionaries::counted")(counted)
