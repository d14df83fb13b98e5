"""Tensors that a loop makes for each of its turns: what may be one tensor is compiled, and what may not is Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from support.fourfold import agree
from support.shared import define

pytestmark = pytest.mark.usefixtures("quick")


def with_states(x: torch.Tensor, y: torch.Tensor, k: int) -> torch.Tensor:
    n, m = x.shape
    out = x.new_empty(n, m)
    for i in range(n):
        seen = torch.zeros(k, dtype=torch.bool)
        if i % 2 == 0:
            state = torch.full((m + 1, k), -2.5, dtype=x.dtype)
            for j in range(m):
                seen[j % k] = True
                state[j + 1, j % k] += state[j, (j + 1) % k] * y[j] + x[i, j]
                out[i, j] = state[j + 1, j % k] + seen[k - 1] + len(x) * state.shape[1]
        else:
            left = x.new_ones((m,))
            for j in range(m):
                left[(j * i) % m] += x[i, j]
            for j in range(m):
                out[i, j] = left[j] if seen[0] else -left[j]
    return out


def of_constant_length(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        window = torch.empty(3, dtype=x.dtype)
        for k in range(3):
            window[k] = x[max(i + k - 2, 0)]
        out[i] = max(window[0], window[1]) + window[2]
    return out


def of_some_keys(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        p = x.new_empty(at.shape[1])
        top = -1e30
        for j in range(at.shape[1]):
            if at[i, j] <= i:
                p[j] = x[i] * x[at[i, j]]
                top = max(top, p[j])
        for j in range(at.shape[1]):
            if at[i, j] > i:
                continue
            out[i] += p[j] - top
    return out


def test_an_empty_tensor_of_which_a_part_is_filled_leaves_the_loop_parallel() -> None:
    """What one turn stores under a condition no other turn reads."""
    x, at = torch.randn(6, dtype=torch.float64), torch.randint(0, 6, (6, 4))
    operator = agree(of_some_keys, x, at)
    text = operator.explain(
        torch.empty(4096, device="meta"), torch.empty(4096, 200, dtype=torch.int64, device="meta"), device="sm_90"
    )
    assert not any(line.strip().startswith("for i at") and line.endswith("in order") for line in text.splitlines())

    def of_these(x: torch.Tensor) -> torch.Tensor:
        return operator(x, at)

    assert torch.autograd.gradcheck(of_these, (x.requires_grad_(),))


def test_what_each_turn_makes_is_compiled() -> None:
    x, y = torch.randn(5, 4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    operator = agree(with_states, x, y, 3)
    assert "host part: native" in operator.explain(x, y, 3)

    def of_three(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return operator(x, y, 3)

    assert torch.autograd.gradcheck(of_three, (x.requires_grad_(), y.requires_grad_()))


def test_a_few_items_of_constant_length_leave_the_loop_parallel() -> None:
    x = torch.randn(9)
    assert "for i at" in (text := agree(of_constant_length, x).explain(x))
    assert "in parallel" in next(line for line in text.splitlines() if "for i at" in line)


def of_computed_length(x: torch.Tensor, r: int) -> torch.Tensor:
    """The median of a window, by insertion."""
    width = 2 * r + 1
    out = torch.empty_like(x)
    for i in range(r, len(x) - r):
        window = torch.zeros(width + len(x) // 2, dtype=x.dtype)
        for k in range(width):
            j = k - 1
            while j >= 0 and window[j] > x[i - r + k]:
                window[j + 1] = window[j]
                j -= 1
            window[j + 1] = x[i - r + k]
        out[i] = window[r]
    for i in range(r):
        out[i] = x[i]
        out[len(x) - 1 - i] = x[len(x) - 1 - i]
    return out


def test_lengths_may_be_computed() -> None:
    x = torch.randn(9)
    assert "host part: native" in agree(of_computed_length, x, 2).explain(x, 2)


def of_two_tensors(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        state, new, steps = torch.zeros(3, dtype=x.dtype), torch.full((3,), 0.5, dtype=x.dtype), 2
        for _ in range(steps):
            for a in range(len(state)):
                new[a] += state[len(new) - 1 - a] + x[i] * a
            for a in range(len(state)):
                state[a] = new[a]
        out[i] = state[0] - state[2] * steps
    return out


def test_pairs_of_tensors_are_compiled_and_have_a_length() -> None:
    x = torch.randn(9)
    assert "host part: native" in agree(of_two_tensors, x).explain(x)


def exchanged(x: torch.Tensor) -> torch.Tensor:
    held, more = torch.zeros(2), torch.zeros(2)
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        held, more = torch.ones(2), held
        more[0] += x[i]
        out[i] = more[0] + held[1]
    return out


def longer_each_turn(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        held = torch.zeros(i + 1)
        held[i] = x[i]
        out[i] = held[0] + held[i]
    return out


def of_a_difference(x: torch.Tensor) -> torch.Tensor:
    """Sizes that may be negative are torch's to refuse, where the loop gets there."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        held = torch.zeros(x.shape[0] - 1)
        out[i] = x[i] + held.shape[0]
    return out


def kept_for_later(x: torch.Tensor) -> torch.Tensor:
    before = torch.zeros(2)
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        held = torch.zeros(2)
        held[0] = x[i]
        out[i] = before[0] + held[1]
        before = held
    return out


def made_twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        held = torch.zeros(2)
        held[0] += x[i]
        out[i] = held[0]
        held = torch.ones(3)
        out[i] += held[2]
    return out


def whole(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        held = torch.zeros(2)
        for j in range(2):
            held[j] = x[i]
        out[i] = held.sum()
    return out


APART = [longer_each_turn]


@pytest.mark.parametrize("function", APART, ids=lambda item: item.__name__)
def test_what_cannot_be_one_tensor_is_made_in_each_turn(function: Callable[..., Any]) -> None:
    assert define(function).host == "python"


@pytest.mark.parametrize(
    "function", [of_a_difference, made_twice, whole, kept_for_later, exchanged], ids=lambda item: item.__name__
)
def test_rows_that_each_turn_makes_are_compiled(function: Callable[..., Any]) -> None:
    assert define(function).host == "native"
    agree(function, torch.linspace(-1.0, 2.0, 5))


def of_another_range(x: torch.Tensor) -> torch.Tensor:
    range = x[0, 0]  # noqa: A001  # as a user may name it
    out = torch.zeros_like(x)
    for b in bw.prange(len(x)):
        s = torch.zeros(x.shape[1])
        out[b, 0] = x[b, 0] + s[0] * range
    return out


def test_a_name_that_is_range_is_not_called() -> None:
    assert define(of_another_range).host == "python"
