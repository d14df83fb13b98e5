"""A variable that is used anew is another one; one that passes something on stays one.

Each program means the same as written, for processors and for a GPU.
"""

import math
from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir.nodes import Assign, Kernel, Launch
from brickwork.ir.walk import statements
from brickwork.transform.canonical.form import canonical
from support.lowering import memory, program_of
from support.scheduling import same

Tensor = torch.Tensor
X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
Y = memory([0.25] * 6)
Z = memory([0.0] * 6)


def two_searches(x: Tensor, y: Tensor) -> None:
    for i in range(3):
        for j in range(2):
            at, top = 0, -math.inf
            for k in range(2):
                if x[k] + j > top:
                    at, top = k, x[k] + j
            y[at] += top
        for j in range(2):
            at, top = 0, -math.inf
            for k in range(x.shape[0]):
                if x[k] * i > top:
                    at, top = k, x[k] * i
            y[at] += top


def one_after_the_other(x: Tensor, y: Tensor) -> None:
    s = 0.0
    for k in range(x.shape[0]):
        s = s * 0.5 + x[k]
    y[0] = s
    s = 1.0
    for k in range(x.shape[0]):
        s = s * x[k] + 1.0
    y[1] = s


def in_branches(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        if x[i] > 0:
            t = x[i]
            while t > 1.0:
                t = t - 1.0
            y[i] = t
        else:
            t = 0.0
            for k in range(i):
                t = t * 0.5 + x[k]
            y[i] = t


def in_a_while(x: Tensor, y: Tensor) -> None:
    k = 0
    while k < x.shape[0]:
        t = x[k]
        while t > 1.0:
            t = t * 0.5
        y[k] = t
        t = 0.0
        for j in range(k):
            t = t * 0.5 + x[j]
        y[k] += t
        k += 1 if x[k] > 0 else 2


def passed_on(x: Tensor, y: Tensor) -> None:
    s = 0.0
    for k in range(x.shape[0]):
        if x[k] > 0:
            s = s + x[k]
    for k in range(x.shape[0]):
        if x[k] < s:
            s = s - x[k]
        y[k] = s


def carried_around(x: Tensor, y: Tensor) -> None:
    s, t = 0.0, 0.0
    for k in range(x.shape[0]):
        if x[k] > 0:
            t = s + 1.0
        y[k] = t
        t = x[k]
        if x[k] > 1.0:
            t = t * 2.0
        s = s + t


def left_early(x: Tensor, y: Tensor) -> None:
    s = 0.0
    for k in range(x.shape[0]):
        s = x[k]
        if x[k] > 1.0:
            s = s * 2.0
            if x[k] > 2.5:
                break
        y[k] = s
        s = 7.0
        if x[k] < -1.0:
            s = 8.0
            continue
        y[k] += s
    y[5] = s


def found_and_left(x: Tensor, y: Tensor) -> None:
    s = 1.0
    for k in range(x.shape[0]):
        if x[k] > 2.5:
            s = x[k] * 2.0
            break
        s = 3.0
        y[k] = s
    y[5] = s


def gone_on_with(x: Tensor, y: Tensor) -> None:
    s = 0.0
    for k in range(x.shape[0]):
        y[k] = s
        if x[k] > 0:
            s = x[k]
            continue
        s = 5.0
        y[k] += s


def kernel_of(function: Callable[..., object], *arguments: object) -> Kernel:
    program = canonical(program_of(function, *arguments))
    return next(node.kernel for node in statements(program.body) if isinstance(node, Launch))


def variables(kernel: Kernel, name: str) -> int:
    """Count the variables of a name, told apart by the frontend or afterwards."""
    assigned = {node.symbol for node in statements(kernel.body) if isinstance(node, Assign)}
    return sum(symbol.name.removesuffix("_2") == name for symbol in assigned)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (two_searches, {"at": 2, "top": 2}),
        (one_after_the_other, {"s": 2}),
        (in_branches, {"t": 2}),
        (in_a_while, {"t": 2}),
        (passed_on, {"s": 1}),
        (carried_around, {"s": 1, "t": 1}),
        (left_early, {"s": 1}),
        (found_and_left, {"s": 1}),
        (gone_on_with, {"s": 1}),
    ],
)
def test_uses_that_stand_alone_have_variables_of_their_own(
    function: Callable[..., object], names: dict[str, int]
) -> None:
    kernel = kernel_of(function, X, Y)
    assert {name: variables(kernel, name) for name in names} == names
    same(function, X, Y)


def test_each_use_has_its_own_bounds() -> None:
    kernel = kernel_of(two_searches, X, Y)
    found = analyse(kernel).bounds.values()
    assert not any(verdict.bound is Bound.CHECKED for verdict in found)
