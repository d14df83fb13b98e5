"""What Python's library runs over, names given in conditions, and functions of any number of arguments."""

# pyright: basic
from __future__ import annotations

import itertools

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")


def running(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(4, len(x), dtype=x.dtype)
    best = list(itertools.accumulate(x, max))
    for i, total in enumerate(itertools.accumulate(x)):
        out[0, i] = total
        out[1, i] = best[i]
    for i, mean in enumerate(itertools.accumulate(x, lambda a, b: 0.5 * a + b)):
        out[2, i] = mean
    for i, k in enumerate(itertools.accumulate(range(len(x)))):
        out[3, i] = k
    return out


def chosen(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(4, dtype=x.dtype)
    for i, j in itertools.permutations(range(len(x)), 2):
        out[0] += x[i] * (j + 1)
    for i, j, k in itertools.permutations(range(1, len(x)), 3):
        if i > 2:
            break
        out[1] += x[i] * x[j] - k * x[k]
    for i, j in itertools.combinations_with_replacement(range(len(x)), 2):
        out[2] += x[i] * x[j] * (i + 2 * j)
    for i, j, k in itertools.product(range(len(x)), repeat=3):
        out[3] += x[i] * x[j] - x[k] * (i - j)
    return out


def named(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(4, len(x), dtype=x.dtype)
    for i in range(len(x)):
        if (y := x[i] * 2) > 1 and (z := y - 1) < 2 and z > 0.5:
            out[0, i] = z + y
        if not (x[i] > 0 and (w := x[i] * 3) > 1):
            out[1, i] = -1
        else:
            out[1, i] = w
        k = 0
        while k < len(x) and (v := x[k]) < 0.75:
            out[2, i] += v
            k += 1
        out[3, i] = 1 if x[i] > 0 and (u := x[i]) * u > 0.25 else 0
    return out


def of_any_number(x: torch.Tensor) -> torch.Tensor:
    def horner(v, *coefficients, scale=1.0):
        total = 0.0
        for c in coefficients:
            total = total * v + c
        return total * scale

    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = horner(x[i], 1.0, -2.0, *(0.5, 3.0)) + horner(x[i], i, scale=2.0) + horner(x[i])
    return out


@pytest.mark.parametrize("count", [0, 1, 2, 6])
@pytest.mark.parametrize("function", [running, chosen, named, of_any_number])
def test_agree(function, count: int) -> None:
    x = torch.arange(float(count)).mul(1.7).sin()
    op = agree(function, x, name=f"{function.__name__}_{count}")
    assert op.definition.host == "native"
    torch.testing.assert_close(bw.op(f"bwiteration::{function.__name__}_{count}")(function)(x), function(x))


@pytest.mark.parametrize("function", [running, chosen, named, of_any_number])
def test_gradients_are_those_of_torch(function) -> None:
    op, x = bw.op(f"bwiteration::gradient_{function.__name__}")(function), torch.tensor([0.3, 0.9, -0.4, 0.7, 0.6])
    one, other = (x.double().requires_grad_() for _ in range(2))
    torch.testing.assert_close(
        torch.autograd.grad(op(one).square().sum(), one), torch.autograd.grad(function(other).square().sum(), other)
    )


def unnamed(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        if x[i] > 0 or (y := x[i] * 2) < -1:
            out[i] = y
    return out


def test_a_name_that_a_condition_may_not_have_given_is_refused() -> None:
    with pytest.raises(CompileError, match="`y` may be read before it is assigned"):
        bw.op("bwiteration::unnamed")(unnamed)(torch.ones(3))
