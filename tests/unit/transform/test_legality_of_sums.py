"""Sums, extremes and copies that must be left as they are: each program means the same however it is run.

Each is like one whose reductions are found, split, replicated, or run in jam, or whose scratch tensors get copies, but
for one thing that makes that illegal.
"""

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.transform import replicate_reductions, split_reductions
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
    for name in ("THREADS", "DEEP", "BLOCKS"):
        limits = split_reductions.Limits(few=8, least=2, unit=1, enough=12, most=3)
        monkeypatch.setattr(split_reductions, name, limits)
    for name, value in (("COPIES", 3), ("RUN", 4), ("MANY_UPDATES", 20), ("FEW_ELEMENTS", 5)):
        monkeypatch.setattr(replicate_reductions, name, value)


# ---------------------------------------------------------------- long sums: `for i: for j: t += a[i, j]`


def the_sum_is_stored_as_it_grows(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
            z[j] = a[i, j]
        y[i] = t


def there_are_two_sums(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
        u = 1.0
        for j in range(a.shape[1]):
            u += a[i, j] * t
        y[i] = u


def the_sum_is_as_long_as_its_row(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(i, a.shape[1] - i):
            t += a[i, j]
        y[i] = t


def the_sum_is_as_long_as_was_computed(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        m = (i * 5) % 11
        t = 0.0
        for j in range(m):
            t += a[i, j]
        y[i] = t


def the_sum_begins_where_was_computed(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        m = (i * 5) % 11
        t = 0.0
        for j in range(m, a.shape[1]):
            t += a[i, j]
        y[i] = t


def rows_are_as_many_as_elements_say(a: Tensor, y: Tensor, z: Tensor) -> None:
    n = int(z[3])
    for i in range(n):
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
        y[i] = t


def a_store_stands_first(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        y[i] = 3.0
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
        y[i] = t + y[i]


def a_loop_stands_after_it(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
        for j in range(a.shape[1]):
            a[i, j] = t


def a_while_stands_after_it(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
        while t > 1.0:
            t = t * 0.5
        y[i] = t


def the_sum_decays(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t = t * 0.5 + a[i, j]
        y[i] = t


def both_ways_sum(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 1.0
        for j in range(a.shape[1]):
            if a[i, j] > 0.0:
                t += a[i, j]
            else:
                t = t * 2.0
        y[i] = t


def the_sum_is_read_in_it(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        u = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
            u += t
        y[i] = u


def the_sum_is_taken_away(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t = a[i, j] - t
        y[i] = t


def the_product_is_of_a_sum(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 1.0
        for j in range(a.shape[1]):
            t = (t + 1.0) * a[i, j]
        y[i] = t


# ---------------------------------------------------------------- extremes: `if a[i, j] < best: best = a[i, j]`


def what_is_compared_is_of_the_best(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place = 1.0, 0
        for j in range(a.shape[1]):
            v = a[i, j] * best
            if v < best:
                best, place = v, j
        y[i] = best + place


def what_is_compared_is_of_the_place(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place = 1.0, 0
        for j in range(a.shape[1]):
            if a[i, j] + place < best:
                best = a[i, j] + place
                place = j
        y[i] = best + place


def the_place_is_of_the_place(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place = 9.0, 0
        for j in range(a.shape[1]):
            if a[i, j] < best:
                best = a[i, j]
                place = place + j
        y[i] = place


def what_is_noted_is_another_value(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place = 9.0, 0
        for j in range(a.shape[1]):
            if a[i, j] < best:
                best = a[i, j] + 1.0
                place = j
        y[i] = best + place


def places_are_counted(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place, number = 9.0, 0, 0
        for j in range(a.shape[1]):
            number = number + i + 1
            if a[i, j] < best:
                best, place = a[i, j], number
        y[i] = best + place


def the_last_value_is_read_after(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place, v = 9.0, 0, 0.0
        for j in range(a.shape[1]):
            v = a[i, j] * 2.0
            if v < best:
                best, place = v, j
        y[i] = best + place + v


def something_is_stored_as_well(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place = 9.0, 0
        for j in range(a.shape[1]):
            z[j] = place
            if a[i, j] < best:
                best, place = a[i, j], j
        y[i] = best + place


def there_is_another_way(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place = 9.0, 0
        for j in range(a.shape[1]):
            if a[i, j] < best:
                best, place = a[i, j], j
            else:
                place = place + 1
        y[i] = best + place


def equal_values_come_later(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, first, other, last = 9.0, 0, -9.0, 0
        for j in range(a.shape[1]):
            if a[i, j] <= best:
                best, first = a[i, j], j
        for j in range(a.shape[1]):
            if other <= a[i, j]:
                other, last = a[i, j], j
        y[i] = first * 100 + last


def nothing_is_better(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        best, place = -9.0, 7
        for j in range(a.shape[1]):
            if a[i, j] < best:
                best, place = a[i, j], j
        y[i] = best + place


def a_flag_is_read(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        found = 0.0
        for j in range(a.shape[1]):
            z[j] = found
            if a[i, j] > 2.0:
                found = 1.0
        y[i] = found


def a_flag_has_two_values(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        found = 0.0
        for j in range(a.shape[1]):
            if a[i, j] > 2.0:
                found = 1.0
            if a[i, j] < -2.0:
                found = 2.0
        y[i] = found


def a_flag_is_an_element(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        found = 0.0
        for j in range(a.shape[1]):
            if a[i, j] > 0.0:
                found = z[0]
            z[0] = z[0] + 1.0
        y[i] = found


def a_flag_is_the_index(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        found = 0
        for j in range(a.shape[1]):
            if a[i, j] > 0.0:
                found = j
        y[i] = found


def a_flag_ends_the_loop(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        found, n = 0.0, 0
        for j in range(a.shape[1]):
            if a[i, j] > 2.0:
                found = 1.0
                break
            n += 1
        y[i] = found + n


# ---------------------------------------------------------------- iterations in jam: `y[i] += a[i, j] * z[j]`


def sums_end_early(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            if z[j] > 1.5:
                break
            t += a[i, j] * z[j]
        y[i] = t


def sums_skip(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            if a[i, j] > 1.5:
                continue
            t += a[i, j] * z[j]
        y[i] = t


def rows_have_lists(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        w = [a[i, 0], a[i, 1]]
        for j in range(a.shape[1]):
            w[j % 2] += a[i, j] * z[j]
        y[i] = w[0] - w[1]


def sums_are_whiles(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t, j = 0.0, 0
        while t < 4.0 and j < a.shape[1]:
            t += a[i, j] * z[j]
            j += 1
        y[i] = t


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
