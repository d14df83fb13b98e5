"""Sums whose bounds move with loops around: what the host tests, and where pieces and chunks begin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.transform import nests_apart
from support.lowering import numbers
from support.scheduling import same

Tensor = torch.Tensor


def from_the_diagonal(a: Tensor, b: Tensor) -> Tensor:
    x = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(i, a.shape[1]):
                s += a[i, k] * b[j, k]
            x[i, j] = s
    return x


def from_the_second(a: Tensor, b: Tensor) -> Tensor:
    x = torch.empty(a.shape[0], b.shape[0])
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(max(i, 2), a.shape[1]):
                s += a[i, k] * b[j, k]
            x[i, j] = s
    return x


def from_two(a: Tensor, b: Tensor) -> Tensor:
    x = torch.empty(9, a.shape[0], b.shape[0])
    for e in range(9):
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                s = 0.0
                for k in range(max(i, e), a.shape[1]):
                    s += a[i, k] * b[j, k]
                x[e, i, j] = s
    return x


def from_batches(a: Tensor, b: Tensor) -> Tensor:
    x = torch.empty(9, a.shape[0], b.shape[0])
    for e in range(9):
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                s = 0.0
                for k in range(e, a.shape[1]):
                    s += a[i, k] * b[j, k]
                x[e, i, j] = s
    return x


def windows(g: Tensor, w: Tensor) -> Tensor:
    x = torch.empty(g.shape[0], w.shape[1], 9)
    for b in range(g.shape[0]):
        for c in range(w.shape[1]):
            for e in range(9):
                s = 0.0
                for o in range(g.shape[1]):
                    for y in range(max(b, (e - 2) // 2), min(g.shape[2], (e + 3) // 2)):
                        s += g[b, o, y] * w[o, c, y]
                x[b, c, e] = s
    return x


def windows_and_places(g: Tensor, w: Tensor) -> Tensor:
    x = torch.empty(g.shape[0], w.shape[1], 9)
    for b in range(g.shape[0]):
        for c in range(w.shape[1]):
            for e in range(9):
                s = 0.0
                for o in range(g.shape[1]):
                    for y in range(max(max(0, b), (e - 2) // 2), min(g.shape[2], (e + 3) // 2)):
                        for z in range(min(y, 1), min(e, 2)):
                            s += g[b, o, y] * w[o, c, z]
                x[b, c, e] = s
    return x


@pytest.mark.parametrize("function", [from_the_diagonal, from_the_second, from_two, from_batches])
def test_sums_may_begin_where_loops_around_say(function: Callable[..., object]) -> None:
    same(function, numbers(5, 7), numbers(6, 7))


@pytest.mark.parametrize("function", [windows, windows_and_places])
def test_lengths_may_move_with_several_loops_and_be_none(function: Callable[..., object]) -> None:
    same(function, numbers(2, 3, 4), numbers(3, 2, 4))


def scattered_from_behind(x: Tensor, w: Tensor, out: Tensor) -> None:
    """Add at places that may be counted from the end."""
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(x.shape[2]):
                for k in range(w.shape[2]):
                    out[b, o, y + 2 - 1 - k] += x[b, 0, y] * w[0, o, k]


def test_scatters_to_places_from_the_end_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    given = numbers(2, 3, 4), numbers(3, 2, 4), numbers(2, 2, 12)
    same(scattered_from_behind, *given)
    for limit in ("LEAST_SIDE", "LEAST_AREA", "LEAST_TERMS"):
        monkeypatch.setattr(nests_apart, limit, 1)
    same(scattered_from_behind, *given)
