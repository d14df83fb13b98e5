"""Steps that compute variables before their nests: each nest computes them itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import For, Launch, Role
from brickwork.ir.walk import statements
from brickwork.transform import launched_steps
from brickwork.transform.launched_steps import STEPS, with_sunk_heads
from brickwork.transform.scratch import names_of
from support.lowering import numbers
from support.ptx import program_for_gpu
from support.scheduling import GPU, kernel_of, same
from support.shared import schedule_program


def levelled(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """Each step computes first what its nests take."""
    for b in range(f.shape[0]):
        for s in range(n):
            level = 2.0 - s
            if s == 1:
                level = 0.5
            for i in range(f.shape[1]):
                top = -9.0
                for j in range(g.shape[1]):
                    top = max(top, g[b, j] - level * c[i, j])
                f[b, i] = top
            for j in range(g.shape[1]):
                top = -9.0
                for i in range(f.shape[1]):
                    top = max(top, f[b, i] - level * c[i, j])
                g[b, j] = top * 0.5


def counting_levels(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """What a step computes first takes from the step before."""
    for b in range(f.shape[0]):
        level = 0.5
        for s in range(n):
            level = level + 1.0
            for i in range(f.shape[1]):
                a = level
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * level


def levels_left(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """What the last step computed first is read behind the steps."""
    for b in range(f.shape[0]):
        level = 0.5
        for s in range(n):
            level = s * 2.0
            for i in range(f.shape[1]):
                a = level
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * level
        c[b, 0] = level


def level_of_elements(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """Nests store what steps begin with."""
    for b in range(f.shape[0]):
        for s in range(n):
            level = f[b, 0] * 0.5
            for i in range(f.shape[1]):
                a = level
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * level


def changed_in_nests(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """A nest changes what it was given."""
    for b in range(f.shape[0]):
        for s in range(n):
            level = s * 0.5
            for i in range(f.shape[1]):
                level = level + g[b, i]
                f[b, i] = level
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * level


def as_long_as_computed(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """Nests end where steps say."""
    for b in range(f.shape[0]):
        for s in range(n):
            end = f.shape[1] - s
            if s == 1:
                end = 2
            for i in range(end):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * 0.5


def from_computed_places(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """Nests begin where steps say."""
    for b in range(f.shape[0]):
        for s in range(n):
            start = s
            if s == 1:
                start = 2
            for i in range(start, f.shape[1]):
                a = 0.0
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * start


def set_once(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """Some steps alone compute what nests take."""
    for b in range(f.shape[0]):
        level = 0.5
        for s in range(n):
            if s == 1:
                level = 3.0
            for i in range(f.shape[1]):
                a = level
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * level


def storing_first(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(n):
            level = s * 0.5
            if s == 1:
                level = 3.0
            c[b, 0] = level
            for i in range(f.shape[1]):
                a = level
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * level


def storing_behind(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(n):
            level = s * 0.5
            if s == 1:
                level = 3.0
            for i in range(f.shape[1]):
                a = level
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            c[b, 0] = level


def asserting_first(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    for b in range(f.shape[0]):
        for s in range(n):
            level = s * 0.5
            if s == 1:
                level = 3.0
            assert level < n * 4.0
            for i in range(f.shape[1]):
                a = level
                for j in range(g.shape[1]):
                    a += g[b, j]
                f[b, i] = a
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * level


def of_kept_values(f: Tensor, g: Tensor, c: Tensor, n: int) -> None:
    """What stands before nests takes what a nest leaves."""
    for b in range(f.shape[0]):
        last = 0.0
        for s in range(n):
            level = last * 0.5
            for i in range(f.shape[1]):
                last = level + g[b, i]
                f[b, i] = last
            for j in range(g.shape[1]):
                g[b, j] = f[b, 0] * level


UNSUNK = [
    counting_levels,
    levels_left,
    level_of_elements,
    changed_in_nests,
    as_long_as_computed,
    from_computed_places,
    of_kept_values,
    set_once,
    storing_first,
    storing_behind,
    asserting_first,
]


def arguments() -> tuple[Memory | int, ...]:
    return numbers(3, 4), numbers(3, 4), numbers(4, 4), 2


@pytest.mark.parametrize("function", [levelled, *UNSUNK])
def test_nests_compute_what_steps_begin_with_where_that_is_the_same(function: Callable[..., object]) -> None:
    kernel = kernel_of(function, *arguments())
    assert (with_sunk_heads(kernel, names_of(kernel)) is not kernel) == (function is levelled)


@pytest.mark.parametrize("function", [levelled, *UNSUNK])
def test_all_ways_give_the_same(function: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launched_steps, "few_iterations", lambda _: 0)
    same(function, *arguments())


def test_such_steps_are_launched() -> None:
    tensors = (torch.ones(3, 4), torch.ones(3, 4), torch.ones(4, 4))
    program, _ = schedule_program(program_for_gpu(levelled, *tensors, 2), GPU)
    loops = [node for node in statements(program.body) if isinstance(node, For) and node.role is Role.SEQUENTIAL]
    launches = [node for loop in loops for node in statements(loop.body) if isinstance(node, Launch)]
    assert len([node for node in launches if STEPS in node.kernel.name]) >= 2
