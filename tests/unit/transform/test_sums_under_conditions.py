"""Sums of products in branches have nests of their own, and so have those that elements of fewer loops take up."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from brickwork.ir.nodes import For
from support.lowering import numbers
from support.scheduling import same
from support.sums_apart import apart, short_sums

Tensor = torch.Tensor
A, G, U = numbers(3, 4), numbers(4, 5), numbers(4, 5)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with short_sums():
        yield


def in_both_branches(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Assign in both branches what the second sum begins with."""
    out = torch.zeros(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            out[i, j] = p
            if p > 1.0:
                q = p
                r = 2.0
            else:
                r = 1.0
                q = 0.0
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] += q * r
    return out


def off_the_diagonal(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.ones(a.shape[0])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            if i != j:
                p = 0.0
                for k in range(a.shape[1]):
                    p += a[i, k] * g[k, j]
                out[i] += p * u[0, j]
    return out


def chosen(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Add up what is chosen: a function of a sum, or a number."""
    out = torch.ones(a.shape[0])
    for i in range(a.shape[0]):
        most = 0.0
        for j in range(g.shape[1]):
            if u[0, j] > 2.0:
                p = 0.0
                for k in range(a.shape[1]):
                    p += a[i, k] * g[k, j]
                w = p * 2.0
            else:
                w = 1.0
            most += w
        out[i] = most
    return out


@pytest.mark.parametrize("function", [in_both_branches, off_the_diagonal, chosen], ids=lambda item: item.__name__)
def test_sums_in_branches_have_nests_of_their_own(function: Callable[..., object]) -> None:
    ((kernel,), _) = apart(function, A, G, U)
    assert len([node for node in kernel.body if isinstance(node, For)]) == 2
    same(function, A, G, U)


def carried_over(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Assign in a condition what another iteration may have assigned."""
    out = torch.zeros(a.shape[0], g.shape[1])
    r = 1.0
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            if p > 1.0:
                r = 2.0
            q = 0.0
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] = p + q * r
    return out


def the_last_sum_is_read(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Read the sum of the iteration before, or of one before it."""
    out = torch.zeros(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        s = 1.0
        for j in range(g.shape[1]):
            q = s
            if j != i:
                s = 0.0
                for k in range(a.shape[1]):
                    s += a[i, k] * g[k, j]
                p = 0.0
                for k in range(a.shape[1]):
                    p += a[i, k] * u[k, j]
                out[i, j] = s * q + p
    return out


def test_a_sum_in_a_branch_that_a_later_iteration_reads_begins_in_it() -> None:
    same(the_last_sum_is_read, A, G, U)


def test_what_is_not_always_assigned_stays_with_what_reads_it() -> None:
    assert not apart(carried_over, A, G, U)[0]
    same(carried_over, A, G, U)
