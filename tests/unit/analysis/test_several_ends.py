"""Loops that begin at the greatest, or end at the least, of several: one of these may go with the rest of an index."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir.nodes import Store
from brickwork.ir.walk import walk
from support.lowering import numbers
from support.scheduling import kernel_of

Tensor = torch.Tensor


def collected(x: Tensor, m: int) -> Tensor:
    """Two digits of a place, each of a window that is kept inside."""
    y = torch.empty(x.shape[0] * x.shape[1], x.shape[0], x.shape[1])
    for h in range(x.shape[0]):
        for w in range(x.shape[1]):
            for i in range(max(0, m // 2 - h), min(m, x.shape[0] + m // 2 - h)):
                for j in range(max(0, m // 2 - w), min(m, x.shape[1] + m // 2 - w)):
                    y[(i + h - m // 2) * x.shape[1] + j + w - m // 2, h, w] = x[h, w]
    return y


def open_above(x: Tensor, m: int) -> Tensor:
    """The lower digit goes past the next higher one's place."""
    y = torch.empty(x.shape[0] * x.shape[1], x.shape[0], x.shape[1])
    for h in range(x.shape[0]):
        for w in range(x.shape[1]):
            for i in range(max(0, m // 2 - h), min(m, x.shape[0] + m // 2 - h)):
                for j in range(max(0, m // 2 - w), m):
                    y[(i + h - m // 2) * x.shape[1] + j + w - m // 2, h, w] = x[h, w]
    return y


def open_below(x: Tensor, m: int) -> Tensor:
    """The lower digit begins below 0."""
    y = torch.empty(x.shape[0] * x.shape[1], x.shape[0], x.shape[1])
    for h in range(x.shape[0]):
        for w in range(x.shape[1]):
            for i in range(max(0, m // 2 - h), min(m, x.shape[0] + m // 2 - h)):
                for j in range(min(m, x.shape[1] + m // 2 - w)):
                    y[(i + h - m // 2) * x.shape[1] + j + w - m // 2, h, w] = x[h, w]
    return y


def begins_at_the_least(x: Tensor, m: int) -> Tensor:
    """An index that begins at the lesser of two is not above each."""
    y = torch.empty(x.shape[0] * x.shape[1], x.shape[0], x.shape[1])
    for h in range(x.shape[0]):
        for i in range(min(0, m // 2 - h), min(m, x.shape[0] + m // 2 - h)):
            y[i + h - m // 2, h, 0] = x[h, 0]
    return y


def moved_in_between(x: Tensor, m: int) -> Tensor:
    """The window moves with a loop inside, which is at another place in another iteration of those outside."""
    y = torch.empty(8 * x.shape[0] + m + 2, 1, 1)
    for i in range(x.shape[0]):
        for a in range(m):
            for j in range(max(-2, a - 3), min(m, a + 5)):
                y[i * 8 + j + 2, 0, 0] = x[i, a]
    return y


def moved_outside(x: Tensor, m: int) -> Tensor:
    """The window moves with a loop around both."""
    y = torch.empty(8 * x.shape[0] + m + 2, 1, 1)
    for a in range(m):
        for i in range(x.shape[0]):
            for j in range(max(-2, a - 3), min(m, a + 5)):
                y[i * 8 + j + 2, 0, 0] = x[i, a]
    return y


def analysed(function: Callable[..., Tensor]) -> tuple[set[str], Bound]:
    """Return the independent loops, and how the first index of what is stored is known to be in range."""
    kernel = kernel_of(function, numbers(2, 3), 3)
    found = analyse(kernel)
    (store,) = (node for node in walk(kernel) if isinstance(node, Store))
    loops = {symbol.name for symbol, verdict in found.loops.items() if verdict.independent}
    return loops, found.bounds[store.access, 0].bound


@pytest.mark.parametrize(
    ("function", "independent", "bound"),
    [
        (collected, {"h", "w", "i", "j"}, Bound.PROVED),
        (open_above, {"h", "w", "j"}, Bound.CHECKED),
        (open_below, {"h", "w"}, Bound.CHECKED),
        (begins_at_the_least, {"h", "i"}, Bound.GUARDED),
        (moved_in_between, {"j"}, Bound.PROVED),
        (moved_outside, {"i", "j"}, Bound.PROVED),
    ],
)
def test_the_ends_that_go_with_the_rest_of_an_index_are_taken(
    function: Callable[..., Tensor], independent: set[str], bound: Bound
) -> None:
    assert analysed(function) == (independent, bound)
