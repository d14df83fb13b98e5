"""Gradients of sweeps over every second cell, and of greatest elements that loops compute, are as parallel as these."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

import brickwork as bw
from support.gradients import check_gradients

META = {"device": "meta", "dtype": torch.float32}


def red_and_black(p0: torch.Tensor, turns: int) -> torch.Tensor:
    p = p0.clone()
    for _ in range(turns):
        for colour in range(2):
            for i in range(1, p.shape[0] - 1):
                for j in range(1, p.shape[1] - 1):
                    if (i + j) % 2 != colour:
                        continue
                    p[i, j] = 0.5 * p[i, j] + 0.1 * (p[i - 1, j] + p[i + 1, j] + p[i, j - 1] + p[i, j + 1])
    return p


def farthest(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    worst = torch.full((1,), -1.0, dtype=a.dtype, device=a.device)
    for i in range(a.shape[0]):
        d = 1e30
        for j in range(b.shape[0]):
            d = min(d, (a[i] - b[j]) ** 2)
        worst[0] = max(worst[0], d)
    return worst


def farthest_of_each(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    worst = torch.zeros((b.shape[0],), dtype=a.dtype, device=a.device)
    for k in range(b.shape[0]):
        for i in range(a.shape[0]):
            s = 0.0
            for j in range(a.shape[0]):
                s += (a[i] - b[k]) * a[j] * (i + 1)
            worst[k] = max(worst[k], s)
    return worst


def explained(function, *arguments) -> str:
    given = [item.requires_grad_() if isinstance(item, torch.Tensor) else item for item in arguments]
    return bw.op(function).explain("backward", *given, device="sm_90")


def test_cells_of_a_colour_are_a_thread_each():
    text = explained(red_and_black, torch.empty(512, 512, **META), 10)
    assert "diagonal" not in text
    assert "20 times" in text
    assert "updates of 'p_adjoint' are atomic" in text


@pytest.mark.parametrize("function", [farthest, farthest_of_each])
def test_the_place_of_what_loops_compute_is_searched(function):
    text = explained(function, torch.empty(512, **META), torch.empty(256, **META))
    assert "tape" not in text
    assert "each iteration launches" not in text


def test_their_gradients_are_those_of_central_differences():
    generator = torch.Generator().manual_seed(5)
    a, b, p = (torch.randn(*size, dtype=torch.float64, generator=generator) for size in ((5,), (4,), (6, 5)))
    check_gradients(red_and_black, p, 2)
    check_gradients(farthest, a, b)
    check_gradients(farthest_of_each, a, b)
    check_gradients(farthest, a[:1], b)
