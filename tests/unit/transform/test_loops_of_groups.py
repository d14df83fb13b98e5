"""Loops over the members of groups are two where a factor is the same for a group."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch

import brickwork as bw
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import For, Kernel, Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.loops_of_groups import GROUPS, _groups_in, with_loops_of_groups
from support.lowering import argument_type, memory, numbers
from support.scheduling import GPU, same

Tensor = torch.Tensor
I2 = memory([2, 3], INT64)


@pytest.fixture(autouse=True)
def small():
    """Let small groups be worth it."""
    with patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=1):
        yield


def convolved(x: Tensor, w: Tensor, groups: int) -> Tensor:
    members = w.shape[0] // groups
    out = torch.empty(x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1)
    for n in range(x.shape[0]):
        for o in range(w.shape[0]):
            for y in range(x.shape[2] - w.shape[2] + 1):
                s = 0.0
                for c in range(w.shape[1]):
                    for k in range(w.shape[2]):
                        s += x[n, o // members * w.shape[1] + c, y + k] * w[o, c, k]
                out[n, o, y] = s
    return out


def ahead(x: Tensor, w: Tensor, groups: int) -> Tensor:
    """Compute the group ahead of an inner loop, and from it where its channels begin."""
    out = torch.empty(x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1)
    for n in range(x.shape[0]):
        for o in range(w.shape[0]):
            g = o // (w.shape[0] // groups)
            first = g * w.shape[1]
            for y in range(x.shape[2] - w.shape[2] + 1):
                s = 0.0
                for c in range(w.shape[1]):
                    for k in range(w.shape[2]):
                        s += x[n, first + c, y + k] * w[o, c, k]
                out[n, o, y] = s
    return out


def read_ahead(x: Tensor, w: Tensor, n: Tensor) -> Tensor:
    """Read an element ahead of an inner loop."""
    out = torch.empty(w.shape[0], x.shape[1])
    for o in range(w.shape[0]):
        g = n[o // 2]
        for i in range(x.shape[1]):
            s = 0.0
            for k in range(w.shape[1]):
                s += x[g, i, k] * w[o, k]
            out[o, i] = s
    return out


def passed_on(x: Tensor, w: Tensor, members: int) -> Tensor:
    """Change what is computed ahead, from one iteration to the next."""
    out = torch.empty(w.shape[0], x.shape[1])
    shift = 0
    for o in range(w.shape[0]):
        shift = 1 - shift
        for i in range(x.shape[1]):
            s = 0.0
            for k in range(w.shape[1]):
                s += x[o // members, i, (k + shift) % w.shape[1]] * w[o, k]
            out[o, i] = s
    return out


def moved_inside(x: Tensor, w: Tensor, members: int) -> Tensor:
    """Change what was computed ahead in the inner loop."""
    out = torch.empty(w.shape[0], x.shape[1])
    for o in range(w.shape[0]):
        g = o // members
        for i in range(x.shape[1]):
            s = 0.0
            for k in range(w.shape[1]):
                s += x[g, i, k] * w[o, k]
            out[o, i] = s
            g = (g + 1) % x.shape[0]
    return out


def weights(x: Tensor, g: Tensor, members: int) -> Tensor:
    """Ask for the member, too, and read one factor before the product."""
    out = torch.empty(g.shape[0], x.shape[1])
    for o in range(g.shape[0]):
        for c in range(x.shape[1]):
            s = 0.0
            for n in range(g.shape[1]):
                a = g[o, n] * (o % members)
                s += a * x[o // members, c, n]
            out[o, c] = s
    return out


def ranges(g: Tensor, w: Tensor, width: int) -> Tensor:
    """Sum over what belongs to a group."""
    out = torch.empty(w.shape[1], g.shape[1])
    for c in range(w.shape[1]):
        for n in range(g.shape[1]):
            s = 0.0
            for o in range(c // width * 2, min(c // width * 2 + 2, g.shape[0])):
                s += g[o, n] * w[o, c]
            out[c, n] = s
    return out


def left(x: Tensor, w: Tensor, members: int) -> Tensor:
    out = torch.zeros(w.shape[0], w.shape[1])
    for o in range(w.shape[0]):
        if w[o, 0] > 1.0:
            break
        for k in range(w.shape[1]):
            out[o, k] = x[o // members, k] * w[o, k]
    return out


def shared(q: Tensor, k: Tensor, members: int) -> Tensor:
    """Have rows and columns beside the groups."""
    out = torch.empty(q.shape[0], q.shape[1], k.shape[1])
    for h in range(q.shape[0]):
        for i in range(q.shape[1]):
            for j in range(k.shape[1]):
                s = 0.0
                for d in range(q.shape[2]):
                    s += q[h, i, d] * k[h // members, j, d]
                out[h, i, j] = s
    return out


def grouped(x: Tensor, n: Tensor, members: int) -> None:
    for o in range(x.shape[0]):
        x[o] = x[o // members] * 2.0


def from_the_second(x: Tensor, n: Tensor, members: int) -> None:
    for o in range(1, x.shape[0]):
        x[o] = x[o // members] * 2.0


def to_an_element(x: Tensor, n: Tensor, members: int) -> None:
    for o in range(n[0]):
        x[o] = x[o // members] * 2.0


def ended(x: Tensor, n: Tensor, members: int) -> None:
    for o in range(x.shape[0]):
        if x[o] > 1.0:
            break
        x[o] = x[o // members] * 2.0


def drawn(x: Tensor, n: Tensor, members: int) -> None:
    for o in range(x.shape[0]):
        x[o] = x[o // members] * bw.rand()


def by_two_sizes(x: Tensor, n: Tensor, members: int) -> None:
    for o in range(x.shape[0]):
        x[o] = x[o // members] + x[o // 3]


def by_an_element(x: Tensor, n: Tensor, members: int) -> None:
    for o in range(x.shape[0]):
        x[o] = x[o // n[0]] * 2.0


def program_of(function: Callable[..., object], *arguments: object) -> Program:
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    return canonical(lower(define(function), signature), sizes=True)


def kernels(function: Callable[..., object], *arguments: object) -> dict[str, Kernel]:
    """Return the kernels of a function for a GPU, by what their names end with."""
    program, _ = with_loops_of_groups(program_of(function, *arguments), GPU)
    found = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return {kernel.name.removeprefix(function.__name__): kernel for kernel in found}


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 6, 7, -2])
def test_grouped_convolutions_are_those_of_the_source(groups: int) -> None:
    """Also where groups are not whole, have no member, or are no groups."""
    same(convolved, numbers(2, 6, 5), numbers(6, 6 // max(groups, 1) or 1, 2), groups)
    same(ahead, numbers(2, 6, 5), numbers(6, 6 // max(groups, 1) or 1, 2), groups)


def test_what_is_computed_ahead_of_a_loop_is_used_in_it() -> None:
    assert GROUPS in kernels(ahead, numbers(2, 6, 5), numbers(6, 3, 2), 2)


def test_what_passes_on_or_is_read_stays_ahead() -> None:
    given = numbers(3, 4, 5), numbers(6, 5)
    same(read_ahead, *given, memory([2, 0, 1], INT64))
    same(passed_on, *given, 2)
    same(moved_inside, *given, 2)
    for function, last in ((read_ahead, memory([2, 0, 1], INT64)), (passed_on, 2), (moved_inside, 2)):
        assert GROUPS not in kernels(function, *given, last)


@pytest.mark.parametrize("members", [1, 2, 3, 4, 0, -1])
def test_members_are_asked_for(members: int) -> None:
    same(weights, numbers(6, 4, 5), numbers(6, 5), members)
    same(ranges, numbers(6, 5), numbers(6, 6), members)
    same(shared, numbers(6, 2, 3), numbers(6, 4, 3), members)


def test_a_loop_is_two_where_a_factor_is_of_the_group() -> None:
    for function, arguments, names in (
        (convolved, (numbers(2, 6, 5), numbers(6, 3, 2), 2), ["n", "o_group", "o_member", "y", "c", "k"]),
        (weights, (numbers(3, 4, 5), numbers(6, 5), 2), ["o_group", "o_member", "c", "n"]),
    ):
        found = kernels(function, *arguments)
        assert [node.index.name for node in statements(found[GROUPS]) if isinstance(node, For)] == names


def test_loops_stay_that_need_no_groups_or_may_end_early() -> None:
    assert GROUPS not in kernels(shared, numbers(6, 2, 3), numbers(3, 4, 3), 2)
    assert GROUPS not in kernels(left, numbers(3, 4), numbers(6, 4), 2)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (grouped, ["o"]),
        (from_the_second, []),
        (to_an_element, []),
        (ended, []),
        (drawn, []),
        (by_two_sizes, []),
        (by_an_element, []),
    ],
)
def test_groups_are_of_one_size_that_the_host_knows(function: Callable[..., object], found: list[str]) -> None:
    (kernel,) = (node.kernel for node in walk(program_of(function, numbers(6), I2, 2)) if isinstance(node, Launch))
    (nest,) = (node for node in kernel.body if isinstance(node, For))
    assert [each.loop.index.name for each in _groups_in(nest, frozenset(kernel.scalars))] == found
