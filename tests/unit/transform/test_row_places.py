"""Loops over the length of a row go over its places, where elements that stay as they are begin and end it."""

from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import For, Launch, Load, Read
from brickwork.ir.walk import statements
from brickwork.transform.canonical.form import canonical
from support.lowering import memory, numbers, program_of
from support.scheduling import same

Tensor = torch.Tensor
X = numbers(10)
W = numbers(10)
ENDS = memory([0, 3, 3, 6, 8], INT64)
APART = memory([2, 5, 4, 8], INT64)
BACK = memory([7, -3, 4], INT64)


def begins_ahead(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range(ends[b + 1] - start):
            x[start + s] = 2 * x[start + s] + w[s]


def both_ahead(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start, end = ends[b], ends[b + 1]
        for s in range(end - start):
            x[s + start] = x[s + start] - s


def length_ahead(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        n = ends[b + 1] - ends[b]
        for s in range(n):
            x[ends[b] + s] += w[s] * n


def neighbours(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range(ends[b + 1] - start):
            x[start + s] = w[max(start + s - 1, 0)] + w[min(start + s + 1, 9)]


MOVED = (begins_ahead, both_ahead, length_ahead, neighbours)


def from_one(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range(1, ends[b + 1] - start):
            x[start + s] = w[s]


def of_another_tensor(x: Tensor, w: Tensor, ends: Tensor, more: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range(more[b] - start):
            x[start + s] = w[s]


def begins_that_are_stored(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        for s in range(ends[b + 1] - ends[b]):
            x[ends[b] + s] = w[s]
            ends[b] = ends[b] * 1 + s % 2


def begins_that_change(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range(ends[b + 1] - start):
            x[start + s] = w[s]
            if s == 1:
                start = ends[0]


def begins_that_changed(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        n = ends[b + 1] - start
        start = ends[0]
        for s in range(n):
            x[start + s] = w[s]


def rows_that_change(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        row = b
        n = ends[row + 1] - ends[row]
        for s in range(n):
            x[ends[row] + s] = w[s]
            row = 0


def lengths_that_change(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        n = ends[b + 1] - start
        if w[b] > 0:
            n = 1
        for s in range(n):
            x[start + s] = w[s]


def read_afterwards(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start, s = ends[b], 0
        for s in range(ends[b + 1] - start):
            x[start + s] = w[s]
        x[start] = s


def steps_alone(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range(ends[b + 1] - start):
            x[s] = w[s] + start


def twice_the_step(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range((ends[b + 1] - start) // 2):
            x[start + 2 * s] = w[s]


def ends_together(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range(ends[b + 1] + start):
            x[min(start + s, 9)] = w[s % 10]


def sizes_less_begins(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = ends[b]
        for s in range(x.shape[0] - start):
            x[start + s] = w[s]


def begins_less_literals(x: Tensor, w: Tensor, ends: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        start = b // 2
        for s in range(ends[b + 1] - start):
            x[start + s] = w[s]


KEPT = (
    ends_together,
    sizes_less_begins,
    begins_less_literals,
    from_one,
    begins_that_are_stored,
    begins_that_change,
    begins_that_changed,
    rows_that_change,
    lengths_that_change,
    steps_alone,
    twice_the_step,
)


def begins(function: Callable[..., object], *arguments: object) -> list[bool]:
    """Return of each inner loop whether it begins with a variable or an element."""
    program = canonical(program_of(function, *arguments))
    kernels = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    loops = [node for each in kernels for node in statements(each.body) if isinstance(node, For)]
    return [isinstance(node.start, Read | Load) for node in loops[1:]]


@pytest.mark.parametrize("function", MOVED)
@pytest.mark.parametrize("ends", [ENDS, APART, BACK])
def test_loops_over_places(function: Callable[..., object], ends: object):
    assert begins(function, X, W, ends) == [True]
    same(function, X, W, ends)


@pytest.mark.parametrize("function", [*KEPT, read_afterwards])
@pytest.mark.parametrize("ends", [ENDS, APART])
def test_loops_over_steps(function: Callable[..., object], ends: object):
    if function is not read_afterwards:
        assert begins(function, X, W, ends) == [False]
    same(function, X, W, ends)


def test_rows_that_two_tensors_say():
    more = memory([3, 1, 9, 9], INT64)
    assert begins(of_another_tensor, X, W, ENDS, more) == [False]
    same(of_another_tensor, X, W, ENDS, more)


def test_rows_that_follow_each_other_run_at_once_on_a_gpu():
    """Launches do not grow with the number of rows, and the gradient is that of torch."""

    @bw.op
    def scaled(x: Tensor, w: Tensor, ends: Tensor) -> Tensor:
        out = torch.empty_like(x)
        for b in range(ends.shape[0] - 1):
            start = ends[b]
            for s in range(ends[b + 1] - start):
                for d in range(x.shape[1]):
                    out[start + s, d] = x[start + s, d] * w[s, d]
        return out

    x, w = (torch.randn(10, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda x, w: scaled(x, w, torch.tensor([0, 3, 3, 10])), (x, w))
    sizes = torch.empty(4096, 64, device="meta"), torch.empty(4096, 64, device="meta")
    said = scaled.explain(*sizes, torch.empty(33, dtype=torch.int64, device="meta"), device="sm_90")
    assert "kernel scaled_rows" in said or "scaled_rows_0" in said


def into_its_own_ends(ends: Tensor, y: Tensor) -> None:
    for b in range(ends.shape[0] - 1):
        for s in range(ends[b + 1] - ends[b]):
            y[ends[b] + s] = y[ends[b] + s] + 1


def test_ends_that_may_change_are_read_again():
    given = memory([2, 3, 4, 2, 4, 0, 6, 5, 4], INT64)
    same(into_its_own_ends, given, given, may_alias=True)
    same(into_its_own_ends, given, memory([2, 3, 4, 2, 4, 0, 6, 5, 4], INT64))
