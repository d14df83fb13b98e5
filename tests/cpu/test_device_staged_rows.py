"""Rows that threads own, in shared memory: what a warp reads and stores for its threads is what they would."""

import math
from itertools import product

import pytest
import torch

from cpu.test_entry_cuda_emulated import rig_of
from support import emulated
from support.sweep import sampled


def running_sum(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for r in range(x.shape[0]):
        s = x[r, 0] * 0
        for t in range(x.shape[1]):
            s += x[r, t]
            y[r, t] = s
    return y


def backwards(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.shape[1]
    for r in range(x.shape[0]):
        s = x[r, 0] * 0 + 1
        for t in range(n):
            s = max(s - 1, x[r, n - 1 - t])
            y[r, n - 1 - t] = s
    return y


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.shape[1]
    for r in range(x.shape[0]):
        y[r, 0] = x[r, 0]
        y[r, 1] = x[r, 1]
        for t in range(2, n):
            y[r, t] = (x[r, t] - y[r, t - 1] + max(y[r, t - 2], x[r, t - 1])) % 7
        for k in range(1, n):
            i = n - 1 - k
            y[r, i] = (y[r, i] - y[r, i + 1]) % 5
    return y


def stencil(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for r in range(x.shape[0]):
        s = 0.0
        y[r, 0] = 0.0
        for t in range(1, x.shape[1] - 1):
            s = max(s, x[r, t - 1] - x[r, t + 1]) - 1.0
            y[r, t] = s * x[r, t]
        y[r, x.shape[1] - 1] = s
    return y


def in_the_middle(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(x.shape[0], 2, x.shape[1])
    for r in range(x.shape[0]):
        for h in range(2):
            s = 0.0
            for t in range(3, x.shape[1] - 2):
                s = max(x[r, t], s) - h
                if s > 2.0:
                    s = -1.0
                y[r, h, t - 1] = s
    return y


STEPS = [running_sum, backwards, in_place, stencil, in_the_middle]


def is_staged(rig) -> bool:
    return any("@bw_rows" in each.text for each in rig.execute.kernels.values())


def values(rows: int, columns: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.arange(rows * columns) * 7 % 11 - 5).reshape(rows, columns).to(dtype)


@pytest.fixture(autouse=True)
def whole_warps(monkeypatch):
    monkeypatch.setattr(emulated, "WHOLE_WARPS", True)


@pytest.mark.parametrize(("function", "columns"), sampled(product(STEPS, [4, 15, 16, 44, 53]), 3))
def test_stages_of_time(function, columns):
    x = values(32, columns)
    rig = rig_of(function, x)
    assert is_staged(rig)
    assert torch.equal(rig.call(x)[0], function(x))


@pytest.mark.parametrize(
    ("dtype", "function"),
    sampled(
        product(
            [torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int8],
            [running_sum, backwards, in_place],
        )
    ),
)
def test_stages_of_other_types(function, dtype):
    x = values(32, 76, dtype)
    assert torch.equal(rig_of(function, x).call(x)[0], function(x))


@pytest.mark.parametrize("function", STEPS)
def test_stages_of_rows_that_lie_apart(function):
    x = values(64, 60)[:, 8:51]
    assert torch.equal(rig_of(function, x).call(x)[0], function(x))
    x = values(43, 64).T
    assert torch.equal(rig_of(function, x).call(x)[0], function(x))


def in_chunks(x: torch.Tensor) -> torch.Tensor:
    """Rows of one axis, of which the last is shorter."""
    y = torch.empty_like(x)
    n = (x.shape[0] + 63) // 64
    for r in range(64):
        s = x[0] * 0
        for t in range(r * n, min(r * n + n, x.shape[0])):
            s = max(s - 1, x[t])
            y[t] = s
    return y


def running_sum_of_all(x: torch.Tensor) -> torch.Tensor:
    """A recurrence without a loop around, which is cut into chunks."""
    y = torch.empty_like(x)
    s = x[0] * 0
    for t in range(x.shape[0]):
        s += x[t]
        y[t] = s
    return y


@pytest.mark.parametrize(
    ("function", "size"), [(in_chunks, 64 * 44), (in_chunks, 64 * 44 - 7), (running_sum_of_all, 5000)]
)
def test_stages_of_chunks(function, size):
    x = values(1, size)[0]
    rig = rig_of(function, x)
    assert is_staged(rig)
    assert torch.equal(rig.call(x)[0], function(x))


def box(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[0], 3, 3)
    for i in range(x.shape[0]):
        a, b, c = x[i, 0], x[i, 1], x[i, 2]
        y[i, 0, 0] = a
        y[i, 0, 1] = b
        y[i, 0, 2] = a + c
        y[i, 1, 0] = b - c
        y[i, 1, 1] = y[i, 0, 2] * a
        y[i, 1, 2] = 7.0
        y[i, 2, 0] = c
        y[i, 2, 1] = b * c
        y[i, 2, 2] = a * c
    return y


def classes(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for i in range(x.shape[0]):
        m = -math.inf
        for k in range(x.shape[1]):
            m = max(m, x[i, k])
        for k in range(x.shape[1]):
            y[i, k] = x[i, k] - m
    return y


def some_columns(x: torch.Tensor) -> torch.Tensor:
    y = torch.full((x.shape[0], 8), 5.0)
    for i in range(x.shape[0]):
        for k in range(5):
            y[i, k + 0] = x[i, 2] * k
        y[i, 5] = x[i, 1]
    return y


def with_a_gap(x: torch.Tensor) -> torch.Tensor:
    y = torch.full((x.shape[0], 8), 5.0)
    for i in range(x.shape[0]):
        for k in range(5):
            y[i, k] = x[i, 2] * k
        y[i, 7] = x[i, 1]
    return y


def if_any(x: torch.Tensor) -> torch.Tensor:
    y = torch.full((x.shape[0], 6), 5.0)
    for i in range(x.shape[0]):
        for k in range(5):
            y[i, k] = x[i, 2] * k
        if x[i, 0] > 0:
            y[i, 5] = x[i, 1]
    return y


@pytest.mark.parametrize("function", [box, classes, some_columns, with_a_gap, if_any])
@pytest.mark.parametrize("columns", [3, 5, 15, 20])
def test_records(function, columns):
    x = values(64, columns)
    rig = rig_of(function, x)
    assert is_staged(rig) == (function is not with_a_gap and function is not if_any)
    assert torch.equal(rig.call(x)[0], function(x))
    x = values(32, columns + 9)[:, 4 : columns + 4]
    assert torch.equal(rig_of(function, x).call(x)[0], function(x))


def flat(x: torch.Tensor) -> torch.Tensor:
    n, m = 32, x.shape[0] // 32
    y = torch.empty_like(x)
    for r in range(n):
        s = 0.0
        for t in range(m):
            s = max(s - 1.0, x[r * m + t])
            y[r * m + t] = s
    return y


def window(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[0] // 2
    y = torch.empty(n)
    for r in range(n):
        s = 0.0
        for t in range(n):
            s = max(s - 1.0, x[r + t])
        y[r] = s
    return y


def test_rows_of_one_axis():
    x = values(32, 40).reshape(-1)
    rig = rig_of(flat, x)
    assert torch.equal(rig.call(x)[0], flat(x))
    x = values(2, 32).reshape(-1)
    rig = rig_of(window, x)
    assert not is_staged(rig)
    assert torch.equal(rig.call(x)[0], window(x))


@pytest.mark.parametrize("columns", [3, 15, 16, 35])
def test_rows_that_are_shorter_than_a_stage_are_accessed_where_they_lie(monkeypatch, columns):
    asked = []

    class Asked:
        def __bool__(self) -> bool:
            asked.append(self)
            return True

    monkeypatch.setattr(emulated, "WHOLE_WARPS", Asked())
    x = values(32, columns)
    rig = rig_of(running_sum, x)
    assert is_staged(rig)
    assert torch.equal(rig.call(x)[0], running_sum(x))
    assert bool(asked) == (columns >= 16)
