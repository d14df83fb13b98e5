"""Results that change places with arguments in a loop: they are copies of what Python returns."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

import brickwork as bw
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")


def heat(u: torch.Tensor, steps: int) -> torch.Tensor:
    v = torch.empty_like(u)
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        v[0], v[-1] = u[0] + 0.0, u[-1] + 0.0
        u, v = v, u
    return u


def both(u: torch.Tensor, v: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    for k in range(steps):
        for i in range(len(u)):
            v[i] = u[i] + 1
        if k != 1:
            u, v = v, u
    return v, u


def wave(a: torch.Tensor, steps: int) -> torch.Tensor:
    """A cycle of three, of which the argument is one at times."""
    b, c = torch.zeros_like(a), torch.zeros_like(a)
    for _ in range(steps):
        for i in range(1, len(a) - 1):
            c[i] = 2 * b[i] - a[i] + 0.1 * (b[i - 1] - 2 * b[i] + b[i + 1]) + 1
        a, b, c = b, c, a
    return b


def doubled(x: torch.Tensor) -> torch.Tensor:
    for i in range(len(x)):
        x[i] *= 2
    return x.clone()


X = torch.linspace(-1.0, 2.0, 9)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("x", [X, X.double(), X[::2], X[:3]])
def test_agrees(x, steps):
    agree(heat, x, steps)
    agree(both, x, x.flip(0), steps)
    agree(wave, x, steps)


def test_the_host_part_is_compiled():
    for function, arguments in ((heat, (X, 2)), (both, (X, X, 2)), (wave, (X, 2)), (doubled, (X,))):
        operator = bw.op(f"exchanged::{function.__name__}")(function)
        assert "host part: native" in operator.explain(*arguments)


def test_the_result_is_none_of_the_arguments():
    operator = bw.op("exchanged::heat_again")(heat)
    for steps in (0, 1):
        x = X.clone()
        assert operator(x, steps).data_ptr() != x.data_ptr()
    agree(doubled, X)
