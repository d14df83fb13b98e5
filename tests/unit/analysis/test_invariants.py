"""What `while` loops keep true of their variables proves accesses, and nothing that is not kept does."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.invariants import Limit, candidates, kept
from brickwork.analysis.isl import FOLLOWED
from brickwork.analysis.polynomial import number
from brickwork.analysis.verdicts import Bound
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Launch, Symbol
from brickwork.ir.walk import walk
from support.lowering import memory, program_of


def insertion(x: torch.Tensor, at: torch.Tensor):
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key


def bisection(x: torch.Tensor, at: torch.Tensor):
    for q in range(len(at)):
        low, high = 0, len(x)
        while low < high:
            middle = (low + high) // 2
            if x[middle] < q:
                low = middle + 1
            else:
                high = middle
        at[q] = low


def outwards(x: torch.Tensor, at: torch.Tensor):
    for c in range(len(x)):
        r = 0
        while c - r - 1 >= 0 and c + r + 1 < len(x) and x[c - r - 1] == x[c + r + 1]:
            r += 1


def after_a_break(x: torch.Tensor, at: torch.Tensor):
    j = len(x) - 1
    while j > 0:
        j = j - 1
        if x[j] > 0:
            j = j + 7
            break
    if j >= 0:
        x[j] = 0.0


def both_ways(x: torch.Tensor, at: torch.Tensor):
    j = len(x) - 1
    while j >= 0 and x[j] > 0:
        if x[j] > 1:
            j += 2
        else:
            j -= 1


def unlimited(x: torch.Tensor, at: torch.Tensor):
    j = 0
    while x[0] > j:
        j += 1
        if j < len(x):
            x[j] = 1.0


def by_data(x: torch.Tensor, at: torch.Tensor):
    j = 0
    while j < len(x):
        x[j] = 1.0
        j = j + at[0]


def turned_early(x: torch.Tensor, at: torch.Tensor):
    j = len(x) - 1
    while j >= 0:
        if x[j] > 0:
            j += 5
            continue
        j -= 1


def replaced_inside(x: torch.Tensor, at: torch.Tensor):
    j = 0
    while j < len(x):
        for k in range(4):
            x[j + k // 4] = 1.0
            j = j - k // 3
        j += 2


def unproved(function) -> int:
    """Return how many accesses to `x` are not proved."""
    program = program_of(function, memory([0.0], FLOAT64), memory([0], INT64))
    kernel = next(node.kernel for node in walk(program.body) if isinstance(node, Launch))
    analysis = analyse(kernel)
    numbers = {access.number for access in analysis.accesses if access.tensor.name == "x"}
    return sum(analysis.bounds[number, 0].bound is not Bound.PROVED for number in numbers)


@pytest.mark.parametrize("function", [insertion, bisection, outwards])
def test_what_is_kept_proves(function):
    assert unproved(function) == 0


@pytest.mark.parametrize(
    ("function", "expected"),
    [(after_a_break, 1), (both_ways, 2), (unlimited, 2), (by_data, 1), (turned_early, 1), (replaced_inside, 1)],
)
def test_what_is_not_kept_does_not(function, expected):
    assert unproved(function) == expected


def test_what_is_kept_is_looked_for_until_nothing_goes():
    limits = tuple(Limit(Symbol("v", place, INT64), number(0), below=True) for place in range(9))
    assert kept(limits, lambda held: held[:-1] if len(held) > 2 else held) == limits[:2]
    assert kept(limits, lambda held: held[1:]) == ()


@pytest.mark.parametrize("count", [FOLLOWED, FOLLOWED + 1])
def test_few_variables_are_followed(count):
    entry = {Symbol("v", place, INT64): number(0) for place in range(count)}
    assert bool(candidates(entry, {})) == (count == FOLLOWED)
