"""Searches in all their forms: the place of the best value, and what belongs to it."""

# pyright: basic
from __future__ import annotations

import math

import torch

Tensor = torch.Tensor


def first_greatest(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = x.new_empty((n,)), torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        best, at = -math.inf, -1
        for j in range(m):
            if x[i, j] > best:
                best, at = x[i, j], j
        value[i] = best
        place[i] = at
    return value, place


def last_least(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = x.new_empty((n,)), torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        best, at = math.inf, -1
        for j in range(m):
            if best >= x[i, j]:
                at = j
                best = x[i, j]
        value[i] = best
        place[i] = at
    return value, place


def of_a_whole_tensor(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = x.new_empty((1,)), torch.zeros(2, dtype=torch.int64)
    best, row, column = x[0, 0], -1, -1
    for i in range(n):
        for j in range(m):
            if x[i, j] >= best:
                best, row, column = x[i, j], i, j
    value[0] = best
    place[0] = row
    place[1] = column
    return value, place


def flat_place(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = x.new_empty((1,)), torch.zeros(1, dtype=torch.int64)
    best, at = -math.inf, -1
    for i in range(n):
        for j in range(m):
            if x[i, j] > best:
                best, at = x[i, j], i * m + j
    value[0] = best
    place[0] = at
    return value, place


def of_one_row(x: Tensor) -> tuple[Tensor, Tensor]:
    m = x.shape[1]
    value, place = x.new_empty((2,)), torch.zeros(1, dtype=torch.int64)
    best, at, other = x[0, 0], 7, 0.5
    for j in range(1, m):
        if x[0, j] < best:
            best, at, other = x[0, j], j, x[1, j]
    value[0] = best
    value[1] = other
    place[0] = at
    return value, place


def noted_beside(x: Tensor) -> tuple[Tensor, Tensor]:
    """Nothing that is noted is the place."""
    n, m = x.shape
    value, place = x.new_empty((n,)), torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        best, found, other = 0.0, False, -1.0
        for j in range(m):
            v = x[i, j] * 2
            if v <= best:
                best, found, other = v, True, x[i, m - 1 - j]
        value[i] = other
        place[i] = 1 if found else 0
    return value, place


def only_some(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = x.new_empty((n,)), torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        best, at = -math.inf, -1
        for j in range(m):
            if j % 3 != 1 and x[i, j] >= best:
                best, at = x[i, j], j
        value[i] = best
        place[i] = at
    return value, place


def with_a_loop_inside(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = x.new_empty((n,)), torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        best, at = math.inf, 0
        for j in range(m):
            d = 0.0
            for k in range(3):
                d += (x[i, (j + k) % m] - x[i, k % m]) ** 2
            if d < best:
                best, at = d, j
        value[i] = best
        place[i] = at
    return value, place


def two_at_once(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = x.new_empty((n,)), torch.zeros((n, 2), dtype=torch.int64)
    for i in range(n):
        low, high, at, to, total = math.inf, -math.inf, -1, -1, 0
        for j in range(m):
            if x[i, j] < low:
                low, at = x[i, j], j
            if x[i, j] > high:
                high, to = x[i, j], j
            total += 1
        value[i] = high
        place[i, 0] = at
        place[i, 1] = to + 0 * total
    return value, place


def stores_meanwhile(x: Tensor) -> tuple[Tensor, Tensor]:
    """The furthest of the points not yet taken, again and again."""
    n, m = x.shape
    left, place = x.new_full((n, m), math.inf), torch.zeros((n, 5), dtype=torch.int64)
    for i in range(n):
        last = 0
        for s in range(5):
            best, at = -1.0, 0
            for j in range(m):
                left[i, j] = min((x[i, j] - x[i, last]) ** 2, left[i, j])
                if left[i, j] > best:
                    best, at = left[i, j], j
            last = at
            place[i, s] = last
    return left, place


def of_whole_numbers(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = torch.zeros(n, dtype=torch.int64), torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        best, at = -(2**62), -1
        for j in range(m):
            v = int(x[i, j] * 8) if abs(x[i, j]) < 100.0 else -3
            if v >= best:
                best, at = v, j
        value[i] = best
        place[i] = at
    return value, place


def furthest_with_its_sign(x: Tensor) -> tuple[Tensor, Tensor]:
    """What is compared is made of the value that is kept, through two loops."""
    n, m = x.shape
    value, place = x.new_zeros((n,)), torch.zeros(n, dtype=torch.int64)
    best, at, row = 0.5, -1, -1
    for i in range(n):
        for j in range(m):
            if abs(x[i, j]) > abs(best):
                best = x[i, j]
                at = j
                row = i
    for i in range(n):
        value[i] = best + i
        place[i] = at + row
    return value, place


def nearest_of_each(x: Tensor) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    value, place = x.new_empty((n,)), torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        best, at = x[i, 0] + 1.0, -1
        for j in range(m):
            d = x[i, j]
            key = (d - 0.25) * (d - 0.25)
            if (best - 0.25) * (best - 0.25) >= key:
                best, at = d, j
        value[i] = best
        place[i] = at
    return value, place


SEARCHES = (
    furthest_with_its_sign,
    nearest_of_each,
    first_greatest,
    last_least,
    of_a_whole_tensor,
    flat_place,
    of_one_row,
    noted_beside,
    only_some,
    with_a_loop_inside,
    two_at_once,
    stores_meanwhile,
    of_whole_numbers,
)


def values(rows: int, columns: int, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return few different values, so that many are equal, among them zeros of both signs, infinities and NaN."""
    generator = torch.Generator().manual_seed(seed)
    few = torch.tensor([-0.0, 0.0, 1.5, -2.0, 0.25, math.inf, -math.inf, math.nan], dtype=dtype)
    picked = torch.randint(0, len(few) - 4 * (seed % 2), (rows, columns), generator=generator)
    return few[picked]
