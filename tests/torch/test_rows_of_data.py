"""Operators that write rows which elements begin and end: the same values and gradients whether those ascend or not."""

# pyright: basic
from __future__ import annotations

import math

import pytest
import torch

import brickwork as bw

OPTIMISED = True


@bw.op
def edge_softmax(ptr: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Softmax over the rows of a sparse matrix."""
    out = torch.zeros_like(x)
    for i in range(ptr.shape[0] - 1):
        for h in range(x.shape[1]):
            m = -math.inf
            for e in range(ptr[i], ptr[i + 1]):
                m = max(m, x[e, h])
            s = 0.0
            for e in range(ptr[i], ptr[i + 1]):
                s += math.exp(x[e, h] - m)
            for e in range(ptr[i], ptr[i + 1]):
                out[e, h] = math.exp(x[e, h] - m) / s
    return out


def by_torch(ptr: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the same row by row; of rows that overlap the last one counts."""
    rows: list[torch.Tensor] = [torch.zeros_like(x[0])] * len(x)
    for first, last in zip(ptr.tolist(), ptr.tolist()[1:], strict=False):
        part = torch.softmax(x[first:last], 0) if first < last else ()
        for place, row in zip(range(first, last), part, strict=False):
            rows[place] = row
    return torch.stack(rows)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("ptr", [[0, 3, 3, 20, 24], [0, 12, 5, 24], [2, 7, 9], [0, 24, 0, 24], [5, 5, 5], [5], []])
def test_rows_give_the_same_in_any_order(ptr: list[int], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(24, 3, dtype=torch.float64)
    given, other = (x.clone().requires_grad_() for _ in range(2))
    ends = torch.tensor(ptr, dtype=dtype)
    got, want = edge_softmax(ends, given), by_torch(ends, other)
    torch.testing.assert_close(got, want)
    weights = torch.rand_like(want)
    (got_gradient,) = torch.autograd.grad(got, given, weights)
    want_gradient = torch.autograd.grad(want, other, weights)[0] if want.requires_grad else torch.zeros_like(x)
    torch.testing.assert_close(got_gradient, want_gradient)


def test_rows_beyond_the_end_are_refused() -> None:
    with pytest.raises(IndexError, match="index 24"):
        edge_softmax(torch.tensor([0, 5, 25]), torch.randn(24, 3))


def test_it_is_said_what_is_tested() -> None:
    said = edge_softmax.explain(torch.tensor([0, 24]), torch.randn(24, 3))
    assert "where 'ptr' ascends from 0 on to no more than x.shape[0], out.shape[0], which is tested before" in said
