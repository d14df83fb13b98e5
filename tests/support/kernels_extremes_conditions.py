"""Extremes of elements at the border of what is found: each program needs one condition of `element_extremes`.

All take `x`, the `place` of each of its rows, and `base`, of which one row or more is a place.
"""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import torch

import brickwork as bw


def place_ahead(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """What the index is made of stands further out."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        v = 2 - place[n]
        for k in range(x.shape[1]):
            out[v, k] = max(out[v, k], x[n, k])
    return out


def in_two_steps(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """A value needs a variable that needs another; the older value is on the left."""
    out = x.new_full((base.shape[0], base.shape[1]), 9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            v = x[n, k] * 2.0
            w = min(v, x[n, k])
            if out[place[n], k] > w:
                out[place[n], k] = w
    return out


def over_three(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Three loops lead to an element, of which one begins later and later."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for s in range(3):
        for e in range(s, 3):
            for k in range(x.shape[1]):
                out[0, k] = max(out[0, k], x[(2 * e + s) % x.shape[0], k])
    return out


def over_two(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for s in range(2):
        for n in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[place[n] * s, k] = max(out[place[n] * s, k], x[n, k])
    return out


def over_fewer(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((2,), -9.0)
    for s in range(3):
        for e in range(3 - s):
            out[0] = max(out[0], x[e + s, 0])
    return out


def after_a_sum(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((2,), -9.0)
    total = x.new_zeros((2,))
    for n in range(x.shape[0]):
        total[n % 2] += x[n, 0]
        out[n % 2] = max(out[n % 2], x[n, 0])
    return out, total


def half_inside(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Another tensor is stored into ahead of the update."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    total = x.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            total[place[n], k] += x[n, k]
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                half = x[n, k] * x[n, k]
                other[place[n], k] = half * half
    return out, other, total


def half_before(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is noted is computed before the choice."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            half = x[n, k] * x[n, k]
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                other[place[n], k] = half
    return out, other


def times_a_number(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """All iterations read one variable that has no gradient."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    c = float(place.shape[0])
    for n in range(x.shape[0]):
        c = float(place[0] + 1)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            v = x[n, k] * c
            out[place[n], k] = max(out[place[n], k], v)
    return out


def transposed(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Two iterations read an element, both at places that are their own."""
    out = x.new_empty((base.shape[0], base.shape[1]))
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            out[i, k] = base[i, k]
    for n in range(x.shape[1]):
        for k in range(x.shape[1]):
            v = x[n, k] - x[k, n]
            out[place[n], k] = max(out[place[n], k], v)
    return out


def shared_beside(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is noted reads an element that others read, too."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                other[place[n], k] = base[0, k] * 2.0
    return out, other


def squared(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[n, k] * x[n, k])
    return out


def asked_later(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Another condition stands between one of two parts and its branch; another nest is found."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    total = x.new_zeros((x.shape[0], x.shape[1]))
    most = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            most[place[n], k] = max(most[place[n], k], x[n, k])
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            early = place[n] >= 1 and x[n, 0] > 0.0
            better = place[n] >= 1 and x[n, k] > out[place[n], k]
            if early:
                total[n, k] = x[n, k]
            if better:
                out[place[n], k] = x[n, k]
    return out, total, most


APART = (
    asked_later,
    place_ahead,
    in_two_steps,
    over_three,
    over_two,
    over_fewer,
    after_a_sum,
    half_inside,
    half_before,
    times_a_number,
    squared,
)
"""What is taken is read by one iteration alone, or the last loop does not change it."""
MEETING = (transposed, shared_beside)


# ---------------------------------------------------------------- others


def stored_on_the_way(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[n, k])
            if n == 2:
                out[1, k] = 0.25
    return out


def another_tensor(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """An element of another tensor is compared."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > base[n % 3, k]:
                out[n % 3, k] = x[n, k]
    return out


def another_old_one(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """What is compared is the element in some iterations alone."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            old = out[place[n], k]
            if n > 1:
                old = 0.25
            if x[n, k] > old:
                out[place[n], k] = x[n, k]
    return out


def by_a_variable(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """A variable has what the nest has stored before."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    y = x.new_zeros((base.shape[1],))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            v = -y[k]
            out[place[n], k] = max(out[place[n], k], v)
            y[k] = x[n, k]
    return out


def on_what_it_stores(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """A condition asks for what the nest has stored before."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    y = x.new_zeros((base.shape[1],))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if y[k] < 1.0:
                out[place[n], k] = max(out[place[n], k], x[n, k])
            y[k] = x[n, k]
    return out


def at_what_it_stores(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """The place is one that the nest has stored before."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    last = place.new_zeros((1,))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[last[0] % 3, k] = max(out[last[0] % 3, k], x[n, k])
        last[0] = place[n]
    return out


def noted_what_it_stores(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    y = x.new_zeros((base.shape[1],))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                other[place[n], k] = y[k]
            y[k] = x[n, k]
    return out, other


def noted_of_the_last(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
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


def noted_of_two(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A variable that is noted is assigned twice."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            h = x[n, k] * 2.0
            if n > 1:
                h = h * h
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                other[place[n], k] = h
    return out, other


def noted_and_read(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What is noted is read on the way."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    seen = x.new_zeros((x.shape[0], x.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                other[place[n], k] = x[n, k] * x[n, k]
            seen[n, k] = other[place[n], k]
    return out, other, seen


def noted_and_stored(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is noted is stored elsewhere, too."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_zeros((base.shape[0], base.shape[1]))
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if n == 3:
                other[0, k] = x[n, k]
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
                other[place[n], k] = x[n, k] * x[n, k]
    return out, other


def drawn(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            v = x[n, k] * bw.rand()
            out[place[n], k] = max(out[place[n], k], v)
    return out


def on_a_rounded_difference(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] * 3.0 - 0.1 < 1.0:
                out[place[n], k] = max(out[place[n], k], x[n, k])
    return out


def at_a_rounded_place(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            p = int(min(abs(x[n, k] * 0.3 + 0.1), 1.0))
            out[p, k] = max(out[p, k], x[n, k])
    return out


def otherwise_asked(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """The second part of a condition is none: something else holds where the first one does not."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if place[n] >= 1:
                better = x[n, k] > out[place[n], k]
            else:
                better = x[n, k] > 0.5
            if better:
                out[place[n], k] = x[n, k]
    return out


def doubled(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """What a variable is worth is longer than what is asked for."""
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            a = max(x[n, k], min(x[n, 0], x[n, 1]))
            b = max(a, min(a, x[n, 0]))
            c = max(b, min(b, x[n, 1]))
            d = max(c, min(c, x[n, k]))
            out[place[n], k] = max(out[place[n], k], d)
    return out


NOT_FOUND = (
    doubled,
    stored_on_the_way,
    another_tensor,
    another_old_one,
    by_a_variable,
    on_what_it_stores,
    at_what_it_stores,
    noted_what_it_stores,
    noted_of_the_last,
    noted_of_two,
    noted_and_read,
    noted_and_stored,
    drawn,
    on_a_rounded_difference,
    at_a_rounded_place,
    otherwise_asked,
)
