"""Partial sums begin with what leaves all numbers as they are: -0.0."""

from __future__ import annotations

import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.signature import Signature
from support.lowering import argument_type, memory
from support.scheduling import AVX2, GPU, way


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
