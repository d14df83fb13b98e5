"""Rows that are computed and get names: `d = x[i] - y[j]`, then its items, parts, sizes, sums, and calls of helpers."""

# Elements and slices are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

X = torch.arange(12.0).reshape(4, 3).sin()


def distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(len(x), len(y), dtype=x.dtype)
    for i in range(len(x)):
        for j in range(len(y)):
            d = x[i] - y[j]
            out[i, j] = torch.sqrt((d * d).sum()) + d @ d
    return out


def softmax(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        e = torch.exp(x[i] - x[i].max())
        out[i] = e / e.sum()
    return out


def asked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        d, e = x[i] - y[0], 2 * x[i]
        out[i] = len(d) + d.shape[0] + e.numel() + d.ndim + d.size(0) + d.dim()
        out[i, 0] += d[0] * e[-1] + d[1:].sum() + d[:-1].max() + torch.sum(e) + min(d) + sum(v for v in e[::2])
        for k, v in enumerate(d):
            out[i, k] += v * e[k - 1]
    return out


def in_place(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    total = torch.zeros(x.shape[1], dtype=x.dtype)
    count = torch.zeros((), dtype=x.dtype)
    for i in range(len(x)):
        d = x[i] * 2
        d += y[0]
        d = d * d
        total += d
        total *= 0.5
        for v in d:
            count += v
    return total, count


def blocks(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], x.shape[1])
    for b in range(len(x)):
        d = x[b] * 2
        for i in range(x.shape[1]):
            out[b, i] = d[i].sum() + d[i, 0] + d[i][1] + d[:, 1].sum() + d[-1, -1]
    return out


def norm(row, power=2.0):
    return sum(abs(v) ** power for v in row) ** (1 / power)


def centred(row):
    return row - sum(row) / len(row)


def helped(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        c = centred(x[i] + 1)
        out[i] = c / norm(c) + norm(x[i] - y[0], 1.0) + centred(c)[0]
    return out


KEPT = [distances, softmax, asked, in_place, helped]


@pytest.mark.parametrize("function", KEPT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_with_names_agree(function: Callable[..., Any], dtype: torch.dtype) -> None:
    operator = agree(function, X.to(dtype), X.to(dtype).flip(0))
    assert operator.definition.host == "native"


@pytest.mark.parametrize("function", KEPT)
def test_rows_with_names_may_be_strided_or_absent(function: Callable[..., Any]) -> None:
    wide = torch.arange(24.0).reshape(3, 8).cos()
    agree(function, wide.T[::2], wide.T[:2], name=f"strided_{function.__name__}")
    agree(function, X[:0], X, name=f"empty_{function.__name__}")
    operator, expanded = bw.op(f"kept_rows::expanded_{function.__name__}")(function), X[0].expand(5, 3)
    torch.testing.assert_close(operator(expanded, X), function(expanded, X))


def test_parts_of_rank_two_get_names() -> None:
    agree(blocks, torch.stack([X, X.flip(1)]))


@pytest.mark.parametrize("function", [distances, softmax, helped])
def test_gradients_go_through_rows_with_names(function: Callable[..., Any]) -> None:
    x, y = (item.double().requires_grad_() for item in (X + 2, X.flip(0)))
    assert torch.autograd.gradcheck(bw.op(f"kept_rows::{function.__name__}")(function), (x, y))


def picked(x: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.empty(len(x))
    for i in range(len(x)):
        d = 2 * x[i, 1:]
        out[i] = d[k]
    return out


@pytest.mark.parametrize("k", [-2, -1, 0, 1])
def test_an_item_is_counted_from_either_end(k: int) -> None:
    agree(picked, X, k)


@pytest.mark.parametrize("k", [-3, 2])
def test_an_item_beyond_the_row_is_no_item_though_its_tensor_has_one_there(k: int) -> None:
    operator = bw.op(picked)
    for run in (operator, operator.python, picked):
        with pytest.raises(IndexError, match=re.escape(f"index {k} is out of bounds for dimension 0 with size 2")):
            run(X, k)


def stored_after(x: torch.Tensor) -> None:
    for i in range(1, len(x)):
        d = x[i] - x[i - 1]
        x[i] = 0.0
        x[i - 1, 0] = d[0]


def stored_in_a_loop(x: torch.Tensor) -> None:
    for i in range(len(x)):
        d = 2 * x[i]
        for j in range(x.shape[1]):
            x[i, j] = d[0]


def stored_by_a_helper(x: torch.Tensor) -> None:
    def spread(row) -> None:
        x[0] = 1.0
        x[1] = row

    for _ in range(1):
        spread(2 * x[0])


def two_names(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        d = 2 * x[i]
        e = d
        d += 1
        out[i] = e
    return out


def of_branches(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        if x[i, 0] > 0:
            d = 2 * x[i]
        else:
            d = 3 * x[i]
        out[i] = d
    return out


@pytest.mark.parametrize("function", [stored_after, stored_in_a_loop, stored_by_a_helper, of_branches])
def test_a_row_that_would_change_is_kept_in_an_array(function: Callable[..., Any]) -> None:
    assert agree(function, X.clone()).definition.host == "native"
    agree(function, torch.ones(5, 1), name=f"single_{function.__name__}")


def test_a_row_with_two_names_is_not_changed_in_place() -> None:
    with pytest.raises(CompileError, match="a row with two names is changed in place"):
        bw.op(two_names)(X.clone())


def doubled(out: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(len(x)):
        d = 2 * x[i]
        out[i] = d
        out[0] = d


def test_a_row_is_kept_in_an_array_where_arguments_share_memory() -> None:
    agree(doubled, X.clone(), X)
    shared, wanted = X.clone(), X.clone()
    bw.op(doubled)(shared, shared)
    doubled(wanted, wanted)
    assert torch.equal(shared, wanted)
