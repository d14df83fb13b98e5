"""Rows that an array holds are read as Python would see them: where the tensor has changed since, they are refused."""

# Elements and slices are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

Y = torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(3, 4).sin()
COUNTS = (0, 1, 2)


class Two(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


def last(y: torch.Tensor, n: int) -> torch.Tensor:
    r = y[0]
    for k in range(n):
        r = y[k]
    return r


def counted(y: torch.Tensor, n: int) -> torch.Tensor:
    r, k = y[0], 0
    while k < n:
        r = y[k]
        k += 1
    return r


def through(y: torch.Tensor, n: int) -> torch.Tensor:
    r = y[1]
    for k in range(n + 1):
        r = last(y, k)
    return r


def branching(y: torch.Tensor, n: int) -> torch.Tensor:
    r = y[0]
    if n > 0:
        r = y[1] * 1.0
    return r


def doubled(r: torch.Tensor, n: int) -> torch.Tensor:
    for _ in range(n):
        r = r * 2.0
    return r


def two(y: torch.Tensor, n: int) -> Two:
    return Two(last(y, n), y[1])


def changing(y: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    y[0, 0] = 9.0
    return r[0]


def after_a_loop(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        r = last(y, n)
        y[0, 0] = 9.0
        for j in range(4):
            out[j] = r[j]
    return out


def after_another_store(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        r = last(y, n)
        y[0, 0] = 9.0
        out[0] = 1.0
        out[1] = r[1]
    return out


def before_loops(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    r = counted(y, n)
    for _ in range(2):
        for j in range(4):
            out[j] += r[j]
        y[0, 0] = 9.0
    return out


def of_two_helpers(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        r = through(y, n)
        y[0, 0] = 9.0
        out += r
    return out


def of_a_branch(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        r = branching(y, n)
        y[0, 0] = 9.0
        out += r
    return out


def of_a_tuple(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        r, q = two(y, n)
        y[0, 0] = 9.0
        out += r + q
    return out


def of_a_list(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for r in (last(y, n), y[1]):
        y[0, 0] = 9.0
        out[0] += r[0]
    return out


def of_a_part(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        r = last(y, n)[1:]
        y[0, 1] = 9.0
        out[0] = r[0]
    return out


def given(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        out[0] = changing(y, last(y, n))
    return out


def given_on(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        r = doubled(y[0], n)
        y[0, 0] = 9.0
        out += r
    return out


def in_a_formula(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        out[:] = last(y, n) + changing(y, y[1])
    return out


def in_a_condition(y: torch.Tensor, n: int) -> torch.Tensor:
    h, k = y[0], 0
    while h[0] < 1.0 and k < 3:
        y[0, 0] = 2.0
        k += 1
        if n > 5:
            h = h * 2.0
    return y * k


def behind_a_break(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for _ in range(1):
        h = y[0]
        for t in range(3):
            if t == n:
                y[0, 0] = 9.0
                break
            h = h * 0.5
        out += h
    return out


def at_other_places(y: torch.Tensor, n: int) -> torch.Tensor:
    for i in range(3):
        m = doubled(y[i], n)
        for j in range(4):
            y[i, j] = m[3 - j]
    return y.clone()


def shifted(y: torch.Tensor, n: int) -> torch.Tensor:
    for i in range(2):
        h = doubled(y[i, 1:], n)
        y[i, :3] = h
    return y.clone()


def of_another_name(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for b in range(2):
        h = y[b]
        g = h
        for _ in range(n):
            h = h * 2.0
        y[b, 1] = 4.0
        out[0] += g[1]
    return out


@pytest.mark.parametrize(
    "function",
    [
        after_a_loop,
        after_another_store,
        before_loops,
        of_two_helpers,
        of_a_branch,
        of_a_tuple,
        of_a_list,
        of_a_part,
        given,
        given_on,
        in_a_formula,
        in_a_condition,
        behind_a_break,
        at_other_places,
        shifted,
        of_another_name,
    ],
)
def test_a_row_whose_tensor_changes_while_it_is_kept_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(CompileError, match=re.escape("is kept while `y`, which it is made of, is stored into")):
        bw.op(function)(Y.clone(), 0)


def into_its_row(y: torch.Tensor, n: int) -> torch.Tensor:
    for i in range(3):
        m = doubled(y[i], n)
        y[i] = m - m.max()
    return y.clone()


def into_its_items(y: torch.Tensor, n: int) -> torch.Tensor:
    for i in range(3):
        m = y[i, 1:]
        for _ in range(n):
            m = m * 2.0
        y[i, 1:] = m + 1.0
    return y.clone()


def into_one_of_two(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for i in range(2):
        h = y[0]
        if n == i:
            h = y[1]
        out += h
        y[0] = h * 2.0
        y[1] = out
    return out


def state(y: torch.Tensor, n: int) -> torch.Tensor:
    h = y[n]
    for t in range(3):
        h = h * 0.5 + y[t]
        y[t] = h
    return y.clone()


def made_anew(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for i in range(3):
        out += last(y, n)
        y[0, 0] += 1.0
        out += last(y, i)
    return out


def read_before(y: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(4, dtype=y.dtype)
    for i in range(3):
        if n > 0:
            r = last(y, n)
            out += r
        y[0, i] = 3.0
    return out


@pytest.mark.parametrize("function", [into_its_row, into_its_items, into_one_of_two, state, made_anew, read_before])
@pytest.mark.parametrize("count", COUNTS)
def test_a_row_that_is_read_before_its_tensor_changes_is_as_in_python(function: Callable[..., Any], count: int) -> None:
    agree(function, Y, count)


@pytest.mark.parametrize("count", COUNTS)
def test_rows_of_two_axes_are_stored_item_by_item(count: int) -> None:
    agree(into_its_row, Y.reshape(3, 2, 2), count)


def test_arguments_that_share_memory_are_one_tensor() -> None:
    def of_two(y: torch.Tensor, z: torch.Tensor, n: int) -> torch.Tensor:
        out = torch.zeros(4, dtype=y.dtype)
        for t in range(3):
            h = doubled(y[t], n)
            z[t, 0] = 1.0
            out += h
        return out

    base = Y.clone()
    torch.testing.assert_close(bw.op("copied_rows::apart")(of_two)(Y, base.clone(), 1), of_two(Y, base.clone(), 1))
    with pytest.raises(CompileError, match="is kept while `y`, which it is made of, is stored into"):
        bw.op("copied_rows::shared")(of_two)(base, base, 1)


def test_ranks_are_not_at_fault() -> None:
    def exchanged(y: torch.Tensor, n: int) -> torch.Tensor:
        out = torch.zeros_like(y[0])
        for _ in range(2):
            a, b = y[0], y[1]
            for _ in range(n):
                a, b = b, a + b
            y[1] = a
            out += b
        return out

    with pytest.raises(CompileError) as refused:
        bw.op("copied_rows::exchanged")(exchanged)(Y.clone(), 1)
    assert "is kept while" in str(refused.value)
