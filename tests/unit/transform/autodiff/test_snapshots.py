"""What loops read of a tensor that they do not store into is kept once for all of their iterations."""

import math

import pytest
import torch

from brickwork.transform.autodiff.costs import costs
from support.gradients import check_gradients, derived, lowered, numbers


def mixed(x: torch.Tensor, steps: int) -> torch.Tensor:
    """Each element is read in loops over t, i and j, and stored into in the loop over t."""
    n = x.shape[0]
    state = x.new_full((n,), 0.5)
    following = x.new_zeros((n,))
    for _ in range(steps):
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += math.sin(state[j]) * x[i, j]
            following[i] = total
        for i in range(n):
            state[i] = following[i]
    return state


def windows(image: torch.Tensor, x: torch.Tensor, steps: int) -> torch.Tensor:
    """A window slides along two axes of what the loop around stores into."""
    height, width = image.shape
    out = x.new_zeros((height, width))
    for _ in range(steps):
        for i in range(1, height - 1):
            for j in range(1, width - 1):
                total = 0.0
                for p in range(3):
                    for q in range(3):
                        total += image[i + p - 1, j + q - 1] * image[i, j] * x[p, q]
                out[i, j] = total
        for i in range(height):
            for j in range(width):
                image[i, j] = 0.1 * out[i, j] * out[i, j]
    return out


def exchanged(x: torch.Tensor, steps: int) -> torch.Tensor:
    """What is read changes places with what is stored into."""
    n = x.shape[0]
    old = x.new_full((n,), 0.3)
    new = x.new_zeros((n,))
    for _ in range(steps):
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += old[j] * old[j] * x[i, j]
            new[i] = math.cos(total)
        old, new = new, old
    return old


def rows(state: torch.Tensor, x: torch.Tensor, first: int) -> torch.Tensor:
    """The row is one that only some iterations have: a snapshot of it is made only where it is one."""
    n, m = x.shape
    out = x.new_zeros((n, m))
    for t in range(2 * n):
        for i in range(m):
            for j in range(m):
                if t >= first and t - first < n:
                    out[t - first, i] += math.sin(state[t - first, j]) * x[0, j]
        for i in range(n):
            for j in range(m):
                state[i, j] = state[i, j] * 0.9
    return out


def chosen(state: torch.Tensor, x: torch.Tensor, places: torch.Tensor, steps: int) -> torch.Tensor:
    """Where an element is read is itself read: it has a tape of its own."""
    n = x.shape[0]
    out = x.new_zeros((n,))
    for _ in range(steps):
        for i in range(n):
            for j in range(2):
                out[i] += math.sin(state[places[i]]) * x[j]
        for i in range(n):
            state[i] = state[i] * 0.5 + out[i]
    return out


def squared_until(state: torch.Tensor, x: torch.Tensor, steps: int) -> None:
    """The loop that reads is one whose length nothing tells."""
    n = x.shape[0]
    for _ in range(steps):
        total = 0.0
        while total < 1.0:
            total += state[0] * state[0] + 0.1
        for i in range(n):
            state[i] = state[i] * 0.5 + total * x[i]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (mixed, (numbers(3, 3), 3)),
        (windows, (numbers(4, 5), numbers(3, 3), 2)),
        (exchanged, (numbers(3, 3), 3)),
        (rows, (numbers(2, 3), numbers(2, 3), 1)),
        (chosen, (numbers(4), numbers(4), torch.tensor([2, 0, 3, 3]), 2)),
        (squared_until, (numbers(3), numbers(3), 2)),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_gradients_are_those_of_central_differences(function, arguments):
    check_gradients(function, *arguments, close=1e-5)


def kept(function, arguments):
    """Return the formulas of what a gradient keeps beside copies and adjoints."""
    found = costs(lowered(function, arguments), derived(function, arguments)).kept
    return sorted(item.formula for item in found if item.name.endswith("_tape"))


def test_a_tape_has_the_axes_in_which_what_it_keeps_changes():
    assert kept(mixed, (numbers(3, 3), 3)) == ["8 * steps * x.shape[0]"]
    assert kept(exchanged, (numbers(3, 3), 3)) == ["8 * steps * x.shape[0]"]


def test_a_window_keeps_each_element_once():
    assert kept(windows, (numbers(4, 5), numbers(3, 3), 2)) == ["8 * steps * image.shape[0] * image.shape[1]"] * 2
