"""Pairs of elements whose places differ in one bit: each iteration has a pair of its own, if it asks for the bit.

Every program is run with and without what was proved, and means the same.
"""

# pyright: basic
from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.nodes import For, Launch
from brickwork.ir.walk import statements
from brickwork.transform.canonical.form import canonical
from brickwork.transform.without_continue import without_continue
from support.lowering import memory, program_of
from support.scheduling import same

Tensor = torch.Tensor
X = memory([0.5 * place - 2.0 for place in range(8)])


def skipped(x: Tensor, n: int) -> None:
    for q in range(3):
        for i in range(x.shape[0]):
            if (i >> q) & 1:
                continue
            j = i | (1 << q)
            x[i], x[j] = x[i] + x[j], x[i] - x[j]


def asked(x: Tensor, n: int) -> None:
    for q in range(3):
        for i in range(x.shape[0]):
            if i & (1 << q) == 0:
                x[i], x[i + (1 << q)] = x[i] + x[i ^ (1 << q)], x[i] - x[i | (1 << q)]


def asked_of_the_upper(x: Tensor, n: int) -> None:
    for q in range(3):
        for i in range(x.shape[0]):
            if (1 << q) & i != 0:
                x[i], x[i - (1 << q)] = x[i] + x[i ^ (1 << q)], x[i] * 0.5


def doubled(x: Tensor, n: int) -> None:
    h = 1
    while h < x.shape[0]:
        for i in range(x.shape[0]):
            if i & h == 0:
                x[i], x[i + h] = x[i] + x[i + h], x[i] - x[i + h]
        h *= 2


def of_a_literal(x: Tensor, n: int) -> None:
    for q in range(1):
        for i in range(x.shape[0]):
            if i & 2 == 0:
                x[i], x[i | 2] = x[i] + x[i + 2], x[i] - x[i ^ 2]


PAIRS = [skipped, asked, asked_of_the_upper, doubled, of_a_literal]


@pytest.mark.parametrize("function", PAIRS)
def test_pairs_are_apart(function):
    assert innermost(function).independent
    same(function, X, 3)


# ---------------------------------------------------------------- what meets


def of_another_bit(x: Tensor, n: int) -> None:
    for q in range(3):
        for i in range(x.shape[0]):
            if i & (1 << q) == 0:
                x[i], x[i | (1 << q)] = x[i] + x[i | 1], x[i] - x[i | (1 << q)]


def not_asked(x: Tensor, n: int) -> None:
    for q in range(3):
        for i in range(x.shape[0]):
            x[i], x[i | (1 << q)] = x[i] + x[i | (1 << q)], x[i] * 0.5


def of_two_bits(x: Tensor, n: int) -> None:
    for q in range(3):
        for i in range(x.shape[0]):
            if i & (3 << q) == 0 and i + (3 << q) < x.shape[0]:
                x[i], x[i + (2 << q)] = x[i] + x[i + (1 << q)], x[i] * 0.5


def beyond(x: Tensor, n: int) -> None:
    for q in range(2):
        for i in range(x.shape[0] - 3):
            if i & (1 << q) == 0:
                x[i], x[i + (2 << q)] = x[i] + x[i + (2 << q)], x[i] * 0.5


def by_an_argument(x: Tensor, n: int) -> None:
    for q in range(1):
        for i in range(x.shape[0] - n):
            if i & n == 0:
                x[i], x[i + n] = x[i] + x[i + n], x[i] * 0.5


MEETING = [of_another_bit, not_asked, of_two_bits, beyond, by_an_argument]


@pytest.mark.parametrize("function", MEETING)
def test_other_places_may_meet(function):
    assert not innermost(function).independent
    same(function, X, 3)


def test_the_largest_power_is_the_sign():
    """A number without that bit is greater than with it."""

    def signs(x: Tensor, n: int) -> None:
        for i in range(x.shape[0]):
            if (i - 4) & (1 << n) == 0:
                x[i] = 0.5

    same(signs, X, 63)
    same(signs, X, 62)


def innermost(function):
    """The verdict of the innermost loop, as it is for grids."""
    program = canonical(program_of(function, X, 3), sizes=True)
    kernel = next(node.kernel for node in program.body if isinstance(node, Launch))
    kernel = replace(kernel, body=without_continue(kernel.body))
    *_, last = (node for node in statements(kernel) if isinstance(node, For))
    return analyse(kernel).loops[last.index]
