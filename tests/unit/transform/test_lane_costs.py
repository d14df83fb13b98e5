"""Lanes run where they gain more than they wait for: for masks, for the longest of their loops, for elements apart."""

import math

import pytest
import torch

from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT64
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.schedule.schedule import Bind, Level
from support.lowering import memory
from support.scheduling import AVX512, agree, kernel_of


def has_lanes(function, *arguments):
    """Whether a loop of the function's only kernel runs in lanes."""
    return "lane" in str(schedule_kernel(kernel_of(function, *arguments), AVX512).schedule)


def collatz(x: torch.Tensor):
    """Count steps that take three cycles each, until one value."""
    out = torch.zeros(len(x), dtype=torch.int64)
    for i in range(len(x)):
        v = x[i]
        steps = 0
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        out[i] = steps
    return out


def collatz_by_break(x: torch.Tensor):
    """The same, left from within."""
    out = torch.zeros(len(x), dtype=torch.int64)
    for i in range(len(x)):
        v = x[i]
        steps = 0
        for step in range(1000):
            if v == 1:
                break
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        out[i] = steps
    return out


def least_factor(x: torch.Tensor):
    """Search a value, by a condition of which a part is computed in statements."""
    out = torch.zeros(len(x), dtype=torch.int64)
    for i in range(len(x)):
        p = 2
        while p * p <= x[i] and x[i] % p != 0:
            p += 1
        out[i] = p
    return out


def common_divisor(x: torch.Tensor):
    """Search a value by divisions, which wait for each other."""
    out = torch.zeros(len(x), dtype=torch.int64)
    for i in range(len(x)):
        a = x[i]
        b = 84
        while b != 0:
            a, b = b, a % b
        out[i] = a
    return out


def halved(x: torch.Tensor):
    """Shift until a limit: a cycle for each step."""
    out = torch.zeros(len(x), dtype=torch.int64)
    for i in range(len(x)):
        v = x[i]
        c = 0
        while v > 0:
            c += v & 1
            v = v // 2
        out[i] = c
    return out


def decay(x: torch.Tensor):
    """Multiply until a limit: four cycles for each step."""
    out = torch.zeros(len(x), dtype=torch.int64)
    for i in range(len(x)):
        v = x[i] * 1.0
        c = 0
        while v > 1.0:
            v = v * 0.9
            c += 1
        out[i] = c
    return out


def series(x: torch.Tensor):
    """Add terms up to a limit, by a long function of an element at one place."""
    out = torch.zeros(len(x), dtype=torch.float64)
    for i in range(len(x)):
        s = 0.0
        k = 0
        term = 1.0
        while term > 1e-6:
            s += term
            k += 1
            term = math.exp(-k * (1.0 + x[i]))
        out[i] = s
    return out


def walked(x: torch.Tensor):
    """Follow links, by a long function: lanes would go their own ways through memory."""
    out = torch.zeros(len(x), dtype=torch.float64)
    for i in range(len(x)):
        s = 0.0
        at = i
        while at > 0:
            s += math.exp(x[at] * 1.0)
            at = at // 2
        out[i] = s
    return out


@pytest.mark.parametrize(
    ("function", "lanes"),
    [
        (collatz, False),
        (collatz_by_break, False),
        (least_factor, False),
        (common_divisor, True),
        (halved, False),
        (decay, True),
        (series, True),
        (walked, False),
    ],
)
def test_loops_that_end_for_each_lane_alone(function, lanes):
    x = memory([*range(1, 28)], INT64)
    assert has_lanes(function, x) is lanes
    agree(function, x, target=AVX512)


def test_few_iterations_with_loops_inside_are_shared_out():
    x = memory([*range(1, 28)], INT64)
    assert "split(i, 32)" in str(schedule_kernel(kernel_of(decay, x), AVX512).schedule)


def grey(a: torch.Tensor):
    """Three elements that lie apart from those of the next iteration, and little arithmetic."""
    out = torch.zeros(len(a), dtype=torch.float64)
    for i in range(len(a)):
        out[i] = 0.3 * a[i, 0] + 0.6 * a[i, 1] + 0.1 * a[i, 2]
    return out


def lengths(a: torch.Tensor):
    """The same with a root and a division."""
    out = torch.zeros(len(a), dtype=torch.float64)
    for i in range(len(a)):
        out[i] = 1.0 / math.sqrt(a[i, 0] * a[i, 0] + a[i, 1] * a[i, 1] + a[i, 2] * a[i, 2])
    return out


def rotated(a: torch.Tensor, c: float, s: float):
    """Turns of pairs, which stay in variables from turn to turn: lanes read and store them once."""
    for t in range(3):
        for k in range(a.shape[0]):
            one = a[k, 0]
            two = a[k, 1]
            a[k, 0] = c * one - s * two
            a[k, 1] = s * one + c * two


def every_other(u: torch.Tensor):
    """Half a step of red and black."""
    for k in range(u.shape[0]):
        for i in range(1, u.shape[1] - 1, 2):
            u[k, i] = 0.5 * (u[k, i - 1] + u[k, i + 1])


def summed_in_pairs(a: torch.Tensor):
    """Two elements that lie two apart, as are those of the next iteration, and a root."""
    out = torch.zeros(a.shape[0], a.shape[1] // 2, dtype=torch.float64)
    for k in range(a.shape[0]):
        for i in range(a.shape[1] // 2):
            out[k, i] = 1.0 / math.sqrt(a[k, 2 * i] + a[k, 2 * i + 1])
    return out


def exchanged(x: torch.Tensor, j: int, k: int):
    """Branches around elements that lie apart: a step of a sorting network."""
    for i in range(len(x)):
        partner = i ^ j
        if partner > i:
            up = (i & k) == 0
            if (up and x[i] > x[partner]) or (not up and x[i] < x[partner]):
                tmp = x[i]
                x[i] = x[partner]
                x[partner] = tmp


def test_branches_around_elements_that_lie_apart():
    x = memory([float(i * 7 % 16) for i in range(16)], FLOAT64)
    assert not has_lanes(exchanged, x, 4, 8)
    agree(exchanged, x, 4, 8, target=AVX512)


@pytest.mark.parametrize(
    ("function", "more", "lanes"),
    [
        (grey, (), False),
        (lengths, (), True),
        (rotated, (0.5, 0.25), True),
        (every_other, (), False),
        (summed_in_pairs, (), True),
    ],
)
def test_elements_that_lie_apart(function, more, lanes):
    a = memory([[1.0 + i, 2.0, 0.5 * i] for i in range(19)], FLOAT64)
    assert has_lanes(function, a, *more) is lanes
    agree(function, a, *more, target=AVX512)


def pairs_counted(x: torch.Tensor):
    """Counts in a table of a row's own, at places that elements say."""
    out = torch.zeros(len(x), 4, 4, dtype=torch.int64)
    for p in range(len(x)):
        for i in range(x.shape[1]):
            for j in range(x.shape[2] - 1):
                out[p, x[p, i, j], x[p, i, j + 1]] += 1
    return out


def eliminated(a: torch.Tensor, d: torch.Tensor):
    """Rows of which each element takes the ones before, by a division, from memory."""
    c = torch.ones(len(a), a.shape[1], dtype=torch.float64)
    for s in range(len(a)):
        for i in range(1, a.shape[1]):
            w = 3.0 + a[s, i] * c[s, i - 1]
            c[s, i] = a[s, i] / w
            d[s, i] = (d[s, i] - a[s, i] * d[s, i - 1]) / w
        for i in range(a.shape[1] - 2, -1, -1):
            d[s, i] -= c[s, i] * d[s, i + 1]


def decayed(a: torch.Tensor, d: torch.Tensor):
    """The same by a long function, which lanes share."""
    for s in range(len(a)):
        for i in range(1, a.shape[1]):
            d[s, i] = math.exp(-a[s, i] * d[s, i - 1])


def across(a: torch.Tensor, d: torch.Tensor):
    """Columns, of which neighbours are neighbours in memory."""
    for s in range(a.shape[1]):
        for i in range(1, len(a)):
            d[i, s] = (d[i, s] - a[i, s] * d[i - 1, s]) / a[i, s]


def test_lanes_around_tables_that_elements_index():
    x = memory([[[(i * j + p) % 4 for j in range(5)] for i in range(3)] for p in range(19)], INT64)
    assert not has_lanes(pairs_counted, x)
    agree(pairs_counted, x, target=AVX512)


@pytest.mark.parametrize(("function", "lanes"), [(eliminated, False), (decayed, True), (across, True)])
def test_lanes_around_recurrences_through_memory(function, lanes):
    a, d = (memory([[1.0 + i + j, 2.0, 0.5 * i, 1.0] for i in range(19)], FLOAT64) for j in range(2))
    assert has_lanes(function, a, d) is lanes
    agree(function, a, d, target=AVX512)


def inverse(a: torch.Tensor):
    """Invert matrices of three rows: elements apart, at places that remainders of literals say."""
    out = torch.empty_like(a)
    for i in range(a.shape[0]):
        for r in range(3):
            for c in range(3):
                ahead = a[i, (r + 1) % 3, (c + 1) % 3] * a[i, (r + 2) % 3, (c + 2) % 3]
                out[i, c, r] = ahead - a[i, (r + 1) % 3, (c + 2) % 3] * a[i, (r + 2) % 3, (c + 1) % 3]
    return out


def test_divisions_by_literals_do_not_count_where_they_say_a_place():
    assert not has_lanes(inverse, memory([[[2.0, 1.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 1.0]]] * 3, FLOAT64))


def hashed(x: torch.Tensor):
    """Sum over integers that are made of what is read: more variables than registers for lanes of four vectors."""
    out = torch.empty_like(x)
    for i in range(len(x)):
        s = 0.0
        for k in range(2):
            a = int(x[i] * 64.0) + k
            b = (a * 374761393) & 4294967295
            c = b ^ (b >> 13)
            d = (c * 1274126177) & 4294967295
            e = (d ^ (d >> 16)) & 65535
            s += e / 65535.0
        out[i] = s
    return out


def few(x: torch.Tensor):
    """Sum what is read, and no more."""
    out = torch.empty_like(x)
    for i in range(len(x)):
        s = 0.0
        for k in range(2):
            s += x[i] * (k + 3)
        out[i] = s
    return out


@pytest.mark.parametrize(("function", "lanes"), [(few, 64), (hashed, 32)])
def test_lanes_are_as_many_as_have_their_variables_in_registers(function, lanes):
    schedule = schedule_kernel(kernel_of(function, memory([0.5, 1.5], FLOAT32)), AVX512).schedule
    assert [verb.width for verb in schedule.verbs if isinstance(verb, Bind) and verb.level is Level.LANE] == [lanes]
