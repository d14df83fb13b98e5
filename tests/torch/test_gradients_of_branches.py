"""What a branch that is not taken would have computed has no part in any derivative, of any order or mode."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false

from __future__ import annotations

import math

import pytest
import torch

import brickwork as bw

POINTS = torch.tensor([0.0, -1.0, 4.0, 0.5, math.inf, 0.0, -math.inf, 2.0], dtype=torch.float64)
FACTORS = torch.tensor([2.0, 0.0, 3.0, -1.5, 0.0, 0.0, 1.0, 1.0], dtype=torch.float64)


def is_finite(a: float) -> bool:
    return a > 0 and a < math.inf


def root(a: float) -> float:
    return torch.sqrt(a) if is_finite(a) else 0.0


def logarithm(a: float) -> float:
    if not is_finite(a):
        return 0.0
    return root(a) * math.log(a)


@bw.op("branches::statement")
def statement(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i] > 0 and x[i] < math.inf:
            v = torch.sqrt(x[i])
            out[i] = v * y[i] + y[i] / v
    return out


@bw.op("branches::expression")
def expression(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v, f = x[i], y[i]
        out[i] = torch.sqrt(v) * f + f / torch.sqrt(v) if v > 0 and v < math.inf else 0.0
    return out


@bw.op("branches::variable")
def variable(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The value of an expression goes on in a carried variable."""
    out = torch.empty_like(x)
    s = 0.0
    for i in range(x.shape[0]):
        v, f = x[i], y[i]
        s = s * s + v * math.log(v) * f if v > 0 and v < math.inf else s
        out[i] = s
    return out


@bw.op("branches::helpers")
def helpers(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = y[i] * logarithm(x[i]) + root(x[i])
    return out


@bw.op("branches::product")
def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """No function is dangerous but the product with what is infinite."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v, f = x[i], y[i]
        out[i] = v * v * v * f if v > 0 and v < math.inf else 0.0
    return out


def on_finite(formula):
    """Return a formula that is computed where it is finite alone, and 0 elsewhere."""

    def call(x, y):
        chosen = ((x > 0) & (x < math.inf)).nonzero()[:, 0]
        return torch.zeros_like(x).index_add(0, chosen, formula(x[chosen], y[chosen]))

    return call


def torch_variable(x, y):
    s, rows = x.new_zeros(()), []
    for v, f in zip(x, y, strict=True):
        if 0 < v < math.inf:
            s = s * s + v * v.log() * f
        rows.append(s)
    return torch.stack(rows)


CASES = {
    "statement": (statement, on_finite(lambda x, y: x.sqrt() * y + y / x.sqrt())),
    "expression": (expression, on_finite(lambda x, y: x.sqrt() * y + y / x.sqrt())),
    "variable": (variable, torch_variable),
    "helpers": (helpers, on_finite(lambda x, y: y * x.sqrt() * x.log() + x.sqrt())),
    "product": (product, on_finite(lambda x, y: x**3 * y)),
}


def derivatives(function):
    x, y = POINTS.clone().requires_grad_(), FACTORS.clone().requires_grad_()
    torch.manual_seed(0)
    v, directions = torch.randn_like(x), (torch.randn_like(x), torch.randn_like(y))
    first = torch.autograd.grad((function(x, y) * v).sum(), (x, y), create_graph=True)
    total = sum((gradient * direction).sum() for gradient, direction in zip(first, directions, strict=True))
    second = torch.autograd.grad(total, (x, y))

    def gradients(x, y):
        return torch.func.grad(lambda *both: (function(*both) * v).sum(), (0, 1))(x, y)

    plain = (POINTS, FACTORS)
    forward = torch.func.jvp(function, plain, directions)[1]
    return [*first, *second, forward, *torch.func.jvp(gradients, plain, directions)[1]]


def forward_twice(function):
    torch.manual_seed(1)
    directions = (torch.randn_like(POINTS), torch.randn_like(FACTORS))

    def tangent(x, y):
        return torch.func.jvp(function, (x, y), directions)[1]

    return torch.func.jvp(tangent, (POINTS, FACTORS), directions)[1]


@pytest.mark.parametrize("name", CASES)
def test_no_derivative_of_what_is_not_computed(name):
    ours, theirs = CASES[name]
    torch.testing.assert_close(derivatives(ours), derivatives(theirs), rtol=1e-9, atol=1e-9)


def test_no_tangent_of_a_tangent_of_what_is_not_computed():
    found = forward_twice(expression)
    assert found.isfinite().all()
    torch.testing.assert_close(found, forward_twice(CASES["expression"][1]), rtol=1e-9, atol=1e-9)
