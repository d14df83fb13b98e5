"""Loops that are the same in all nests of a loop in order, and move out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.analysis.scalars import live_after_loops
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.effects import effects
from brickwork.ir.nodes import For, Node, Rebind, Role, Store
from brickwork.ir.walk import rewrite, statements
from brickwork.transform.columns import columns_of, with_columns
from support.lowering import numbers
from support.ptx import program_for_gpu
from support.scheduling import GPU, kernel_of, loops_of, same
from support.shared import schedule_program


def gated(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for i in range(s.shape[1]):
                for j in range(s.shape[2]):
                    s[b, i, j] = s[b, i, j] * 0.5 + k[t, i] * v[t, j]
            for j in range(s.shape[2]):
                a = 0.0
                for i in range(s.shape[1]):
                    a += k[t, i] * s[b, i, j]
                y[b, t, j] = a


def scaled(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            g = k[t, 0] * 0.25
            n = 0.0
            for i in range(s.shape[1]):
                n += k[t, i]
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * g + n * v[t, j]
                y[b, t, j] = s[b, 0, j]


def shuffled(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """The rows of the second nest are the columns of the first."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for i in range(s.shape[1]):
                s[b, i, 0] = s[b, i, 0] * 0.5 + k[t, i]
            for i in range(s.shape[1]):
                y[b, t, i] = s[b, s.shape[1] - 1 - i, 0]


def summed(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                n += s[b, 0, j]
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + n * k[t, 0]


def carried(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        n = 0.0
        for t in range(k.shape[0]):
            n = n * 0.5 + k[t, 0]
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + n


def left_over(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + k[t, 0]
                n = n * 0.5 + s[b, 0, j]
            for j in range(s.shape[2]):
                y[b, t, j] = n


def read_after(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        n = 0.0
        for t in range(k.shape[0]):
            n = k[t, 0] * 2.0
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + n
        y[b, 0, 0] = n


def stored_outside(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            y[b, t, 0] = k[t, 0]
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + k[t, 0]


def triangle(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(t):
                s[b, 0, j] = s[b, 0, j] * 0.5 + k[t, 0]
            for j in range(t):
                y[b, t, j] = s[b, 0, j]


def two_lengths(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + k[t, 0]
            for j in range(s.shape[2] - 1):
                y[b, t, j] = s[b, 0, j]


def from_the_end(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(-1, s.shape[2] - 1):
                s[b, 0, j] = s[b, 0, j] * 0.5 + k[t, 0]
            for j in range(-1, s.shape[2] - 1):
                y[b, t, j] = s[b, 0, j]


def running(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """A variable passes from column to column."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                n = n * 0.5 + k[t, 0]
                s[b, 0, j] = s[b, 0, j] * 0.5 + n
            for j in range(s.shape[2]):
                y[b, t, j] = s[b, 0, j]


def asserting(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            assert k[t, 0] > -1, "k"
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + k[t, 0]


def ending(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + k[t, 0]
            if k[t, 0] > 1:
                break


def chosen(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            g = k[t, 0]
            if g > 0.5:
                for j in range(s.shape[2]):
                    s[b, 0, j] = s[b, 0, j] * 0.5 + g


def last_one(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                n = s[b, 0, j] * 0.5
                s[b, 0, j] = n + k[t, 0]
            for j in range(s.shape[2]):
                y[b, t, j] = n


def asserting_inside(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            g = k[t, 0]
            for j in range(s.shape[2]):
                assert g > -1, "k"
                s[b, 0, j] = s[b, 0, j] * 0.5 + g


def ending_inside(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            g = k[t, 0]
            for j in range(s.shape[2]):
                if s[b, 0, j] > 2:
                    break
                s[b, 0, j] = s[b, 0, j] * 0.5 + g


def going_on_inside(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            g = k[t, 0]
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + g
                if s[b, 0, j] > 2:
                    continue
                y[b, t, j] = s[b, 0, j]


def from_a_size(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            g = k[t, 0]
            for j in range(s.shape[2] - 3, s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + g


def by_the_word(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in bw.prange(k.shape[0]):
            g = k[t, 0]
            for j in range(s.shape[2]):
                y[b, t, j] = s[b, 0, j] * 0.5 + g


COLUMNS = [gated, scaled]
OTHERS = [
    shuffled,
    summed,
    carried,
    left_over,
    read_after,
    stored_outside,
    triangle,
    two_lengths,
    from_the_end,
    running,
    asserting,
    ending,
    chosen,
    last_one,
    asserting_inside,
    ending_inside,
    going_on_inside,
    from_a_size,
    by_the_word,
]


def arguments(function: Callable[..., object]) -> tuple[object, ...]:
    return numbers(2, 3, 4), numbers(5, 3), numbers(5, 4), numbers(2, 5, 4)


def found(function: Callable[..., object]) -> list[str] | None:
    kernel = kernel_of(function, *arguments(function))
    loop = loops_of(kernel)["t"]
    chosen = columns_of(loop, live_after_loops(kernel.body)[loop.index])
    return None if chosen is None else [node.index.name for node in chosen]


@pytest.mark.parametrize("function", [*COLUMNS, *OTHERS])
def test_all_ways_give_the_same(function: Callable[..., object]) -> None:
    same(function, *arguments(function))


@pytest.mark.parametrize("function", COLUMNS)
def test_columns(function: Callable[..., object]) -> None:
    assert set(found(function) or ()) == {"j"}
    kernel = kernel_of(function, *arguments(function))
    outer = loops_of(with_columns(kernel, analyse(kernel)))["b"]
    (inner,) = outer.body
    assert isinstance(inner, For)
    assert inner.index.name == "j"


@pytest.mark.parametrize("function", OTHERS)
def test_no_columns(function: Callable[..., object]) -> None:
    assert found(function) is None


def gated_loop(change: Callable[[For], For]) -> For:
    loop = loops_of(kernel_of(gated, *arguments(gated)))["t"]
    (first, second) = loop.body
    assert isinstance(first, For)
    assert isinstance(second, For)
    return replace(loop, body=(first, change(second)))


def test_an_index_that_two_loops_of_a_nest_have() -> None:
    assert columns_of(gated_loop(lambda nest: nest), frozenset()) is not None

    def renamed(nest: For) -> For:
        (store,) = [node for node in nest.body if isinstance(node, Store)]
        return replace(nest, body=(replace(nest, body=(replace(store, value=build.constant(1, FLOAT32)),)),))

    assert columns_of(gated_loop(renamed), frozenset()) is None


def test_indices_below_zero_are_of_other_elements_from_the_end() -> None:
    loop = gated_loop(lambda nest: nest)

    def visit(node: Node) -> Node:
        return replace(node, start=build.integer(-1)) if isinstance(node, For) and node.index.name == "j" else node

    assert columns_of(replace(loop, body=tuple(rewrite(node, visit) for node in loop.body)), frozenset()) is None


def test_tensors_that_change_places_stay() -> None:
    def exchanged(nest: For) -> For:
        tensors = tuple(effects(nest).loads)[:2]
        return replace(nest, body=(*nest.body, Rebind(targets=tensors, sources=tensors[::-1])))

    assert columns_of(gated_loop(exchanged), frozenset()) is None


def test_what_is_done_outside_of_the_nests() -> None:
    """A sum over all columns reads what the nests store."""
    assert found(summed) is None


def decayed(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + k[t, 0]
                y[b, t, j] = s[b, 0, j]


@pytest.mark.parametrize("function", [decayed, gated])
def test_threads_have_columns(function: Callable[..., object]) -> None:
    same(function, *arguments(function))
    tensors = [torch.ones(2, 3, 4), torch.ones(5, 3), torch.ones(5, 4), torch.ones(2, 5, 4)]
    program, _ = schedule_program(program_for_gpu(function, *tensors), GPU)
    loops = [node for node in statements(program.body) if isinstance(node, For) and node.role is Role.PARALLEL]
    assert {"b", "j"} <= {node.index.name for node in loops}
    assert "t" not in {node.index.name for node in loops}


def totals(s: Tensor, k: Tensor, v: Tensor, y: Tensor, z: Tensor) -> None:
    """Add up columns in a branch."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + k[t, i] * v[t, j]
                y[b, t, j] = s[b, 0, j]
            if y.shape[2] > 2:
                a = 0.0
                for j in range(y.shape[2]):
                    a += y[b, t, j]
                z[b, t] = a


def totals_of_before(s: Tensor, k: Tensor, v: Tensor, y: Tensor, z: Tensor) -> None:
    """Begin with the total of the iteration before."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + k[t, i] * v[t, j] + z[b, max(t - 1, 0)]
                y[b, t, j] = s[b, 0, j]
            if y.shape[2] > 2:
                a = 0.0
                for j in range(y.shape[2]):
                    a += y[b, t, j]
                z[b, t] = a


def totals_of_states(s: Tensor, k: Tensor, v: Tensor, y: Tensor, z: Tensor) -> None:
    """Add up what the next iteration stores over."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + k[t, i] * v[t, j]
            if y.shape[2] > 2:
                a = 0.0
                for j in range(s.shape[2]):
                    a += s[b, 0, j]
                z[b, t] = a


def totals_without_columns(s: Tensor, k: Tensor, v: Tensor, y: Tensor, z: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, s.shape[2] - 1 - j] * 0.5 + k[t, 0] * v[t, j]
                y[b, t, j] = v[t, j]
            if y.shape[2] > 2:
                a = 0.0
                for j in range(y.shape[2]):
                    a += y[b, t, j]
                z[b, t] = a


@pytest.mark.parametrize(
    ("function", "loops"),
    [(totals, "jt"), (totals_of_before, "t"), (totals_of_states, "t"), (totals_without_columns, "t")],
)
def test_branches_run_after_all_iterations_where_columns_are_left(function: Callable[..., object], loops: str) -> None:
    given = (*arguments(function), numbers(2, 5))
    kernel = kernel_of(function, *given)
    moved = with_columns(kernel, analyse(kernel))
    assert (moved is kernel) == (loops == "t")
    (outer,) = moved.body
    assert isinstance(outer, For)
    assert "".join(node.index.name for node in outer.body if isinstance(node, For)) == loops
    same(function, *given)
