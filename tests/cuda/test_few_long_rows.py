"""Long rows for few threads, means that are kept up to date over nests, and rows shorter than a stage, on a GPU."""

from __future__ import annotations

import pytest
import torch

import brickwork as bw
from support import long_rows
from support.gpu import GPU

pytestmark = GPU


soft_least = bw.op("few_long_rows::soft_least")(long_rows.soft_least)
standardised = bw.op("few_long_rows::standardised")(long_rows.standardised)


@pytest.mark.parametrize("places", [1, 3, 31, 32])
@pytest.mark.parametrize("points", [1, 255, 256, 257, 5000])
def test_points(points: int, places: int) -> None:
    x, y = torch.randn(300, places), torch.randn(points, places)
    expected = torch.logsumexp(-((x.double()[:, None] - y.double()) ** 2).sum(2), 1)
    torch.testing.assert_close(soft_least(x.cuda(), y.cuda()).cpu().double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 2, 5), (64, 3, 130), (200, 1, 33), (64, 128, 256), (7, 300, 1024)], ids=str)
def test_means_over_nests(shape: tuple[int, ...]) -> None:
    x, w, g = torch.randn(shape) + 3, torch.randn(shape[1]), torch.randn(shape)
    there = [item.cuda().requires_grad_() for item in (x, w)]
    found = standardised(*there)
    here = [item.double().requires_grad_() for item in (x, w)]
    mean, variance = here[0].mean((0, 2), keepdim=True), here[0].var((0, 2), correction=0, keepdim=True)
    right = (here[0] - mean) / (variance + 0.25) * here[1][:, None]
    torch.testing.assert_close(found.cpu().double(), right, rtol=1e-3, atol=1e-3)
    gradients = torch.autograd.grad(found, there, g.cuda())
    for one, other in zip(gradients, torch.autograd.grad(right, here, g.double()), strict=True):
        torch.testing.assert_close(one.cpu().double(), other, rtol=1e-2, atol=1e-2)


@bw.op("few_long_rows::within")
def within(x: torch.Tensor, y: torch.Tensor, ends: torch.Tensor, r: float) -> torch.Tensor:
    """Return how many points of each row's part are within a distance, up to eight."""
    out = torch.zeros(y.shape[0], dtype=torch.int64)
    for i in range(y.shape[0]):
        for j in range(ends[i], ends[i + 1]):
            d = 0.0
            for k in range(y.shape[1]):
                d += (x[j, k] - y[i, k]) ** 2
            if d < r:
                out[i] += 1
                if out[i] >= 8:
                    break
    return out


@pytest.mark.parametrize("places", [1, 3, 15, 16, 31, 40])
def test_rows_shorter_than_a_stage(places: int) -> None:
    x, y = torch.randn(4000, places), torch.randn(1000, places)
    ends = torch.arange(1001) * 4
    near = ((x.double().view(1000, 4, places) - y.double()[:, None]) ** 2).sum(2) < 2.0 * places
    assert torch.equal(within(x.cuda(), y.cuda(), ends.cuda(), 2.0 * places).cpu(), near.sum(1))
