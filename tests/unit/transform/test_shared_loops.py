"""Which loops around those that a block of threads shares out are for its warps."""

import pytest
import torch

from support.ptx import program_for_gpu
from support.scheduling import GPU
from support.shared import schedule_program


def cell(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.zeros(x.shape[0], x.shape[1] + 1, x.shape[2])
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for d in range(x.shape[2]):
                s = x[b, t, d]
                for e in range(x.shape[2]):
                    s += w[d, e] * h[b, t, e]
                h[b, t + 1, d] = s
    return h


def few(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.zeros(x.shape[0], x.shape[1] + 1, x.shape[2])
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for d in range(8):
                s = x[b, t, d]
                for e in range(x.shape[2]):
                    s += w[d, e] * h[b, t, e]
                h[b, t + 1, d] = s
    return h


def carried(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.zeros(x.shape[0], x.shape[1] + 1, x.shape[2])
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            s = 0.0
            for d in range(x.shape[2]):
                s = s * x[b, t, d]
                for e in range(x.shape[2]):
                    s += w[d, e] * h[b, t, e]
                h[b, t + 1, d] = s
    return h


def rewritten(x: torch.Tensor, w: torch.Tensor) -> None:
    """All threads read what one of them stores in the shared loop."""
    for b in range(x.shape[0]):
        for d in range(x.shape[1]):
            s = 0.0
            for e in range(x.shape[2]):
                s += w[d, e] * x[b, d, e]
            first = x[b, d, 0]
            if s > 0.0:
                s += 1.0
            for e in range(x.shape[2]):
                x[b, d, e] = x[b, d, e] * s + first
            w[0, 0] = 0.0


def both(x: torch.Tensor, w: torch.Tensor) -> None:
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            s = 0.0
            for d in range(x.shape[2]):
                for e in range(x.shape[2]):
                    s += w[d, e] * x[b, t, e]
            x[b, t, 0] = s


def scores(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    p = torch.empty(x.shape[0], w.shape[0])
    for b in range(x.shape[0]):
        m, z = -1e9, 0.0
        for d in range(w.shape[0]):
            s = 0.0
            for e in range(x.shape[2]):
                s += w[d, e] * x[b, 0, e]
            p[b, d] = s
            m = max(m, s)
        for u in range(w.shape[0]):
            s = p[b, u] - m
            p[b, u] = s
            z += s
        for u in range(w.shape[0]):
            p[b, u] = p[b, u] / z
    return p


def stale(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """All threads read before a loop what warps would store in it."""
    h = torch.zeros(x.shape[0], x.shape[1] + 1, x.shape[2])
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            first = h[b, t, 0]
            for d in range(x.shape[2]):
                s = first
                for e in range(x.shape[2]):
                    s += w[d, e] * h[b, t, e]
                h[b, t + 1, d] = s
    return h


def either(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Threads would read as much along `d` as along `e`, but a bit less: each would go along `e` alone."""
    n = min(x.shape[1], x.shape[2])
    p = torch.zeros(x.shape[0], n)
    for b in range(x.shape[0]):
        top = 0.0
        for e in range(n):
            top = max(top, x[b, 0, e])
        for d in range(n):
            s = top
            for e in range(n):
                s += (x[b, d, e] + x[b, e, d]) * x[b, d, e] * x[b, e, d] * w[0, e]
            p[b, d] = s
    return p


def columns(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Threads read neighbours along `d`, and along `e` nothing of the kind."""
    n = min(x.shape[1], x.shape[2])
    p = torch.zeros(x.shape[0], n)
    for b in range(x.shape[0]):
        top = 0.0
        for e in range(n):
            top = max(top, x[b, 0, e])
        for d in range(n):
            s = top
            for e in range(n):
                s += x[b, e, d] * w[0, e]
            p[b, d] = s
    return p


def warps_of(function):
    _, kernels = schedule_program(program_for_gpu(function, torch.empty(2, 3, 64), torch.empty(64, 64)), GPU)
    return {loop.name for each in kernels for loop in each.analysis.loops if each.schedule.warps(loop)}


@pytest.mark.parametrize(
    ("function", "loops"),
    [
        (cell, {"d"}),
        (scores, {"d"}),
        (few, set()),
        (carried, set()),
        (rewritten, set()),
        (both, set()),
        (stale, set()),
        (either, {"d"}),
        (columns, set()),
    ],
)
def test_loops_of_independent_rows_are_for_warps(function, loops):
    assert warps_of(function) == loops
