"""Sums that stand in a branch of an iteration are opened: conditions are asked around them and around what follows."""

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.nodes import Assign, For, If
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.schedule.contract_loops import opened
from support.contracted import in_tiles, result
from support.lowering import memory, program_of

Tensor = torch.Tensor
N = 4


def below_the_diagonal(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def of_some_rows_and_columns(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if i + j != 3:
                if a[i, j] > 2.0:
                    s = 1.0
                    for k in range(N):
                        s += a[i, k] * b[k, j]
                    y[i, j] = s


def of_elements_that_are_there(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if i + j < N:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j] * a[i + j, j]
                y[i, j] = s


def otherwise_something_else(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            else:
                y[i, j] = b[i, j]


def nothing_but_the_sum_where_it_holds(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            t = a[i, j]
            if j <= i:
                for k in range(N):
                    t += a[i, k] * b[k, j]
            else:
                y[i, j] = 1.0
            y[i, j] += 2.0 * t


def a_value_is_chosen(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            t = b[j, i]
            if a[i, j] < 4.0 * t:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                t = s * t
            y[i, j] = t + 1.0


def something_is_read_before(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if i + j < N:
                s = b[i + j, j]
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def the_sum_stands_in_the_other_branch(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j > i:
                y[i, j] = b[i, j]
            else:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def an_element_begins_in_a_triangle(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                t = 2.0 * y[i, j]
                s = t
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


@pytest.mark.parametrize(
    "function",
    [
        below_the_diagonal,
        of_some_rows_and_columns,
        otherwise_something_else,
        nothing_but_the_sum_where_it_holds,
        a_value_is_chosen,
        something_is_read_before,
        the_sum_stands_in_the_other_branch,
        an_element_begins_in_a_triangle,
    ],
    ids=lambda item: item.__name__,
)
def test_a_condition_around_all_is_asked_around_the_sum_and_what_follows(function: Callable[..., None]) -> None:
    given = [memory([[1.0 * i * i + 3 * j + n for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(function, *given))
    tiles = in_tiles(program)
    verify_program(tiles)
    assert any(node.role.is_tile for node in walk(tiles) if isinstance(node, For))
    assert result(tiles, given) == result(program, given)


def test_what_is_read_where_a_condition_holds_alone_is_not_read_elsewhere() -> None:
    given = [memory([[1.0 * i + j + n for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(of_elements_that_are_there, *given))
    assert result(in_tiles(program), given) == result(program, given)


def no_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                y[i, j] = a[i, j] * b[i, j]


def what_is_read_is_a_factor(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                t = b[i, j]
                s = t
                for k in range(N):
                    s += a[i, k] * b[k, j] * t
                y[i, j] = s


def two_values_begin(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = b[i, j]
                s = s * b[j, i]
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def something_is_stored_before(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                y[i, j] = 1.0
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] += s


def the_condition_changes(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        s = 1.0
        for j in range(N):
            if s > 0.0:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def something_stands_beside(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            y[i, j] = 1.0
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def the_other_branch_reads_the_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 2.0
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            else:
                y[i, j] = s


def the_sum_is_read_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 2.0
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def elements_that_are_asked_change(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if y[i, j] > 0.0:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                    y[i, j] = -1.0
                y[i, j] = s


def the_other_branch_has_a_loop(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            else:
                for k in range(N):
                    y[i, j] += b[k, j]


def the_sum_is_scaled_and_read_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 2.0
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                s = 2.0 * s
            y[i, j] = s


def what_is_asked_is_assigned_first(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        t = 1.0
        for j in range(N):
            if t > 0.0:
                t = 1.0 - j
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def something_is_repeated(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = 8.0
                while s > 1.0:
                    s = s / 2.0
                y[i, j] = s


CLOSED = [
    the_sum_is_scaled_and_read_behind,
    what_is_asked_is_assigned_first,
    something_is_repeated,
    the_other_branch_reads_the_sum,
    the_sum_is_read_behind,
    elements_that_are_asked_change,
    the_other_branch_has_a_loop,
    no_sum,
    what_is_read_is_a_factor,
    two_values_begin,
    something_is_stored_before,
    the_condition_changes,
    something_stands_beside,
]


@pytest.mark.parametrize("function", [below_the_diagonal, *CLOSED], ids=lambda item: item.__name__)
def test_other_conditions_stay_around_all(function: Callable[..., None]) -> None:
    program = program_of(function, *[memory([[0.0] * N] * N)] * 3)
    (body,) = (node.body for node in walk(program) if isinstance(node, For) and node.index.name == "j")
    found = opened(body)
    assert (found == body) == (function in CLOSED)
    if function is below_the_diagonal:
        assert [type(item) for item in found] == [Assign, If, If]


# ---------------------------------------------------------------- elements that are read before the sum


def as_many_as_a_batch_has(a: Tensor, b: Tensor, y: Tensor) -> None:
    for n in range(1):
        length = b[n, 0]
        for i in range(N):
            for j in range(N):
                if i < length and j < length:
                    s = 0.0
                    for k in range(N):
                        s += a[i, k] * a[j, k]
                    y[i, j] = s


def as_many_as_a_row_has(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            length = b[i, 0]
            s = 0.0
            for k in range(N):
                if k < length:
                    s += a[i, k] * a[j, k]
            y[i, j] = s


@pytest.mark.parametrize("function", [as_many_as_a_batch_has, as_many_as_a_row_has], ids=lambda item: item.__name__)
def test_what_a_batch_says_of_a_factor_may_be_read_before_the_sum(function: Callable[..., None]) -> None:
    given = [memory([[1.0 + (i + 3 * j + n) % 3 for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(function, *given))
    tiles = in_tiles(program)
    found = any(node.role.is_tile for node in walk(tiles) if isinstance(node, For))
    assert found == (function is as_many_as_a_batch_has)
    assert result(tiles, given) == result(program, given)
