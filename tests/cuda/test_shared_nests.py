"""Nests that the threads of a block share out as one range, at sizes around lanes, warps and blocks."""

from __future__ import annotations

import math

import pytest
import torch

import brickwork as bw
from support.gpu import GPU

pytestmark = GPU
SHAPES = (
    (16, 3, 7, 7),
    (1, 2, 1, 1),
    (0, 3, 4, 4),
    (3, 2, 0, 5),
    (3, 2, 5, 0),
    (2, 3, 4, 8),
    (5, 2, 33, 12),
    (64, 4, 1, 4),
    (7, 2, 64, 64),
    (700, 1, 1, 3),
)
TYPES = {torch.float32: 1e-5, torch.float16: 4e-3, torch.float64: 1e-12}


@bw.op("shared_nests::standardised")
def standardised(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return each channel with mean 0 and variance 1, times its weight."""
    out = torch.empty_like(x)
    for c in range(x.shape[1]):
        s = 0.0
        q = 0.0
        for n in range(x.shape[0]):
            for y in range(x.shape[2]):
                for z in range(x.shape[3]):
                    s += x[n, c, y, z]
        mean = s / max(x.shape[0] * x.shape[2] * x.shape[3], 1)
        for n in range(x.shape[0]):
            for y in range(x.shape[2]):
                for z in range(x.shape[3]):
                    q += (x[n, c, y, z] - mean) ** 2
        r = 1 / math.sqrt(q / max(x.shape[0] * x.shape[2] * x.shape[3], 1) + 1e-5)
        for n in range(x.shape[0]):
            for y in range(x.shape[2]):
                for z in range(x.shape[3]):
                    out[n, c, y, z] = (x[n, c, y, z] - mean) * r * w[c]
    return out


@bw.op("shared_nests::spread")
def spread(x: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """Return how far the products of rows lie apart: the greatest less the least one, of a part of the columns."""
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    for i in range(x.shape[0]):
        high = -math.inf
        low = math.inf
        for j in range(1, x.shape[1]):
            for k in range(max(first, 0), min(last, x.shape[2])):
                high = max(high, x[i, j, k] * x[i, j - 1, k])
                low = min(low, x[i, j, k] * x[i, j - 1, k])
        out[i] = high - low
    return out


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nests_are_what_they_are_on_a_cpu(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, w = torch.randn(shape, dtype=dtype), torch.rand(shape[1], dtype=dtype)
    found, expected = standardised(x.cuda(), w.cuda()), standardised(x, w)
    torch.testing.assert_close(found.cpu(), expected, rtol=TYPES[dtype], atol=TYPES[dtype])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_nests(shape: tuple[int, ...]) -> None:
    x, w, g = torch.randn(shape).double(), torch.rand(shape[1]).double(), torch.randn(shape).double()
    expected = _gradients(x, w, g)
    for found, right in zip(_gradients(x.cuda(), w.cuda(), g.cuda()), expected, strict=True):
        torch.testing.assert_close(found.cpu(), right, rtol=1e-9, atol=1e-9)


def _gradients(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
    x, w = x.requires_grad_(), w.requires_grad_()
    return torch.autograd.grad(standardised(x, w), (x, w), g)


@pytest.mark.parametrize("layout", ["channels last", "cut", "expanded"])
def test_layouts(layout: str) -> None:
    x = torch.randn(6, 4, 10, 12)
    changed = {
        "channels last": lambda: x.to(memory_format=torch.channels_last),
        "cut": lambda: x[:, :, 1:8, 3:11],
        "expanded": lambda: x[:1].expand(5, -1, -1, -1),
    }[layout]()
    w = torch.rand(4)
    there = changed.cuda() if layout != "cut" else x.cuda()[:, :, 1:8, 3:11]
    torch.testing.assert_close(standardised(there, w.cuda()).cpu(), standardised(changed, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("first", "last"), [(0, 40), (3, 17), (-2, 90), (17, 3), (5, 6)])
def test_loops_that_begin_elsewhere(first: int, last: int) -> None:
    x = torch.randn(9, 50, 40)
    assert torch.equal(spread(x.cuda(), first, last).cpu(), spread(x, first, last))
