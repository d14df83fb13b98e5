"""Gradients of elements that keep a least or greatest value go to the iteration that set them at last."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, For, Program
from brickwork.ir.walk import walk
from brickwork.target.cpu import host_target
from brickwork.target.cuda import cuda_target
from brickwork.transform.autodiff import reverse
from brickwork.transform.autodiff.element_extremes import Chosen
from brickwork.transform.canonical.form import canonical
from brickwork.transform.pipeline import schedule_kernel
from support.gradients import check_gradients, derived, forward, kernel_of, lowered, numbers
from support.tensors import to_memory


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


def constant(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], max(x[n, k], 0.1))
    return out


def other_type(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = base.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
    return out


def greatest_and_base(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_empty((base.shape[0], base.shape[1]))
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            other[i, k] = base[i, k] * base[i, k]
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[n, k])
    return out, other


def _as_it_is(block: Any, *_: object) -> Chosen:
    return Chosen(block)


def _is_found(program: Program) -> bool:
    return any(isinstance(node, Allocate) and node.tensor.name.endswith("_where") for node in walk(program))


def _special(columns: int) -> torch.Tensor:
    """Return columns with all sequences of three values, equal ones, zeros of both signs and NaN among them."""
    values = (-math.inf, -0.0, 0.0, 1.5, math.nan)
    rows = torch.tensor([[*row] for row in itertools.product(values, repeat=3)], dtype=torch.float64)
    return torch.cat([rows.T, rows.flip(0).T, rows.roll(7, 0).T])[:, :: max(1, len(rows) // columns)].contiguous()


def _gradients(program: Program, *arguments: Any) -> list[list[str]]:
    memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    return [[str(value + 0.0) for value in result.data] for result in run_program(program, memories, check=True)]


@pytest.mark.parametrize("function", [*FOUND, *OTHERS], ids=lambda item: item.__name__)
@pytest.mark.parametrize("first", [-math.inf, -0.0, 0.0, 1.5, math.nan], ids=str)
def test_gradients_are_those_of_the_loop_run_backwards(
    function: Callable[..., Any], first: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = _special(25)
    place = torch.tensor([0, 1, 0, 1, 1, 0, 0, 0, 1])
    base = torch.full((3, x.shape[1]), first, dtype=torch.float64)
    outcomes: list[list[list[str]]] = []
    for _ in range(2):
        program = derived(function, (x, place, base))
        shapes = [item.shape for item in forward(lowered(function, (x, place, base)), (x, place, base))]
        given = [torch.arange(1.0, 1.0 + shape.numel(), dtype=torch.float64).reshape(shape) for shape in shapes]
        outcomes.append(_gradients(program, x, place, base, *given))
        monkeypatch.setattr(reverse, "choose_element_extremes", _as_it_is)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("function", [*FOUND, *OTHERS], ids=lambda item: item.__name__)
@pytest.mark.parametrize("rows", [5, 0])
def test_gradients_are_those_of_central_differences(function: Callable[..., Any], rows: int) -> None:
    place = torch.tensor([0, 2, 0, 1, 2])[:rows]
    if rows or function is not greatest:
        check_gradients(function, numbers(rows, 2), place, numbers(3, 2))


@pytest.mark.parametrize("function", FOUND, ids=lambda item: item.__name__)
def test_elements_have_no_tape(function: Callable[..., Any]) -> None:
    program = derived(function, (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2)))
    assert _is_found(program)
    tapes = [node for node in walk(program) if isinstance(node, Allocate) and "tape" in node.tensor.name]
    assert not tapes or function is used_afterwards


@pytest.mark.parametrize("function", OTHERS, ids=lambda item: item.__name__)
def test_others_have_no_place(function: Callable[..., Any]) -> None:
    assert not _is_found(derived(function, (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2))))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("function", "found"),
    [(greatest, True), (in_place, True), (used_afterwards, False), (constant, False), (other_type, False)],
    ids=lambda item: getattr(item, "__name__", str(item)),
)
def test_values_of_half_types_are_those_that_were_read(
    function: Callable[..., Any], found: bool, kind: torch.dtype
) -> None:
    arguments = (numbers(5, 2).to(kind), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2).to(kind))
    if function is other_type:
        arguments = (arguments[0].float(), *arguments[1:])
    assert _is_found(derived(function, arguments)) is found


def test_what_has_no_gradient_is_not_looked_for() -> None:
    arguments = (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2))
    assert not _is_found(derived(greatest_and_base, arguments, (False, False, True)))
    assert _is_found(derived(greatest_and_base, arguments, (True, False, False)))


@pytest.mark.parametrize("function", [two_places, scaled, listed, neighbours], ids=lambda item: item.__name__)
def test_adjoints_that_may_meet_are_not_claimed_to_be_apart(function: Callable[..., Any]) -> None:
    program = derived(function, (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2)))
    assert not any(isinstance(node, For) and node.claimed for node in walk(program))


@pytest.mark.parametrize(
    "function",
    [item for item in FOUND if item not in {two_places, scaled, listed, neighbours, list_beside}],
    ids=lambda item: item.__name__,
)
def test_all_of_it_is_parallel_on_a_grid(function: Callable[..., Any]) -> None:
    arguments = (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2))
    kernel = kernel_of(canonical(derived(function, arguments)))
    loops = schedule_kernel(kernel, cuda_target((9, 0))).analysis.loops
    assert all(verdict.independent for index, verdict in loops.items() if index.name in {"n", "i"})


def test_what_is_taken_is_parallel_on_a_processor() -> None:
    arguments = (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2))
    kernel = kernel_of(canonical(derived(least_last, arguments)))
    loops = schedule_kernel(kernel, host_target()).analysis.loops
    first, *_, last = [verdict for index, verdict in loops.items() if index.name == "n"]
    assert last.independent
    assert first.updates
