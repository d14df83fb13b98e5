"""Elements that the statements behind a loop store into are kept in variables whether the loop runs or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Assign, Cast, If, Load, Store
from brickwork.ir.walk import walk
from brickwork.transform.promote import promote, stored_next
from support.lowering import memory
from support.scheduling import kernel_of, loops_of


def mean(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j]
        b[i] = 1.0
        y[i] /= a.shape[1]


def chosen(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0.0:
                y[i] += a[i, j]
        y[i] /= a.shape[1]


def left(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j]
        if b[i] > 0.0:
            continue
        y[i] = 0.0


def failing(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j]
        assert b[i] > 0.0
        y[i] = 0.0


def another(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j]
        y[n] = 0.0


def another_tensor(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j]
        b[i] = 0.0


def stored_meanwhile(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for q in range(n):
                y[i] += b[q]
            y[n] = a[i, j]
        y[i] = 0.0


def maybe(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j]
        if b[i] > 0.0:
            y[i] = 0.0


def conditions(function: Callable[..., object]) -> int:
    given = memory([[1.0]]), memory([1.0]), memory([1.0]), memory([0])
    kernel = kernel_of(function, *given, 1)
    ifs = (sum(isinstance(node, If) for node in walk(each)) for each in (promote(kernel, lambda *_: True), kernel))
    return next(ifs) - next(ifs)


@pytest.mark.parametrize("function", [mean, chosen])
def test_an_element_that_is_stored_next_is_kept_without_conditions(function: Callable[..., object]) -> None:
    assert not conditions(function)


@pytest.mark.parametrize("function", [left, failing, another, another_tensor, stored_meanwhile, maybe])
def test_other_elements_are_touched_where_the_loop_runs_alone(function: Callable[..., object]) -> None:
    assert conditions(function) > 0


def test_indices_are_those_of_the_same_element() -> None:
    """They read nothing that may be stored in between, and no variable that is assigned there."""
    kernel = kernel_of(mean, memory([[1.0]]), memory([1.0]), memory([1.0]), memory([0]), 1)
    loop = loops_of(kernel)["i"]
    first, between, last = loop.body
    assert isinstance(last, Store)
    assert stored_next(loop.body, last.tensor, last.indices)
    assert not stored_next((first, between), last.tensor, last.indices)
    moved = Assign(symbol=loop.index, value=build.integer(0))
    branch = If(condition=build.constant(1, BOOL), then=(moved,))
    for each in (moved, branch):
        assert not stored_next((first, each, last), last.tensor, last.indices)
        assert not stored_next((each, last), last.tensor, last.indices)
    element = next(node for node in walk(last) if isinstance(node, Load))
    looked_up = replace(last, indices=(Cast(operand=element, dtype=INT64),))
    assert not stored_next((first, looked_up), looked_up.tensor, looked_up.indices)
