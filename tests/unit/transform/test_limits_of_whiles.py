"""A `while` up to an element becomes a loop with an index, if the element stays the same while it runs."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Launch, While
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements
from brickwork.transform.canonical.form import canonical
from support.lowering import argument_type, memory
from support.scheduling import same
from support.shared import define, lower

Tensor = torch.Tensor
X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
STARTS = memory([0, 2, 2, 5, 6], INT64)
SIZES = memory([3, 5, 0], INT64)


def rows(x: Tensor, starts: Tensor) -> None:
    for i in range(4):
        e = starts[i]
        while e < starts[i + 1]:
            x[e] += i
            e += 1


def downwards(x: Tensor, starts: Tensor) -> None:
    for i in range(4):
        e = starts[i + 1] - 1
        while starts[i] <= e:
            x[e] = x[e] * 2.0 + i
            e -= 1


def too_far(x: Tensor, starts: Tensor) -> None:
    for i in range(6):
        e = starts[i]
        while e < starts[i + 1]:
            x[e] += i
            e += 1


def shrinking(x: Tensor, sizes: Tensor) -> None:
    k = 0
    while k < sizes[1]:
        sizes[1] -= 1
        x[k] = 1.0
        k += 1


def chained(x: Tensor, starts: Tensor) -> None:
    k = 1
    while k < starts[k]:
        x[k] = 1.0
        k += 1


def moving(x: Tensor, starts: Tensor) -> None:
    k = 0
    p = 1
    while k < starts[1] + p:
        p = min(p + k, 4)
        x[k] = p
        k += 1


def of_others(x: Tensor, sizes: Tensor, others: Tensor) -> None:
    k = 0
    while k < sizes[1]:
        others[1] = 2
        x[k] = 1.0
        k += 1


def swapped(x: Tensor, sizes: Tensor, others: Tensor) -> None:
    k = 0
    now = torch.zeros(2, dtype=torch.int64)
    then = torch.zeros(2, dtype=torch.int64)
    for i in range(2):
        now[i] = sizes[i]
        then[i] = others[i]
    while k < now[1]:
        x[k] = 1.0
        now, then = then, now
        k += 1


def whiles(function, arguments, *, may_alias: bool = False) -> int:
    """Return how many stay."""
    program = lower(define(function), Signature(tuple(map(argument_type, arguments)), may_alias=may_alias))
    program = canonical(program, sizes=True)
    kernels = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    return sum(isinstance(node, While) for kernel in kernels for node in statements(kernel.body))


@pytest.mark.parametrize(
    ("function", "arguments", "left"),
    [
        (rows, (X, STARTS), 0),
        (downwards, (X, STARTS), 0),
        (too_far, (X, STARTS), 0),
        (shrinking, (X, SIZES), 1),
        (chained, (X, STARTS), 1),
        (moving, (X, STARTS), 1),
        (of_others, (X, SIZES, memory([3, 5, 0], INT64)), 0),
    ],
)
def test_limits_that_stay_the_same_end_loops_that_count(function, arguments, left) -> None:
    assert whiles(function, arguments) == left
    same(function, *arguments)


@pytest.mark.parametrize("may_alias", [False, True])
def test_tensors_that_share_memory_may_change_limits(*, may_alias: bool) -> None:
    arguments = (X, SIZES, memory([3, 5, 0], INT64))
    assert whiles(of_others, arguments, may_alias=may_alias) == int(may_alias)
    same(of_others, *arguments, may_alias=may_alias)


def test_tensors_that_change_places_change_limits() -> None:
    assert whiles(swapped, (X, SIZES, memory([3, 1, 0], INT64))) == 1
