"""Two loops in a row, as parts of one loop of a gradient are: such as may be one loop, and such as must not be."""

# pyright: basic
from __future__ import annotations

import math

import torch

import brickwork as bw


def sums(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0] - 1.0) * g[j, 0]
    t = 0.5
    for k in range(x.shape[0]):
        t += math.exp(x[k, 0] - 1.0) * g[k, 1]
    out[0, 0] = s
    out[0, 1] = t


def nests(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = out[i, 0]
        for j in range(x.shape[0]):
            d = x[i, 0] - x[j, 0]
            d = math.sqrt(d * d + 0.25)
            s += d * g[j, 0]
        out[i, 0] = s
    for i in range(x.shape[0]):
        s = out[i, 1]
        for j in range(x.shape[0]):
            d = x[i, 0] - x[j, 0]
            d = math.sqrt(d * d + 0.25)
            s += d * g[j, 1]
        out[i, 1] = s


def three_in_one(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for k in range(1):
            s = 0.0
            for j in range(x.shape[0]):
                s += math.exp(x[i, 0] - x[j, 1]) * g[j, 0]
            out[i, 0] += s
            s = 0.0
            for j in range(x.shape[0]):
                s += math.exp(x[i, 0] - x[j, 1]) * g[j, 1]
            out[i, 1] += s


def under_conditions(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = t = 0.0
        for j in range(x.shape[0]):
            if j != i:
                w = math.exp(x[i, 0] - x[j, 0])
                s += w * g[j, 0]
        for j in range(x.shape[0]):
            if j != i:
                w = math.exp(x[i, 0] - x[j, 0])
                t += w * g[j, 1]
            else:
                t += 1.0
        out[i, 0], out[i, 1] = s, t


def stored_at_once(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0]) - out[i, 0]


def what_stands_between(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0]) * g[j, 0]
    out[0, 0] = s
    t = out[0, 1] * 2.0
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0]) * g[j, 1]
    out[0, 1] = t


def begun_in_two_steps(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0]) * g[j, 0]
    u = g[0, 0]
    t = u * 2.0 + u
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0]) * g[j, 1]
    out[0, 0] = s + t + u


def stored_twice_between(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0]) * g[j, 0]
    out[0, 0] = s
    out[1, 0] = s + 1.0
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0]) * g[j, 1]
    out[0, 1] = t


def stored_over(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0]) * 2.0
    out[0, 0] = 5.0
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * 3.0


JOINED = [
    begun_in_two_steps,
    stored_twice_between,
    stored_over,
    sums,
    nests,
    three_in_one,
    under_conditions,
    stored_at_once,
    what_stands_between,
]


def of_the_sum(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0])
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0]) / s
    out[0, 0] = t


def begun_with_the_sum(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0]) * g[j, 0]
    t = s * 2.0
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0]) * g[j, 1]
    out[0, 0] = t


def of_the_neighbour(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0]) - out[x.shape[0] - 1 - i, 0]


def over_the_neighbour(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    for i in range(x.shape[0]):
        out[x.shape[0] - 1 - i, 0] = math.exp(x[i, 0]) * 3.0


def read_before_it_is_stored(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) + x[x.shape[0] - 1 - i, 1]
    for i in range(x.shape[0]):
        x[i, 1] = math.exp(x[i, 0])


def across(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(2):
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    for i in range(2):
        out[0, i] = math.exp(x[i, 0]) * 3.0


def stored_between(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0]) * g[j, 0]
    x[0, 0] = 3.0
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0]) * g[j, 1]
    out[0, 0], out[0, 1] = s, t


def changed_inside(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * 2.0
        x[i, 0] = 1.0
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0]) * 3.0


def carried(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    p = 1.0
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(p) * 2.0
        p = x[i, 0]
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(p) * 3.0
        p = x[i, 0]


def of_other_ranges(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0]) * g[j, 0]
    for j in range(1, x.shape[0]):
        t += math.exp(x[j, 0]) * g[j, 1]
    out[0, 0], out[0, 1] = s, t


def that_share_little(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += x[j, 0] * g[j, 0]
    for j in range(x.shape[0]):
        t += x[j, 0] * g[j, 1]
    out[0, 0], out[0, 1] = s, t


def invariant(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    """What all iterations share is computed before the loops."""
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[0, 0]) * g[j, 0]
    for j in range(x.shape[0]):
        t += math.exp(x[0, 0]) * g[j, 1]
    out[0, 0], out[0, 1] = s, t


def passed_on(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    p = 1.0
    for i in range(x.shape[0]):
        v = math.exp(x[i, 0])
        out[i, 0] = v * 2.0
    for i in range(x.shape[0]):
        out[i, 1] = p + 1.0
        p = math.exp(x[i, 0])


def assigned_by_both(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    last = 1.0
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * last
        last = x[i, 0]
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0])
        last = x[i, 1]
    g[0, 0] = last


def read_by_the_first(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    q = 2.0
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * q
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0])
        q = x[i, 1]
    g[0, 0] = q


def that_may_fail_first(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0]) * g[int(g[j, 0] * 0.0), 0]
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0])
    out[0, 0], out[0, 1] = s, t


def that_may_fail_last(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0])
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0]) * g[int(g[j, 0] * 0.0), 0]
    out[0, 0], out[0, 1] = s, t


def changed_between(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    q = 2.0
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * q
    if g[0, 0] < 100.0:
        q = 5.0
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0]) * q


def overridden_between(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    last = 1.0
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0])
        last = x[i, 1]
    if g[0, 0] < 100.0:
        last = 5.0
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0]) * last


def asserted_between(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    assert g[0, 0] < 100.0
    for i in range(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0]) * 3.0


def begun_with_what_is_stored(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    t = out[1, 0] + out[1, 1]
    for i in range(x.shape[0]):
        t += math.exp(x[i, 0]) * 3.0
    g[0, 0] = t


def that_assert(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        assert x[i, 1] < 100.0
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    for i in range(x.shape[0]):
        assert x[i, 1] < 100.0
        out[i, 1] = math.exp(x[i, 0]) * 3.0


def that_break(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        if x[i, 1] > 0.0:
            break
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    for i in range(x.shape[0]):
        if x[i, 1] > 1.0:
            break
        out[i, 1] = math.exp(x[i, 0]) * 3.0


def with_lists(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        v = [0.0, 0.0]
        v[int(x[i, 1] > 0.0)] = math.exp(x[i, 0])
        out[i, 0] = v[0]
    for i in range(x.shape[0]):
        v = [0.0, 0.0]
        v[int(x[i, 1] > 0.0)] = math.exp(x[i, 0])
        out[i, 1] = v[0]


def claimed(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        out[i, 0] = math.exp(x[i, 0]) * 2.0
    for i in bw.prange(x.shape[0]):
        out[i, 1] = math.exp(x[i, 0]) * 3.0


def under_others(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        if x[j, 1] > 0.0:
            s += math.exp(x[j, 0])
    for j in range(x.shape[0]):
        if x[j, 1] > 0.5:
            t += math.exp(x[j, 0])
    out[0, 0], out[0, 1] = s, t


def under_one_that_changes(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        if x[j, 1] > 0.0:
            s += math.exp(x[j, 0])
        x[j, 1] = -1.0
    for j in range(x.shape[0]):
        if x[j, 1] > 0.0:
            t += math.exp(x[j, 0])
    out[0, 0], out[0, 1] = s, t


def under_one_after_what_it_needs(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        if x[j, 1] > 0.0:
            s += math.exp(x[j, 0])
    for j in range(x.shape[0]):
        u = g[j, 1] * 3.0
        if x[j, 1] > 0.0:
            t += math.exp(x[j, 0]) * u
    out[0, 0], out[0, 1] = s, t


def of_what_changes(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    p = 0.5
    for j in range(x.shape[0]):
        s += math.exp(x[j, 1])
    for j in range(x.shape[0]):
        w = math.exp(x[j, 1])
        a = math.exp(p)
        p = x[j, 0]
        b = math.exp(p)
        t += w * (a - b)
    out[0, 0], out[0, 1] = s, t


def that_may_fail(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[int(g[j, 0] * 0.0), 0])
    for j in range(x.shape[0]):
        t += math.exp(x[int(g[j, 0] * 0.0), 0])
    out[0, 0], out[0, 1] = s, t


def products(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for c in range(2):
            s = 0.0
            for j in range(x.shape[0]):
                s += math.exp(x[i, 0] - x[j, 0]) * g[j, c]
            t = 0.0
            for j in range(x.shape[0]):
                t += math.exp(x[i, 0] - x[j, 0]) * x[j, c]
            out[i, c] = s - t


JOINED += [read_by_the_first, changed_between]  # The variable has another name after it is changed.

APART = [
    products,
    passed_on,
    assigned_by_both,
    that_may_fail_first,
    that_may_fail_last,
    overridden_between,
    asserted_between,
    begun_with_what_is_stored,
    that_assert,
    that_break,
    with_lists,
    claimed,
    under_others,
    under_one_that_changes,
    under_one_after_what_it_needs,
    of_what_changes,
    of_the_sum,
    begun_with_the_sum,
    of_the_neighbour,
    over_the_neighbour,
    read_before_it_is_stored,
    across,
    stored_between,
    changed_inside,
    carried,
    of_other_ranges,
    that_share_little,
    invariant,
    that_may_fail,
]
