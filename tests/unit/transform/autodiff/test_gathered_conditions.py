"""Conditions that two numbers are equal say what an index is, where updates are turned around."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
import torch

from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Allocate, For, Program
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import statements
from brickwork.transform.autodiff.gather import gather
from brickwork.transform.canonical.form import canonical
from brickwork.transform.scratch import Names
from support.lowering import program_of, strides

Tensor = torch.Tensor


def numbers(*sizes: int) -> Memory:
    """Return a tensor of small integers: sums of them are exact in any order."""
    total = 1
    for size in sizes:
        total *= size
    return Memory([float(place * 7 % 11 - 5) for place in range(total)], sizes, strides(sizes), FLOAT32)


def remainders(g: Tensor, w: Tensor) -> Tensor:
    """Add what spreads a row by two, and moves it, to the row again."""
    x = torch.zeros(g.shape[0] // 2)
    for y in range(g.shape[0]):
        for k in range(w.shape[0]):
            if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[0]:
                x[(y + 1 - k) // 2] += g[y] * w[k]
    return x


def equal(g: Tensor, w: Tensor) -> Tensor:
    x = torch.zeros(g.shape[0])
    for y in range(g.shape[0]):
        for k in range(w.shape[0]):
            for m in range(w.shape[0]):
                if m == 2 * k - 1 and y + k < x.shape[0]:
                    x[y + k] += g[y] * w[k] * w[m]
    return x


def twice(g: Tensor, w: Tensor) -> Tensor:
    """Say twice of an index what it is: of others there is no iteration."""
    x = torch.zeros(g.shape[0])
    for y in range(g.shape[0]):
        for k in range(w.shape[0]):
            for m in range(w.shape[0]):
                if m == k and m == 2 - k:
                    x[y] += g[y] * w[k] * w[m]
    return x


def distances(g: Tensor, w: Tensor) -> Tensor:
    """Let an index be negative: it stays, as distances do."""
    x = torch.zeros(g.shape[0])
    for y in range(g.shape[0]):
        for d in range(-2, 3):
            for k in range(w.shape[0]):
                if k - d == 2 and 0 <= y + d < x.shape[0]:
                    x[y + d] += g[y] * w[k]
    return x


def chosen(g: Tensor, w: Tensor) -> Tensor:
    """Add what either branch computes for an iteration."""
    x = torch.zeros(g.shape[0] + w.shape[0])
    for y in range(g.shape[0]):
        if g[y] > 0:
            a = g[y] * 2
            b = a + 1
        else:
            b = g[y] - 1
        for k in range(w.shape[0]):
            x[y + k] += b * w[k]
    return x


def left(g: Tensor, w: Tensor) -> Tensor:
    """Add what one branch alone computes, and is left from the iterations before else."""
    x = torch.zeros(g.shape[0] + w.shape[0])
    b = 1.0
    for y in range(g.shape[0]):
        if g[y] > 0:
            b = g[y] * 2
        else:
            if g[y] < -2:
                b = g[y]
        for k in range(w.shape[0]):
            x[y + k] += b * w[k]
    return x


def gathered(program: Program) -> Program:
    result = gather(canonical(program), Names(count(500_000), count(500_000), count(500_000)))
    verify_program(result)
    return result


def elements(program: Program, arguments: Sequence[Any]) -> list[float]:
    (result,) = run_program(program, [*arguments])
    assert isinstance(result, Memory)
    return [float(item) for item in result.data]


def loops(program: Program) -> int:
    return sum(isinstance(node, For) for node in statements(program.body))


@pytest.mark.parametrize("function", [remainders, equal, twice, distances, chosen, left])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("terms", [1, 2, 3, 4, 5])
def test_each_contribution_is_added_once(function: Callable[..., Any], length: int, terms: int) -> None:
    given = numbers(length), numbers(terms)
    program = program_of(function, *given)
    assert elements(gathered(program), given) == elements(program, given)


def test_the_outermost_loop_in_an_equation_is_solved_for() -> None:
    program = gathered(program_of(remainders, numbers(8), numbers(4)))
    (nest,) = [node for node in statements(program.body) if isinstance(node, For) and len(node.body) > 1]
    assert [node.index.name for node in statements(nest.body) if isinstance(node, For)] == ["k"]
    assert loops(program) == 2


def test_what_all_branches_assign_is_computed_again() -> None:
    arguments = numbers(8), numbers(4)
    assert [
        sum(isinstance(node, Allocate) for node in gathered(program_of(each, *arguments)).body)
        for each in (chosen, left)
    ] == [1, 2]
