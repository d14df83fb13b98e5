"""Idioms that are spelled out as others: inner products, bits, short queues, places in lists, `zip(strict=True)`."""

# pyright: basic
from __future__ import annotations

import math
from collections import deque
from typing import Literal

import pytest
import torch

import brickwork as bw
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")


def products(a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(a), len(a) + 1, dtype=a.dtype)
    for i in range(len(a)):
        for j in range(len(a)):
            out[i, j] = torch.dot(a[i], a[j]) + a[i, 1:] @ v[:-1]
        out[i, -1] = a[i] @ v * 2 + torch.dot(v, a[i])
    return out


def attention(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(q)
    for i in range(len(q)):
        s = [q[i] @ k[j] / math.sqrt(q.shape[1]) for j in range(len(k))]
        most = max(s)
        total = sum(math.exp(w - most) for w in s)
        for j in range(len(k)):
            out[i] += math.exp(s[j] - most) / total * k[j]
    return out


def bits(k: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(k)
    for i in range(len(k)):
        out[i] = bin(k[i]).count("1") + 100 * bin(i).count("1")
    return out


def moving(x: torch.Tensor, most: int) -> torch.Tensor:
    """Means and extremes of the last elements."""
    out = torch.zeros(len(x), 3, dtype=x.dtype)
    window = deque(maxlen=3)
    long = deque(maxlen=most)
    for i, v in enumerate(x):
        window.append(v)
        long.append(v * 2)
        out[i, 0] = sum(window) / len(window)
        out[i, 1] = max(long)
        out[i, 2] = window[0] + long[-1]
    return out


def places(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x), 2, dtype=torch.int64)
    for i in range(len(x)):
        distances = [abs(x[i] - y[j]) for j in range(len(y))]
        out[i, 0] = distances.index(min(distances))
        out[i, 1] = (5, 7, i % 3).index(i % 3)
    return out


def together(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i, (a, b, k) in enumerate(zip(x, y, range(len(x)), strict=True)):
        out[i] = a * b + k
    return out


def powers(x: torch.Tensor, order: Literal[1, 2, -1] = 1, flip: Literal[True, False] = False) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = (-x[i] if flip else x[i]) ** order
    return out


X = torch.tensor([0.5, -1.0, 0.25, 2.0, 1.5])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_products(dtype):
    a = torch.linspace(-1, 2, 12).reshape(3, 4).to(dtype)
    agree(products, a * (1 + 1j) if dtype.is_complex else a, a[1] * 2)
    agree(products, a.t()[:3, :3], a[1, ::2].repeat(2)[:3], plain=False)


def test_attention():
    q, k = torch.linspace(-1, 2, 12).reshape(4, 3), torch.linspace(2, -1, 15).reshape(5, 3)
    agree(attention, q, k)
    q, k = q.double().requires_grad_(), k.double().requires_grad_()
    assert torch.autograd.gradcheck(bw.op("idioms::attention")(attention), (q, k))
    x, y = torch.empty(3, 0), torch.empty(0)
    agree(products, x, y, plain=False)


def test_products_of_other_lengths():
    operator = bw.op("idioms::products")(products)
    with pytest.raises(RuntimeError, match="size mismatch of a product: 3 and 2"):
        operator(torch.ones(3, 4), torch.ones(3))


def mapped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros(len(x), w.shape[1])
    for i in range(len(x)):
        out[i] = x[i] @ w
    return out


def test_products_of_rows_and_matrices():
    x, w = torch.linspace(-1, 2, 6).reshape(2, 3), torch.linspace(2, -1, 12).reshape(3, 4)
    agree(mapped, x, w)
    x, w = x.double().requires_grad_(), w.double().requires_grad_()
    assert torch.autograd.gradcheck(bw.op("idioms::mapped")(mapped), (x, w))


def test_bits():
    agree(bits, torch.tensor([0, 5, -5, 255, 2**40 + 1]))


@pytest.mark.parametrize("most", [1, 2, 9])
def test_short_queues(most):
    agree(moving, X, most, plain=False)
    agree(moving, X[:0], most)


def test_places():
    agree(places, X, X.flip(0)[:3])


def test_a_place_of_nothing():
    def missing(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(len(x), dtype=torch.int64)
        for i in range(len(x)):
            out[i] = [0.5, 1.0].index(x[i])
        return out

    operator = bw.op("idioms::missing")(missing)
    assert operator(X[:1]).item() == 0
    for call in (operator, operator.python):
        with pytest.raises(ValueError, match="what is looked for is not in"):
            call(X)


def test_together():
    agree(together, X, X.flip(0))
    operator = bw.op("idioms::together")(together)
    for call in (operator, operator.python):
        with pytest.raises(ValueError, match=r"zip\(\) argument 2"):
            call(X, X[:3])


def test_literals():
    for order in (1, 2, -1):
        agree(powers, X.abs() + 1, order, order > 1)
    operator = bw.op("idioms::powers")(powers)
    assert str(torch.ops.idioms.powers.default._schema) == (
        "idioms::powers(Tensor x, SymInt order=1, bool flip=False) -> Tensor"
    )
    with pytest.raises(ValueError, match="argument order of powers must be 1, 2 or -1"):
        operator(X, 3)
    assert torch.equal(operator(X, 2, flip=True), X * X)
