"""Variables that note indices: their values are known, so that what they pick needs no checks."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.noted_indices import noted_indices
from brickwork.analysis.verdicts import Bound
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Constant
from support.lowering import memory
from support.scheduling import kernel_of

Tensor = torch.Tensor
X, Y = memory([0.0] * 5, FLOAT32), memory([0.0] * 5, FLOAT32)


def again_and_again(x: Tensor, y: Tensor, first: int) -> None:
    last = 0
    for s in range(4):
        at = 0
        for n in range(x.shape[0]):
            y[n] = x[n] - x[last]
            if y[n] > 0.0:
                at = n
        last = at


def after_a_branch(x: Tensor, y: Tensor, first: int) -> None:
    for i in range(x.shape[0]):
        last = i
        for n in range(3):
            y[i] += x[last]
            if y[i] > 2.0:
                last = 0


def by_way_of_others(x: Tensor, y: Tensor, first: int) -> None:
    one = 0
    other = 0
    for n in range(x.shape[0]):
        y[n] = x[other]
        other = one
        one = n
        if y[n] > 1.0:
            one = other


def begins_with_an_argument(x: Tensor, y: Tensor, first: int) -> None:
    for n in range(x.shape[0]):
        y[n] = x[first]
        if y[n] > 1.0:
            first = n


def counts(x: Tensor, y: Tensor, first: int) -> None:
    last = 0
    for n in range(x.shape[0]):
        y[n] = x[last]
        if y[n] > 1.0:
            last += 1


def one_too_many(x: Tensor, y: Tensor, first: int) -> None:
    last = 0
    for s in range(3):
        for n in range(x.shape[0]):
            y[n] = x[last]
        for n in range(x.shape[0] + 1):
            if y[0] > n:
                last = n


def before_the_first(x: Tensor, y: Tensor, first: int) -> None:
    last = -7
    for s in range(3):
        for n in range(x.shape[0]):
            y[n] = x[last]
            if y[n] > 1.0:
                last = n


def of_a_loop_that_moves(x: Tensor, y: Tensor, first: int) -> None:
    last = 0
    far = 1
    for s in range(3):
        for n in range(far):
            if y[0] > n:
                last = n
        far = far * 2
        y[s] = x[last]


def four_ranges(x: Tensor, y: Tensor, first: int) -> None:
    last = 0
    for n in range(x.shape[0]):
        y[n] = x[last]
        if y[n] > 4.0:
            last = n
        if y[n] > 3.0:
            last = -1
        if y[n] > 2.0 and x.shape[0] > 7:
            last = 7


def is_an_argument(x: Tensor, y: Tensor, first: int) -> None:
    last = 0
    for n in range(x.shape[0]):
        y[n] = x[last]
        if y[n] > 1.0:
            last = first


def nine_ranges(x: Tensor, y: Tensor, first: int) -> None:
    last = 0
    for n in range(x.shape[0]):
        y[n] = x[last]
        if y[n] > 8.0:
            last = 1
        if y[n] > 7.0:
            last = 2
        if y[n] > 6.0:
            last = 3
        if y[n] > 5.0:
            last = 4
        if y[n] > 4.0:
            last = 5
        if y[n] > 3.0:
            last = 6
        if y[n] > 2.0:
            last = 7
        if y[n] > 1.0:
            last = 8


def reads(function) -> set[Bound]:
    """Return what is known of the reads of `x`."""
    analysis = analyse(kernel_of(function, X, Y, 1))
    numbers = {item.number for item in analysis.accesses if item.tensor.name == "x"}
    return {verdict.bound for (number, _), verdict in analysis.bounds.items() if number in numbers}


@pytest.mark.parametrize("function", [again_and_again, after_a_branch, by_way_of_others])
def test_indices_are_in_range(function):
    assert reads(function) == {Bound.PROVED}


@pytest.mark.parametrize(
    "function", [begins_with_an_argument, counts, one_too_many, before_the_first, of_a_loop_that_moves, nine_ranges]
)
def test_others_are_not(function):
    assert reads(function) & {Bound.GUARDED, Bound.CHECKED}


@pytest.mark.parametrize(
    "function", [begins_with_an_argument, counts, of_a_loop_that_moves, nine_ranges, is_an_argument]
)
def test_nothing_is_known_of_others(function):
    names = {symbol.name for symbol in noted_indices(kernel_of(function, X, Y, 1))}
    assert not names & {"last", "first", "far"}


def test_four_ranges_are_followed():
    assert {len(ranges) for ranges in noted_indices(kernel_of(four_ranges, X, Y, 1)).values()} == {4}


def test_values():
    kernel = kernel_of(again_and_again, X, Y, 1)
    for ranges in noted_indices(kernel).values():
        starts = {start.value for start, _ in ranges if isinstance(start, Constant)}
        assert starts == {0}
