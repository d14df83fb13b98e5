"""Functions that are given to helpers: by name, as lambdas, from elsewhere and from inside; `map`, `reduce`, `next`."""

# pyright: basic
from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")


def simpson(f: Any, a: Any, b: Any, n: int = 10) -> Any:
    h = (b - a) / n
    s = f(a) + f(b)
    for i in range(1, n):
        s += f(a + i * h) * (4 if i % 2 else 2)
    return s * h / 3


def twice(f: Any, v: Any, *rest: Any) -> Any:
    return f(f(v, *rest), *rest)


def scaled(v: Any, by: Any, plus: float = 0.5) -> Any:
    return v * by + plus


def passed_on(f: Any, v: Any) -> Any:
    def shifted(u: Any) -> Any:
        return f(u + 1)

    return twice(f, v) + twice(lambda u: f(u) * 2, v) + shifted(v)


def activated(v: Any, act: Any = math.atan, *, after: Any = None) -> Any:
    if after is not None:
        v = after(v)
    return act(v)


def put(f: Any, i: Any, v: Any) -> None:
    f(i, v * 2)


class Model:
    def __init__(self, a: float) -> None:
        self.a = a

    def step(self, v: Any) -> Any:
        return v * self.a + 1


MODEL = Model(0.5)


def by_name(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = twice(scaled, x[i], 3.0) + simpson(math.atan, 0.0, x[i]) + twice(MODEL.step, x[i])
    return out


def closures(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        k = x[i] * 2
        out[i] = simpson(lambda t: t * t * k + x[i], 0.0, 1.0, n=20)
        k = 3.0 * i
        out[i] += simpson(lambda t: t * k, 0.0, n=6, b=x[i]) + sum(
            twice(lambda v, q=q: v * q + 1, x[i]) for q in range(3)
        )
    return out


def nested(x: torch.Tensor) -> torch.Tensor:
    """A helper is given a function that calls the helper itself with another one."""
    out = torch.zeros_like(x)
    for i in range(len(x)):

        def inner(y: Any) -> Any:
            return simpson(lambda v: v * y * x[i] + v, 0.0, 1.0)

        out[i] = simpson(inner, 0.0, 2.0) + simpson(lambda y: simpson(lambda v: v * y, 0.0, y), 0.0, x[i])
    return out


def on_and_on(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)

    def both(f: Any, g: Any, v: Any) -> Any:
        return f(g(v)) + passed_on(g, v)

    for i in range(len(x)):
        out[i] = both(lambda v: v * x[i], lambda v: v + i, x[i]) + both(abs, math.floor, x[i])
    return out


def storing(x: torch.Tensor) -> torch.Tensor:
    """What is given stores into a tensor."""
    out = torch.zeros_like(x)
    for i in range(len(x)):
        put(lambda j, v: add(out, j, v), i, x[i])
    return out


def add(to: torch.Tensor, i: Any, v: Any) -> None:
    to[i] += v


def into_argument(x: torch.Tensor, out: torch.Tensor) -> None:
    def set_one(j: Any, v: Any) -> None:
        out[j] = v

    for i in range(len(x)):
        put(set_one, i, x[i])


def defaults(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = activated(x[i]) + activated(x[i], abs) + activated(x[i], act=math.tanh, after=lambda v: v * i)
    return out


def beside_python(x: torch.Tensor) -> torch.Tensor:
    y = torch.flip(x, (0,))
    out = torch.zeros_like(x)
    n = twice(lambda k: k + 1, 3)
    for i in range(len(x)):
        out[i] = simpson(lambda t: t * y[i], 0.0, 1.0) + n
    return out


def library(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = functools.reduce(lambda held, v: held * 0.5 + v, x, 0.0)
        out[i] += functools.reduce(max, (v * v for v in x)) + sum(map(lambda v: v * v, x)) + max(map(abs, x))
        out[i] += sum(filter(lambda v: v > 0, x)) + sum(list(map(lambda p, q: p * q, x, reversed(x))))
        for k, v in enumerate(map(abs, x)):
            out[i] += k * v
        low, high = map(lambda v: v * 2, (x[i], 1.0))
        marks = [(0.0, 1), (0.5, 2), (1.0, 3)]
        out[i] += low + high + bisect.bisect(marks, x[i], key=lambda mark: mark[0])
    return out


def searched(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        later = next((k for k in range(i + 1, len(x)) if x[k] > x[i]), None)
        out[i] = -1 if later is None else later
        out[i] += next((v for v in x if v > 0.5), 9.0)
        p, q = next(((j, k) for j in range(3) for k in range(j) if x[j] < x[k]), (-1, -1))
        out[i] += 10 * p + 100 * q
    return out


ALL = [by_name, closures, nested, on_and_on, storing, defaults, library, searched]


@pytest.mark.parametrize("function", ALL, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees(function: Callable[..., Any], dtype: torch.dtype) -> None:
    x = torch.linspace(-1.0, 1.5, 6, dtype=dtype)
    agree(function, x[torch.tensor([3, 0, 5, 1, 4, 2])])


def test_beside_a_host_part_in_python():
    x = torch.linspace(-1.0, 1.5, 6)
    operator = bw.op("given::beside_python")(beside_python)
    assert "host part: Python" in operator.explain(x)
    for call in (operator, operator.python):
        torch.testing.assert_close(call(x), beside_python(x))


def test_nothing_to_compute():
    agree(closures, torch.empty(0))
    agree(searched, torch.ones(3))


def test_a_given_function_that_stores_makes_the_argument_mutated():
    agree(into_argument, torch.ones(3), torch.zeros(3))
    operator = bw.op("given::into_argument")(into_argument)
    assert "Tensor(a!) out" in str(torch.ops.given.into_argument.default._schema)
    assert operator is not None


def test_gradients_flow_through_given_functions():
    x = torch.linspace(0.1, 1.5, 4, dtype=torch.float64, requires_grad=True)
    for function in (closures, nested, defaults):
        assert torch.autograd.gradcheck(bw.op(f"given::{function.__name__}_gradient")(function), (x,))


def test_a_helper_that_is_given_functions_does_not_call_itself():
    def down(f: Any, n: Any) -> Any:
        return f(n) if n < 1 else down(f, n - 1)

    def recursive(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] = down(math.sin, x[i])
        return out

    with pytest.raises(CompileError, match="calls itself"):
        bw.op("given::recursive")(recursive)


def test_what_is_refused_in_a_given_function_is_told_with_its_place():
    def loads(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] = simpson(lambda t: {t}, 0.0, x[i])
        return out

    with pytest.raises(CompileError, match=r"(?s)a set is not part.*lambda t"):
        bw.op("given::loads")(loads)


def test_a_lambda_that_nothing_takes_is_refused():
    def kept(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(x)):
            both = (lambda v: v, 1)
            out[i] = both[1]
        return out

    with pytest.raises(CompileError, match="where a Python function takes one"):
        bw.op("given::kept")(kept)
