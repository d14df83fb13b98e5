"""Schedules that users give: what each verb does, and where it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import For, Launch, Program, Role
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_program
from brickwork.ir.walk import statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.schedule.text import Names
from support import kernels, kernels_flow, kernels_models, kernels_searches
from support.lowering import memory, nested, program_of
from support.scheduling import AVX2
from support.shared import define, schedule_program, verify_program
from support.shared import lower as lowered
from support.suite import SUITE
from support.tensors import argument_type


def product(a: Tensor, b: Tensor) -> Tensor:
    out = a.new_zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


def doubled(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 2.0 * x[i, j]


def totals(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(x.shape[1]):
            s += x[i, k]
        y[i, 0] = s


def running(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = x[i, j - 1] + y[i, j]


def totals_in_each(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = 0.0
            for k in range(x.shape[0]):
                s += x[k, j]
            y[i, j] = s


def triangle(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(i, x.shape[1]):
            y[i, j] = x[i, j]


def skewed(x: Tensor, y: Tensor) -> None:
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1] - 1):
            x[i, j] = x[i - 1, j + 1] + 1.0


def skewed_triangle(x: Tensor, y: Tensor) -> None:
    for i in range(1, x.shape[1]):
        for j in range(i):
            x[i, j] = x[i - 1, j + 1] + 1.0


def skewed_and_asserting(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            assert y[i, j] > -1.0
            x[i, j] = x[i, j - 1]


def deep(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            for k in range(2):
                x[i, j] = x[i, j - 1] + y[i, k]


def mirrored(x: Tensor, n: int) -> None:
    for i in range(1, n):
        x[i] = x[-i - 1] * 2


def ending(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 5.0:
                break
            y[i, j] = x[i, j]


def skipping(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 5.0:
                continue
            y[i, j] = x[i, j]


def in_a_branch(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        if x[i, 0] > 3.0:
            for j in range(x.shape[1]):
                y[i, j] = x[i, j]


def asserting(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            assert x[i, j] > -1.0
            y[i, j] = x[i, j]


def twice(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0]
    for i in range(x.shape[0]):
        y[i, 1] = x[i, 1]


def rows(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(n[i]):
            y[i, j] = x[i, j]


def rows_in_order(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(1, n[i]):
            y[i, j] = y[i, j - 1] + x[i, j]


def from_rows(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(n[i] + 1, x.shape[1]):
            y[i, j] = y[i, j - 1] + x[i, j]


def cubes(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                y[i, j, k] = x[i, j, k]


def lower(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[1]):
        for j in range(i):
            y[i, j] = x[i, j]


def heads(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 0] = 1.0
        for j in range(1, x.shape[1]):
            y[i, j] = x[i, j]


def histogram(x: Tensor, h: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] += 1


def claimed(x: Tensor, h: Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        h[x[i]] += 1


def counting(*sizes: int) -> Any:
    return memory((torch.arange(torch.Size(sizes).numel()).reshape(sizes) % 11).double().tolist(), FLOAT64)


MODULES = (kernels, kernels_flow, kernels_models, kernels_searches)
"""Those that put kernels into `SUITE`."""
X = (counting(9, 7), counting(9, 7))
GIVEN: dict[Callable[..., Any], tuple[Any, ...]] = {
    product: (counting(5, 6), counting(6, 9)),
    rows: (*X, memory([3, 0, 7, 1, 2, 3, 4, 5, 6], INT64)),
    from_rows: (*X, memory([3, 0, 7, 1, 2, 3, 4, 5, 6], INT64)),
    cubes: (counting(3, 4, 5), counting(3, 4, 5)),
    rows_in_order: (*X, memory([3, 0, 7, 1, 2, 3, 4, 5, 6], INT64)),
    histogram: (memory([1, 0, 1, 2], INT64), memory([0, 0, 0], INT64)),
    claimed: (memory([1, 0, 1, 2], INT64), memory([0, 0, 0], INT64)),
    mirrored: (memory([1, 2, 3, 4, 5], INT64), 5),
}


def given(function: Callable[..., Any]) -> tuple[Any, ...]:
    return GIVEN.get(function, X)


def scheduled(function: Callable[..., Any], text: str) -> Any:
    return schedule_program(program_of(function, *given(function)), AVX2, text)


def left_by(program: Any, arguments: tuple[Any, ...], *, check: bool) -> list[Any]:
    """What a program leaves in its arguments and results; if `check`, races are watched for."""
    copies = [memory(nested(item), item.dtype) if isinstance(item, Memory) else item for item in arguments]
    results = run_program(program, copies, check=check)
    return [nested(item) for item in (*copies, *results) if isinstance(item, Memory)]


LEGAL = [
    (product, "reorder(i, k, j); bind(i, pool); bind(j, lane, 8)"),
    (product, "split(j, 4); reorder(j_chunk, i, k, j); bind(j_chunk, pool)"),
    (product, "bind(i, pool); unroll(k, 4)"),
    (product, "bind(i, pool); bind(j, pool); unroll(j, 2, jam)"),
    (product, "bind(i, pool); rfactor(k, lane, 4)"),
    (doubled, "fuse(i, j); split(i, 16); bind(i_chunk, pool); bind(i, lane, 4)"),
    (doubled, "reorder(j, i); bind(j, pool); bind(i, lane, 2)"),
    (doubled, "split(i, 4); split(j, 2); reorder(i_chunk, j_chunk, j, i); bind(i_chunk, pool); bind(j_chunk, pool)"),
    (doubled, "split(j, 2, i); split(i, 16); reorder(i_chunk, j_chunk, i, j)"),
    (doubled, "bind(i, pool); unroll(i, 4, jam, 2)"),
    (totals, "rfactor(k, lane, 8); bind(i, pool); unroll(i, 4, jam)"),
    (totals, "rfactor(k, pool, 3)"),
    (totals_in_each, "rfactor(k, pool, 3); unroll(i, 4, jam, 2)"),
    (running, "bind(i, pool); unroll(j, 2)"),
    (running, "bind(i, pool); split(j, 3)"),
    (doubled, "unroll(j, 64)"),
    (doubled, "bind(j, lane, 64)"),
    (in_a_branch, "bind(j, pool)"),
    (totals, "split(k, 4); rfactor(k, lane, 2)"),
    (running, "reorder(j, i); bind(i, lane, 4)"),
    (mirrored, "split(i, 1); reorder(i_chunk, i)"),
    (deep, "reorder(j, i); bind(i, lane, 4)"),
    (triangle, "bind(i, pool); bind(j, lane, 4)"),
    (ending, "bind(i, pool)"),
    (skipping, "split(j, 4); bind(j_chunk, pool)"),
    (asserting, "bind(i, pool); bind(j, lane, 8)"),
    (twice, "bind(i:1, pool); split(i:2, 4); bind(i_chunk:2, pool)"),
    (rows, "bind(i, lane, 4)"),
    (rows, "bind(i, pool); split(j, 4); bind(j, lane, 4)"),
    (histogram, "rfactor(i, pool, h)"),
    (claimed, "rfactor(i, atomic, h); bind(i, pool)"),
]
ILLEGAL = [
    (product, "bind(k, lane, 8)", r"accumulates 'out': write rfactor\(k, lane"),
    (running, "bind(j, pool)", "depend on one another"),
    (running, "unroll(j, 4, jam)", "depend on one another"),
    (running, "rfactor(j, lane, 8)", "depend on one another"),
    (totals, "unroll(k, 4, jam)", "it accumulates"),
    (doubled, "rfactor(j, lane, 8)", r"accumulates nothing: write bind\(j"),
    (totals, "rfactor(k, atomic, y)", "do not only update elements"),
    (histogram, "rfactor(i, atomic, h)", "in loops that are claimed"),
    (claimed, "rfactor(i, pool, h)", "no order to keep"),
    (claimed, "bind(i, pool)", r"write rfactor\(i, atomic, h\) before"),
    (doubled, "bind(i, grid)", "no level 'grid'"),
    (doubled, "fuse(i, j); bind(j, pool)", "there is no such loop"),
    (doubled, "split(j, 2); fuse(i, j)", "no nest over|in order|stand directly"),
    (doubled, "split(i_chunk, 4)", "there is no such loop"),
    (doubled, "bind(i, pool); bind(i, lane, 8)", "bound already"),
    (doubled, "unroll(i, 4); bind(i, pool)", "written out one after the other"),
    (doubled, "bind(i, lane, 3)", "power of two"),
    (doubled, "bind(i, lane, 128)", "at most 64"),
    (doubled, "bind(i, lane, 4); bind(j, lane, 4)", "no lanes in lanes"),
    (doubled, "bind(j, lane, 4); bind(i, lane, 4)", "no lanes in lanes"),
    (doubled, "bind(i, lane, 4); bind(j, pool)", "runs in lanes"),
    (doubled, "bind(j, pool); bind(i, lane, 4)", "inside of it is bound to the pool"),
    (totals, "bind(i, pool); rfactor(k, pool, 4)", "no threads of their own"),
    (totals, "rfactor(k, pool, 4); bind(i, pool)", "no threads of their own"),
    (doubled, "bind(i, pool); split(i, 4)", "split it before"),
    (doubled, "split(i, 4); split(i, 2)", "a loop is split once"),
    (totals, "split(k, 4); rfactor(k, pool, 3)", "a loop is split once"),
    (totals, "rfactor(k, pool, 3); rfactor(k, pool, 3)", "a loop is split once"),
    (doubled, "split(i, 4, j)", "'j' is not split"),
    (ending, "split(j, 4)", "a 'break' may end it"),
    (rows_in_order, "split(j, 4)", "where data say"),
    (doubled, "split(i, 4); split(i_chunk, 2)", "a loop is split once"),
    (from_rows, "split(j, 4)", "where data say"),
    (cubes, "fuse(i, j)", "the nest has these loops: i, j, k"),
    (doubled, "bind(i, pool); fuse(i, j)", "fuse it before"),
    (lower, "reorder(j, i)", "need 'i', which must stand around it"),
    (heads, "reorder(j, i)", "directly in one another"),
    (doubled, "fuse(i, j); unroll(j, 4)", "there is no such loop"),
    (ending, "unroll(j, 4)", "may end early"),
    (totals, "fuse(i, k)", "no nest over all elements"),
    (doubled, "bind(j, lane, 4); fuse(i, j)", "fuse it before"),
    (skewed, "reorder(j, i)", "keep their order"),
    (skewed_triangle, "reorder(j, i)", "need 'i', which must stand around it"),
    (skewed_and_asserting, "reorder(j, i)", "may fail or end early"),
    (triangle, "reorder(j, i)", "need 'i', which must stand around it"),
    (totals, "reorder(k, i)", "directly in one another"),
    (asserting, "unroll(i, 4, jam)", "may fail"),
    (doubled, "bind(i, lane, 4); unroll(i, 4, jam)", "runs in lanes"),
    (doubled, "unroll(j, 3)", "power of two"),
    (doubled, "unroll(j, 128)", "from 2 to 64"),
    (doubled, "unroll(i, 2, jam, 2)", "cannot run together"),
    (doubled, "bind(j, lane, 4); unroll(j, 4)", "no iterations in order"),
    (skipping, "unroll(j, 4)", "may end early"),
    (doubled, "bind(j, lane, 4); reorder(j, i)", "reorder it before"),
    (product, "bind(j, lane, 4); reorder(i, k, j)", "write it after that"),
    (product, "contract(i, j, k, 16 x 16 x 8)", "compiler chooses the tiles"),
    (twice, "bind(i, pool)", r"several loops over 'i': write 'i:1' at line \d+, 'i:2' at line \d+"),
    (twice, "fuse(i:1, i:2)", "in several nests|no nest over"),
    (doubled, "bind(q, pool)", "no loop over 'q'; there are 'i', 'j'"),
    (doubled, "bind(i, core)", r"cannot be read; write bind\(i, pool\)"),
    (doubled, "bind(i, lane)", "cannot be read"),
    (doubled, "bind(i, pool, 4)", "cannot be read"),
    (doubled, "unroll(i, four)", "cannot be read"),
    (doubled, "unroll(i, 4, together)", "cannot be read"),
    (doubled, "reorder(i, i)", "cannot be read"),
    (doubled, "split(i, 0)", "cannot be read"),
    (doubled, "rfactor(i, pool)", "cannot be read"),
    (doubled, "vectorise(i, 8)", "no verb of a schedule"),
]


@pytest.mark.parametrize(("function", "text"), LEGAL)
def test_legal_schedules_compute_what_the_source_says(function, text):
    program, _ = scheduled(function, text)
    if function is not histogram:  # The parts of its loop share the number of its access.
        verify_program(program)
    source = left_by(program_of(function, *given(function)), given(function), check=False)
    assert left_by(program, given(function), check=True) == source


@pytest.mark.parametrize(("function", "text", "reason"), ILLEGAL)
def test_illegal_schedules_are_refused_with_the_reason(function, text, reason):
    with pytest.raises(CompileError, match=reason) as caught:
        scheduled(function, text)
    assert [item.code for item in caught.value.diagnostics] == ["BW202"]


@pytest.mark.parametrize(("function", "text"), LEGAL)
def test_schedules_are_printed_as_they_are_written(function, text):
    printed = "\n".join(item.text for item in scheduled(function, text)[1])
    assert {line.strip() for line in text.split(";")} <= {*printed.splitlines()}
    again = scheduled(function, printed)
    assert "\n".join(item.text for item in again[1]) == printed


@pytest.mark.parametrize("name", sorted(SUITE)[::3])
def test_default_schedules_can_be_given_back(name):
    """But for versions for some sizes, and for loops that transforms have made, it is the same program."""
    case = SUITE[name]
    program = lowered(define(case.function), Signature(tuple(map(argument_type, case.arguments(8)))))
    first, made = schedule_program(program, AVX2)
    names = Names(
        *(node.kernel for node in statements(canonical(program, sizes=True).body) if isinstance(node, Launch))
    )
    known = all(names.knows(verb) for item in made for verb in (*item.moved, *item.schedule.verbs))
    again, _ = schedule_program(program, AVX2, "\n".join(item.text for item in made) if known else "")
    panels = any(version.name == "panels" for item in made for version in item.versions)
    if not panels and all(item.short is None for item in made):
        assert without_numbers(again) == without_numbers(first)


def without_numbers(program: Program) -> str:
    lines = (line for line in print_program(program).splitlines() if " = symbol(" not in line)
    return re.sub(r"\b([A-Za-z]\w*?)_\d+\b", r"\1", "\n".join(lines))


def test_each_verb_shows_in_the_program():
    text = "split(j, 4); reorder(i, j_chunk, k, j); bind(i, pool); bind(j, lane, 4); unroll(k, 2)"
    program, _ = scheduled(product, text)
    found = [(loop.index.name, loop.role, loop.width, loop.unrolled) for loop in walk(program) if isinstance(loop, For)]
    assert found[:4] == [
        ("i", Role.PARALLEL, 1, 1),
        ("j_chunk", Role.SEQUENTIAL, 1, 1),
        ("k", Role.SEQUENTIAL, 1, 2),
        ("j", Role.VECTOR, 4, 1),
    ]


def test_nests_that_a_schedule_does_not_name_keep_the_default():
    default, mine = scheduled(twice, "")[1][0].text, scheduled(twice, "bind(i:1, pool)")[1][0].text
    assert "bind(i:1, pool)" in mine
    kept = {line for line in default.splitlines() if ":2" in line}
    assert kept
    assert kept <= {*mine.splitlines()}
    assert {line for line in mine.splitlines() if ":1" in line} == {"bind(i:1, pool)"}
