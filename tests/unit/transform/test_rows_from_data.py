"""Loops that elements begin and end, on a grid: for which loop the threads are, and when a thread takes a row alone."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable

import torch

from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import Signature
from brickwork.target.cuda import cuda_target
from brickwork.transform.explain import explain
from support.shared import define, lower, schedule_program

GPU = cuda_target((9, 0))
PLACES = TensorType(INT64, 1, contiguous=True, unit_axis=0)
VALUES = TensorType(FLOAT32, 1, contiguous=True, unit_axis=0)
MATRIX = TensorType(FLOAT32, 2, contiguous=True, unit_axis=1)


def bags(first: torch.Tensor, at: torch.Tensor, x: torch.Tensor):
    """Sum the rows of a table that each bag names."""
    out = torch.empty(len(first) - 1, x.shape[1], device=x.device)
    for i in range(len(first) - 1):
        for d in range(x.shape[1]):
            s = 0.0
            for e in range(first[i], first[i + 1]):
                s += x[at[e], d]
            out[i, d] = s
    return out


def windows(at: torch.Tensor, first: torch.Tensor, x: torch.Tensor):
    """Find the greatest of windows, each in a row of its own."""
    out = torch.empty(at.shape[0], 7, device=x.device)
    for i in range(at.shape[0]):
        for j in range(7):
            m = -math.inf
            for e in range(max(first[at[i] + j], 0), min(first[at[i] + j + 1], x.shape[1])):
                m = max(m, x[at[i] + j, e])
            out[i, j] = m
    return out


def segments(first: torch.Tensor, x: torch.Tensor):
    """Sum the values of each segment."""
    out = torch.empty(len(first) - 1, device=x.device)
    for i in range(len(first) - 1):
        s = 0.0
        for e in range(first[i], first[i + 1]):
            s += x[e]
        out[i] = s
    return out


def text_of(function: Callable[..., object], *types: TensorType) -> str:
    """Return what is said of a function on a grid."""
    program = lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True))
    _, (kernel,) = schedule_program(program, GPU)
    return explain(kernel).text()


def test_neighbouring_threads_go_along_what_a_row_does_not() -> None:
    said = text_of(bags, PLACES, PLACES, MATRIX)
    assert "for 2 neighbouring iterations" in said
    assert "block" not in said


def test_a_window_that_elements_place_is_for_a_thread_where_threads_are_many() -> None:
    said = text_of(windows, PLACES, PLACES, MATRIX)
    assert "if x.shape[1] < 16 or at.shape[0] * 7 >= 135168 and" in said
    assert "neighbouring iterations" not in said  # windows of neighbours begin anywhere
    assert "a block of threads an iteration" in said


def test_rows_are_for_a_thread_where_they_are_many_and_short_on_average() -> None:
    said = text_of(segments, PLACES, VALUES)
    many = "max(first.shape[0] - 1, 0) >= 135168 and x.shape[0] < max(first.shape[0] - 1, 0) * 16"
    assert f"if {many} or x.shape[0] <= (first.shape[0] - 1) * 4:" in said
    assert "a block of threads an iteration" in said
