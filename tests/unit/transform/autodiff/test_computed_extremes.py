"""Extremes of what loops compute are found by their places, except where that would cost a gradient its gather form."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Allocate, For, If, Symbol
from brickwork.ir.walk import assigned_symbols, walk
from brickwork.transform.autodiff.extremes import choose_extremes
from brickwork.transform.scratch import names_of
from support.gradients import check_gradients, derived, numbers
from unit.transform.autodiff.test_extremes import ROWS, agree_backwards


def of_sums(x: torch.Tensor, first: float) -> torch.Tensor:
    """What is compared is computed in loops, of which some iterations count."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[0]):
            d = 0.5
            for k in range(j % 2, x.shape[1]):
                if k != i:
                    d += x[i, k] - 2 * x[j, k]
            s = d * 2
            m = min(m, s + 1)
        out[i] = m
    return out


def of_extremes(x: torch.Tensor, first: float) -> torch.Tensor:
    """The greatest distance to what is nearest: extremes in the loops of others."""
    out = x.new_zeros((x.shape[0],))
    most = first
    for i in range(x.shape[0]):
        least = 9.0
        for j in range(x.shape[0]):
            d = 0.0
            for k in range(x.shape[1]):
                d += abs(x[i, k] - 2 * x[j, k])
            if d <= least:
                least = d
        most = max(most, least)
    out[0] = most
    return out


def of_sums_that_go_on(x: torch.Tensor, first: float) -> torch.Tensor:
    """A sum that goes on with the next iteration has no iteration of its own."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m, d = first, 0.0
        for j in range(x.shape[0]):
            for k in range(x.shape[1]):
                d += x[i, k] * x[j, k]
            m = max(m, d)
        out[i] = m
    return out


def of_sums_beside_stores(x: torch.Tensor, first: float) -> torch.Tensor:
    """What is compared may be of elements that its loop stores."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[0]):
            d = 0.0
            for k in range(x.shape[1]):
                d += x[j, k]
                out[i] += d
            m = max(m, d)
        out[i] += m
    return out


def of_steps(x: torch.Tensor, first: float) -> torch.Tensor:
    """What is compared is computed in a loop that is left early."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[0]):
            d = 0.0
            for k in range(x.shape[1]):
                if x[j, k] > 2:
                    break
                d += x[i, k] * x[j, k]
            m = max(m, d)
        out[i] = m
    return out


def softmax_of_sums(x: torch.Tensor, first: float) -> torch.Tensor:
    """What is read again at an index has a gradient that is gathered: nothing is added to it at a place."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[0]):
            d = 0.0
            for k in range(x.shape[1]):
                d += x[i, k] - x[j, k]
            m = max(m, d)
        for j in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[i] += x[j, k] - m
    return out


FOUND = (of_sums, of_extremes)
OTHERS = (of_sums_that_go_on, of_sums_beside_stores, of_steps, softmax_of_sums)


@pytest.mark.parametrize("function", [*FOUND, *OTHERS])
@pytest.mark.parametrize("first", [-math.inf, 0.0, math.nan, math.inf, 0.5])
def test_gradients_are_those_of_the_loop_run_backwards(
    function: Callable[..., Any], first: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each row is compared with all: of a seventh of them each column has all values.
    agree_backwards(function, first, monkeypatch, ROWS[::7])


@pytest.mark.parametrize("function", [*FOUND, *OTHERS])
@pytest.mark.parametrize("columns", [0, 1, 5])
def test_gradients_are_those_of_central_differences(function: Callable[..., Any], columns: int) -> None:
    check_gradients(function, numbers(3, columns), -0.3)


@pytest.mark.parametrize("function", [*FOUND, *OTHERS])
def test_places(function: Callable[..., Any]) -> None:
    program = derived(function, (numbers(3, 4), 0.0))
    places = any(symbol.name.endswith("_place") for symbol in assigned_symbols(program))
    tapes = any(isinstance(node, Allocate) and "tape" in node.tensor.name for node in walk(program))
    assert places == (function in FOUND)
    assert not (places and tapes)


def test_a_branch_may_be_empty() -> None:
    symbol, flag = Symbol("i", 1, INT64), Symbol("flag", 2, BOOL)
    loop = For(
        index=symbol,
        start=build.integer(0),
        stop=build.integer(3),
        body=(If(condition=build.read(flag), then=()),),
    )
    assert choose_extremes((loop,), (), names_of((loop,), 1)) == (loop,)
