"""Rows one after the other in an axis: which begin beyond the one before, and which may have elements in common."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.nodes import Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from support.shared import define, lower
from support.tensors import argument_type


def together(function):
    """Return which loops of a function may run all iterations at once, by their names."""
    given = (torch.zeros(8), torch.zeros(8, 8), 3)[: function.__code__.co_argcount]
    program = lower(define(function), Signature(tuple(map(argument_type, given))))
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    return {symbol.name: verdict.independent for symbol, verdict in analyse(kernel).loops.items()}


def triangle(out: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i * (i + 1) // 2 + j] = x[i, j]


def pairs(out: torch.Tensor, x: torch.Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            out[i * (2 * n - i - 1) // 2 + j - i - 1] = x[i, j]


def tetrahedron(out: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(i + 1):
            for k in range(j + 1):
                out[i * (i + 1) * (i + 2) // 6 + j * (j + 1) // 2 + k] = x[i, k]


@pytest.mark.parametrize("function", [triangle, pairs])
def test_rows_of_triangles_are_apart(function):
    assert all(together(function).values())


def moved(out: torch.Tensor, x: torch.Tensor) -> None:
    """Elements say where triangles begin, and which of two places a row's elements have."""
    for b in range(x.shape[0]):
        first = int(x[b, 0]) % 4
        for i in range(x.shape[0]):
            for j in range(i + 1):
                out[first + i * (i + 1) + 2 * j + int(x[i, j]) % 2] = x[i, j]


def test_rows_that_elements_move_are_apart():
    found = together(moved)
    assert found["i"]
    assert not found["b"]


def test_rows_of_a_triangle_inside_of_another_are_apart():
    found = together(tetrahedron)
    assert found["j"]
    assert found["k"]


def longer(out: torch.Tensor, x: torch.Tensor) -> None:
    """Each row has an element more than there is room for."""
    for i in range(x.shape[0]):
        for j in range(i + 2):
            out[i * (i + 1) // 2 + j] = x[i, j]


def last_longer(out: torch.Tensor, x: torch.Tensor) -> None:
    """The last two rows meet."""
    n = x.shape[0]
    for i in range(n):
        for j in range(i, n):
            out[i * (2 * n - i - 1) // 2 + j - i] = x[i, j]


def turning(out: torch.Tensor, x: torch.Tensor) -> None:
    """Rows of one element that come back."""
    n = x.shape[0]
    for i in range(n):
        for j in range(1):
            out[i * (n - i) + j] = x[i, j]


def resting(out: torch.Tensor, x: torch.Tensor) -> None:
    """A third of what rows are further on is no integer."""
    for i in range(x.shape[0]):
        for j in range((i + 2) // 3):
            out[i * (i + 1) // 3 + j] = x[i, j]


def remaining(out: torch.Tensor, x: torch.Tensor) -> None:
    """A remainder goes round."""
    for i in range(x.shape[0]):
        for j in range(1):
            out[i * i % 5 + j] = x[i, j]


def beyond(out: torch.Tensor, x: torch.Tensor) -> None:
    """Two stores, the second into the next row."""
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i * (i + 1) // 2 + j] = x[i, j]
            out[i * (i + 1) // 2 + j + 1] = x[i, j]


def scattered(out: torch.Tensor, x: torch.Tensor) -> None:
    """Elements say where in a row."""
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i * (i + 1) // 2 + int(x[i, j])] = x[i, j]


def back(out: torch.Tensor, x: torch.Tensor) -> None:
    """Each row begins where the last ended, and goes back."""
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i * i - 2 * i * j] = x[i, j]


def dipping(out: torch.Tensor, x: torch.Tensor) -> None:
    """A row without elements is followed by one that begins before it."""
    for i in range(8):
        for j in range(i * i - 6 * i + 8):
            at = (2 * i * i * i - 21 * i * i + 67 * i) // 6 + j
            if at >= 0:
                out[at] = x[i, 0]


def squared(out: torch.Tensor, x: torch.Tensor) -> None:
    """Within a row, places are further and further apart."""
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i * (i + 1) // 2 + j * j // 2] = x[i, j]


def behind(out: torch.Tensor, x: torch.Tensor) -> None:
    """The same, backwards."""
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i * (i + 1) // 2 + -j * j // 2] = x[i, j]


def wider(out: torch.Tensor, x: torch.Tensor) -> None:
    """Rows are longer in later iterations of the loop around."""
    for b in range(2):
        for i in range(x.shape[0]):
            for j in range(i + 1 + b):
                out[i * (i + 1) // 2 + j] = x[i, j]


def remaining_evenly(out: torch.Tensor, x: torch.Tensor) -> None:
    """What a remainder is of is further on by as much as it is by, which is nothing."""
    n = x.shape[1]
    for i in range(x.shape[0]):
        for j in range(1):
            out[(3 * i * i + 3 * i + n) % 3 + j] = x[i, j]


def divided_by_a_size(out: torch.Tensor, x: torch.Tensor) -> None:
    """Rows of one element are as far apart as a size says, or in one place."""
    n = x.shape[1] + 1
    for i in range(x.shape[0]):
        for j in range(1):
            out[i * i // n + j] = x[i, 0]


def divided_twice(out: torch.Tensor, x: torch.Tensor) -> None:
    """What is divided is a remainder."""
    for i in range(x.shape[0]):
        for j in range(1):
            out[(i * i % 5 + 7 * i * i) // 2 + j] = x[i, 0]


def valley(out: torch.Tensor, x: torch.Tensor) -> None:
    """What is divided comes back, though its gain, term by term, is not less than 7."""
    for i in range(-20, x.shape[0]):
        for j in range(1):
            at = (i * i + 20 * i) // 3 + 40 + j
            if at >= 0:
                out[at] = x[0, j]


def spread(out: torch.Tensor, x: torch.Tensor) -> None:
    """Elements say how far apart the elements of a row are."""
    for i in range(x.shape[0]):
        step = int(x[i, 0]) % 5 - 2
        for j in range(i + 1):
            at = i * (i + 1) // 2 + j * step
            if at >= 0:
                out[at] = x[i, j]


def stretched(out: torch.Tensor, x: torch.Tensor, m: int) -> None:
    """An argument says how far apart they are, and on which side."""
    for i in range(x.shape[0]):
        for j in range(4):
            at = i * (i + 1) // 2 + j * j // 2 * m
            if at >= 0:
                out[at] = x[i, j]


def begun(out: torch.Tensor, x: torch.Tensor) -> None:
    """Elements say where each row begins."""
    for i in range(x.shape[0]):
        first = min(max(int(x[i, 0]), 0), 3)
        for j in range(i + 1):
            out[i * (i + 1) // 2 + first + j] = x[i, j]


@pytest.mark.parametrize(
    "function",
    [
        *(longer, last_longer, turning, resting, remaining, beyond, scattered, back, dipping, squared, behind, wider),
        *(remaining_evenly, divided_by_a_size, divided_twice, valley, spread, stretched, begun),
    ],
)
def test_rows_that_may_meet_are_in_order(function):
    assert not together(function)["i"]
