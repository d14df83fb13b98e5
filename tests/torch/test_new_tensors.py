"""Host parts that copy tensors, convert them or make them of numbers are compiled; so are methods of elements."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportReturnType=false

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import brickwork as bw

KERNEL = ((1.0, 2.0), (0.5, -1.0))


def copied(x: torch.Tensor, k: int) -> torch.Tensor:
    y = x.clone()
    for i in range(min(k, len(x))):
        y[i, 0] += 1
    return y


def copied_over(x: torch.Tensor, k: int) -> torch.Tensor:
    x = x.clone()
    for i in range(min(k, len(x))):
        x[i, 0] += 1
    return x


def first_rows(x: torch.Tensor, k: int) -> torch.Tensor:
    y = x[:k].clone()
    for i in range(len(y)):
        y[i, 0] *= 2
    return y


def exchanged(x: torch.Tensor, k: int) -> torch.Tensor:
    a, b = torch.zeros_like(x), torch.zeros_like(x)
    a = x.clone()
    b = torch.clone(x)
    for _ in range(k):
        for i in range(len(x)):
            b[i, 0] = a[len(x) - 1 - i, 0] + 1
        a, b = b, a
    return a


def converted(x: torch.Tensor, k: int) -> torch.Tensor:
    y = x.double()
    z = x.to(torch.float32, copy=True)
    w = torch.arange(k).float()
    x = x.contiguous()
    out = torch.zeros(k, dtype=torch.float64)
    for i in range(min(k, len(x))):
        z[i, 0] += 1
        out[i] = y[i, 0] / 3 + z[i, 0] + w[i] + x[i, 1]
    return out


def of_numbers(x: torch.Tensor, k: int) -> tuple[torch.Tensor, ...]:
    eye = torch.eye(k)
    wide = torch.eye(k, 2, dtype=x.dtype)
    odd = torch.arange(1, 2 * k + 1, 2)
    down = torch.arange(k, 0, -3, dtype=torch.float64)
    best = torch.tensor(-1.5)
    count = torch.tensor(k)
    table = torch.tensor([[1, 2], [3, 4]])
    kernel = torch.tensor(KERNEL)
    for i in range(k):
        eye[i, i] += x[0, 0]
        best[()] = max(best[()], x[0, 1])
    return eye, wide, odd, down, best, count, table, kernel


def limits(x: torch.Tensor, k: int) -> torch.Tensor:
    least = torch.finfo(x.dtype).min
    out = torch.full((k,), torch.iinfo(torch.int32).max, dtype=x.dtype)
    for i in range(min(k, len(x))):
        best = least
        for j in range(x.shape[1]):
            best = max(best, x[i, j])
        out[i] = best + torch.finfo(torch.float32).eps
    return out


def methods(x: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(min(k, len(x))):
        for j in range(x.shape[1]):
            a = x[i, j]
            out[i, j] = a.exp() + (a * a).sqrt().log1p() + x[i, j].clamp(0.1, max=0.5).item() + a.item() ** 2
    return out


def rows(x: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(min(k, len(x))):
        row = x[i]
        top = torch.max(x[i])
        out[i] = torch.exp(x[i] - top) / torch.exp(x[i] - top).sum()
        out[i, 0] = torch.sqrt(((row - row.mean()) ** 2).mean()) + torch.sum(row)
        out[..., 1] = out[..., 1] + torch.clamp(x[..., 0], 0.0, 0.5)
    return out


def pairs(x: torch.Tensor, k: int) -> tuple[torch.Tensor, ...]:
    rows, columns = x.shape
    one, two, n = x.clone(), torch.clone(x), min(k, rows)
    three = x.new_zeros(rows, columns)
    low, high = x.double(), n + 1
    for i in range(n):
        one[i, 0] += two[i, 1]
        three[i, 1] = low[i, 0] * high
    return one, two, three


HOSTS: list[Callable[..., Any]] = [
    copied, copied_over, first_rows, exchanged, converted, of_numbers, limits, methods, rows, pairs
]  # fmt: skip


@pytest.mark.parametrize("function", HOSTS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("x", [torch.randn(4, 3), torch.randn(3, 5).t(), torch.randn(1, 3).expand(4, 3)])
def test_such_host_parts_are_compiled(function: Callable[..., Any], k: int, x: torch.Tensor):
    operator = bw.op(f"newtensors::{function.__name__}")(function)
    before, given = x.clone(), operator(x, k)
    assert torch.equal(x, before)
    assert "host part: native" in operator.explain(x, k)
    torch.testing.assert_close(given, operator.python(x, k))
    torch.testing.assert_close(given, function(x, k))


@pytest.mark.parametrize(
    "function", [copied_over, first_rows, exchanged, methods, rows, pairs], ids=lambda one: one.__name__
)
def test_they_are_differentiated(function: Callable[..., Any]):
    x = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    operator = bw.op(f"newtensors::differentiated_{function.__name__}")(function)
    assert torch.autograd.gradcheck(lambda x: operator(x, 2), x)


def test_a_range_that_runs_the_wrong_way_is_torchs_error():
    def down(k: int) -> torch.Tensor:
        out = torch.arange(3, k, 2)
        for i in range(len(out)):
            out[i] += 1
        return out

    operator = bw.op("newtensors::down")(down)
    assert operator(6).tolist() == [4, 6]
    with pytest.raises(RuntimeError, match="upper bound and lower bound inconsistent with step sign"):
        operator(2)


def test_a_copy_has_the_strides_of_the_tensor():
    operator = bw.op("newtensors::strided")(copied)
    x = torch.randn(3, 5).t()
    assert operator(x, 1).stride() == x.clone().stride()
    assert torch.compile(operator, fullgraph=True)(x, 1).stride() == x.clone().stride()


def test_what_may_be_the_argument_is_not_stored_into():
    def stored(x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        for i in range(len(x)):
            y[i] = 0
        return torch.zeros_like(x)

    with pytest.raises(bw.CompileError, match="may or may not be a copy"):
        bw.op("newtensors::stored")(stored)


def test_a_conversion_to_the_type_that_is_there_copies_nothing():
    def summed(x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        total = 0.0
        for i in range(len(y)):
            total += y[i]
        return total

    operator = bw.op("newtensors::summed")(summed)
    assert torch.equal(operator(torch.ones(3)), torch.tensor(3.0))
    assert "y" not in operator.inspect("ir", torch.ones(3)).split("kernel")[0].split("return")[0].split()
    assert torch.equal(operator(torch.ones(3, dtype=torch.int64)), torch.tensor(3.0))


def test_a_loop_over_elements_that_python_runs_is_told():
    def middle(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(len(x), dtype=torch.int64)
        for i in range(len(x)):
            out[i] = torch.nanmedian(x[i])
        return out

    with pytest.warns(bw.BrickworkWarning, match="BW405: the loop around `torch.nanmedian"):
        operator = bw.op("newtensors::middle")(middle)
    assert torch.equal(operator(torch.eye(3)), torch.zeros(3, dtype=torch.int64))


def test_a_loop_of_whole_tensors_is_no_loop_over_elements():
    def steps(x: torch.Tensor, times: int) -> torch.Tensor:
        y = x.clone()
        for _ in range(times):
            y = torch.relu(y @ x)
            for i in range(len(y)):
                y[i, 0] += 1
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bw.op("newtensors::steps")(steps)


@pytest.mark.parametrize(
    ("draw", "instead"),
    [
        (random.random, "bw.rand()"), (random.gauss, "bw.randn()"), (random.randint, "bw.randint(low, high)"),
        (np.random.rand, "bw.rand()"), (np.random.normal, "bw.randn()"),
    ],
)  # fmt: skip
def test_random_numbers_of_others_are_refused(draw: Callable[..., Any], instead: str):
    def drawn(x: torch.Tensor) -> None:
        for i in range(len(x)):
            x[i] = draw(0, 1)

    with pytest.raises(bw.CompileError, match="that torch's seed does not govern") as found:
        bw.op("newtensors::drawn")(drawn)
    assert f"write `{instead}`" in str(found.value)
