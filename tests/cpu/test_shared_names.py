"""Rows that loops make, store into and pass on: compiled, where no name is read whose row another name has changed."""

# Elements and slices are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch

from brickwork.frontend.shared_names import shares_stored_rows
from support.fourfold import agree
from support.shared import define


def subsequence(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The length of the longest common subsequence, as textbooks write it."""
    n, m = len(a), len(b)
    prev = torch.zeros(m + 1, dtype=torch.int64)
    for i in range(1, n + 1):
        cur = torch.zeros(m + 1, dtype=torch.int64)
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                cur[j] = prev[j - 1] + 1
            else:
                cur[j] = max(prev[j], cur[j - 1])
        prev = cur
    return prev[m]


def distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Edit distances of pairs of words."""
    count, n = a.shape
    m = b.shape[1]
    out = torch.zeros(count, dtype=torch.int64)
    for k in range(count):
        prev, cur = torch.arange(m + 1), torch.zeros(m + 1, dtype=torch.int64)
        for i in range(1, n + 1):
            cur[0] = i
            for j in range(1, m + 1):
                cost = 0 if a[k, i - 1] == b[k, j - 1] else 1
                cur[j] = min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + cost)
            prev, cur = cur, prev
        out[k] = prev[m]
    return out


def cheapest(cost: torch.Tensor) -> torch.Tensor:
    """The cheapest monotone path of each sample."""
    count, steps, width = cost.shape
    out = cost.new_zeros(count)
    for b in range(count):
        prev = torch.full((width,), 1e9, dtype=cost.dtype)
        prev[0] = cost[b, 0, 0]
        for t in range(1, steps):
            cur = torch.full((width,), 1e9, dtype=cost.dtype)
            for s in range(width):
                best = prev[s]
                if s > 0:
                    best = min(best, prev[s - 1])
                cur[s] = best + cost[b, t, s]
            prev = cur
        out[b] = prev[width - 1]
    return out


def turning(x: torch.Tensor) -> torch.Tensor:
    """Three rows that change places."""
    n, m = x.shape
    out = torch.zeros_like(x)
    for k in range(n):
        a, b, c = torch.zeros(m, dtype=x.dtype), torch.ones(m, dtype=x.dtype), torch.zeros(m, dtype=x.dtype)
        for t in range(5):
            for i in range(m):
                c[i] = a[i] + b[i] * x[k, i] + t
            a, b, c = b, c, a
        for i in range(m):
            out[k, i] = c[i] - a[i] + 2 * b[i]
    return out


def kept_of_some(x: torch.Tensor) -> torch.Tensor:
    """A row that is passed on in some iterations, of matrices."""
    out, best = torch.zeros_like(x), torch.zeros(2, x.shape[1], dtype=x.dtype)
    for i in range(len(x)):
        new = torch.zeros(2, x.shape[1], dtype=x.dtype)
        for j in range(x.shape[1]):
            new[i % 2, j] = x[i, j] + best[(i + 1) % 2, j]
        if x[i, 0] > 0:
            best = new
        out[i] = best[0] - best[1]
    return out


WORDS = torch.tensor([[1, 2, 3, 1, 2], [0, 1, 1, 2, 0]]), torch.tensor([[2, 1, 3, 3, 1, 2], [1, 0, 1, 2, 2, 2]])
NUMBERS = torch.linspace(-1, 2, 24, dtype=torch.float64).sin()
COMPILED: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (subsequence, (WORDS[0][0], WORDS[1][0])),
    (distances, WORDS),
    (cheapest, (NUMBERS.reshape(2, 4, 3),)),
    (turning, (NUMBERS.reshape(4, 6),)),
    (kept_of_some, (NUMBERS.reshape(8, 3),)),
]


@pytest.mark.parametrize(("function", "arguments"), COMPILED, ids=lambda item: getattr(item, "__name__", ""))
def test_rows_that_pass_on_are_compiled(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    assert define(function).host == "native"
    operator = agree(function, *arguments)
    if arguments[0].dtype.is_floating_point:
        assert torch.autograd.gradcheck(operator, tuple(item.clone().requires_grad_() for item in arguments))


def changed_by_the_other(x: torch.Tensor) -> torch.Tensor:
    out, prev = torch.zeros_like(x), torch.zeros(2)
    for i in range(len(x)):
        cur = torch.zeros(2)
        prev = cur
        cur[0] = x[i]
        out[i] = prev[0]
    return out


def changed_in_the_next_iteration(x: torch.Tensor) -> torch.Tensor:
    out, prev, cur = torch.zeros_like(x), torch.zeros(2), torch.zeros(2)
    for i in range(len(x)):
        if i % 3 == 0:
            cur = torch.ones(2)
        cur[1] += x[i]
        out[i] = prev[1]
        prev = cur
    return out


def changed_by_a_third(x: torch.Tensor) -> torch.Tensor:
    out, a, b = torch.zeros_like(x), torch.zeros(2), torch.zeros(2)
    for i in range(len(x)):
        c = torch.ones(2)
        a = c
        b = a
        a += x[i]
        out[i] = b[0]
    return out


def changed_before_it_is_passed_on(x: torch.Tensor) -> torch.Tensor:
    out, kept = torch.zeros_like(x), torch.zeros(2)
    for i in range(len(x)):
        new = other = torch.ones(2)
        new[0] = x[i]
        kept = other
        out[i] = kept[0]
    return out


SHARED = [changed_by_the_other, changed_in_the_next_iteration, changed_by_a_third, changed_before_it_is_passed_on]


@pytest.mark.parametrize("function", SHARED, ids=lambda item: item.__name__)
def test_what_sees_a_row_change_under_another_name_stays_with_python(function: Callable[..., Any]) -> None:
    definition = define(function)
    assert definition.host == "python"


def _shares(function: Callable[..., Any]) -> bool:
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    return shares_stored_rows(node, lambda call: ast.unparse(call.func).startswith("torch."))


def test_names_are_followed_through_loops_and_branches() -> None:
    assert [_shares(function) for function in SHARED] == [True] * len(SHARED)
    assert [_shares(function) for function, _ in COMPILED] == [False] * len(COMPILED)
