"""Rows of tensors in loops: slices and parts of higher rank that are stored, computed with, reduced and run over."""

# Elements and slices are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")


def copies(out: torch.Tensor, x: torch.Tensor, j: int) -> None:
    for i in range(x.shape[0]):
        out[i] = x[j]


def computes(out: torch.Tensor, x: torch.Tensor, j: int) -> None:
    for i in range(x.shape[0]):
        out[i, :] = 2 * x[i, :] - x[j, :] * x[i, 0]
        out[i] += x[j] / 2
        out[i, 1:] -= 1
        out[i, :1] = i


def shifts(out: torch.Tensor, x: torch.Tensor, j: int) -> None:
    for i in range(x.shape[0]):
        out[i, 1:] = -x[i, :-1]
        out[i, 0] = 0.0
        out[i, j:9] = x[i, j:]
        out[i, -2:] = x[j, -3:-1]


def reduces(out: torch.Tensor, x: torch.Tensor, j: int) -> None:
    for i in range(x.shape[0]):
        out[i, 0] = x[i, j : j + 2].sum() + x[i].max() + (x[i] * x[j]).sum() + sum(x[i, 1:]) + x[i, -2:].mean()
        out[i, 1] = x[i, :j].prod() + x[i].min() + x[i, 1:].any() + 2 * x[i, 5:].all() + x[i, j:i].sum()
        for v in x[i, :2]:
            out[i, 1] += v


def columns(out: torch.Tensor, x: torch.Tensor, j: int) -> None:
    for i in range(1):
        out[:, i] = x[:, j] + x[:, 0]
        out[1:] = x[:-1]
        out[0] = 7


def within(out: torch.Tensor, x: torch.Tensor, j: int) -> None:
    for i in range(x.shape[0]):
        out[i, 1:] = out[i, :-1]
        out[i, :-1] = out[i, 1:] * 2 + x[i, :-1]
        out[i] = -out[j]


X = torch.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("function", [copies, computes, shifts, reduces, columns])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_agree(function: Callable[..., Any], dtype: torch.dtype):
    operator = agree(function, torch.ones_like(X, dtype=dtype), X.to(dtype), 1)
    assert operator.definition.host == "native"


@pytest.mark.parametrize("function", [computes, shifts, reduces])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32])
def test_rows_of_narrow_elements_are_computed_as_numbers(function: Callable[..., Any], dtype: torch.dtype):
    agree(function, torch.ones_like(X, dtype=dtype), X.to(dtype), 1, plain=False)


def test_a_row_is_read_before_it_is_stored():
    agree(within, X.clone(), X, 1, plain=False)  # torch refuses such overlaps


def test_empty_rows_are_no_work():
    agree(shifts, torch.ones(2, 3), torch.arange(6.0).reshape(2, 3), 1)
    agree(copies, torch.ones(2, 0), torch.ones(2, 0), 1)


def times(u: torch.Tensor, c: float) -> None:
    for n in range(u.shape[0] - 1):
        u[n + 1, 1:-1] = u[n, 1:-1] + c * (u[n, 2:] - 2 * u[n, 1:-1] + u[n, :-2])
        u[n + 1, 0] = u[n, 1]


def test_rows_of_earlier_time_steps_are_read():
    operator = agree(times, X.reshape(3, 4).clone(), 0.25)
    assert operator.definition.host == "native"


def smoothed(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        x[i, 1:-1] = x[i, :-2] + x[i, 2:]


def crossed(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y = x[i]
        y[:, 0] = x[i, 0]


@pytest.mark.parametrize("function", [smoothed, crossed])
def test_items_are_read_before_others_of_the_row_are_stored(function: Callable[..., Any]):
    x = torch.arange(18.0).reshape(2, 3, 3).sin() if function is crossed else X.clone()
    assert agree(function, x).definition.host == "native"


def unlike(out: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, :] = x[i, 1:]


def test_sizes_that_differ_are_told_as_torch_tells_them():
    text = "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0"
    for run in (bw.op(unlike), bw.op(unlike).python, unlike):
        with pytest.raises(RuntimeError, match=re.escape(text)):
            run(X.clone(), X)


def sparse(start: torch.Tensor, place: torch.Tensor, value: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(start.shape[0] - 1, dtype=x.dtype)
    for i in range(out.shape[0]):
        total = 0.0
        for k, v in zip(place[start[i] : start[i + 1]], value[start[i] : start[i + 1]], strict=False):
            total += v * x[k]
        out[i] = total
    return out


def test_rows_of_a_sparse_matrix():
    dense = torch.tensor([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
    matrix, x = dense.to_sparse_csr(), torch.tensor([1.0, 2.0, 3.0])
    given = (matrix.crow_indices(), matrix.col_indices(), matrix.values(), x)
    torch.testing.assert_close(agree(sparse, *given)(*given), dense @ x)


def smooth(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i, 1:] = x[i, :-1] * w[1:] + x[i, 1:].sum() * x[0, 0]
        out[i] -= x[i] * x[i]
    return out


def test_gradients_samples_and_graphs_of_rows():
    operator = bw.op(smooth)
    x = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    w = torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(operator, (x, w))
    batch = torch.stack([x.detach(), 2 * x.detach()])
    torch.testing.assert_close(torch.vmap(operator, in_dims=(0, None))(batch, w)[1], operator(2 * x, w))
    compiled = torch.compile(operator, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x.detach(), w.detach()), operator(x, w).detach())


def strided(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros(n, (m + 1) // 2, dtype=x.dtype)
    for i in range(n):
        out[i, : m // 2] = x[i, 1::2]
        out[i] += x[i, ::2] * x[i, ::2]
        out[i, 0] += x[i, 1:6:3].sum()
        for v in x[i, 2::4]:
            out[i, 1] += v
        x[i, ::2] = x[i, ::2] * 2
    return out


def spread(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros(2 * n, 2 * m, dtype=x.dtype)
    for i in range(n):
        out[2 * i, ::2] = x[i]
        out[2 * i + 1, 1::2] = x[i] + 1
        for k in range(3):
            out[2 * i, k::3] += 1
    return out


def summed(x: torch.Tensor, first: int, last: int) -> torch.Tensor:
    out = torch.zeros(len(x), dtype=x.dtype)
    for i in range(len(x)):
        out[i] = x[i, first:last:3].sum()
    return out


@pytest.mark.parametrize("columns", [2, 7, 8])
def test_slices_with_steps(columns: int):
    x = torch.randn(3, columns, dtype=torch.float64)
    agree(strided, x)
    agree(spread, x)
    for first, last in ((0, 0), (5, 2), (0, 1), (1, 7), (-3, 9), (6, 7)):
        agree(summed, x, first, last)
    operator = bw.op(spread)
    assert torch.autograd.gradcheck(operator, (x.requires_grad_(),))


def test_a_tensor_may_be_stored_into_at_another_step():
    def shifted(x: torch.Tensor) -> None:
        for i in range(len(x)):
            x[i, ::2] = x[i, 1::2]

    operator, x = bw.op(shifted), torch.randn(2, 6)
    expected = x.clone()
    expected[:, ::2] = x[:, 1::2]
    assert "host part: native" in operator.explain(x.clone())
    operator(x)
    torch.testing.assert_close(x, expected)
