"""Nests along their diagonals: which have any, and that results stay bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT32, INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Assign, Check, Expression, For, Kernel, Launch, Node, Reduction, Statement, Symbol
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import rewrite, rewrite_statements
from brickwork.target.cuda import cuda_target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.hoist_bounds import hoist_bounds
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.wavefront import diagonals, ending_variable, is_in_any_order, wavefront
from support.lowering import memory, nested, program_of
from support.scheduling import agree, kernel_of, same

Tensor = torch.Tensor
KINDS = {"best": FLOAT64, "place": INT64, "count": INT64, "total": FLOAT64}


def edges(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def corners(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            low = min(a[i - 1, j], a[i, j - 1])
            if b[i, j] > 0.0:
                low = a[i - 1, j - 1]
            a[i, j] = low + 1.0


def seidel(a: Tensor, b: Tensor) -> None:
    for _ in range(2):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = (a[i - 1, j + 1] + a[i - 1, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j - 1]) / 5.0


def far_ahead(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1] - 3):
            a[i, j] = a[i - 1, j + 3] + a[i, j - 1]


def rows(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i - 1, j] + b[i, j]


def read_before_it_is_written(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0] - 1):
        for j in range(2, a.shape[1]):
            a[i, j] = a[i - 1, j] + a[i, j - 1] + a[i + 1, j - 2]


def triangle(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(i, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def other_triangle(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, min(i, a.shape[1])):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def summed(a: Tensor, b: Tensor) -> None:
    total = 0.0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            total += a[i, j]
    a[0, 0] = total


def greatest(a: Tensor, b: Tensor) -> None:
    most = 0.0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            most = max(most, a[i, j])
    a[0, 0] = most


def counted(a: Tensor, b: Tensor) -> None:
    number = 0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            number += i * j
    a[0, 0] = number


def noted(a: Tensor, b: Tensor) -> None:
    most, place = 0.0, 0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            if a[i, j] > most:
                most, place = a[i, j], j
    a[0, 0] = place


def carried(a: Tensor, b: Tensor) -> None:
    last = 0.0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + last
            last = b[i, j]


def read_after(a: Tensor, b: Tensor) -> None:
    last = 0.0
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            last = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            a[i, j] = last
    a[0, 0] = last


def left_early(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            if a[i, j] > 1.0:
                break


def two_in_one(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        a[i, 0] = a[i - 1, 0] + 1.0
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def continued(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1] - 3):
            if b[i, j] > 0.0:
                continue
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i - 1, j + 3]


SLOPES = {edges: [1], corners: [1], continued: [1], seidel: [2], far_ahead: [], rows: []}
SLOPES |= {read_before_it_is_written: [], triangle: [], summed: [], carried: [], read_after: [], left_early: []}
SLOPES |= {two_in_one: [], other_triangle: [], greatest: [1], counted: [1], noted: []}
TRIANGLES = {triangle, other_triangle}
"""Those of which the rectangle around has diagonals."""


def matrices(height: int, width: int) -> list[Memory]:
    draw = random.Random(1)
    return [memory([[draw.gauss(0, 1) for _ in range(width)] for _ in range(height)], FLOAT64) for _ in range(2)]


@pytest.mark.parametrize("function", SLOPES, ids=lambda function: function.__name__)
def test_diagonals(function: Callable[..., None]) -> None:
    found: list[list[int]] = []

    def skewed(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        analysis = analyse(node.kernel)
        found.append([*diagonals(node.kernel, analysis).values()])
        kernel: Kernel = wavefront(node.kernel, analysis)[0]
        assert (kernel is not node.kernel) == bool(SLOPES[function] or function in TRIANGLES)
        return Launch(kernel=kernel)

    changed = rewrite(program_of(function, *matrices(2, 2)), skewed)
    assert found == [SLOPES[function]]
    for sizes in ((1, 1), (2, 5), (6, 3), (5, 8), (7, 7)):
        expected, given = matrices(*sizes), matrices(*sizes)
        run_program(program_of(function, *expected), expected, check=True)
        run_program(changed, given, check=True)
        assert [nested(item) for item in given] == [nested(item) for item in expected]


@pytest.mark.parametrize("function", [edges, seidel], ids=lambda function: function.__name__)
def test_a_diagonal_is_a_launch(function: Callable[..., None]) -> None:
    program = program_of(function, *matrices(2, 2))
    (kernel,) = [node.kernel for node in program.body if isinstance(node, Launch)]
    analysis = schedule_kernel(kernel, cuda_target((9, 0))).analysis
    independent = [analysis.loops[loop.node.index].independent for loop in analysis.model.loops]
    assert independent[-2:] == [False, True]


def checked(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            assert b[i, j] > 0.0
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def exchanged(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1])
            a, b = b, a


def the_first_row_is_data(a: Tensor, b: Tensor) -> None:
    for i in range(max(1, int(b[0, 0])), a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_last_row_is_data(a: Tensor, b: Tensor) -> None:
    for i in range(1, int(b[0, 0])):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_first_column_is_data(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(max(1, int(b[0, 0])), a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1])


def the_last_column_is_data(a: Tensor, b: Tensor) -> None:
    k = int(b[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(1, k):
            a[i, j] = max(a[i - 1, j], a[i, j - 1])


def a_row_is_a_list(a: Tensor, b: Tensor) -> None:
    for t in range(2):
        w = [t * 1.0] * 6
        for i in range(a.shape[0]):
            for j in range(1, 6):
                w[j] = max(w[j], w[j - 1]) + b[i, j]
                a[i, j] = w[j]


def from_an_index(a: Tensor, b: Tensor) -> None:
    for i in range(1, 6):
        for j in range(i, 9):
            a[i, j] = max(a[i - 1, j], a[i, j - 1])


def to_an_index(a: Tensor, b: Tensor) -> None:
    for i in range(1, 6):
        for j in range(1, i + 3):
            a[i, j] = max(a[i - 1, j], a[i, j - 1])


def test_nests_that_may_fail_exchange_tensors_or_wrap_have_no_diagonals():
    def found(function: Callable[..., None], *, may_alias: bool = False) -> list[int]:
        kernel = replace(kernel_of(function, *matrices(2, 2)), may_alias=may_alias)
        return [*diagonals(kernel, analyse(kernel)).values()]

    assert found(edges) == [1]
    assert found(a_row_is_a_list) == [2]
    assert found(edges, may_alias=True) == found(a_row_is_a_list, may_alias=True) == []
    bounds = [the_first_row_is_data, the_last_row_is_data, the_first_column_is_data, the_last_column_is_data]
    for function in (checked, exchanged, from_an_index, to_an_index, *bounds):
        assert found(function) == [], function.__name__


def drawn(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + bw.rand()


def test_iterations_that_end_early_or_draw_numbers_have_diagonals():
    for function in (continued, drawn):
        kernel = kernel_of(function, *matrices(2, 2))
        assert [*diagonals(kernel, analyse(kernel)).values()] == [1]
        agree(function, *matrices(6, 5), target=cuda_target((9, 0)))


def reused(a: Tensor, b: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
    i = a.shape[0] - 1
    while i > 0:
        a[i, 0] = a[i, 0] + i
        i -= 1


def still_read(a: Tensor, b: Tensor) -> None:
    last = 0
    for i in range(1, a.shape[0]):
        last = i
        for j in range(1, a.shape[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
    a[0, 0] = last + 0.5


@pytest.mark.parametrize(("function", "nests"), [(reused, 1), (still_read, 0)])
def test_variables_that_repeat_an_index(function: Callable[..., None], nests: int) -> None:
    program = program_of(function, *matrices(2, 2))
    kernel, plain = (
        node.kernel for item in (program, canonical(program)) for node in item.body if isinstance(node, Launch)
    )
    assert len(diagonals(kernel, analyse(kernel))) == nests
    assert len(diagonals(plain, analyse(plain))) == nests
    for sizes in ((1, 1), (2, 5), (6, 3)):
        agree(function, *matrices(*sizes), target=cuda_target((9, 0)))
        agree(function, *matrices(*sizes))


def both_ends_are_data(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        for j in range(1, k[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_ends_are_changed(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        for j in range(1, k[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
            k[1] = 3


def the_end_is_out_of_reach(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        for j in range(1, k[4]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_end_is_somewhere(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        for j in range(1, k[k[2] + 4]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_end_is_a_variable(a: Tensor, b: Tensor, k: Tensor) -> None:
    n = 0
    for i in range(1, k[0]):
        n = k[1]
        for j in range(1, n):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
    a[0, 0] = n


def the_end_is_changed_inside(a: Tensor, b: Tensor, k: Tensor) -> None:
    n = 5
    for i in range(1, k[0]):
        n = n - 1
        for j in range(1, n):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_end_is_assigned_inside(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        n = k[1]
        for j in range(1, n):
            n = n + j
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j] + n


def the_end_is_drawn(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        n = int(bw.rand() * 4.0)
        for j in range(1, n):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_end_is_a_part_of_a_length(a: Tensor, b: Tensor, k: Tensor) -> None:
    h = k[0]
    for i in range(h):
        n = 8 // h
        for j in range(1, n):
            a[i + 1, j] = max(a[i, j], a[i + 1, j - 1]) + b[i, j]


def two_ends_in_turn(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        n = k[1]
        n = n * n % 4
        for j in range(1, n):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def a_store_stands_before(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        b[0, 0] = b[0, 0] * 0.5 + 1.0
        for j in range(1, k[1]):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[0, 0]


def the_end_comes_of_others(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        n = k[1] + k[2]
        m = n // 2
        for j in range(1, m):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_end_is_a_quotient(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        n = k[1] // max(k[2], 1)
        for j in range(1, n):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


def the_end_is_chosen(a: Tensor, b: Tensor, k: Tensor) -> None:
    n = 2
    for i in range(1, k[0]):
        if k[1] > i:
            n = 4
        for j in range(1, n):
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]


DATA = {
    the_end_is_chosen: False,
    both_ends_are_data: True,
    the_end_comes_of_others: True,
    the_end_is_out_of_reach: True,
    the_ends_are_changed: False,
    the_end_is_a_variable: False,
    the_end_is_changed_inside: False,
    the_end_is_assigned_inside: False,
    the_end_is_drawn: False,
    the_end_is_somewhere: False,
    the_end_is_a_quotient: False,
    the_end_is_a_part_of_a_length: False,
    two_ends_in_turn: False,
    a_store_stands_before: False,
}


@pytest.mark.parametrize("function", DATA, ids=lambda function: function.__name__)
def test_bounds_that_are_data_are_read_before_the_nest(function: Callable[..., None]) -> None:
    for dtype in (INT64, INT32):
        arguments = (*matrices(6, 5), memory([5, 4, 2], dtype))
        kernel = kernel_of(function, *arguments)
        analysis = analyse(kernel)
        hoisted = hoist_bounds(kernel, analysis)
        assert (hoisted[0] is not kernel) == DATA[function]
        if DATA[function]:
            assert wavefront(*hoisted)[0] is not hoisted[0]
        for first in (0, 1, 5):
            arguments[2].data[0] = first
            same(function, *arguments)


def test_a_quotient_is_not_computed_ahead_without_its_check() -> None:
    kernel = kernel_of(the_end_is_a_quotient, *matrices(6, 5), memory([5, 4, 2], INT64))

    def unchecked(statement: Statement) -> tuple[Statement, ...]:
        return () if isinstance(statement, Check) else (statement,)

    kernel = replace(kernel, body=rewrite_statements(kernel.body, unchecked))
    assert hoist_bounds(kernel, analyse(kernel))[0] is kernel


def what_the_nest_reads_is_out_of_reach(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(1, k[0]):
        n = k[1]
        for j in range(1, n):
            t = b[i, j * k[2]]
            a[i, j] = max(a[i - 1, j], a[i, j - 1]) + t


def test_bounds_are_moved_from_a_nest_that_is_checked() -> None:
    kernel = kernel_of(what_the_nest_reads_is_out_of_reach, *matrices(6, 5), memory([5, 4, 2], INT64))
    assert hoist_bounds(kernel, analyse(kernel))[0] is not kernel


def few_between_great_numbers(a: Tensor, b: Tensor, k: Tensor) -> None:
    n = k[2]
    for i in range(1, k[0]):
        for j in range(k[1] - 1, n - 1, -1):
            a[i, j - n] = max(a[i - 1, j - n], a[i, j - n + 1]) + b[i, j - n]


def the_end_is_the_start(a: Tensor, b: Tensor, k: Tensor) -> None:
    n = k[1]
    for i in range(1, k[0]):
        for j in range(n, n + 3):
            a[i, j - n + 1] = max(a[i - 1, j - n + 1], a[i, j - n]) + b[i, j - n]


@pytest.mark.parametrize("function", [few_between_great_numbers, the_end_is_the_start])
def test_great_numbers_with_little_between(function: Callable[..., None]) -> None:
    great = 2**61
    arguments = (*matrices(6, 5), memory([5, great + 3, great], INT64))
    kernel = kernel_of(function, *arguments)
    kernel, analysis = hoist_bounds(kernel, analyse(kernel))
    assert wavefront(kernel, analysis)[0] is kernel
    same(function, *arguments)


def test_an_endless_loop_in_an_empty_one() -> None:
    same(both_ends_are_data, *matrices(6, 5), memory([1, 2**62, 2], INT64))
    same(both_ends_are_data, *matrices(6, 5), memory([-(2**63), 2**62, 2], INT64))


def test_reductions_that_may_be_taken_in_any_order() -> None:
    best, place, count, total = (Symbol(name, at, kind) for at, (name, kind) in enumerate(KINDS.items()))
    greatest, least = OPERATORS["maximum"], OPERATORS["minimum"]
    assert is_in_any_order(Reduction(best, greatest))
    assert not is_in_any_order(Reduction(place, least, best))  # Of equal ones the first in the source's order is noted.
    assert is_in_any_order(Reduction(count, OPERATORS["add"]))
    assert not is_in_any_order(Reduction(total, OPERATORS["add"]))


def backwards(a: Tensor, b: Tensor, k: Tensor) -> None:
    for i in range(k[0] - 1, -1, -1):
        for j in range(k[1] - 1, -1, -1):
            a[i, j] = max(a[i + 1, j], a[i, j + 1]) + b[i, j]


def test_ends_that_wrap() -> None:
    for ends in ([5, 4], [0, 4], [-(2**63), 4], [5, -(2**63)], [0, 2**62]):
        same(backwards, *matrices(6, 5), memory(ends, INT64))


def test_what_the_end_of_a_loop_may_be() -> None:
    i, j, n, m = (Symbol(name, place, INT64) for place, name in enumerate("ijnm"))

    def found(end: Expression, start: Expression = build.integer(0), *body: Statement) -> Symbol | None:
        inner = For(index=j, start=start, stop=end, body=body)
        return ending_variable(end, For(index=i, start=build.integer(0), stop=build.read(m), body=(inner,)))

    assert found(build.read(n)) == found(build.add(build.read(n), build.integer(1))) == n
    assert found(build.read(n), build.read(m)) == found(build.add(build.read(n), build.integer(8))) == n
    assert found(build.read(n), build.read(n)) is None
    assert found(build.read(n), build.integer(0), Assign(symbol=n, value=build.integer(1))) is None
    assert found(build.sub(build.read(n), build.integer(1))) is None
    assert found(build.add(build.read(n), build.integer(2**60))) is None
    assert found(build.add(build.read(n), build.read(m))) is None
    assert found(build.sub(build.integer(1), build.read(n))) is None
    outer = For(index=i, start=build.read(n), stop=build.read(n), body=())
    assert ending_variable(build.read(n), outer) is None
