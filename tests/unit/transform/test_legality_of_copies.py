"""Scratch tensors and counts that must not get copies: each program means the same however it is run.

Each is like one whose scratch tensors or updated tensors get copies, but for one thing that makes that illegal.
"""

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.transform import replicate_reductions
from support.lowering import memory
from support.scheduling import same

Tensor = torch.Tensor
R, N = 3, 11
A = memory([[float((3 * i + 5 * j) % 7 - 3) for j in range(N)] for i in range(R)])
Y = memory([0.5] * R)
Z = memory([float(j % 4 - 1) for j in range(N)])
I = memory([j * j % 4 for j in range(24)], INT64)


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    for name, value in (("COPIES", 3), ("RUN", 4), ("FEW_COPIES", 2), ("room", lambda _: 12)):
        monkeypatch.setattr(replicate_reductions, name, value)


# ---------------------------------------------------------------- scratch tensors: `w` filled, then read


def scratch_is_filled_on_one_way(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        for k in range(4):
            if a[i, k] > 0.0:
                w[k] = a[i, k]
        y[i] = w[0] + w[1] * 10 + w[2] * 100 + w[3] * 1000


def scratch_is_filled_in_part(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        for k in range(3):
            w[k] = a[i, k]
        y[i] = w[2]
        w[3] = w[3] + w[2]
        y[i] += w[3]


def scratch_is_filled_here_and_there(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        for k in range(2):
            w[2 * k] = a[i, k] + w[2 * k + 1]
        w[1] = y[i] + 1.0
        y[i] = w[0] + w[2]


def scratch_is_filled_as_far_as(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        for k in range(4):
            if a[i, k] > 1.5:
                break
            w[k] = a[i, k]
        t = 0.0
        for k in range(4):
            t += w[k]
        y[i] = t


def scratch_is_read_from_its_end(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        w[0] = a[i, 0]
        y[i] = w[i - 2]


def scratch_is_read_before_it_is_filled(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        t = 0.0
        for k in range(4):
            t += w[k]
            w[k] = a[i, k]
        y[i] = t


def scratch_is_read_after(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        for k in range(4):
            w[k] = a[i, k]
        y[i] = w[3] - w[0]
    for k in range(4):
        z[k] = w[k]


def scratch_is_read_in_a_condition(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        if w[0] < 1.0:
            for k in range(4):
                w[k] = a[i, k]
            y[i] = w[1]


def scratch_is_filled_by_another_index(a: Tensor, y: Tensor, z: Tensor) -> None:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        for k in range(4):
            w[k * k % 4] = a[i, k]
        y[i] = w[2] + w[1]


def scratch_is_returned(a: Tensor, y: Tensor, z: Tensor) -> Tensor:
    w = torch.zeros(4)
    for i in range(a.shape[0]):
        for k in range(4):
            w[k] = a[i, k]
        y[i] = w[3] - w[0]
    return w


ROWS = [item for item in list(globals().values()) if getattr(item, "__annotations__", {}).keys() >= {"a", "y", "z"}]


@pytest.mark.parametrize("function", ROWS)
def test_it_does_what_the_source_says(function):
    same(function, A, Y, Z)


# ---------------------------------------------------------------- updates: `h[x[i]] += 1`


def what_is_counted_is_read(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] += h[3]


def counts_go_to_two_places(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] += 1
        h[x[i] // 2] += 2


def counts_are_of_two_kinds(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] += 1
        h[0] = max(h[0], x[i])


def counts_are_multiplied(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] *= 1 + x[i] % 2


def counts_are_overwritten(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] = i


def another_element_is_added_to(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] = h[(x[i] + 1) % 4] + 1


def what_is_added_is_taken_from(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] = i - h[x[i]]


def counting_ends_early(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        if i > 17:
            break
        h[x[i]] += 1


def places_change_as_they_are_read(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0] - 1):
        k = x[i]
        h[k] += 1
        x[i + 1] = (x[i + 1] + k) % 4


COUNTS = [item for item in list(globals().values()) if getattr(item, "__annotations__", {}).keys() >= {"x", "h"}]


@pytest.mark.parametrize("function", COUNTS)
def test_updates_do_what_the_source_says(function):
    same(function, I, memory([1, 2, 3, 4], INT64))


def counts_in_rows(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i], i % 2] += 1


def counts_of_floats(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i], 0] += 0.5


def test_updates_of_other_tensors_do_what_the_source_says():
    same(counts_in_rows, I, memory([[1, 2]] * 4, INT64))
    same(counts_of_floats, I, memory([[1.0, 2.0]] * 4, FLOAT64))
