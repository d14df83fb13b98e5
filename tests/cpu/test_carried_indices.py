"""Indices that one iteration hands to the next: what a variable was worth is not what it is worth now.

Tensors lie in the middle of a buffer, and nothing outside of them changes, whatever is passed.
"""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import brickwork as bw


def last_place(x: torch.Tensor, s: int):
    p = s
    for i in range(x.shape[0]):
        q = p
        p = i
        x[q] = 7.0 + i


def copy_of_copy(x: torch.Tensor, s: int):
    p, q = s, 0
    for i in range(x.shape[0]):
        r = q
        q = p
        p = i
        x[r] += 1.0
        x[q] += 2.0


def counted_down(x: torch.Tensor, s: int):
    p = s
    for i in range(x.shape[0]):
        p -= 1
        x[p] += float(i)


def counted_after_use(x: torch.Tensor, s: int):
    p = s
    for i in range(x.shape[0]):
        x[p] = 3.0
        p += 1
        x[p - 1] += float(i)


def swapped(x: torch.Tensor, s: int):
    p, q = s, 1
    for i in range(x.shape[0]):
        p, q = q, p
        x[p] += float(i)


def set_in_a_branch(x: torch.Tensor, s: int):
    p = s
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            p = i
        x[p] -= 1.0
        k = i + s
        if i > 3:
            k = p
        x[k] += 2.0


def set_in_an_inner_loop(x: torch.Tensor, s: int):
    p = 0
    for i in range(x.shape[0]):
        k = i
        for _ in range(2):
            x[k] += 1.0
            k = p
        p = s


def known_before_it_changes(x: torch.Tensor, s: int):
    for i in range(x.shape[0]):
        k = s
        x[k] += 1.0
        k = k + i
        x[k - i] += 2.0
        k = k * 2
        x[i - k] += 1.0


def doubled(x: torch.Tensor, s: int):
    for i in range(x.shape[0]):
        a = s + i
        a = a + a
        a = a + a
        a = a + a
        a = a + a
        a = a + a
        a = a + a
        a = a + a
        x[a - 128 * i] += 1.0


def divided_where_it_may_be(x: torch.Tensor, s: int):
    for i in range(x.shape[0]):
        if s != 0:
            x[i - i + 40 // s] += 1.0
            x[(i + 7) % s - i] += 2.0


def by_an_element_that_changes(x: torch.Tensor, s: int):
    for i in range(x.shape[0]):
        k = int(x[0])
        x[i + s] += 1.0
        x[k - i] += 2.0


PROGRAMS = [
    *(last_place, copy_of_copy, counted_down, counted_after_use, swapped, set_in_a_branch, set_in_an_inner_loop),
    *(known_before_it_changes, doubled, divided_where_it_may_be, by_an_element_that_changes),
]
LENGTH, AROUND = 20, 300
PLACES = [0, 1, 10, 19, 20, -1, -20, -21, 40, 260, -300, 5_000_000, -(2**40), 2**62, -(2**63), 2**63 - 1]


@pytest.mark.parametrize("program", PROGRAMS)
def test_carried_indices_mean_what_python_means_and_stay_inside(program: Callable[..., object]):
    operator = bw.op(program)
    for place in PLACES:
        outcomes: list[object] = []
        for call in (operator, operator.python):
            buffer = torch.full((LENGTH + 2 * AROUND,), -5.0)
            x = buffer[AROUND : AROUND + LENGTH]
            x.copy_(torch.arange(LENGTH) % 3 - 1.0)
            try:
                call(x, place)
            except IndexError:
                outcomes.append("IndexError")
            else:
                outcomes.append(x.tolist())
            x.fill_(-5.0)
            assert torch.all(buffer == -5.0), (program.__name__, place)
        assert outcomes[0] == outcomes[1], (program.__name__, place)
