"""Norms of rows, reductions of parts with several dimensions, and `in` of a set, as loops compile them."""

# Elements and slices are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

X = torch.arange(24.0).reshape(2, 4, 3).sin()


def unit_rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] / x[i].norm()
    return out


def norms(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], x.shape[0], dtype=x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            d = x[i] - x[j]
            out[i, j] = torch.norm(x[i] - x[j]) + torch.linalg.norm(d) + d.norm() + x[i, 1:].norm()
    return out


def parts(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 4, dtype=x.dtype)
    for i in range(x.shape[0]):
        out[i, 0] = x[i].sum() + x[i].norm()
        out[i, 1] = x[i].max() - x[i].min() + x[i].mean()
        out[i, 2] = (x[i] * x[0]).sum() + x[i, :2, 1:].prod()
        out[i, 3] = x[i].any() + 2 * x[i].all()
    return out


def marked(n: int, k: int) -> torch.Tensor:
    out = torch.zeros(n)
    for i in range(n):
        if i in {1, k} and i not in {4}:
            out[i] = 1
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_norms_agree(dtype: torch.dtype) -> None:
    for function in (unit_rows, norms):
        assert agree(function, X[0].to(dtype)).definition.host == "native"
        agree(function, X[0].T.to(dtype), name=f"strided_{function.__name__}")
        agree(function, X[0, :0].to(dtype), name=f"empty_{function.__name__}")


@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 1, 3), (1, 4, 3)])
def test_parts_with_several_dimensions_are_reduced_whole(shape: tuple[int, ...]) -> None:
    x = X[: shape[0], : shape[1]]
    for run in (bw.op(parts), bw.op(parts).python):
        torch.testing.assert_close(run(x), _by_torch(x))
    agree(parts, X)


def _by_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.stack(
        [
            torch.stack(
                [
                    row.sum() + row.norm(),
                    row.max() - row.min() + row.mean(),
                    (row * x[0]).sum() + row[:2, 1:].prod(),
                    row.any() + 2.0 * row.all(),
                ]
            )
            for row in x
        ]
    )


@pytest.mark.parametrize("function", [unit_rows, norms])
def test_slopes_of_norms_are_those_of_torch_also_at_0(function: Callable[..., Any]) -> None:
    x = X[0].double().requires_grad_()
    operator = bw.op(f"row_norms::{function.__name__}")(function)
    found = torch.autograd.grad(operator(x).sum(), x)
    wanted = torch.autograd.grad(_copied(function, x).sum(), x)
    torch.testing.assert_close(found, wanted)


def _copied(function: Callable[..., Any], x: torch.Tensor) -> torch.Tensor:
    """Return what torch makes of the program, whose stores autograd follows."""
    return function(x.clone())


def test_a_set_is_looked_into() -> None:
    agree(marked, 6, 3)
    agree(marked, 6, 4)
