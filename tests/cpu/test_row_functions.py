"""Functions of rows that are no sums, as loops compile them: softmax, scans, places, sorted rows; also in helpers."""

# Elements and slices are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

NAN, INF = float("nan"), float("inf")
X = torch.tensor([[0.5, -1.0, 2.0, 0.25, 2.0], [3.0, 3.0, -0.5, 1.0, 0.125], [-2.0, -1.5, -1.0, -0.5, -0.25]])
HARD = torch.tensor([[1.0, NAN, 2.0, 0.0, NAN], [INF, -INF, 0.0, 1.0, INF], [0.0, -0.0, 0.0, -0.0, 0.0]])


def powers(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        row = x[i]
        out[i] = torch.softmax(x[i], 0) * F.log_softmax(row / 2, dim=-1) + x[i, :].logsumexp(0)
    return out


def unnamed(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        out[i] = x[i].argmax()
    return out


def spread(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 4, dtype=x.dtype)
    for i in range(x.shape[0]):
        out[i, 0] = x[i].std()
        out[i, 1] = torch.var(x[i], unbiased=False)
        out[i, 2] = (2 * x[i]).std(dim=-1, correction=0)
        out[i, 3] = x[i, 1:].var(0)
    return out


def places(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 4, dtype=torch.int64)
    for i in range(x.shape[0]):
        out[i, 0] = x[i].argmax()
        out[i, 1] = torch.argmin(x[i], dim=0)
        out[i, 2] = (-x[i]).argmax(-1)
        _, out[i, 3] = x[i].min(0)
    return out


def scans(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = torch.cumsum(x[i], dim=0) + x[i].cumprod(0) * torch.flip(x[i], [0])
    return out


def in_order(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    values, at, middle = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64), torch.empty_like(x)
    for i in range(x.shape[0]):
        v, k = torch.sort(x[i], stable=True)
        values[i] = v
        at[i] = k
        middle[i] = x[i].median() + x[i].max(0).values + x[i, x[i].argsort(descending=True, stable=True)[0]]
    return values, at, middle


def best(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    most, least = x.new_empty(x.shape[0], k), torch.zeros(x.shape[0], dtype=x.dtype)
    for i in range(x.shape[0]):
        most[i] = torch.topk(x[i], k).values
        least[i] = x[i].topk(k, largest=False)[0].sum()
    return most, least


def masks(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, where = torch.empty(x.shape[0], 4, dtype=x.dtype), torch.empty(x.shape, dtype=torch.bool)
    for i in range(x.shape[0]):
        d = x[i] - 0.5
        m = (x[i] > 0) & (d <= 1.5)
        out[i, 0] = m.sum() + (x[i, 1:] != x[i, :-1]).any()
        out[i, 1] = (~m).sum() + (x[i] > x[0]).all()
        out[i, 2] = (m * x[i]).sum() / (m.sum() + 1) + d.abs().max()
        out[i, 3] = torch.where(m, x[i], 0.5).sum() + (0.0 < x[i]).sum()
        where[i] = d.exp() > 1
    return out, where


def bare(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 0:
            out[i] = 1
    return out


def normalised(row, eps=1e-5):
    return (row - row.mean()) / (row.std() + eps)


def ranked(row, k):
    v, _ = torch.topk(row, k)
    return torch.softmax(normalised(row), 0) * v[0] + row[:1].max()


def by_helpers(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i, :] = 2 * ranked(x[i, :], 2)
    return out


def extremes(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 7)
    for i in range(x.shape[0]):
        out[i, 0] = x[i].max()
        out[i, 1] = torch.min(x[i])
        out[i, 2] = x[i, 1:].amax() + x[i, 2:].amin(0)
        out[i, 3] = x[i:, 1:3].max()
        out[i, 4] = x[:, -2:].amin(1).sum()
        out[i, 5] = (x[i] * 2).min()
        out[i, 6] = max(x[i, 0], x[i, 1])
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", [extremes, powers, spread, places, scans, in_order, masks, by_helpers])
def test_agree(function: Callable[..., Any], dtype: torch.dtype) -> None:
    name = f"{function.__name__}_{dtype}".replace("torch.", "")
    given = copy.copy(X.to(dtype))
    assert agree(function, given, name=name).definition.host == "native"
    agree(function, given.T, name=f"strided_{name}")


@pytest.mark.parametrize("function", [extremes, powers, spread, places, scans, in_order])
def test_numbers_that_are_none_and_infinite_ones_are_as_for_torch(function: Callable[..., Any]) -> None:
    op = bw.op(f"bwrowfunctions::hard_{function.__name__}")(function)
    torch.testing.assert_close(op(HARD), function(HARD), equal_nan=True)
    torch.testing.assert_close(op.python(HARD), function(HARD), equal_nan=True)


def test_rows_of_each_length_are_sorted_as_by_torch() -> None:
    op = bw.op("bwrowfunctions::in_order")(in_order)
    for count in (1, 2, 17, 64):
        x = torch.randint(0, 9, (3, count), generator=torch.Generator().manual_seed(count)).float()
        torch.testing.assert_close(op(x), in_order(x))


def test_the_best_are_those_of_torch() -> None:
    op = bw.op("bwrowfunctions::best")(best)
    for k in (0, 1, 5):
        torch.testing.assert_close(op(X, k), best(X, k))


def test_more_than_there_are_is_a_failed_check() -> None:
    op = bw.op("bwrowfunctions::too_many")(best)
    with pytest.raises(ValueError, match="selected index k out of range"):
        op(X, 6)


@pytest.mark.parametrize("function", [powers, spread, scans, by_helpers])
def test_gradients_are_those_of_torch(function: Callable[..., Any]) -> None:
    op = bw.op(f"bwrowfunctions::gradient_{function.__name__}")(function)
    x = (X.double() + torch.linspace(0, 0.1, X.numel()).reshape(X.shape)).requires_grad_()  # equal ones share no slope
    wanted = torch.autograd.grad(function(x).square().sum(), x)
    torch.testing.assert_close(torch.autograd.grad(op(x).square().sum(), x), wanted)


def test_parts_with_two_dimensions_go_along_the_axis_that_is_named() -> None:
    x = torch.linspace(-1, 1, 24).reshape(2, 3, 4).sin()
    op = bw.op("bwrowfunctions::two_dimensions")(powers)
    torch.testing.assert_close(op(x), op.python(x))
    op = bw.op("bwrowfunctions::unnamed")(unnamed)
    op(X)
    with pytest.raises(CompileError, match="a function of a row takes one dimension"):
        op(x)


def test_a_comparison_of_rows_is_no_condition() -> None:
    with pytest.raises(CompileError, match="argument `x` of bare has 2 dimensions, and 1 is needed"):
        bw.op("bwrowfunctions::bare")(bare)(X)


def whole(x: torch.Tensor) -> torch.Tensor:
    return normalised(x) + 1


def test_helpers_of_whole_tensors_are_left_to_torch() -> None:
    op = bw.op("bwrowfunctions::whole")(whole)
    torch.testing.assert_close(op(X), whole(X))
