"""Sums over groups of rows on a grid: each group is one iteration's own, so a block of threads takes it."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import ScalarType, Signature
from brickwork.target.cuda import cuda_target
from brickwork.transform.explain import explain
from support.shared import define, lower, schedule_program

GPU = cuda_target((9, 0))
CUBE = TensorType(FLOAT32, 3, contiguous=True, unit_axis=2)


def groups(x: torch.Tensor, n: int):
    """Sum the channels of each group."""
    out = torch.empty(x.shape[0], n, device=x.device)
    d = x.shape[1] // n
    for b in range(x.shape[0]):
        for g in range(n):
            s = 0.0
            for k in range(g * d, (g + 1) * d):
                for y in range(x.shape[2]):
                    s += x[b, k, y]
            out[b, g] = s
    return out


def eights(x: torch.Tensor, n: int):
    """Sum channels, eight by eight."""
    out = torch.empty(x.shape[0], n, device=x.device)
    for b in range(x.shape[0]):
        for g in range(n):
            s = 0.0
            for k in range(8 * g, 8 * g + 8):
                for y in range(x.shape[2]):
                    s += x[b, k, y]
            out[b, g] = s
    return out


def windows(x: torch.Tensor, n: int):
    """Sum channels, eight by eight, of which neighbours have seven in common."""
    out = torch.empty(x.shape[0], n, device=x.device)
    for b in range(x.shape[0]):
        for g in range(n):
            s = 0.0
            for k in range(g, g + 8):
                for y in range(x.shape[2]):
                    s += x[b, k, y]
            out[b, g] = s
    return out


def text_of(function: Callable[..., object]) -> str:
    """Return what is said of a function on a grid."""
    program = lower(define(function), Signature((CUBE, ScalarType(INT64)), device="cuda", narrow=True, aligned=True))
    _, (kernel,) = schedule_program(program, GPU)
    return explain(kernel).text()


@pytest.mark.parametrize("function", [groups, eights])
def test_a_block_sums_a_group_that_no_other_reads(function: Callable[..., object]) -> None:
    assert ": a block of threads an iteration" in text_of(function)


def test_threads_sum_windows_that_others_read_again() -> None:
    assert ": a block of threads an iteration" not in text_of(windows)
