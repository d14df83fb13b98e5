"""Programs whose elements keep the least or greatest value, and others that only look as if they did.

All take `x`, the `place` of each of its rows, and `base`, of which one row or more is a place.
"""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import math

import torch


def greatest(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -math.inf)
    for n in range(x.shape[0]):
        v = place[n]
        if v >= 0:
            for k in range(x.shape[1]):
                out[v, k] = max(out[v, k], x[n, k])
    return out


def greatest_of_some(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Compares and stores, on a condition of two parts."""
    out = x.new_full((base.shape[0], base.shape[1]), 0.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            v = place[n]
            if v >= 0 and x[n, k] > out[v, k]:
                out[v, k] = x[n, k]
    return out


def least_last(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Begins with what is given."""
    out = x.new_empty((base.shape[0], base.shape[1]))
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            out[i, k] = base[i, k] * 2.0
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] <= out[place[n], k]:
                out[place[n], k] = x[n, k]
    return out


def in_place(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> None:
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            old = base[place[n], k]
            if old <= -x[n, k]:
                base[place[n], k] = -x[n, k]


def used_afterwards(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """The elements change once more, and are squared."""
    out = x.new_full((base.shape[0], base.shape[1]), -math.inf)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], 2.0 * x[n, k])
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            if out[i, k] == -math.inf:
                out[i, k] = base[i, k]
            else:
                out[i, k] = out[i, k] * out[i, k]
    return out


def segments(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Segments get shorter, and two of them belong to one element."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for s in range(3):
        for e in range(3 - s):
            if e + 3 * s < x.shape[0]:
                for k in range(x.shape[1]):
                    out[s // 2 * 2 % 2, k] = max(out[s // 2 * 2 % 2, k], x[e + 3 * s, k])
    return out


def beside(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What else is noted of the greatest one, one value of which has a gradient."""
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    where = place.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] >= out[place[n], k]:
                half = x[n, k] * 0.5
                where[place[n], k] = n + 1
                out[place[n], k] = x[n, k]
                other[place[n], k] = half * half
    return out, other, where


def among_others(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same loops sum up, and count what outlives them."""
    out = x.new_full((base.shape[0], base.shape[1]), 9.0)
    total = x.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            total[place[n], k] += x[n, k] * x[n, k]
            out[place[n], k] = min(out[place[n], k], x[n, k])
    return out, total


def both(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One nest keeps two extremes."""
    high = x.new_full((base.shape[0], base.shape[1]), -9.0)
    low = x.new_full((base.shape[0], base.shape[1]), 9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            high[place[n], k] = max(high[place[n], k], x[n, k])
            low[place[n], k] = min(low[place[n], k], x[n, k])
    return high, low


def products(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Elements are read by several iterations that set one: their adjoints meet."""
    out = x.new_full((x.shape[0], base.shape[0]), -9.0)
    for i in range(x.shape[0]):
        for j in range(base.shape[0]):
            for k in range(x.shape[1]):
                out[i, j] = max(out[i, j], x[i, k] + base[j, k])
    return out


def two_places(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """An element is read at places that data say, and elements begin with what has a gradient."""
    out = x.new_empty((base.shape[0], base.shape[1]))
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            out[i, k] = base[i, k]
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[place[x.shape[0] - 1 - n], k])
    return out


def scaled(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """All iterations read one active variable."""
    out = x.new_empty((base.shape[0], base.shape[1]))
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            out[i, k] = base[i, k]
    s = base[0, 0]
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            v = x[n, k] - s
            out[place[n], k] = max(out[place[n], k], v)
    return out


def listed(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """All iterations read one list."""
    out = x.new_empty((base.shape[0], base.shape[1]))
    both = [base[0, 0], base[1, 0]]
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            out[i, k] = base[i, k]
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], both[n % 2])
    return out


def neighbours(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Two iterations read one element, each at another place of its own."""
    out = x.new_empty((base.shape[0], base.shape[1]))
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            out[i, k] = base[i, k]
    for n in range(x.shape[0] - 1):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], max(x[n, k], x[n + 1, k]))
    return out


def sum_beside(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The nest leaves a variable that is read afterwards."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_empty((1,))
    s = 0.0
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            s = s + x[n, k] * x[n, k]
            out[place[n], k] = max(out[place[n], k], abs(-x[n, k]))
    other[0] = s
    return out, other


def another_asked(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A condition of two parts is asked later on."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    total = x.new_zeros((1,))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            good = place[n] >= 1 and x[n, k] > 0.0
            if n > 1:
                out[place[n], k] = max(out[place[n], k], x[n, k])
            if good:
                total[0] += x[n, k]
    return out, total


def in_a_list(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((3,))
    kept = [-9.0, -9.0, -9.0]
    for n in range(x.shape[0]):
        kept[n % 3] = max(kept[n % 3], x[n, 0])
    for i in range(3):
        out[i] = kept[i]
    return out


def list_beside(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((3,), -9.0)
    other = x.new_empty((3,))
    kept = [0.0, 0.0, 0.0]
    for n in range(x.shape[0]):
        if x[n, 0] > out[n % 3]:
            out[n % 3] = x[n, 0]
            kept[n % 3] = x[n, 1]
    for i in range(3):
        other[i] = kept[i]
    return out, other


FOUND = (
    greatest,
    greatest_of_some,
    least_last,
    in_place,
    used_afterwards,
    segments,
    beside,
    among_others,
    both,
    products,
    two_places,
    scaled,
    listed,
    neighbours,
    sum_beside,
    another_asked,
    in_a_list,
    list_beside,
)


def value_first(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """NaN is taken, and what comes after it."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(x[n, k], out[place[n], k])
    return out


def rounded(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """A product and a sum may be one operation or two."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[n, k] * 3.0 + 0.1)
    return out


def twice_rounded(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], (x[n, k] + 3.0) * 0.1)
    return out


def function(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], math.sin(x[n, k]))
    return out


def on_a_rounded_condition(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] * 3.0 + 0.1 < 1.0:
                out[place[n], k] = max(out[place[n], k], x[n, k])
    return out


def read_on_the_way(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    seen = x.new_empty((x.shape[0], x.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[n, k])
            seen[n, k] = out[place[n], k]
    return out, seen


def old_one_kept(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    seen = x.new_empty((x.shape[0], x.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            old = out[place[n], k]
            out[place[n], k] = max(old, x[n, k])
            seen[n, k] = old
    return out, seen


def another_value(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """What is compared is not what is stored."""
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k] * 0.5
    return out


def another_element(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[0, k]:
                out[place[n], k] = x[n, k]
    return out


def otherwise_less(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
            else:
                out[place[n], k] = out[place[n], k] * 0.5
    return out


def left_early(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > 1.0:
                break
            out[place[n], k] = max(out[place[n], k], x[n, k])
    return out


def carried(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """The value is one that iterations before have computed, too."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    s = 0.0
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], s)
            s = x[n, k]
    return out


def counted(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How often an element is set depends on the order."""
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    times = x.new_zeros((1,))
    t = 0.0
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                t = t + 1.0
    times[0] = t
    return out, times


def counted_places(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    times = x.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                times[place[n], k] += 1.0
    return out, times


def noted_elsewhere(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    last = x.new_zeros((base.shape[1],))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                last[k] = x[n, k]
    return out, last


def of_what_it_stores(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """The value is read from what the nest stores into."""
    out = x.new_full((base.shape[0], base.shape[1]), -1.0)
    y = x.new_zeros((base.shape[1],))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], y[k])
            y[k] = x[n, k]
    return out


def equal(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), 0.5)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] != out[place[n], k]:
                out[place[n], k] = x[n, k]
    return out


def one_for_each(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """One iteration alone reaches an element."""
    out = x.new_full((x.shape[0], x.shape[1]), 0.5)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[n, k] = max(out[n, k], x[n, k])
    return out


def left_after(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """The nest is left behind the update."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[n, k])
        if x[n, 0] > 0.0:
            break
    return out


def list_of_a_row(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """A list belongs to an iteration."""
    out = x.new_empty((x.shape[0],))
    for n in range(x.shape[0]):
        kept = [-9.0, -9.0]
        for k in range(x.shape[1]):
            for m in range(2):
                kept[k % 2] = max(kept[k % 2], x[n, (k + m) % 2])
        out[n] = kept[0] * kept[1]
    return out


def list_of_a_row_beside(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((2,), -9.0)
    other = x.new_empty((x.shape[0],))
    for n in range(x.shape[0]):
        kept = [0.0, 0.0]
        for k in range(x.shape[1]):
            if x[n, k] > out[k % 2]:
                out[k % 2] = x[n, k]
                kept[k % 2] = x[n, k]
        other[n] = kept[0] + 2.0 * kept[1]
    return out, other


def branch_beside(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                if n < 2:
                    other[place[n], k] = x[n, k]
    return out, other


def carried_beside(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    s = 0.0
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                other[place[n], k] = s
                s = x[n, k]
    return out, other


def twice_assigned(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            v = x[n, k]
            if n > 1:
                v = -v
            out[place[n], k] = max(out[place[n], k], v)
    return out


def long(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """What a variable is worth is too long to be asked."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            v = max(
                x[n, k], min(x[n, 0], max(x[n, 1], min(x[0, k], max(x[1, k], min(x[2, k], max(x[3, k], x[4, k]))))))
            )
            w = max(v, min(x[n, k] - 1.0, max(v - 2.0, min(v - 3.0, max(v - 4.0, x[n, k])))))
            out[place[n], k] = max(out[place[n], k], w)
    return out


def either(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if n == 2 or x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
    return out


def asked_twice(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    total = x.new_zeros((1,))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            better = place[n] >= 1 and x[n, k] > out[place[n], k]
            if better:
                out[place[n], k] = x[n, k]
            if better:
                total[0] += x[n, k]
    return out, total


def exchanged(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_full((base.shape[0], base.shape[1]), -8.0)
    for _ in range(3):
        out, other = other, out
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[n, k])
    return out


OTHERS = (
    value_first,
    rounded,
    twice_rounded,
    function,
    on_a_rounded_condition,
    read_on_the_way,
    old_one_kept,
    another_value,
    another_element,
    otherwise_less,
    left_early,
    carried,
    counted,
    counted_places,
    noted_elsewhere,
    of_what_it_stores,
    equal,
    one_for_each,
    left_after,
    list_of_a_row,
    list_of_a_row_beside,
    branch_beside,
    carried_beside,
    twice_assigned,
    long,
    either,
    asked_twice,
    exchanged,
)
