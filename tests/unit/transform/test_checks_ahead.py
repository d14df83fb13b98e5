"""Contractions of rows that elements say: their checks stand before them, once for each place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Check, For, If, Kernel, Launch, Store
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.checks_ahead import CHECKED, with_checks_ahead
from support.lowering import argument_type, memory, numbers
from support.scheduling import GPU, same
from support.shared import define, lower, schedule_program

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let all sizes be worth it."""
    with patch.multiple(nests_apart, LEAST_SIDE=0, LEAST_AREA=0, LEAST_TERMS=0):
        yield


def gathered(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[i], k] * w[k, j]
            out[i, j] = s + 1.0
    return out


def looked_up(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Read the place once a row, and gather both factors' rows."""
    out = torch.empty(at.shape[0], at.shape[0])
    for i in range(at.shape[0]):
        row = at[i]
        for j in range(at.shape[0]):
            if j <= i:
                s = 0.0
                for k in range(w.shape[0]):
                    s += x[row, k] * w[k, at[j]]
                out[i, j] = s
    return out


def by_another(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Find places by places."""
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[at[i]], k] * w[k, j]
            out[i, j] = s
    return out


def summed(x: Tensor, at: Tensor, g: Tensor) -> Tensor:
    """Sum over what elements say, as the gradient of a weight does."""
    out = torch.empty(x.shape[1], g.shape[1])
    for k in range(x.shape[1]):
        for j in range(g.shape[1]):
            s = 0.0
            for i in range(at.shape[0]):
                s += x[at[i], k] * g[i, j]
            out[k, j] = s
    return out


def summed_into(x: Tensor, at: Tensor, g: Tensor, out: Tensor) -> None:
    for k in range(x.shape[1]):
        for j in range(g.shape[1]):
            s = 0.0
            for i in range(at.shape[0]):
                s += x[at[i], k] * g[i, j]
            out[k, j] = s


def ruled(x: Tensor, rule: Tensor, w: Tensor) -> Tensor:
    """Convolve what is there: a sparse convolution."""
    out = torch.empty(rule.shape[0], w.shape[2])
    for n in range(rule.shape[0]):
        for j in range(w.shape[2]):
            s = 0.0
            for o in range(w.shape[0]):
                if rule[n, o] >= 0:
                    for c in range(w.shape[1]):
                        s += x[rule[n, o], c] * w[o, c, j]
            out[n, j] = s
    return out


def masked(x: Tensor, at: Tensor, w: Tensor, mask: Tensor, out: Tensor) -> None:
    """Read rows where a mask says so."""
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 1.0
            for k in range(w.shape[0]):
                if mask[i] > 0:
                    s += x[at[i], k] * w[k, j]
            out[i, j] = s


def of_lengths(x: Tensor, at: Tensor, w: Tensor, length: Tensor) -> Tensor:
    """Read as much of a row as an element says."""
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                if k < length[i]:
                    s += x[at[i], k] * w[k, j]
            out[i, j] = s
    return out


def of_a_triangle(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Read nothing of the first row."""
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(min(i, w.shape[0])):
                s += x[at[i], k] * w[k, j]
            out[i, j] = s
    return out


def of_triangles(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Have a place for each of what a row has, and of the first row none."""
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for n in range(i):
                for k in range(w.shape[0]):
                    s += x[at[i - 1 - n], k] * w[k, j]
            out[i, j] = s
    return out


def by_a_variable(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Compute where a place is read."""
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            c = i * i % 3 + at.shape[0] - 3
            d = c
            if c > 2:
                d = c - 1
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[d], k] * w[k, j]
            out[i, j] = s + d + c
    return out


def changed(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Change the places."""
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[i], k] * w[k, j]
            out[i, j] = s
        at[i] = 0
    return out


def of_each(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Have a place for each product."""
    out = torch.empty(w.shape[1], w.shape[1])
    for i in range(w.shape[1]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[i + j + k], k] * w[k, j]
            out[i, j] = s
    return out


def read_afterwards(x: Tensor, at: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Leave the last place behind."""
    out = torch.empty(at.shape[0], w.shape[1])
    last = torch.zeros(1, dtype=torch.int64)
    row = 0
    for i in range(at.shape[0]):
        row = at[i]
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[row, k] * w[k, j]
            out[i, j] = s
    for _ in range(1):
        last[0] = row
    return out, last


def of_the_row_before(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Read the place of the last row once more."""
    out = torch.empty(at.shape[0], w.shape[1])
    row = 1
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[i], k] * w[k, j]
            out[i, j] = s + row
        row = at[i]
    return out


X, W, G, Z = numbers(4, 3), numbers(3, 5), numbers(6, 5), numbers(3, 5)
AT = memory([0, 3, -4, -1, 2, 2], INT64)
RULE = memory([[0, -1, 3], [-1, -1, -1], [2, 1, 0]], INT64)
V = memory([[[float((o + c * j) % 5 - 2) for j in range(4)] for c in range(3)] for o in range(3)])


def kernel(function: Callable[..., object], *arguments: object) -> Kernel | None:
    """Return the kernel with checks ahead of a function for a GPU."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program, _ = with_checks_ahead(canonical(lower(define(function), signature), sizes=True), GPU)
    found = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return next((item for item in found if item.name.endswith(CHECKED)), None)


@pytest.mark.parametrize("places", [[0, 3, -4, -1, 2, 2], [], [1], [0, 1, 2, 3, 0, 1], [0, 1, 4], [-5, 0]])
@pytest.mark.parametrize("function", [gathered, looked_up, by_another])
def test_rows_that_elements_say_are_those_of_the_source(function: Callable[..., object], places: list[int]) -> None:
    same(function, X, memory(places, INT64), W)


@pytest.mark.parametrize("width", [0, 1, 5])
def test_nothing_is_checked_that_the_source_does_not_read(width: int) -> None:
    w = numbers(3, width)
    same(gathered, X, memory([0, 9], INT64), w)
    same(gathered, numbers(4, 3), AT, numbers(0, 5))


def test_sums_over_places_are_those_of_the_source() -> None:
    same(summed, X, AT, G)
    same(summed_into, X, AT, G, Z)
    same(ruled, X, RULE, V)
    same(ruled, X, memory([[0, -9, 3], [-9, -9, -9], [2, 1, 0]], INT64), V)
    same(by_a_variable, X, AT, W)
    same(changed, X, AT, W)
    same(of_each, X, memory([0, 1, 2, 3, -1, -2, 0, 1, 2, 3, 1], INT64), W)


@pytest.mark.parametrize("places", [[0, 4], [-5]])
def test_places_that_are_not_there_fail(places: list[int]) -> None:
    given = [X, memory(places, INT64), W]
    signature = Signature(tuple(map(argument_type, given)), device="cuda", narrow=True, aligned=True)
    program, scheduled = schedule_program(lower(define(gathered), signature), GPU)
    assert any(item.kernel.name.endswith(CHECKED) for item in scheduled)
    with pytest.raises(IndexError, match=f"index {places[-1]} is out of bounds for dimension 0 of tensor 'x'"):
        run_program(program, given)


def test_checks_stand_before_the_nest_and_what_fails_is_not_stored() -> None:
    for function, names in ((gathered, ["i"]), (looked_up, ["i", "j"]), (by_another, ["i", "i"])):
        found = kernel(function, X, AT, W)
        assert found is not None
        *checks, nest = found.body
        assert not any(isinstance(node, Check) for node in statements(nest))
        assert all(any(isinstance(node, Check) for node in statements(item)) for item in checks)
        last = [node for item in checks for node in statements(item) if isinstance(node, For)]
        assert sorted({node.index.name for node in last}) == sorted({*names})
        (branch,) = [node for node in statements(nest) if isinstance(node, If) and isinstance(node.then[0], Store)]
        assert branch.otherwise == ()


def test_sums_over_places_are_for_new_tensors() -> None:
    found = kernel(summed, X, AT, G)
    assert found is not None
    assert [node.index.name for node in statements(found.body[0]) if isinstance(node, For)] == ["i"]
    assert kernel(summed_into, X, AT, G, Z) is None
    found = kernel(ruled, X, RULE, V)
    assert found is not None
    assert [node.index.name for node in statements(found.body[0]) if isinstance(node, For)] == ["n", "o"]


def test_places_that_are_read_elsewhere_are_checked_where_they_are() -> None:
    for function in (read_afterwards, of_the_row_before):
        assert kernel(function, X, AT, W) is None
        same(function, X, AT, W)


def test_places_that_change_or_are_as_many_as_products_are_checked_where_they_are() -> None:
    assert kernel(changed, X, AT, W) is None
    assert kernel(of_each, X, AT, W) is None


def test_a_check_is_made_where_the_source_would_make_it() -> None:
    """Places that are not there fail if they are read, and only then."""
    mask, far = memory([1, 0, 1], INT64), memory([0, 9, -4], INT64)
    same(masked, X, far, W, mask, numbers(3, 5))
    same(of_lengths, X, far, W, memory([3, 0, 1], INT64))
    same(of_a_triangle, X, memory([9, 1, 2], INT64), W)
    same(of_triangles, X, memory([1, 2, 9], INT64), W)
    for function, more in (
        (masked, (memory([0, 1, 0], INT64), numbers(3, 5))),
        (of_lengths, (memory([0, 1, 0], INT64),)),
        (of_a_triangle, ()),
    ):
        given = [X, far, W, *more]
        assert kernel(function, *given) is not None
        signature = Signature(tuple(map(argument_type, given)), device="cuda", narrow=True, aligned=True)
        program, _ = schedule_program(lower(define(function), signature), GPU)
        with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 of tensor 'x'"):
            run_program(program, given)


def test_places_by_what_is_computed_beside_them_are_checked_where_they_are() -> None:
    assert kernel(by_a_variable, X, AT, W) is None
    found = kernel(of_triangles, X, AT, W)
    assert found is not None
    assert [node.index.name for node in statements(found.body[0]) if isinstance(node, For)] == ["i", "n"]


def read_behind(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Read the last sum, which the last columns do not begin, behind the nest."""
    out = torch.zeros(at.shape[0], w.shape[1])
    if at.shape[0] > 1:
        s = 1.0
        for i in range(at.shape[0]):
            for j in range(w.shape[1]):
                if j < 2:
                    s = 0.0
                    for k in range(w.shape[0]):
                        s += x[at[i], k] * w[k, j]
                    out[i, j] = s
        out[0, 3] = s
    return out


def places_read_behind(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    out = torch.zeros(at.shape[0], w.shape[1])
    if at.shape[0] > 1:
        row = 5
        for i in range(at.shape[0]):
            for j in range(w.shape[1]):
                row = at[i]
                s = 0.0
                for k in range(w.shape[0]):
                    s += x[row, k] * w[k, j]
                out[i, j] = s
        out[0, 3] = row
    return out


@pytest.mark.parametrize("function", [read_behind, places_read_behind], ids=lambda item: item.__name__)
def test_variables_that_are_read_behind_a_nest_are_what_they_were(function: Callable[..., object]) -> None:
    same(function, numbers(3, 4), memory([2, 0, 1], INT64), numbers(4, 5))
