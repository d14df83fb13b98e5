"""Numbers that are None at some times: compiled code, the interpreter and Python agree."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from brickwork.diagnostics.errors import CompileError

pytestmark = pytest.mark.usefixtures("quick")


def smallest(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(2)
    best = None
    for i in range(len(x)):
        if best is None or x[i] < best:
            best = x[i]
    if best is not None:
        out[0] = best
    else:
        out[1] = -1
    return out


def find(x: torch.Tensor, i: int, level: float) -> int | None:
    for j in range(x.shape[1]):
        if x[i, j] > level:
            return j
    return None


def find_or_end(x: torch.Tensor, i: int, level: float) -> int | None:
    for j in range(x.shape[1]):
        if x[i, j] > level:
            return j


def roots(b: float, c: float) -> tuple[float, float] | None:
    d = b * b - 4 * c
    if d < 0:
        return None
    return (-b + math.sqrt(d)) / 2, (-b - math.sqrt(d)) / 2


def searches(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x), 4)
    for i in range(len(x)):
        j = find(x, i, 1.0)
        out[i, 0] = -1 if j is None else j
        k = find_or_end(x, i, 0.5)
        if k is not None:
            out[i, 1] = k + 1
        found = roots(x[i, 0], x[i, 1])
        if found is None:
            continue
        p, q = found
        out[i, 2] = p
        out[i, 3] = q
    return out


def needed(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x))
    for i in range(len(x)):
        out[i] = find(x, i, 1.0) + 1
    return out


def previous(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    last = None
    where = None
    for i in range(len(x)):
        if last is not None and x[i] > last:
            out[i] = x[i] - last
        if where is not None:
            a, b = where
            out[i] += a + b
        last = x[i] if x[i] > -1 else None
        if x[i] > 1:
            where = (i, x[i])
        elif x[i] < -1:
            where = None
    if where:
        out[0] += where[0]
    return out


def stepping(x: torch.Tensor, flag: bool) -> torch.Tensor:
    out = torch.zeros(1)
    first = None
    if flag:
        first = x[0]
    if first is not None:
        out[0] = first
    for i in range(len(x)):
        node = None
        if x[i] > 0:
            node = i
        while node is not None:
            out[0] += node
            node = node - 1 if node > 0 else None
    return out


def limited(x: torch.Tensor, limit: float | None = None) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        if limit is None or x[i] < limit:
            limit = x[i]
        out[i] = limit
    return out


def guarded(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x))
    for i in range(len(x)):
        j = find(x, i, 0.5)
        if j is None:
            raise ValueError(f"nothing in row {i}")
        out[i] = j
        k = find(x, i, 0.2)
        assert k is not None, "never"
        out[i] += k
    return out


def nearest(x: torch.Tensor, q: float, best: float | None = None, where: int | None = None) -> int | None:
    for i in range(len(x)):
        d = abs(x[i] - q)
        if best is None or d < best:
            best, where = d, i
    return where


class Hit:
    def __init__(self, t: float, i: int) -> None:
        self.t = t
        self.i = i


def ray(x: torch.Tensor, k: int) -> Hit | None:
    hit = None
    for i in range(len(x)):
        t = x[i] - k
        if t > 0 and (hit is None or t < hit.t):
            hit = Hit(t, i)
    return hit


def hits(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(8, 2)
    for k in range(8):
        hit = ray(x, k)
        out[k, 0] = hit.t + hit.i if hit else -1
        near = nearest(x, k)
        out[k, 1] = -1 if near is None else near
    return out


def replaced(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    last = None
    for i in range(len(x)):
        out[i] = last or x[i] or 5.0
        last = x[i] if x[i] > 0.3 else None
    return out


def compared(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x), 7)
    last, before, pair = None, None, None
    for i in range(len(x)):
        out[i, 0] = last == 2
        out[i, 1] = last != 3
        out[i, 2] = 1 if last == before else 0
        out[i, 3] = 1 if before != last else 0
        out[i, 4] = 1 if last in (1, 4) else 0
        out[i, 5] = 1 if x[i] == last else 0
        out[i, 6] = 1 if pair == (i - 1, last) else 0
        before = last
        last = i if x[i] > 0 else None
        pair = (i, i) if x[i] > -0.5 else None
    return out


def combined(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    last = None
    for i in range(len(x)):
        out[i] = last and x[i]
        last = x[i] if x[i] > 0.3 else None
    return out


def unset(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    best = None
    for i in range(len(x)):
        if x[i] > 5:
            best = x[i]
        out[0] += best
    return out


def forgotten(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x))
    for i in range(len(x)):
        out[i] = find_or_end(x, i, 1.0)
    return out


def operator(function: Callable[..., Any]) -> bw.Op:
    return bw.op("optional::" + function.__name__)(function)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (smallest, (torch.randn(9),)),
    (smallest, (torch.randn(0),)),
    (searches, (torch.randn(8, 5),)),
    (needed, (2 * torch.ones(3, 5),)),
    (previous, (torch.randn(30),)),
    (stepping, (torch.randn(5), True)),
    (stepping, (torch.randn(5), False)),
    (limited, (torch.randn(5),)),
    (limited, (torch.randn(5), -0.5)),
    (guarded, (torch.rand(5, 60),)),
    (replaced, (torch.randn(9),)),
    (compared, (torch.tensor([1.0, 0, -1, -1, 3, 4, 5, -0.2, -0.3]),)),
    (hits, (8 * torch.rand(6),)),
    (hits, (torch.rand(0),)),
]


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[each[0].__name__ for each in PROGRAMS])
@pytest.mark.parametrize("check", ["", "interpret"])
def test_compiled_code_agrees_with_python(function: Callable[..., Any], arguments: tuple[Any, ...], check: str) -> None:
    before, config.check = config.check, check
    try:
        made = operator(function)
        torch.testing.assert_close(made(*arguments), function(*arguments))
    finally:
        config.check = before


@pytest.mark.parametrize(("function", "shape"), [(needed, (3, 5)), (unset, (4,))])
def test_a_number_that_is_none_is_a_type_error(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    made, x = operator(function), torch.zeros(shape)
    with pytest.raises(TypeError, match=r"a number is needed here, not None"):
        made(x)
    with pytest.raises(TypeError, match=r"a number is needed here, not None"):
        made.python(x)


def test_a_tested_number_is_not_checked() -> None:
    made = operator(smallest)
    assert "check" not in made.inspect("ir", torch.randn(9))
    made = operator(guarded)
    assert made.inspect("ir", torch.randn(9, 3)).count("TypeError") == 0
    with pytest.raises(ValueError, match="nothing in row 0"):
        made(torch.zeros(2, 2))


def test_gradients_flow_through_what_is_there() -> None:
    made = operator(previous)
    assert torch.autograd.gradcheck(made, (torch.randn(12, dtype=torch.float64, requires_grad=True),))


def test_and_of_what_may_be_none_is_refused() -> None:
    with pytest.raises(CompileError, match="`last` may be None, and is what `and` or `or` gives"):
        operator(combined)(torch.randn(3))


def test_a_helper_that_forgets_to_return_is_refused() -> None:
    with pytest.raises(CompileError, match="return a value on every path"):
        operator(forgotten)(torch.randn(3, 5))
