"""Parts of a loop that compute the same are one loop, where nothing tells them apart; results stay bit for bit."""

# pyright: basic
from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.diagnostics.location import NOWHERE
from brickwork.ir import build
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, If, Launch
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import rewrite, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.joined_loops import joined_loops
from support.gradients import derived
from support.lowering import program_of
from support.shared import schedule_program
from support.tensors import to_memory, to_tensor

GPU = cuda_target((9, 0))


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


def arguments_of(size):
    generator = torch.Generator().manual_seed(size)
    return tuple(torch.randn(size, 2, generator=generator) for _ in range(3))


def kernel_of(function):
    program = of_one_loop(canonical(program_of(function, *map(to_memory, arguments_of(4))), sizes=True))
    return next(node.kernel for node in walk(program) if isinstance(node, Launch))


def of_one_loop(program):
    """Return the program with its loops as parts of one loop of the source."""
    return rewrite(program, lambda node: replace(node, loc=NOWHERE) if isinstance(node, For) else node)


def with_joined(program):
    """Return the program with its loops joined, which no schedule has moved."""

    def visit(node):
        if not isinstance(node, Launch):
            return node
        return replace(node, kernel=joined_loops(node.kernel, analyse(node.kernel)))

    return rewrite(program, visit)


@pytest.mark.parametrize("size", [2, 3, 9])
@pytest.mark.parametrize("function", [*JOINED, *APART])
def test_results_are_the_same_bit_for_bit(function, size):
    program = of_one_loop(canonical(program_of(function, *map(to_memory, arguments_of(size))), sizes=True))
    joined = with_joined(program)
    verify_program(joined)
    found = []
    for each in (program, joined, schedule_program(program, GPU)[0]):
        given = [to_memory(item) for item in arguments_of(size)]
        run_program(each, given, check=each is joined)
        found.append([to_tensor(item) for item in given])
    assert all(torch.equal(one, other) for one, other in zip(found[0], found[1], strict=True))
    for one, other in zip(found[0], found[2], strict=True):
        torch.testing.assert_close(other, one)  # Sums are cut into pieces there.


def loops_of(kernel):
    return sum(isinstance(node, For) for node in walk(kernel.body))


@pytest.mark.parametrize("function", JOINED)
def test_loops_that_compute_the_same_are_one(function):
    kernel = kernel_of(function)
    joined = joined_loops(kernel, analyse(kernel))
    depth = {nests: 2, three_in_one: 3, under_conditions: 2}.get(function, 1)
    assert loops_of(joined) == depth < loops_of(kernel)
    exponentials = [node for node in walk(joined.body) if getattr(getattr(node, "operator", None), "name", "") in LONG]
    assert len(exponentials) == 1


LONG = {"exp", "sqrt"}


@pytest.mark.parametrize("function", APART)
def test_others_stay_apart(function):
    kernel = kernel_of(function)
    assert joined_loops(kernel, analyse(kernel)) is kernel


def test_loops_that_the_user_tells_apart_stay_so():
    program = canonical(program_of(sums, *map(to_memory, arguments_of(4))), sizes=True)
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    assert joined_loops(kernel, analyse(kernel)) is kernel


def under_sizes(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for _ in range(1):
        if x.shape[1] >= 2:
            for j in range(x.shape[0]):
                s += math.exp(x[j, 0]) * g[j, 0]
        if x.shape[1] >= 2:
            for j in range(x.shape[0]):
                t += math.exp(x[j, 0]) * g[j, 1]
    out[0, 0], out[0, 1] = s, t


@pytest.mark.parametrize(
    ("operator", "place", "least", "held"),
    [
        ("ge", 0, 2, True),
        ("ge", 0, 3, True),
        ("ge", 0, 1, False),
        ("le", 0, 3, False),
        ("eq", 0, 3, False),
        ("ge", 1, 3, False),
    ],
)
def test_conditions_hold_where_as_much_is_known(operator, place, least, held):
    kernel = kernel_of(under_sizes)
    size = build.size(kernel.tensors[place], 1)
    known = replace(kernel, facts=(build.apply(operator, size, build.integer(least)),))
    assert (joined_loops(known, analyse(known)) is not known) == held


def attracted(x: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            out[i] += 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz + 0.1)
    return out


def test_gradients_by_coordinates_compute_distances_once_for_all_of_them():
    """Where the guards hold, nothing is left of the conditions that a tensor has a third column."""
    program = canonical(derived(attracted, (torch.randn(5, 3),)), sizes=True)
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch) and loops_of(node.kernel) > 6)
    joined = joined_loops(kernel, analyse(kernel))
    roots = [
        sum(getattr(getattr(node, "operator", None), "name", "") == "sqrt" for node in walk(each.body))
        for each in (kernel, joined)
    ]
    assert roots == [6, 2]
    assert not any(isinstance(node, If) for node in walk(joined.body))
