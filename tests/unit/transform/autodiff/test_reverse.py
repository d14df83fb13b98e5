"""Reverse mode: gradients of kernels as users write them, against central differences."""

import math

import pytest
import torch

from support.gradients import check_gradients, numbers


def pointwise(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v = x[i] * y[i]
        out[i] = math.sin(v) / (1 + v * v) + math.exp(-x[i])
    return out


def causal(w: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    B, C, T = k.shape
    out = torch.empty_like(k)
    for b in range(B):
        for c in range(C):
            for t in range(T):
                s = 0.5
                for u in range(t + 1):
                    s += w[c, T - 1 - t + u] * k[b, c, u]
                out[b, c, t] = s
    return out


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = a.new_zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


def stencil(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(1, x.shape[0] - 1):
        out[i] = x[i - 1] * x[i] - 2 * x[i] + x[i + 1] ** 2
    return out


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        m = -math.inf
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - m)
            s += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= s
    return out


def clamped(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        if x[i] < -0.5:
            out[i] = -0.5
        elif x[i] > 0.5:
            out[i] = x[i] * x[i]
        else:
            out[i] = x[i]
    return out


def gathered(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((index.shape[0],))
    for i in range(index.shape[0]):
        out[i] = x[index[i]] * (i + 1)
    return out


def recurrence(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1]):
            h = a[b] * h + x[b, t] * h + x[b, t]
            out[b, t] = h
    return out


def in_place(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        x[i] = x[i] * y[i] + x[i] * x[i]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (pointwise, (numbers(4), numbers(4))),
        (causal, (numbers(2, 3), numbers(2, 2, 3))),
        (product, (numbers(2, 3), numbers(3, 2))),
        (stencil, (numbers(5),)),
        (softmax, (numbers(2, 3),)),
        (clamped, (torch.tensor([-1.0, -0.2, 0.3, 0.9], dtype=torch.float64),)),
        (gathered, (numbers(3), torch.tensor([2, 0, 2, 1]))),
        (recurrence, (numbers(2), numbers(2, 4))),
        (in_place, (numbers(4), numbers(4))),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_gradients_are_those_of_central_differences(function, arguments):
    check_gradients(function, *arguments)
