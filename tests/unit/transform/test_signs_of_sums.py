"""Partial sums begin with what leaves all numbers as they are: -0.0."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.signature import Signature
from support.lowering import argument_type, memory
from support.scheduling import AVX2, GPU, way
from unit.transform.test_split_recurrences import is_cut, low_limits, pieces_of, results_of


def sum_of_row(x: torch.Tensor, out: torch.Tensor) -> None:
    s = -0.0
    for k in range(x.shape[0]):
        s += x[k]
    out[0] = s


def test_a_sum_of_negative_zeros_is_one() -> None:
    for target in (AVX2, GPU):
        x, out = memory([-0.0] * 5000), memory([1.0])
        signature = Signature(tuple(map(argument_type, (x, out))), device="cuda" if target is GPU else "cpu")
        run_program(way(sum_of_row, signature, target), [x, out])
        assert repr(out.data[0]) == "-0.0", target


def added_unless_zero(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = -0.0
        for t in range(x.shape[1]):
            if x[c, t] != 0:
                h += x[c, t]
            out[c, t] = h


def scaled_and_added(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = a[c, 0]
        for t in range(x.shape[1]):
            h = 0.5 * h + x[c, t]
            out[c, t] = h


def scaled_by_turns(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, g = a[c, 0], a[c, 1]
        for t in range(x.shape[1]):
            h, g = 0.5 * g + x[c, t], h + 0.25 * g
            out[c, t] = h


@pytest.mark.parametrize("function", [added_unless_zero, scaled_and_added, scaled_by_turns])
@pytest.mark.parametrize("begin", [0.0, -0.0])
@pytest.mark.parametrize("term", [0.0, -0.0])
@pytest.mark.usefixtures(low_limits.__name__)
def test_zeros_keep_their_signs(function, begin, term):
    x, a = torch.full((3, 40), term), torch.full((3, 40), begin)
    x[1, 20] = 2.0
    expected, found = results_of(function, x, a, torch.zeros(3, 40))
    assert torch.equal(expected.signbit(), found.signbit())
    assert is_cut(pieces_of(function, x, a, x))
