"""An element that was just stored or loaded is not kept a second time."""

import math

import pytest
import torch

from brickwork.transform.autodiff.costs import costs
from support.gradients import check_gradients, derived, lowered, numbers


def scan(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A selective scan: the state is read before and after it is stored."""
    state = a.new_zeros((a.shape[1],))
    out = a.new_zeros((a.shape[0],))
    for t in range(a.shape[0]):
        total = 0.0
        for s in range(a.shape[1]):
            state[s] = math.exp(a[t, s]) * state[s] + b[t, s]
            total += state[s] * b[t, s]
        out[t] = total
    return out


def other_element(x: torch.Tensor, at: int) -> None:
    """The second store may replace what the first one left."""
    for t in range(x.shape[0] - 1):
        x[t] = x[t] * x[t + 1]
        x[at] = x[at] + 0.5
        x[t + 1] = x[t] * x[t] * x[at]


def branches(x: torch.Tensor, w: torch.Tensor) -> None:
    """What is stored in a branch is not known after it."""
    for t in range(w.shape[0]):
        for i in range(x.shape[0]):
            x[i] = x[i] * w[t]
            if w[t] > 0.0:
                x[i] = x[i] * x[i]
            else:
                w[t] = w[t] * w[t]
            x[i] = math.sin(x[i]) * w[t]


def loops(x: torch.Tensor, w: torch.Tensor) -> None:
    """What is stored before a loop changes in it."""
    for i in range(x.shape[0]):
        x[i] = x[i] * w[i]
        for j in range(3):
            x[i] = 0.1 * x[i] * x[i] + w[j]
        x[i] = x[i] * x[i]


def moved_index(x: torch.Tensor, w: torch.Tensor) -> None:
    """The same index is another one later."""
    k = 0
    for i in range(2):
        x[k] = x[k] * w[i]
        k += 1
        x[k] = x[k] * w[i]
        x[k] = x[k] * x[k]
    x[k] = x[k] * x[k]


def exchanged(x: torch.Tensor, steps: int) -> torch.Tensor:
    """The names change places between a store and a load."""
    a = x.new_full((x.shape[0],), 0.7)
    b = x.new_full((x.shape[0],), 0.4)
    for _ in range(steps):
        for i in range(x.shape[0]):
            a[i] = a[i] * b[i] * x[i]
        a, b = b, a
        for i in range(x.shape[0]):
            a[i] = a[i] * a[i] + b[i] * b[i]
    return a


def rounded(x: torch.Tensor, out: torch.Tensor) -> None:
    """What is loaded is not what was computed: it is rounded."""
    for i in range(x.shape[0]):
        out[i] = x[i] * 1.0001
        out[i] = out[i] * out[i]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (scan, (numbers(3, 2), numbers(3, 2))),
        (other_element, (numbers(4), 1)),
        (branches, (numbers(2), numbers(3))),
        (loops, (numbers(3), numbers(3))),
        (moved_index, (numbers(3), numbers(2))),
        (exchanged, (numbers(2), 3)),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_gradients_are_those_of_central_differences(function, arguments):
    check_gradients(function, *arguments, close=1e-5)


def test_a_state_is_kept_once():
    arguments = numbers(3, 2), numbers(3, 2)
    found = costs(lowered(scan, arguments), derived(scan, arguments)).kept
    assert [item.formula for item in found if item.name == "state_tape"] == ["8 * a.shape[0] * a.shape[1]"]


def test_what_is_rounded_is_kept():
    arguments = numbers(3), numbers(3).bfloat16()
    found = costs(lowered(rounded, arguments), derived(rounded, arguments)).kept
    assert [item.formula for item in found if item.name == "out_tape"] == ["2 * x.shape[0]"]
