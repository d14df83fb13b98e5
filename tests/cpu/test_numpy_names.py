"""NumPy's functions on elements, its numbers, and small arrays that are captured."""

# pyright: basic
from __future__ import annotations

import numpy as np
import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

EPSILON, COUNT = np.float32(0.5), np.int64(3)
TAPS = np.array([0.25, 0.5, 0.25])
GRID = np.arange(6, dtype=np.float32).reshape(2, 3) * 0.5


class Settings:
    def __init__(self):
        self.weights = np.array([1.0, 2.0])
        self.step = np.int32(2)


SETTINGS = Settings()


def functions(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = np.exp(-np.abs(x[i])) + np.sqrt(2.0) * np.pi + np.maximum(x[i], 0.0) + np.clip(x[i], -1, 1)
        out[i] += np.sign(x[i]) + np.where(x[i] > 0, x[i], 2.0) + np.power(np.abs(x[i]), 1.5) + np.arctan2(x[i], 2.0)
        out[i] += np.floor(x[i]) + np.log1p(x[i] * x[i]) + np.isnan(x[i]) + np.float64(i) + np.int64(x[i])
        out[i] += np.square(x[i]) + np.cbrt(2.0) + np.hypot(x[i], 1.0) + np.mod(x[i], 2.0) + np.rint(x[i] * 3)
    return out


def same_functions(x: torch.Tensor) -> torch.Tensor:
    y = torch.sign(x) + torch.where(x > 0, x, 2.0) + x.abs() ** 1.5 + torch.atan2(x, torch.tensor(2.0))
    y += torch.exp(-x.abs()) + 2**0.5 * np.pi + x.clamp(min=0.0) + x.clamp(-1, 1) + x.floor() + torch.log1p(x * x)
    y += x.isnan() + torch.arange(len(x)) + x.trunc() + x * x + 2 ** (1 / 3) + torch.hypot(x, torch.tensor(1.0))
    return y + x.remainder(2.0) + (x * 3).round()


def integers(k: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(k)
    for i in range(len(k)):
        out[i] = np.minimum(k[i], 3) + np.abs(k[i]) + np.left_shift(k[i], 2) + np.bitwise_and(k[i], 3)
    return out


def captured(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    best = np.inf
    for i in range(1, len(x) - 1):
        for k in range(3):
            out[i] += TAPS[k] * x[i + k - 1]
        for k in range(GRID.shape[1]):
            out[i] += GRID[i % 2, k] * x[i] + GRID[1][k] + GRID[-1, 0]
        out[i] += len(GRID) + EPSILON * COUNT + SETTINGS.weights[i % 2] * SETTINGS.step + sum(GRID[0])
        best = min(best, x[i])
    out[0] = best
    return out


def rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x), dtype=x.dtype)
    for i in range(len(x)):
        out[i] = np.sum(x[i]) + np.max(x[i]) * np.mean(x[i, 1:])
    return out


X = torch.linspace(-1.5, 2.0, 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions(dtype):
    x = X.to(dtype)
    agree(functions, x, plain=False)
    torch.testing.assert_close(bw.op("numpy::functions")(functions)(x), same_functions(x))


def test_integers():
    k = torch.arange(-3, 4)
    agree(integers, k, plain=False)
    found = bw.op("numpy::integers")(integers)(k)
    assert torch.equal(found, k.clamp(max=3) + k.abs() + (k << 2) + (k & 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_captured(dtype):
    agree(captured, X.to(dtype), plain=False)


def test_rows():
    x = X.reshape(2, 4)
    agree(rows, x, plain=False)
    torch.testing.assert_close(bw.op("numpy::rows")(rows)(x), x.sum(1) + x.amax(1) * x[:, 1:].mean(1))


def test_gradients():
    x = (X.double() * 0.73 + 0.11).requires_grad_()  # away from where they jump
    assert torch.autograd.gradcheck(bw.op("numpy::functions_gradient")(functions), (x,))
    assert torch.autograd.gradcheck(bw.op("numpy::captured_gradient")(captured), (x,))


def test_an_array_that_is_replaced_is_told():
    operator = bw.op("numpy::captured_again")(captured)
    before = operator(X)
    assert operator(X).equal(before)
    globals()["TAPS"] = np.array([1.0, 1.0, 1.0])
    try:
        with pytest.warns(bw.BrickworkWarning, match="`TAPS` was rebound"):
            assert operator(X).equal(before)
    finally:
        globals()["TAPS"] = np.array([0.25, 0.5, 0.25])


def test_large_arrays_and_functions_without_a_meaning_are_refused():
    large = np.zeros(10000)

    def reads(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] = large[i]
        return out

    def called(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] = np.spacing(x[i])
        return out

    with pytest.raises(CompileError, match="of type ndarray, which cannot be compiled in"):
        bw.op("numpy::reads")(reads)(X)
    with pytest.raises(CompileError, match=r"`np\.spacing` of an element is not part of the language"):
        bw.op("numpy::called")(called)(X)
