"""Sums and extremes that must be left as they are: each program means the same however it is run.

Each is like one whose reductions are found, split, or run in jam, but for one thing that makes that illegal.
"""

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.transform import split_reductions
from brickwork.transform.schedule import long_sums
from support.lowering import memory
from support.scheduling import kernel_of, same

Tensor = torch.Tensor
R, N = 3, 11
A = memory([[float((3 * i + 5 * j) % 7 - 3) for j in range(N)] for i in range(R)])
Y = memory([0.5] * R)
Z = memory([float(j % 4 - 1) for j in range(N)])


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    for name in ("THREADS", "DEEP", "BLOCKS"):
        limits = split_reductions.Limits(few=8, least=2, unit=1, enough=12, most=3)
        monkeypatch.setattr(split_reductions, name, limits)
    monkeypatch.setattr(long_sums, "LONG", 4)


# ---------------------------------------------------------------- long sums: `for i: for j: t += a[i, j]`


def the_sum_is_stored_as_it_grows(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
            z[j] = a[i, j]
        y[i] = t


def the_row_is_stored_as_it_is_summed(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j]
            a[i, j] = a[i, j] * 0.5
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


# ---------------------------------------------------------------- nests of sums with conditions between their loops


def other_cases_of_a_condition_add_too(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for b in range(4):
            if b > 1:
                for j in range(z.shape[0]):
                    t += z[j]
            else:
                for j in range(z.shape[0]):
                    t += 2.0 * z[j]
        y[i] = t


def a_condition_counts_once(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for b in range(4):
            t += 1.0
            if b + i > 1:
                for j in range(z.shape[0]):
                    t += z[j]
        y[i] = t


def conditions_stand_in_one_another(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for b in range(4):
            if b + i > 1:
                for c in range(3):
                    if c + b < 4:
                        for j in range(z.shape[0]):
                            if j > c:
                                t += z[j]
        y[i] = t


def a_sum_begins_where_the_one_around_is(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t = 0.0
        for b in range(5):
            if b + i > 1:
                for j in range(b, z.shape[0]):
                    t += z[j]
        y[i] = t


def other_sums_stand_in_a_nest(a: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(a.shape[0]):
        t, u = 0.0, 0.0
        for b in range(5):
            for j in range(z.shape[0]):
                t += z[j]
                u += z[j] * b
        y[i] = t + u * i


ROWS = [item for item in list(globals().values()) if getattr(item, "__annotations__", {}).keys() >= {"a", "y", "z"}]


@pytest.mark.parametrize("function", ROWS)
def test_it_does_what_the_source_says(function):
    same(function, A, Y, Z)


def what_a_condition_asks_is_stored_in_the_loop(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        for b in range(x.shape[1]):
            if x[i, b, 0] > -3.0:
                for j in range(x.shape[2]):
                    t += x[i, b, j]
                    x[i, b, j] = -3.0
        y[i] = t


def an_element_ends_what_a_condition_guards(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        for b in range(x.shape[1]):
            if b > 0:
                for j in range(int(y[b - 1])):
                    t += x[i, b, j]
        y[i] = t


def a_loop_is_as_long_as_the_one_around_has_come_to(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        for b in range(x.shape[1]):
            for j in range(b):
                t += x[i, b, j]
        y[i] = t


def both_cases_sum_up(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        for b in range(x.shape[1]):
            if b > 1:
                for j in range(x.shape[2]):
                    t += x[i, b, j]
            else:
                t += 1.0
        y[i] = t


def two_loops_stand_in_a_nest(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        for b in range(x.shape[1]):
            for j in range(x.shape[2]):
                t += x[i, b, j]
            for j in range(x.shape[2]):
                t += x[i, b, j]
        y[i] = t


def conditions_guard_a_sum(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        if i > 0:
            for b in range(x.shape[1]):
                if b + i > 1:
                    for j in range(x.shape[2]):
                        if j > b:
                            t += x[i, b, j]
        y[i] = t


def a_condition_guards_what_is_summed(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        t = 0.0
        if i > 0:
            for b in range(x.shape[1]):
                for j in range(x.shape[2]):
                    if j > b:
                        t += x[i, b, j]
        y[i] = t


@pytest.mark.parametrize(
    ("function", "loops"),
    [
        (what_a_condition_asks_is_stored_in_the_loop, ""),
        (an_element_ends_what_a_condition_guards, ""),
        (a_loop_is_as_long_as_the_one_around_has_come_to, ""),
        (both_cases_sum_up, ""),
        (two_loops_stand_in_a_nest, ""),
        (conditions_guard_a_sum, ""),
        (a_condition_guards_what_is_summed, "bj"),
    ],
)
def test_which_loops_are_one_range(function, loops):
    x = memory([[[float((3 * i + b + 5 * j) % 7 - 2) for j in range(6)] for b in range(4)] for i in range(R)])
    (nest,) = kernel_of(function, x, Y).body
    found = long_sums.nest_of_sums(nest.body)
    assert "".join(level.index.name for level in found) == loops


# ---------------------------------------------------------------- products whose rows run in jam


def rows_are_skipped(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        if a[i, 0] < 0:
            continue
        for j in range(c.shape[1]):
            s = 0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


def elements_begin_with_a_list(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            w = [a[i, 0], b[0, j], 1]
            w[j % 3] += 1
            s = w[(i + j) % 3]
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


def elements_end_with_a_while(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            s = 0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            while s > 3:
                s = s - 2
            c[i, j] = s


def elements_fail(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            s = 0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s // (i * 9 + j - 20)


PRODUCTS = [rows_are_skipped, elements_begin_with_a_list, elements_end_with_a_while, elements_fail]


@pytest.mark.parametrize("function", PRODUCTS)
@pytest.mark.parametrize("dtype", [INT64, FLOAT64])
def test_products_do_what_the_source_says(function, dtype):
    a = [[(3 * i + 5 * k) % 7 - 3 for k in range(5)] for i in range(9)]
    b = [[(2 * k + 3 * j) % 5 - 2 for j in range(9)] for k in range(5)]
    same(function, memory([[0] * 9 for _ in range(9)], dtype), memory(a, dtype), memory(b, dtype))


def rows_times_rows(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            c[i, j] = s


def test_long_sums_that_go_together_do_what_the_source_says():
    a = [[float((3 * i + 5 * k) % 7 - 3) for k in range(40)] for i in range(5)]
    b = [[float((2 * j + 3 * k) % 5 - 2) for k in range(40)] for j in range(3)]
    same(rows_times_rows, memory([[0.0] * 3 for _ in range(5)]), memory(a), memory(b))
