"""Functions and lambdas that are defined inside an operator, or inside one of its helpers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

SCALE = 0.5


def late(x: torch.Tensor) -> torch.Tensor:
    """What is captured has its value at the time of the call."""
    out = torch.zeros_like(x)
    h = 1.0
    weigh = lambda v: v * h + SCALE  # noqa: E731
    for i in range(x.shape[0]):
        h = 2.0 * i
        out[i] = weigh(x[i])
        h = 3.0
        out[i] += weigh(1.0)
    return out


def storing(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)

    def put(i: int, v: float) -> None:
        out[i] = v + out[i]

    for i in range(x.shape[0]):
        put(i, x[i])
        put(i, 1.0)
    return out


def siblings(x: torch.Tensor) -> torch.Tensor:
    """One calls another that is defined later, and an inner one reads variables of two functions around it."""
    n = x.shape[0]

    def first(v: float) -> float:
        w = v + n

        def inner(u: float) -> float:
            return u * w + second(u)

        return inner(v) + inner(1.0)

    def second(v: float) -> float:
        return v * v + n * SCALE

    out = torch.zeros_like(x)
    for i in range(n):
        out[i] = first(x[i]) - second(2.0)
    return out


def defaults(x: torch.Tensor) -> torch.Tensor:
    """Defaults are evaluated where the function is defined."""
    out = torch.zeros_like(x)
    h = 4.0
    scaled = lambda v, by=h, *, plus=1: v * by + plus * h  # noqa: E731
    h = 7.0
    for i in range(x.shape[0]):

        def turn(v: float, at: int = i * 10, sign: float = -1.0) -> float:
            return v * sign + at

        i_later = i + 1
        out[i] = scaled(x[i]) + scaled(x[i], 2.0) + scaled(x[i], plus=i_later) + turn(x[i]) + turn(x[i], sign=2.0)
    return out


def early(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[0]

    def position(v: float) -> int:
        for k in range(n):
            if x[k] >= v:
                return k
        return -1

    out = torch.zeros_like(x)
    for i in range(n):
        out[i] = position(x[i] + 0.1)
    return out


def on_host(x: torch.Tensor) -> torch.Tensor:
    """Host statements call them, too, also on what loops have computed."""

    def half(k: int) -> int:
        return k // 2

    m = half(x.shape[0])
    out = torch.zeros(m)
    total = 0.0
    twice = lambda v: v + total  # noqa: E731
    for i in range(m):
        total += x[i]
    total = twice(total)
    for i in range(half(2 * m)):
        out[i] = total
    return out


def with_python(x: torch.Tensor) -> torch.Tensor:
    """Beside a host part that runs in Python."""
    offset = 2.0

    def moved(v: float) -> float:
        return v + offset

    y = torch.flip(x, (0,))
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = moved(y[i])
    return out


def helper_with_inner(v: float) -> float:
    def doubled(u: float) -> float:
        return u * 2 + v

    return doubled(v) + doubled(1.0)


def in_helper(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = helper_with_inner(x[i])
    return out


def infinite(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[0]
    out = torch.full((n,), float("inf"), dtype=x.dtype)
    for i in range(n):
        best = float("-inf")
        for k in range(i):
            best = max(best, x[k])
        out[i] = min(out[i], best) if i % 2 else math.inf
    return out


FUNCTIONS = [late, storing, siblings, defaults, early, on_host, with_python, in_helper, infinite]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda item: item.__name__)
def test_it_means_what_python_means(function: Callable[..., Any]) -> None:
    if function is with_python:
        operator = bw.op("inner::with_python")(function)
        x = torch.arange(5.0)
        torch.testing.assert_close(operator(x), function(x))
        torch.testing.assert_close(operator.python(x), function(x))
        return
    agree(function, torch.tensor([0.5, -1.0, 2.0, 0.25, 3.0, 0.75]))


def test_draws_in_them_are_those_of_python() -> None:
    @bw.op("inner::noise")
    def noise(x: torch.Tensor) -> torch.Tensor:
        def draw() -> float:
            return bw.rand() + bw.randint(0, 5)

        out = torch.zeros_like(x)
        for i in range(x.shape[0]):
            out[i] = draw() + draw()
        return out

    x = torch.zeros(50)
    torch.testing.assert_close(noise(x, key=3), noise.python(x, key=3))


def test_a_global_that_is_read_in_them_is_watched() -> None:
    global SCALE
    before = SCALE
    try:

        @bw.op("inner::watched")
        def watched(x: torch.Tensor) -> torch.Tensor:
            def f(v: float) -> float:
                return v * SCALE

            out = torch.zeros_like(x)
            for i in range(x.shape[0]):
                out[i] = f(x[i])
            return out

        watched(torch.ones(2))
        SCALE = 3.0
        with pytest.warns(bw.BrickworkWarning, match="SCALE"):
            assert watched(torch.ones(2)).tolist() == [before, before]
    finally:
        SCALE = before


def as_value(x: torch.Tensor) -> None:
    f = lambda v: v * 2  # noqa: E731
    g = f
    for i in range(x.shape[0]):
        x[i] = g(x[i])


def too_early(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        x[i] = f(x[i])  # noqa: F821

    def f(v: float) -> float:
        return v


def in_branch(x: torch.Tensor, flag: bool) -> None:
    if flag:

        def f(v: float) -> float:
            return v
    else:

        def f(v: float) -> float:
            return -v

    for i in range(x.shape[0]):
        x[i] = f(x[i])


def two_variables(x: torch.Tensor) -> None:
    n = 2

    def f(v: float) -> float:
        return v + n

    def g(v: float) -> float:
        n = 3
        return f(v) + n

    for i in range(x.shape[0]):
        x[i] = g(x[i])


def recursive(x: torch.Tensor) -> None:
    def f(v: int) -> int:
        return f(v - 1) if v > 0 else 0

    for i in range(x.shape[0]):
        x[i] = f(i)


def nonlocal_one(x: torch.Tensor) -> None:
    n = 0

    def f() -> int:
        nonlocal n
        n += 1
        return n

    for i in range(x.shape[0]):
        x[i] = f()


REFUSED = [
    (as_value, "BW004", "`f`, a function that is defined inside, is used as a value"),
    (too_early, "BW005", "`f` may be called before it is defined"),
    (in_branch, "BW002", "a function inside an operator is defined once"),
    (two_variables, "BW004", "`n` is one variable here, and another in `f`, which is called"),
    (recursive, "BW004", "`f` calls itself"),
    (nonlocal_one, "BW002", "`nonlocal` is not part of the language"),
]


@pytest.mark.parametrize(("function", "code", "message"), REFUSED, ids=lambda item: getattr(item, "__name__", ""))
def test_what_is_refused(function: Callable[..., Any], code: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        bw.op(f"inner::{function.__name__}")(function)
    assert code in {item.code for item in caught.value.diagnostics}
    assert message in str(caught.value)
