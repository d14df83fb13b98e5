"""Which nests may run one for each remainder: what others read of theirs, what is computed around, great integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Kernel, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.residue_nests import APART, with_residues, with_strides
from support.lowering import argument_type, memory, numbers
from support.scheduling import GPU, same
from support.shared import define, lower

Tensor = torch.Tensor
X, W = numbers(2, 3, 4), numbers(3, 2, 4)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=1):
        yield


def kernels(function: Callable[..., object], *arguments: object) -> dict[str, Kernel]:
    """Return the kernels of a function for a GPU, by what their names end with."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = canonical(lower(define(function), signature), sizes=True)
    program, _ = with_residues(with_strides(program, GPU)[0], GPU)
    found = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return {kernel.name.removeprefix(function.__name__): kernel for kernel in found}


# ---------------------------------------------------------------- what iterations leave for others


def carried_element(x: Tensor, w: Tensor, acc: Tensor) -> None:
    """Add up what the rows before have come to."""
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                acc[b, o] = 0.5 * acc[b, o] + s


def carried_before(x: Tensor, w: Tensor, acc: Tensor) -> None:
    """Begin with what the row before has come to."""
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                v = acc[b, o]
                s = 0.5 * v
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                acc[b, o] = s


def last_one(x: Tensor, w: Tensor, acc: Tensor) -> None:
    """Keep what the last of some rows has come to."""
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                if s > 2.0:
                    acc[b, o] = s


def reads_neighbour(x: Tensor, w: Tensor, out: Tensor) -> None:
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(1, 2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                out[b, o, y] = s + out[b, o, y - 1]


def best_one(x: Tensor, w: Tensor, found: Tensor) -> None:
    """Keep the first of the best rows."""
    best = -1.0
    place = 0
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                s = min(s, 0.5)
                if s > best:
                    best = s
                    place = y
    for i in range(1):
        found[i] = place


def leaves_early(x: Tensor, w: Tensor, out: Tensor) -> None:
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                if s > 3.0:
                    break
                out[b, o, y] = s


def passes_on(x: Tensor, w: Tensor, out: Tensor) -> None:
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                if s > 3.0:
                    continue
                out[b, o, y] = s


def total_first(x: Tensor, w: Tensor) -> Tensor:
    """Scale with a variable that another nest has added up."""
    out = torch.empty(x.shape[0], w.shape[1], 2 * x.shape[2])
    total = 0.0
    for b in range(x.shape[0]):
        total += x[b, 0, 0]
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                out[b, o, y] = s * total
    return out


@pytest.mark.parametrize("function", [carried_element, carried_before, last_one, reads_neighbour, leaves_early])
def test_rows_that_leave_something_for_others_run_in_order(function: Callable[..., object]) -> None:
    given = X, W, numbers(2, 2, 8) if function in (reads_neighbour, leaves_early) else numbers(2, 2)
    assert APART not in kernels(function, *given)
    same(function, *given)


def test_places_of_the_best_rows_are_the_first_ones() -> None:
    assert APART not in kernels(best_one, X, W, numbers(1))
    same(best_one, X, W, numbers(1))


def test_variables_of_other_nests_stay_in_their_kernel() -> None:
    assert not any(name.endswith(APART) for name in kernels(total_first, X, W))
    same(total_first, X, W)


def test_rows_may_be_passed_over() -> None:
    assert APART in kernels(passes_on, X, W, numbers(2, 2, 8))
    same(passes_on, X, W, numbers(2, 2, 8))


# ---------------------------------------------------------------- what is computed around sums


def mirrored(x: Tensor, w: Tensor, n: Tensor) -> Tensor:
    """Read before the sum, at places of rows that are there."""
    out = torch.empty(x.shape[0], w.shape[1], n.shape[0])
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(n.shape[0]):
                t = n.shape[0] - 1 - y
                v = n[t] + t
                s = v
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                out[b, o, y] = s * t
    return out


def epilogue(x: Tensor, w: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], w.shape[1], 2 * x.shape[2])
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                h = (y + 1) // 2
                s = h + y % 2
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                z = 7 // (y + 1) + (y * 4 + 2) // 4 + (3 * y) % 3 + (y + 5) % 4
                if y > 2:
                    out[b, o, y] = s + z * h
                else:
                    out[b, o, y] = s - z
    return out


def part_of_rows(x: Tensor, w: Tensor, first: int) -> Tensor:
    out = torch.zeros(x.shape[0], w.shape[1], 2 * x.shape[2])
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(first, 2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                out[b, o, y] = s
    return out


def triangle(x: Tensor, w: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], w.shape[1], 2 * x.shape[2])
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(o, 2 * x.shape[2] - b):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                out[b, o, y] = s
    return out


def inner_bound(x: Tensor, w: Tensor) -> Tensor:
    """Begin and end an inner loop at quotients."""
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    if (y - k) % 2 == 0:
                        for c in range((k + 1) // 2, min(w.shape[0], 7 // (k + 1))):
                            s += x[b, c, k] * w[c, o, k]
                out[b, o, y] = s
    return out


def inner_loop_in_remainder(x: Tensor, w: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    for c in range(w.shape[0]):
                        if (y - k + 3 * c) % 2 == 0:
                            s += x[b, c, k] * w[c, o, k]
                out[b, o, y] = s
    return out


def huge_variable(x: Tensor, w: Tensor, at: Tensor) -> Tensor:
    """Ask for remainders, and divide, near the greatest integers."""
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                t = at[b]
                u = t + t
                s = 0.0
                for k in range(w.shape[2]):
                    if (y + t - k) % 2 == 0:
                        s += x[b, 0, k] * w[0, o, k]
                out[b, o, y] = s + (u + 1) // 2
    return out


def no_remainder(x: Tensor, w: Tensor) -> Tensor:
    """Ask for a remainder that no integer has."""
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    if (y - k) % 2 == 2:
                        s += x[b, 0, k] * w[0, o, k]
                for_k = s
                out[b, o, y] = for_k
    return out


def minus_divisor(x: Tensor, w: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    if (y - k) % -2 == -1 and (y - k) // -2 < 1:
                        s += x[b, 0, k] * w[0, o, k]
                out[b, o, y] = s
    return out


def not_equal(x: Tensor, w: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    if (y - k) % 2 != 0 and (y - k) // 2 >= 0:
                        s += x[b, 0, k] * w[0, o, k]
                out[b, o, y] = s
    return out


def quotient_equal(x: Tensor, w: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    if (y - k) // 2 == 1:
                        s += x[b, 0, k] * w[0, o, k]
                out[b, o, y] = s
    return out


def several_bounds(g: Tensor, w: Tensor) -> Tensor:
    """Begin and end at quotients of what other loops limit, too."""
    x = torch.empty(g.shape[0], w.shape[1], 9)
    for b in range(g.shape[0]):
        for c in range(w.shape[1]):
            for e in range(9):
                s = 0.0
                for o in range(g.shape[1]):
                    for y in range(max(max(0, b), (e - 2) // 2), min(g.shape[2], (e + 3) // 2)):
                        for z in range(min(y, 1), min(e, 2)):
                            s += g[b, o, y] * w[o, c, z]
                x[b, c, e] = s
    return x


STAY = [inner_loop_in_remainder, minus_divisor, not_equal, quotient_equal]


@pytest.mark.parametrize("function", [epilogue, inner_bound, no_remainder, several_bounds, triangle, *STAY])
def test_what_is_around_sums_is_computed_as_written(function: Callable[..., object]) -> None:
    same(function, X, W)


def test_rows_that_elements_are_read_for_stay_in_range() -> None:
    assert APART not in kernels(mirrored, X, W, numbers(7))
    same(mirrored, X, W, numbers(7))


@pytest.mark.parametrize("first", [0, 1, 3, 9])
def test_rows_may_begin_at_arguments(first: int) -> None:
    assert any(name.endswith(APART) for name in kernels(part_of_rows, X, W, first))
    same(part_of_rows, X, W, first)


@pytest.mark.parametrize("at", [[2**63 - 1, -(2**63)], [2**62 - 1, -(2**62)], [3, 4]])
def test_elements_may_be_the_greatest_integers(at: list[int]) -> None:
    same(huge_variable, X, W, memory(at, INT64))
