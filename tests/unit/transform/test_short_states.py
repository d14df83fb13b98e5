"""Short states that loops access item by item are apart for each iteration, where few threads would have one each."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable

import torch

import brickwork as bw
from brickwork.transform import expand_scratch
from brickwork.transform.schedule.shared_loops import SHORT
from support.lowering import numbers
from support.scheduling import GPU, same


def cascade(x: torch.Tensor, n: int):
    """Pass what each item of a state comes to on to the next item."""
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        s = torch.zeros(n)
        for t in range(x.shape[1]):
            v = x[b, t]
            for d in range(n):
                v = 0.5 * v + s[d]
                s[d] = v
            out[b, t] = v
    return out


def features(x: torch.Tensor, n: int):
    """Keep a state for each of some features."""
    out = torch.empty(x.shape[0], x.shape[1], n)
    for b in range(x.shape[0]):
        s = torch.zeros(n)
        for t in range(x.shape[1]):
            for d in range(n):
                s[d] = 0.5 * s[d] + x[b, t] * d
                out[b, t, d] = s[d]
    return out


def turned(x: torch.Tensor, n: int):
    """Read the state of each feature from the other end of it."""
    out = torch.empty(x.shape[0], x.shape[1], n)
    for b in range(x.shape[0]):
        s = torch.zeros(n)
        for t in range(x.shape[1]):
            for d in range(n):
                s[d] = x[b, t] * d
            for d in range(n):
                out[b, t, d] = s[n - 1 - d]
    return out


def stepped(x: torch.Tensor, n: int):
    """Keep a state of features that share what a step begins with, under a condition."""
    out = torch.empty(x.shape[0], x.shape[1], n)
    for b in range(x.shape[0]):
        s = torch.zeros(n)
        for t in range(x.shape[1]):
            step = x[b, t]
            if step < 20.0:
                step = math.log1p(math.exp(step))
            for d in range(n):
                s[d] = math.exp(-step * d) * s[d] + step
                out[b, t, d] = s[d]
    return out


def test_few_iterations_have_short_states_apart_whose_items_are_used_one_by_one():
    def is_expanded(function: Callable[..., object], rows: int, items: int = 8) -> bool:
        text = bw.op(function).explain(torch.empty(rows, 5, device="meta"), items, device="sm_90")
        return f"{expand_scratch.EXPANDED}_" in text.split("launches for these arguments")[1]

    half = GPU.threads // 2
    assert is_expanded(features, half - 1)
    assert not is_expanded(features, half)
    assert not is_expanded(cascade, half - 1)
    assert not is_expanded(turned, half - 1)
    assert not is_expanded(stepped, half - 1)  # A thread goes along a few items in any case: registers have them.
    assert not is_expanded(stepped, half - 1, SHORT - 1)
    assert is_expanded(stepped, half - 1, SHORT)
    for function in (features, cascade, turned, stepped):
        same(function, numbers(3, 5), 4)
