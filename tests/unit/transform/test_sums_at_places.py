"""What a sum adds to an element that others say has a nest of its own, so that the sum may run in tiles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Store
from brickwork.ir.walk import statements
from support.lowering import memory, numbers
from support.scheduling import same
from support.sums_apart import apart, short_sums

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with short_sums():
        yield


def added_at(g: Tensor, w: Tensor, at: Tensor, out: Tensor) -> None:
    """Add the products of a row where an element says, as the gradient of rows that are looked up does."""
    for i in range(at.shape[0]):
        for k in range(w.shape[0]):
            if at[i] >= 0:
                s = 0.0
                for j in range(w.shape[1]):
                    s += g[i, j] * w[k, j]
                out[at[i], k] += s
        for k in range(w.shape[0]):
            if at[i] < 0:
                s = 0.0
                for j in range(w.shape[1]):
                    s += g[i, j] * w[k, j]
                out[out.shape[0] + at[i], k] += s


def moved_by_a_sum(g: Tensor, w: Tensor, at: Tensor, out: Tensor) -> None:
    """Read what is added to: parts of an iteration stay together."""
    for i in range(at.shape[0]):
        for k in range(w.shape[0]):
            s = out[0, k]
            for j in range(w.shape[1]):
                s += g[i, j] * w[k, j]
            out[at[i], k] += s


def asked_of_what_changes(g: Tensor, w: Tensor, at: Tensor, out: Tensor) -> None:
    for i in range(at.shape[0]):
        for k in range(w.shape[0]):
            if at[i] < 3:
                s = 0.0
                for j in range(w.shape[1]):
                    s += g[i, j] * w[k, j]
                at[at[i]] += int(s)


@pytest.mark.parametrize("function", [added_at, moved_by_a_sum, asked_of_what_changes])
@pytest.mark.parametrize("places", [[0, 3, 1, 2, 2], [-1, 0, -4, -4, 3], [], [2], [0, 4, 1]])
def test_sums_that_are_added_where_elements_say_are_those_of_the_source(function, places: list[int]) -> None:
    same(function, numbers(5, 3), numbers(2, 3), memory(places, INT64), numbers(4, 2))


def test_what_is_added_where_elements_say_is_kept_for_a_nest_of_its_own() -> None:
    given = [numbers(5, 3), numbers(2, 3), memory([0, 1, 1, 2, 3], INT64), numbers(4, 2)]
    (kernel,), kept = apart(added_at, *given)
    updates = [[node.tensor.name for node in statements(nest) if isinstance(node, Store)] for nest in kernel.body]
    assert updates == [["s_kept"], ["out"], ["s_kept"], ["out"]]
    assert kept == [("s_kept", 2), ("s_kept", 2)]
    assert apart(moved_by_a_sum, *given) == ([], [])
    assert apart(asked_of_what_changes, *given) == ([], [])
