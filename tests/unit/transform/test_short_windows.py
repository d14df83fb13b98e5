"""Lanes run along a window where it is long, and in the loop that moves it where it is short."""

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.nodes import Launch
from brickwork.ir.walk import walk
from brickwork.transform.explain import explain
from brickwork.transform.pipeline import schedule_kernel
from support.lowering import memory, program_of
from support.scheduling import AVX2, agree


def frames(x: torch.Tensor, w: torch.Tensor, step: int):
    """Sum what lies under windows that begin at steps of their own."""
    out = torch.empty((len(x) - len(w)) // step + 1, dtype=torch.float64)
    for f in range((len(x) - len(w)) // step + 1):
        s = 0.0
        for v in range(len(w)):
            s += x[f * step + v] * w[v]
        out[f] = s
    return out


@pytest.mark.parametrize("length", [1, 15, 16, 40])
def test_lanes_of_short_windows_are_those_of_the_loop_around(length):
    x, w = memory([float(i % 5) for i in range(90)], FLOAT64), memory([float(i % 3) for i in range(length)], FLOAT64)
    agree(frames, x, w, 3)
    (launch,) = [node for node in walk(program_of(frames, x, w, 3)) if isinstance(node, Launch)]
    scheduled = schedule_kernel(launch.kernel, AVX2)
    assert "rfactor(v, lane, 32)" in str(scheduled.schedule)
    assert "bind(f, lane, " in str(scheduled.short)
    assert "if it has fewer than 16, in order, and f is vectorised by 16" in explain(scheduled).text()


def moving(x: torch.Tensor, w: torch.Tensor):
    """Sum what lies under windows at each place, in lanes of neighbours."""
    out = torch.empty(len(x) - len(w) + 1, dtype=torch.float64)
    for f in range(len(x) - len(w) + 1):
        s = 0.0
        for v in range(len(w)):
            s += x[f + v] * w[v]
        out[f] = s
    return out


def test_windows_that_lanes_do_not_run_along_have_one_schedule():
    x, w = memory([0.0, 1.0, 2.0], FLOAT64), memory([1.0, 2.0], FLOAT64)
    agree(moving, x, w)
    (launch,) = [node for node in walk(program_of(moving, x, w)) if isinstance(node, Launch)]
    assert schedule_kernel(launch.kernel, AVX2).short is None


def clamped(x: torch.Tensor, radius: int):
    """Sum what lies within a radius, the last element again beyond the end."""
    out = torch.empty(len(x) // 3, dtype=torch.float64)
    for f in range(len(x) // 3):
        s = 0.0
        for v in range(-radius, radius + 1):
            s += x[3 * f] * x[min(max(3 * f + v, 0), len(x) - 1)]
        out[f] = s
    return out


@pytest.mark.parametrize("radius", [-1, 0, 7, 8, 20])
def test_a_loop_that_a_number_ends_may_be_short(radius):
    x = memory([float(i % 5) for i in range(50)], FLOAT64)
    agree(clamped, x, radius)
    (launch,) = [node for node in walk(program_of(clamped, x, radius)) if isinstance(node, Launch)]
    scheduled = schedule_kernel(launch.kernel, AVX2)
    assert "rfactor(v, lane, 32)" in str(scheduled.schedule)
    assert "bind(f, lane, " in str(scheduled.short)
