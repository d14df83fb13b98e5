"""Sums that nests make for stores after them: columns of a state add to the elements themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor

from brickwork.analysis.analyse import analyse
from brickwork.analysis.scalars import live_after_loops
from brickwork.ir.dtypes import FLOAT16
from brickwork.ir.nodes import For
from brickwork.ir.operators import OPERATORS
from brickwork.transform.column_sums import _sum_of, column_sums
from brickwork.transform.columns import columns_of, with_columns
from support.lowering import numbers
from support.scheduling import kernel_of, loops_of, same


def adding(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """A sum over columns is stored for each step."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            u = k.shape[0] - 1 - t
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[u, j]
                    n += s[b, i, j]
            y[b, u, 0] = n


def updating(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """Columns are added to elements of each step."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            g = k[t, 0] * 0.5
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * g + v[t, j]
                    y[b, t, s.shape[1] - 1 - i] += s[b, i, j]


def adding_where_it_is_inside(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n += s[b, i, j]
            if t + 1 < y.shape[1]:
                y[b, t + 1, 0] = n


ADDING = [adding, updating, adding_where_it_is_inside]


def added_at_once(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """Columns without loops inside would add to one element, and do little else."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + v[t, j]
                n += s[b, 0, j]
            y[b, t, 0] = n


def only_added(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """No state is carried on."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    n += s[b, i, j] * v[t, j]
                    y[b, 0, i] += v[t, j]
            k[t, 0] = n


def multiplied(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n = s[b, i, j] - n
            y[b, t, 0] = n


def from_one(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 1.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n += s[b, i, j]
            y[b, t, 0] = n


def stored_twice(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n += s[b, i, j]
            y[b, t // 2, 0] = n


def stored_beside(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + y[b, t, 1]
                    n += s[b, i, j]
            y[b, t, 0] = n


def updated_beside(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """What is added to the element before is lost in the store."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    y[b, t, 0] += 1.0
                    n += s[b, i, j]
            y[b, t, 0] = n


def added_to_a_list(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """A list is no thread's alone once columns are for threads."""
    for b in range(s.shape[0]):
        r = [0.0, 0.0, 0.0]
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    r[i] += s[b, i, j]
        for i in range(s.shape[1]):
            y[b, 0, i] = r[i]


def one_without_loops(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    """Columns of one nest would do little else than add."""
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                s[b, 0, j] = s[b, 0, j] * 0.5 + v[t, j]
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    y[b, 0, i] += s[b, 0, j] * v[t, j]


def only_updates(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    y[b, 0, i] += s[b, i, j] * v[t, j]


def used_beside(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n += s[b, i, j]
            y[b, t, 0] = n
            k[t, 0] = n * 2.0


def used_behind(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        n = 0.0
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n += s[b, i, j]
            y[b, t, 0] = n
        k[0, 0] = n


def stored_where_elements_say(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n += s[b, i, j]
            if k[t, 0] > 1:
                y[b, t, 0] = n


def stored_where_columns_say(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            p = 0
            for j in range(s.shape[2]):
                p = j
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n += s[b, i, j]
            y[b, t, p] = n


def stored_at_two_places(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            p = t
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[p, j]
                    n += s[b, i, j]
            p = k.shape[0] - 1 - p
            y[b, p, 0] = n


def stored_by_itself(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + v[t, j]
                    n += s[b, i, j] * 0.0
            if n < 1:
                y[b, t, 0] = n


def two_operators(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            g = k[t, 0] * 0.5
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    s[b, i, j] = s[b, i, j] * 0.5 + g
                    y[b, t, 0] += s[b, i, j]
                    y[b, t, 0] = max(y[b, t, 0], s[b, i, j])


ONLY_SUMS = [
    added_at_once,
    only_added,
    multiplied,
    from_one,
    stored_twice,
    stored_beside,
    updated_beside,
    added_to_a_list,
    one_without_loops,
    used_beside,
    used_behind,
    stored_where_elements_say,
    stored_where_columns_say,
    stored_at_two_places,
    stored_by_itself,
    two_operators,
]


def arguments(function: Callable[..., object]) -> tuple[object, ...]:
    return numbers(2, 3, 4), numbers(5, 3), numbers(5, 4), numbers(2, 5, 4)


def found(function: Callable[..., object]) -> list[str] | None:
    kernel = kernel_of(function, *arguments(function))
    loop = loops_of(kernel)["t"]
    chosen = columns_of(loop, live_after_loops(kernel.body)[loop.index])
    return None if chosen is None else [node.index.name for node in chosen]


def moved(function: Callable[..., object]) -> bool:
    """Whether columns stand around the loop of a function."""
    kernel = kernel_of(function, *arguments(function))
    return with_columns(kernel, analyse(kernel)) is not kernel


@pytest.mark.parametrize("function", ADDING)
def test_columns_that_add_up(function: Callable[..., object]) -> None:
    assert found(function) is None
    kernel = kernel_of(function, *arguments(function))
    outer = loops_of(with_columns(kernel, analyse(kernel)))["b"]
    names = [node.index.name for node in outer.body if isinstance(node, For)]
    assert names == (["j"] if function is updating else ["t", "j"])


@pytest.mark.parametrize("function", ONLY_SUMS)
def test_sums_that_stay_where_they_are(function: Callable[..., object]) -> None:
    assert not moved(function)


@pytest.mark.parametrize("function", [*ADDING, *ONLY_SUMS])
def test_all_ways_give_the_same(function: Callable[..., object]) -> None:
    same(function, *arguments(function))


@pytest.mark.parametrize(("function", "free"), [(only_updates, False), (added_to_a_list, False), (updating, True)])
def test_updates_are_of_tensors_beside_a_state(function: Callable[..., object], *, free: bool) -> None:
    kernel = kernel_of(function, *arguments(function))
    loop = loops_of(kernel)["t"]
    assert (columns_of(loop, live_after_loops(kernel.body)[loop.index], updates=True) is not None) is free


def placed_by_a_last_value(s: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(k.shape[0]):
            last = 0
            for i in range(s.shape[1]):
                last = i
            u = last + 1
            n = 0.0
            for j in range(s.shape[2]):
                for i in range(s.shape[1]):
                    n += s[b, i, j]
            y[b, u, 0] = n


@pytest.mark.parametrize("function", [stored_beside, updated_beside, placed_by_a_last_value])
def test_no_sums_are_added_to_elements_that_are_read_or_stored_beside(function: Callable[..., object]) -> None:
    kernel = kernel_of(function, *arguments(function))
    loop = loops_of(kernel)["t"]
    assert not column_sums(loop, analyse(kernel), frozenset())
    found = [_sum_of(loop, statement, frozenset()) for statement in loop.body]
    assert any(found) is (function is not placed_by_a_last_value)


def test_which_stores_of_sums_can_be_updates() -> None:
    """Into a tensor that others see, whose elements are what is added up, by a store of the whole sum."""
    kernel = kernel_of(adding, *arguments(adding))
    loop, analysis = loops_of(kernel)["t"], analyse(kernel)
    (found,) = column_sums(loop, analysis, frozenset())
    assert not column_sums(loop, analysis, frozenset((found.begin.symbol,)))

    def stored(**changes: Any) -> For:
        changed = replace(found.store, **changes)
        return replace(loop, body=tuple(changed if item is found.stored else item for item in loop.body))

    tensor = found.store.tensor
    half = replace(tensor, type=replace(tensor.type, dtype=FLOAT16))
    assert column_sums(stored(access=found.store.access), analysis, frozenset())
    for changes in (
        {"combine": OPERATORS["add"]},
        {"tensor": replace(tensor, sizes=(40,))},
        {"tensor": half},
    ):
        assert not column_sums(stored(**changes), analysis, frozenset())
