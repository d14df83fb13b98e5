"""Steps of few iterations with much parallel work: the grid is launched for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import Apply, Cast, For, If, Launch, Load, Node, Role, Size, TensorParameter
from brickwork.ir.walk import rewrite, statements, walk
from brickwork.transform import launched_steps
from brickwork.transform.launched_steps import STEPS, cut, steps_of, with_launched_steps
from support.lowering import numbers
from support.ptx import program_for_gpu
from support.scheduling import GPU, kernel_of, loops_of, same
from support.shared import schedule_program


def balanced(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(n):
            for i in range(f.shape[1]):
                top = -9.0
                for j in range(g.shape[1]):
                    top = max(top, g[b, j] - c[i, j])
                f[b, i] = top
            for j in range(g.shape[1]):
                top = -9.0
                for i in range(f.shape[1]):
                    top = max(top, f[b, i] - c[i, j])
                g[b, j] = top * 0.5


def recurrent(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """A perfect nest, with time outside."""
    for t in range(f.shape[0] - 1):
        for b in range(c.shape[0]):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(f.shape[1]):
                    a += f[t, j] * c[b, j]
                f[t + 1, i] = a * 0.5 if b == 0 else f[t + 1, i]


def states(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """A perfect nest of two independent loops around time, after a nest and with another one beside."""
    for b in range(c.shape[0]):
        for i in range(g.shape[1]):
            f[b, i] = g[b, i] + 1.0
    for b in range(c.shape[0]):
        for t in range(c.shape[1] - 1):
            for i in range(g.shape[1]):
                a = 0.0
                for j in range(c.shape[1]):
                    a += c[b, j] * 0.25
                g[b, i] = g[b, i] * 0.5 + a
            for j in range(c.shape[1] - 1):
                a = 0.0
                for i in range(g.shape[1]):
                    a += g[b, i]
                c[b, j + 1] = a * 0.125
        c[b, 0] = 3.0


def summed_up(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """Iterations around time add to the same elements."""
    for b in range(c.shape[0]):
        for s in range(n):
            for i in range(g.shape[1]):
                a = 0.0
                for j in range(c.shape[1]):
                    a += c[b, j] * 0.25
                g[b, i] = g[b, i] * 0.5 + a
                f[0, i] += a
            for j in range(c.shape[1]):
                a = 0.0
                for i in range(g.shape[1]):
                    a += g[b, i]
                c[b, j] = a * 0.125


def passed_on(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """A variable passes from step to step."""
    for b in range(f.shape[0]):
        m = 0.0
        for s in range(n):
            for i in range(f.shape[1]):
                a = m
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                a = 0.0
                for i in range(f.shape[1]):
                    a += f[b, i]
                g[b, j] = a * 0.125
            m = f[b, 0] * 0.5


def passed_in(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """A variable passes into the steps."""
    for b in range(f.shape[0]):
        m = c[b, 0] * 2.0
        for s in range(n):
            for i in range(f.shape[1]):
                a = m
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5


def passed_between(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """A variable passes from one nest of a step to the next."""
    for b in range(f.shape[0]):
        for s in range(n):
            m = 0.0
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
                m += a
            for j in range(g.shape[1]):
                a = 0.0
                for i in range(f.shape[1]):
                    a += f[b, i]
                g[b, j] = a * 0.125 + m


def of_other_lengths(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(b + 1):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5


def as_long_as_elements_say(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(int(c[0, 0])):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5


def ending(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5
            if f[b, 0] > 2:
                break


def asserting(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                assert f[b, 0] < 99, "f"
                g[b, j] = f[b, 0] * 0.5


def with_a_list(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        r = [0.0, 0.0]
        for s in range(n):
            for i in range(f.shape[1]):
                a = r[0]
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5
            r[0] = g[b, 0]


def in_order_around(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(1, f.shape[0]):
        for s in range(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += f[b - 1, j]
                f[b, i] = a * 0.5
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5


def claimed_around(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in bw.prange(f.shape[0]):
        for s in range(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5


def added_up_around(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    total = 0.0
    for b in range(f.shape[0]):
        for s in range(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5
        total += g[b, 0]
    c[0, 0] = total


def read_behind(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    last = 0.0
    for b in range(f.shape[0]):
        last = b * 2.0
        for s in range(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5
    c[0, 0] = last


def one_thread_in_between(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            g[b, 0] = f[b, 0] * 0.5


def steps_at_once(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(f.shape[1]):
            for i in range(1):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, s] = a


def kept_from_nest_to_nest(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """All nests are for threads, and a list passes between them."""
    for b in range(f.shape[0]):
        r = [0.0, 0.0, 0.0, 0.0]
        for s in range(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a + r[i]
            for j in range(4):
                r[j] = f[b, j] * 0.125
            for j in range(g.shape[1]):
                g[b, j] = f[b, j] * 0.5


def from_other_starts(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(b, n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5


def at_once_beside_another(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(f.shape[1]):
            for i in range(1):
                a = 0.0
                for j in range(g.shape[1]):
                    a += c[b, j]
                f[b, s] = a
        for j in range(g.shape[1]):
            g[b, j] = f[b, 0] * 0.5


def claimed_steps(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in bw.prange(n):
            for i in range(f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += c[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = c[b, j] * 0.5


def triangle(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """Independent loops of which one ends where the other one is."""
    for b in range(c.shape[0]):
        for h in range(b + 1):
            for s in range(n):
                for i in range(1):
                    a = i * 0.5
                    for j in range(g.shape[1]):
                        a += g[0, j]
                    c[b, h] = c[b, h] * 0.5 + a


TAKEN = [balanced, states, summed_up]
REFUSED = [
    passed_on,
    passed_in,
    passed_between,
    of_other_lengths,
    as_long_as_elements_say,
    ending,
    asserting,
    with_a_list,
    in_order_around,
    claimed_around,
    added_up_around,
    read_behind,
    one_thread_in_between,
    steps_at_once,
    kept_from_nest_to_nest,
    from_other_starts,
    at_once_beside_another,
]


def arguments() -> tuple[Memory | int, ...]:
    return numbers(3, 4), numbers(3, 4), numbers(4, 4), 2


def found(function: Callable[..., object]) -> list[list[str]]:
    """Return the independent loops around steps, and the steps, of each nest that has some."""
    kernel = kernel_of(function, *arguments())
    analysis = find_updates(kernel, analyse(kernel))
    taken = (steps_of(node, analysis) for node in kernel.body)
    return [[loop.index.name for loop in (*each.levels, *each.steps)] for each in taken if each is not None]


@pytest.mark.parametrize("function", TAKEN)
def test_steps(function: Callable[..., object]) -> None:
    assert found(function) == [["b", "s" if function is not states else "t"]]


def test_independent_loops_may_end_where_others_are() -> None:
    assert found(triangle) == [["b", "h", "s"]]


@pytest.mark.parametrize("function", [*REFUSED, claimed_steps])
def test_what_are_no_steps(function: Callable[..., object]) -> None:
    assert found(function) == []


def test_steps_that_elements_count_are_no_steps() -> None:
    kernel = kernel_of(balanced, *arguments())
    element = next(node for node in walk(kernel) if isinstance(node, Load) and node.tensor.name == "c")
    element = replace(element, indices=(build.integer(0), build.integer(0)), access=1000)
    count = Cast(operand=element, dtype=INT64)
    for bound in ("start", "stop"):

        def counted(node: Node, bound: str = bound) -> Node:
            return replace(node, **{bound: count}) if isinstance(node, For) and node.index.name == "s" else node

        changed = replace(kernel, body=tuple(rewrite(statement, counted) for statement in kernel.body))
        assert steps_of(changed.body[0], find_updates(changed, analyse(changed))) is None


@pytest.mark.parametrize(
    ("launches", "function"),
    [*product([True], [*TAKEN, triangle, recurrent, *REFUSED]), *product([False], [*TAKEN, triangle, recurrent][::3])],
)
def test_all_ways_give_the_same(
    function: Callable[..., object], launches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if launches:
        monkeypatch.setattr(launched_steps, "few_iterations", lambda _: 0)
    same(function, *arguments())


def steps_program(function: Callable[..., object]) -> list[Launch]:
    """Return the launches in loops of the host of the kernels that are launched for each step."""
    tensors = (torch.ones(3, 4), torch.ones(3, 4), torch.ones(4, 4))
    program, _ = schedule_program(program_for_gpu(function, *tensors, 2), GPU)
    loops = [node for node in statements(program.body) if isinstance(node, For) and node.role is Role.SEQUENTIAL]
    launches = [node for loop in loops for node in statements(loop.body) if isinstance(node, Launch)]
    return [node for node in launches if STEPS in node.kernel.name]


@pytest.mark.parametrize("function", TAKEN)
def test_each_step_is_launched(function: Callable[..., object]) -> None:
    assert len(steps_program(function)) >= 2


def test_a_loop_inside_of_an_inner_one_is_a_step_of_the_outer_one() -> None:
    kernel = kernel_of(balanced, *arguments())
    assert [len(part) for part in cut(loops_of(kernel)["s"].body)] == [1, 1]


@pytest.mark.parametrize(("rows", "length", "better"), [(1, 512, True), (1, 32, False), (1000, 512, False)])
def test_steps_are_launched_where_few_blocks_would_have_much_to_do(rows: int, length: int, *, better: bool) -> None:
    program, _ = with_launched_steps(program_for_gpu(balanced, *(torch.ones(3, 4) for _ in range(3)), 2), GPU)
    (choice,) = [node for node in program.body if isinstance(node, If)]
    f, g, c = (tensor for tensor in program.parameters if isinstance(tensor, TensorParameter))
    sizes = {(f.tensor, 0): rows, (f.tensor, 1): length, (g.tensor, 1): length}

    def known(node: Node) -> Node:
        match node:
            case Size(tensor=tensor, axis=axis):
                return build.integer(sizes[tensor, axis])
            case Apply(operator=operator, operands=operands):
                return build.apply(operator.name, *operands)
            case _:
                return node

    assert c.tensor not in {node.tensor for node in walk(choice.condition) if isinstance(node, Size)}
    assert build.is_constant(rewrite(choice.condition, known), int(better))
