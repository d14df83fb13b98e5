"""Functions of Python's library that are compiled as others: `heapq.nlargest`, `min` with a key, and the like."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw


def greatest(x: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.zeros(len(x), 3)
    for i in range(len(x)):
        out[i, 0] = sum(heapq.nlargest(k, x[i]))
        for place, v in enumerate(heapq.nsmallest(2, [x[i, j] for j in range(x.shape[1])])):
            out[i, 1] += (place + 1) * v
        for j in heapq.nlargest(2, range(x.shape[1]), key=lambda j: abs(x[i, j])):
            out[i, 2] = 10 * out[i, 2] + j
    return out


def by_key(x: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.zeros(len(x))
    for i in range(len(x)):
        out[i] = min(x[i, 0], x[i, 1], x[i, 2], key=lambda v: v * v) + max(k, x[i, 0], key=abs)
    return out


def pairs(x: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i, j in itertools.product(range(len(x)), range(1, x.shape[1])):
        out[i, j] = x[i, j - 1] * k
    return out


@pytest.mark.parametrize("function", [greatest, by_key, pairs], ids=lambda function: function.__name__)
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_they_are_what_python_says(function: Callable[..., Any], k: int):
    x = torch.randn(4, 5)
    operator = bw.op(f"spelled::{function.__name__}")(function)
    torch.testing.assert_close(operator(x, k), function(x, k))
    torch.testing.assert_close(operator(x, k), operator.python(x, k))
    assert "host part: native" in operator.explain(x, k)


def test_ties_come_in_the_order_of_python():
    def first(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(2, dtype=torch.int64)
        for place, j in enumerate(heapq.nlargest(2, range(len(x)), key=lambda j: x[j])):
            out[place] = j
        return out

    x = torch.tensor([1.0, 2.0, 2.0, 2.0])
    assert torch.equal(bw.op("spelled::first")(first)(x), first(x))


def test_messages_say_shapes_and_types_as_python_does():
    def checked(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"shapes {a.shape} and {b.shape} of {a.dtype} do not match")
        out = torch.zeros(len(a))
        for i in range(len(a)):
            at = (i, 0)
            assert a[i, 0] > 0, f"at {at}"
            out[i] = a[i, 0] * b[0, 0]
        return out

    operator = bw.op("spelled::checked")(checked)
    for call in (operator, operator.python, checked):
        with pytest.raises(ValueError, match=r"torch.Size\(\[2, 3\]\) and torch.Size\(\[2, 1\]\) of torch.float32"):
            call(torch.ones(2, 3), torch.ones(2, 1))
        with pytest.raises(AssertionError, match=r"at \(1, 0\)"):
            call(torch.tensor([[1.0], [0.0]]), torch.ones(1, 1))


def choices(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x))
    for i in range(len(x)):
        for a, b, c in itertools.combinations(range(1, x.shape[1]), 3):
            out[i] += x[i, a] * x[i, b] + c
        for v, k in itertools.product(x[i], range(2)):
            if k > 0:
                break
            out[i] += 100 * v
    for a, b in itertools.pairwise(x[0]):
        out[0] += abs(a - b)
    return out


def left(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(3)
    a, b = -1, -2
    row = x[0]
    for a, b in itertools.combinations(range(len(row)), 2):
        if row[a] < row[b]:
            continue
        out[0] += row[a] - row[b]
        match b:
            case 3:
                break
            case _:
                out[1] += 1
        a = 7
    out[2] = 10 * a + b
    return out


def last(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(2)
    a, b = -1, -2
    for a, b in itertools.product(range(3), range(x.shape[1])):
        out[0] += a * b
    for a, b in itertools.combinations(range(x.shape[1]), 2):
        out[1] += a * b
    out[1] += 100 * a + 10 * b
    return out


@pytest.mark.parametrize("function", [choices, left, last])
@pytest.mark.parametrize("columns", [0, 1, 2, 5])
def test_loops_over_combinations_are_nested_loops(function: Callable[..., Any], columns: int):
    operator = bw.op(f"spelled::{function.__name__}")(function)
    x = torch.arange(3.0 * columns).reshape(3, columns).flip(1)
    torch.testing.assert_close(operator(x), function(x))
    torch.testing.assert_close(operator.python(x), function(x))
    assert "host part: native" in operator.explain(x)


def test_what_changes_in_a_loop_over_a_product_is_refused():
    def changed(x: torch.Tensor, n: int) -> torch.Tensor:
        out = torch.zeros(1)
        for i, v in itertools.product(range(n), x):
            n = 2
            out[0] += i * v
        return out

    with pytest.raises(bw.CompileError, match="cannot run over"):
        bw.op("spelled::changed")(changed)


def by_method(x: torch.Tensor, weights: list[float]) -> torch.Tensor:
    out = torch.zeros(len(x), 4, dtype=torch.float64)
    first, second = (weight / weights[1] for weight in weights)
    for i in range(len(x)):
        squares = [v * v for v in x[i]]
        ordered = []
        for k in range(x.shape[1]):
            ordered.append((x[i, k] * first, k))
        ordered.sort(key=lambda pair: pair[0], reverse=True)
        out[i, 0] = min(range(x.shape[1]), key=squares.__getitem__)
        out[i, 1] = ordered[0][1] * second
        out[i, 2] = next(k for k in range(x.shape[1]) if x[i, k] > 0)
        out[i, 3] = x[i, 0].item()
    return out


def test_methods_that_compare_and_searches_without_a_default():
    operator, x = bw.op("spelled::by_method")(by_method), torch.tensor([[0.5, -0.25, 2.0], [-1.0, 3.0, 3.0]])
    torch.testing.assert_close(operator(x, [0.5, 2.0]), by_method(x, [0.5, 2.0]))
    torch.testing.assert_close(operator.python(x, [0.5, 2.0]), by_method(x, [0.5, 2.0]))
    assert "host part: native" in operator.explain(x, [0.5, 2.0])
    with pytest.raises(RuntimeError, match="`next` finds no item"):
        operator(-x.abs(), [0.5, 2.0])
    with pytest.raises(ValueError, match="3"):
        operator(x, [0.5, 2.0, 1.0])
