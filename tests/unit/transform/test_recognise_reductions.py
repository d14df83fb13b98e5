"""Places of extremes and raised flags as reductions: they are found, and what they find is what Python finds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Kernel, Launch, Node
from brickwork.ir.walk import rewrite
from brickwork.target.cpu import host_target
from brickwork.transform.pipeline import schedule_kernel
from support.lowering import Nested, memory, nested, program_of

Tensor = torch.Tensor
NAN, INF = math.nan, math.inf
VALUES = (-0.0, 0.0, 1.0, NAN, -INF, INF)


def greatest(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i]
            where = i
    y[0] = best
    y[1] = where


def last_greatest(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(1, x.shape[0]):
        if x[i] >= best:
            best = x[i]
            where = i
    y[0] = best
    y[1] = where


def least(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = -1
    other = 0.0
    for i in range(x.shape[0]):
        v = x[i] * 2.0
        if best > v:
            where = 2 * i
            best = v
            other = x[i] + 1.0
    y[0] = best
    y[1] = where + other


def last_least(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        if x[i] <= best:
            best = x[i]
            where = i
    y[0] = best
    y[1] = where


def flag(x: Tensor, y: Tensor) -> None:
    found = False
    count = 3
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            found = True
        if x[i] < -0.5:
            count = 7
    y[0] = 1.0 if found else 0.0
    y[1] = count


def not_a_number(x: Tensor, y: Tensor) -> None:
    """A comparison turned round is another where a value is no number: this loop stays in order."""
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        if x[i] <= best:
            continue
        best = x[i]
        where = i
    y[0] = best
    y[1] = where


def reads_its_place(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            where = where + i
    y[0] = best
    y[1] = where


FUNCTIONS = {
    greatest: True,
    last_greatest: True,
    least: True,
    last_least: True,
    flag: True,
    not_a_number: False,
    reads_its_place: False,
}


def spelled(values: Nested) -> str:
    return str(values)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_places_and_flags(function: Callable[..., None]) -> None:
    kernels: list[bool] = []

    def visit(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        scheduled = schedule_kernel(node.kernel, host_target())
        kernels.append(all(verdict.independent for verdict in scheduled.analysis.loops.values()))
        kernel: Kernel = scheduled.kernel
        return Launch(kernel=kernel)

    one, other = memory([0.0] * 3, FLOAT64), memory([0.0, 0.0], FLOAT64)
    program = program_of(function, one, other)
    changed = rewrite(program, visit)
    assert kernels == [FUNCTIONS[function]]
    for values in itertools.product(VALUES, repeat=3):
        results: list[str] = []
        for each in (program, changed):
            given = [memory([*values], FLOAT64), memory([0.0, 0.0], FLOAT64)]
            run_program(each, given, check=True)
            results.append(spelled(nested(given[1])))
        assert results[0] == results[1], values
