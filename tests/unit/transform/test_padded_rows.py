"""Loops that elements end, as lengths of samples are: on grids over all of an axis, with a condition."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import pytest
import torch

from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Apply, For, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.language.random import rand
from brickwork.transform.canonical.form import canonical
from brickwork.transform.padded_rows import with_padded_rows
from brickwork.transform.pipeline import schedule_program
from support.lowering import argument_type, memory, nested
from support.scheduling import AVX2, GPU, same

Function = Callable[..., object]
GRID = {"device": "cuda", "narrow": True, "aligned": True}


def doubled(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t] = x[b, t] * 2.0
    return out


def from_the_second(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(1, n[b] + 1):
            out[b, t] = x[b, t] * 2.0
    return out


def deeper(x: torch.Tensor, n: torch.Tensor):
    """Access along the row in a loop inside alone."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for h in range(x.shape[2]):
                out[b, t, h] = x[b, t, h] * 2.0
    return out


def scattered(x: torch.Tensor, at: torch.Tensor, n: torch.Tensor):
    out = torch.zeros(4)
    for b in range(at.shape[0]):
        for t in range(n[b]):
            out[at[b, t]] += x[b, t]
    return out


def beside(x: torch.Tensor, n: torch.Tensor):
    """Do something else with each sample."""
    out, sums = torch.zeros_like(x), torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        m = n[b]
        for t in range(m):
            out[b, t] = x[b, t] * 2.0
        for k in range(3):
            sums[b] += float(m) + k
    return out, sums


def two_rows(x: torch.Tensor, y: torch.Tensor, n: torch.Tensor):
    out, other = torch.zeros_like(x), torch.zeros_like(y)
    for b in range(x.shape[0]):
        m = n[b]
        for t in range(m):
            out[b, t] = x[b, t] * 2.0
        for u in range(m):
            other[b, u] = y[b, u] * 3.0
    return out, other


def summed(x: torch.Tensor, n: torch.Tensor):
    """Add a row up: a thread's own sum is better."""
    out = torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b] += x[b, t]
    return out


def running(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        s = 0.0
        for t in range(n[b]):
            s += x[b, t]
            out[b, t] = s
    return out


def greatest(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        top = -math.inf
        for t in range(n[b]):
            top = max(top, x[b, t])
        out[b] = top
    return out


def ended(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            if x[b, t] < 0.0:
                break
            out[b, t] = x[b, t] * 2.0
    return out


def skipped(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            if t == 1:
                continue
            out[b, t] = x[b, t] * 2.0
    return out


def sought(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            v = x[b, t]
            while v > 1.0:
                v = v * 0.5
            out[b, t] = v
    return out


def drawn(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t] = x[b, t] + 0.0 * rand()
    return out


def in_branch(x: torch.Tensor, n: torch.Tensor):
    """Access the row only where the iteration is even, so that some could be beyond it."""
    out = torch.zeros(8)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            if t < x.shape[1]:
                out[4 * b + t] += x[b, t]
    return out


def another_place(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, 3 - t] = x[b, 3 - t] * 2.0
    return out


def diagonal(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros(4, 4, 4)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t, t] = 2.0 * b + t
    return out


def sparse(x: torch.Tensor, n: torch.Tensor):
    """Go along the same elements with all samples: nothing is padded for each of them."""
    out = torch.zeros(4, 8)
    for b in range(n.shape[0]):
        for t in range(n[b]):
            out[b, t + 1] = x[t, 0]
    return out


def begun_by_elements(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b] - 1, n[b]):
            if t >= 0:
                out[b, t] = x[b, t] * 2.0
    return out


def of_two_places(x: torch.Tensor, n: torch.Tensor):
    """Let a variable that changes say where to end."""
    out = torch.zeros_like(x)
    m = 0
    for b in range(x.shape[0]):
        m = m + n[b]
        for t in range(min(m, 3)):
            out[b, t] = x[b, t] * 2.0
    return out


def with_a_length_of_its_own(x: torch.Tensor, n: torch.Tensor, h: torch.Tensor):
    """Access the row in a loop that elements end, and so maybe never."""
    out = torch.zeros(2, 4)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for k in range(h[b]):
                out[b, t % 4] += x[b, t, k]
    return out


def of_pairs(x: torch.Tensor, n: torch.Tensor):
    """Access a row that is padded for one of two indices alone."""
    out = torch.zeros(2, 2, 8)
    for b in range(2):
        for c in range(2):
            for t in range(n[b, c]):
                out[b, c, t + 1] = x[b, t]
    return out


def in_another_loop(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros(3, 2, 8)
    for h in range(3):
        for b in range(x.shape[0]):
            for t in range(n[b]):
                out[h, b, t + 1] = x[b, t] * h
    return out


def with_a_list(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        p = [x[b, 0] * 0.0] * 4
        for t in range(n[b]):
            p[t] = x[b, t]
        for t in range(4):
            out[b, t] = p[t]
    return out


def ends_itself(x: torch.Tensor, n: torch.Tensor):
    """Store the length that it was ended by."""
    for b in range(x.shape[0]):
        for t in range(n[b]):
            n[b] = 1
            x[b, t] = 2.0 * t


def scaled_after(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t] = x[b, t] * 2.0
        for t in range(x.shape[1]):
            out[b, t] = out[b, t] + 1.0
    return out


def read_before(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            x[b, t] = x[b, t] + 1.0
        for t in range(n[b]):
            out[b, t] = x[b, t] * 2.0
    return out


def told_on(x: torch.Tensor, n: torch.Tensor):
    """Leave a variable for what follows."""
    out, last = torch.zeros_like(x), torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        v = 0.0
        for t in range(n[b]):
            v = x[b, t] * 2.0
            out[b, t] = v
        for k in range(1):
            last[b] = v
    return out, last


X = memory([[1.0, 2.0, 3.0, 4.0], [5.0, -6.0, 7.0, 8.0]])
Y = memory([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])
CUBE = memory([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
AT = memory([[2, 0, 2, 3], [1, 2, 3, 0]], INT64)
N = memory([3, 2], INT64)
SHORT = memory([2, 1], INT64)


def made_longer(function: Function, *arguments: object, target=GPU) -> str:
    """Return the loops that go along all of an axis then, and were ended by elements."""
    grid = GRID if target is GPU else {}
    program = canonical(lower(define(function), Signature(tuple(map(argument_type, arguments)), **grid)), sizes=True)
    longer, _ = with_padded_rows(program, target)
    ends = ((node.index.name, node.stop) for node in walk(longer.body) if isinstance(node, For))
    found = (name for name, stop in ends if isinstance(stop, Apply) and stop.operator.name == "maximum")
    return "".join(sorted(found))


@pytest.mark.parametrize(
    ("function", "arguments", "loops"),
    [
        (doubled, (X, N), "t"),
        (from_the_second, (X, N), "t"),
        (deeper, (CUBE, SHORT), "t"),
        (scattered, (X, AT, N), "t"),
        (beside, (X, N), "t"),
        (two_rows, (X, Y, N), "tu"),
        (skipped, (X, N), ""),
        (summed, (X, N), ""),
        (running, (X, N), ""),
        (greatest, (X, N), ""),
        (ended, (X, N), ""),
        (sought, (X, N), ""),
        (in_branch, (X, memory([4, 3], INT64)), ""),
        (another_place, (X, N), ""),
        (diagonal, (X, N), ""),
        (sparse, (X, SHORT), ""),
        (begun_by_elements, (X, N), ""),
        (of_two_places, (X, N), ""),
        (with_a_length_of_its_own, (CUBE, SHORT, memory([2, 1], INT64)), ""),
        (of_pairs, (X, memory([[1, 2], [3, 0]], INT64)), ""),
        (in_another_loop, (X, N), "t"),
        (with_a_list, (X, N), ""),
        (ends_itself, (X, N), ""),
        (scaled_after, (X, N), ""),
        (read_before, (X, N), ""),
        (told_on, (X, N), ""),
    ],
)
def test_rows_are_made_longer_where_their_iterations_are_threads(function, arguments, loops):
    assert made_longer(function, *arguments) == loops
    same(function, *arguments)


def test_draws_are_made_by_the_iterations_of_the_source():
    assert made_longer(drawn, X, N) == ""


def test_processors_go_along_rows_as_they_are():
    assert made_longer(doubled, X, N, target=AVX2) == ""


@pytest.mark.parametrize("lengths", [[0, 0], [-1, 4], [4, 4], [1, 0]])
def test_rows_of_any_length(lengths):
    for function in (doubled, beside):
        same(function, X, memory(lengths, INT64))


def _failure(function: Function, *arguments: object) -> str:
    """Return how a function fails on a grid."""
    signature = Signature(tuple(map(argument_type, arguments)), **GRID)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    with pytest.raises(IndexError) as caught:
        run_program(pieces, cast("list[Memory]", [*arguments]), check=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (doubled, (X, memory([3, 5], INT64))),
        (deeper, (CUBE, memory([3, 1], INT64))),
        (doubled, (memory([[], []]), memory([0, 1], INT64))),
    ],
)
def test_a_row_that_is_too_long_fails_as_it_did(function, arguments):
    assert "is out of bounds for dimension 1 of tensor" in _failure(function, *arguments)


def test_what_no_iteration_accesses_may_be_too_short():
    """Rows of no numbers are never accessed, however many there would be."""
    x = memory([[[], []], [[], []]])
    assert nested(x) == [[[], []], [[], []]]
    signature = Signature(tuple(map(argument_type, (x, N))), **GRID)
    pieces, _ = schedule_program(lower(define(deeper), signature), GPU)
    run_program(pieces, [x, memory([5, 9], INT64)], check=True)


def empty(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for h in range(x.shape[2]):
                for k in range(x.shape[3]):
                    out[b, t, h, k] = x[b, t, h, k] * 2.0
    return out


def test_nor_what_the_outer_of_two_loops_does_not():
    x = Memory([], (2, 2, 0, 3), (0, 0, 3, 1), FLOAT32)
    signature = Signature(tuple(map(argument_type, (x, N))), **GRID)
    pieces, _ = schedule_program(lower(define(empty), signature), GPU)
    run_program(pieces, [x, memory([5, 9], INT64)], check=True)


def test_two_rows_are_for_threads_of_two_launches():
    program = lower(define(two_rows), Signature(tuple(map(argument_type, (X, Y, N))), **GRID))
    pieces, _ = schedule_program(program, GPU)
    names = {node.kernel.name for node in walk(pieces.body) if isinstance(node, Launch)}
    assert len(names) >= 2
