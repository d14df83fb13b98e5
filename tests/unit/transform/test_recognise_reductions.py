"""Places of extremes and raised flags as reductions: they are found, and what they find is what Python finds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Kernel, Launch, Node
from brickwork.ir.walk import rewrite
from brickwork.target.cpu import host_target
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.recognise_reductions import recognise_reductions
from support.lowering import Nested, memory, nested, program_of
from support.scheduling import kernel_of

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


def draws(x: Tensor, y: Tensor) -> None:
    best = 0.0
    where = -1
    for i in range(x.shape[0]):
        v = x[i] + bw.rand()
        if v > best:
            best = v
            where = i
    y[0] = best
    y[1] = where


def notes_what_it_compares(x: Tensor, y: Tensor) -> None:
    best = 0.0
    twice = 0.0
    other = 0.0
    for i in range(x.shape[0] - 1):
        t = x[2 - i]
        if t + x[1 - i] > best:
            twice = x[1 - i] * 2.0
            other = x[1 - i]
            other = x[2 - i]
            best = t + x[1 - i]
    y[0] = best
    y[1] = twice - other


def skips(x: Tensor, y: Tensor) -> None:
    found = 2
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            continue
        if x[i] < 0.0:
            found = 7
    y[0] = found


def notes_it_unless(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            where = i
        else:
            where = -1
    y[0] = best
    y[1] = where


def a_loop_computes_it(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        v = 0.0
        for k in range(2):
            v += x[k] * (i + 1)
        if v > best:
            best = v
            where = i
    y[0] = best
    y[1] = where


def begins_again(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        where = -1
        if x[i] > best:
            best = x[i]
            where = i
    y[0] = best
    y[1] = where


def compares_with_none_before(x: Tensor, y: Tensor) -> None:
    where = 0
    for i in range(x.shape[0]):
        best = 0.5
        if x[i] > best:
            best = x[i]
            where = i
    y[1] = where


def notes_what_may_not_be_there(x: Tensor, y: Tensor) -> None:
    best = x[0]
    other = 0.0
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            other = y[i]
    y[0] = best
    y[1] = other


def notes_what_was_computed(x: Tensor, y: Tensor) -> None:
    found = 0
    for i in range(x.shape[0]):
        k = i * 2
        if x[i] > 0.0:
            found = k
    y[0] = found


def goes_along(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    t = 1.0
    for i in range(x.shape[0]):
        t = t * 0.5 + x[i]
        if t > best:
            best = t
            where = i
    y[0] = best
    y[1] = where


def compares_with_its_place(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        if x[i] - where > best:
            best = x[i] - where
            where = i
    y[0] = best
    y[1] = where


def computes_with_its_place(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        t = x[i] - where
        if t > best:
            best = t
            where = i
    y[0] = best
    y[1] = where


def asks_a_flag(x: Tensor, y: Tensor) -> None:
    best = x[0] > 0.0
    where = 0
    for i in range(x.shape[0]):
        best = x[i] > 0.0
        if best:
            best = False
            where = i
    y[1] = where


def is_equal(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(1, x.shape[0]):
        if x[i] == best:
            best = x[i]
            where = i
    y[0] = best
    y[1] = where


def stores_it(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            y[2] = 3.0
            where = i
    y[0] = best
    y[1] = where


def notes_another(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i - 1]
            where = i
    y[0] = best
    y[1] = where


def notes_it_twice(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i]
            best = x[i - 1]
            where = i
    y[0] = best
    y[1] = where


def notes_what_changes(x: Tensor, y: Tensor) -> None:
    found = 0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            found = i
    y[0] = found


def notes_an_element_that_changes(x: Tensor, y: Tensor) -> None:
    found = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            found = y[1] * 2.0
        y[1] = x[i]
    y[0] = found


def raises_two_ways(x: Tensor, y: Tensor) -> None:
    found = 0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            found = 1
        if x[i] < 0.0:
            found = 2
    y[0] = found


def reads_its_flag(x: Tensor, y: Tensor) -> None:
    found = 0
    for i in range(x.shape[0]):
        y[1] += found
        if x[i] > 0.0:
            found = 1
    y[0] = found


FUNCTIONS = {
    greatest: True,
    last_greatest: True,
    least: True,
    last_least: True,
    flag: True,
    not_a_number: False,
    reads_its_place: False,
    draws: True,
    notes_what_it_compares: True,
    skips: True,
}
LEFT = (
    notes_it_unless,
    a_loop_computes_it,
    begins_again,
    goes_along,
    compares_with_none_before,
    notes_what_may_not_be_there,
    notes_what_was_computed,
    compares_with_its_place,
    computes_with_its_place,
    asks_a_flag,
    is_equal,
    stores_it,
    notes_another,
    notes_it_twice,
    notes_what_changes,
    notes_an_element_that_changes,
    raises_two_ways,
    reads_its_flag,
)


@pytest.mark.parametrize("function", LEFT, ids=lambda function: function.__name__)
def test_other_loops_stay(function: Callable[..., None]) -> None:
    kernel = kernel_of(function, memory([0.0] * 3, FLOAT64), memory([0.0] * 3, FLOAT64))
    assert recognise_reductions(kernel, analyse(kernel)) is kernel


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

    one, other = memory([0.0] * 3, FLOAT64), memory([0.0] * 3, FLOAT64)
    program = program_of(function, one, other)
    changed = rewrite(program, visit)
    assert kernels == [FUNCTIONS[function]]
    for values in itertools.product(VALUES, repeat=3):
        results: list[str] = []
        for each in (program, changed):
            given = [memory([*values], FLOAT64), memory([0.0] * 3, FLOAT64)]
            run_program(each, given, key=7, check=True)
            results.append(spelled(nested(given[1])))
        assert results[0] == results[1], values
