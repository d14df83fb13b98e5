"""Factors that read windows which loops of the sum move over rows, and those that only look like it.

Of a factor of the second kind a box would have other elements, or ones that the source does not read.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.contractions import find_contraction
from brickwork.analysis.windows import find_window, unmoved
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import For
from support.lowering import memory
from support.scheduling import kernel_of

Tensor = torch.Tensor
N = 4


def plain(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += x[c, i + p, j + q] * w[f, c, p]
                y[f, i, j] = s


def backwards(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            if 0 <= i - p:
                                s += x[c, i - p, q + j] * w[f, c, p]
                y[f, i, j] = s


def over_one_axis(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        s += (x[i + p, c, j] + 1.0) * w[f, c, p]
                y[f, i, j] = s


def rows_stride(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += x[c, 2 * i + p, j + q] * w[f, c, p]
                y[f, i, j] = s


def rows_go_back(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            if 0 <= p - i:
                                s += x[c, p - i, j + q] * w[f, c, p]
                y[f, i, j] = s


def steps_stride(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += x[c, i + 2 * p, j + q] * w[f, c, p]
                y[f, i, j] = s


def the_depth_moves(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += x[c, i + p + c, j + q] * w[f, c, p]
                y[f, i, j] = s


def the_depth_is_not_alone(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += x[0, i + p, j + q] * w[f, c, p]
                y[f, i, j] = s


def two_rows_in_an_axis(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += x[c, i + j + p, q] * w[f, c, p]
                y[f, i, j] = s


def a_row_in_two_axes(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += x[c, i + p, i + q] * w[f, c, p]
                y[f, i, j] = s


def a_step_in_two_axes(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        s += x[c, i + p, j + p] * w[f, c, p]
                y[f, i, j] = s


def a_mask_is_of_the_row(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            if i < 2:
                                s += x[c, i + p, j + q] * w[f, c, p]
                y[f, i, j] = s


def a_step_is_a_number(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += (x[c, i + p, j + q] + float(q)) * w[f, c, p]
                y[f, i, j] = s


def two_elements(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += (x[c, i + p, j + q] + x[c, i, j]) * w[f, c, p]
                y[f, i, j] = s


def looked_up(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        for q in range(2):
                            s += x[c, n[i + p], j + q] * w[f, c, p]
                y[f, i, j] = s


def nothing_moves(x: Tensor, w: Tensor, n: Tensor, y: Tensor) -> None:
    for f in range(N):
        for i in range(N):
            for j in range(N):
                s = 0.0
                for c in range(N):
                    for p in range(2):
                        s += x[c, i, j] * w[f, c, p]
                y[f, i, j] = s


MOVED = {plain: [{"p": 1}, {"q": 1}], backwards: [{"p": -1}, {"q": 1}], over_one_axis: [{"p": 1}]}
OTHERS = [
    rows_stride,
    rows_go_back,
    steps_stride,
    the_depth_moves,
    the_depth_is_not_alone,
    two_rows_in_an_axis,
    a_row_in_two_axes,
    a_step_in_two_axes,
    a_mask_is_of_the_row,
    a_step_is_a_number,
    two_elements,
    looked_up,
    nothing_moves,
]


def _windows(function: Callable[..., None]) -> list[dict[str, int]] | None:
    """Return how loops of the sum move the window along each axis."""
    cube = memory([[[0.5] * N for _ in range(N)] for _ in range(N)], FLOAT32)
    kernel = kernel_of(function, cube, cube, memory([0] * N, INT64), cube)
    loops: list[For] = []
    body = kernel.body
    while len(loops) < 3:
        (loop,) = (item for item in body if isinstance(item, For))
        loops.append(loop)
        body = loop.body
    columns = tuple(loop.index for loop in loops[1:])
    found = find_contraction(body, frozenset({loops[0].index}), frozenset(columns))
    assert found is not None
    depth, *others = (loop.index for loop in found.sums)
    kept = [name for name in columns if name not in unmoved(found.factors[1], columns, others)]
    window = find_window(found.factors[1], kept, depth, others)
    if window is None:
        return None
    return [{symbol.name: step for symbol, step in axis.moves.items()} for axis in window.axes]


@pytest.mark.parametrize("function", MOVED)
def test_loops_of_the_sum_move_windows(function: Callable[..., None]) -> None:
    assert _windows(function) == MOVED[function]


@pytest.mark.parametrize("function", OTHERS)
def test_other_factors_read_no_windows(function: Callable[..., None]) -> None:
    assert _windows(function) is None
