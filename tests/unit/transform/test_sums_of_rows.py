"""Loops over rows that add to several tensors are a nest for each, and loops that do anything else stay."""

from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT32, FLOAT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, Launch
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import rewrite, walk
from brickwork.transform.scratch import names_of
from brickwork.transform.sums_of_rows import with_sums_of_rows
from support.lowering import memory, nested, program_of

Tensor = torch.Tensor


def plain(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            y[i, j] = 0.0
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def backwards(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for back in range(y.shape[0]):
        i = y.shape[0] - 1 - back
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def backwards_from_one_on(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for back in range(1, y.shape[0]):
        i = 1 + y.shape[0] - 1 - back
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def backwards_from_the_last_but_one_on(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for back in range(1, y.shape[0]):
        i = y.shape[0] - 1 - back
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def both_ways(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for back in range(y.shape[0]):
        i = y.shape[0] - 1 - back
        for j in range(y.shape[1]):
            a = y[back, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def by_halves(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for back in range(y.shape[0]):
        i = back // 2
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def with_ends_that_vary(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        end = min(i + 1, w.shape[0])
        for j in range(y.shape[1]):
            a = y[i, j]
            y[i, j] = 0.0
            for k in range(end):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def with_nothing_set_to_zero(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for k in range(w.shape[0]):
                x[i, k] = y[i, j] * w[k, j] + x[i, k]
                u[k, j] += v[i, k] * y[i, j]


def with_one_sum(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            y[i, j] = 0.0
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]


TAKEN = [
    plain,
    backwards,
    backwards_from_one_on,
    backwards_from_the_last_but_one_on,
    both_ways,
    by_halves,
    with_ends_that_vary,
    with_nothing_set_to_zero,
    with_one_sum,
]


def read_behind_the_zero(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = 0.0
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def read_again(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            y[i, j] = 0.0
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * y[i, j]


def read_elsewhere(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(1, y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i - 1, j]
            y[i, j] = 0.0
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def met_again(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i // 2, j]
            y[i // 2, j] = 0.0
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def of_the_last_iteration(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    scale = 2.0
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for k in range(w.shape[0]):
                x[i, k] += scale * y[i, j] * w[k, j]
                u[k, j] += v[i, k] * y[i, j]
            scale = y[i, j]


def wanted_afterwards(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    a = 1.0
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a
    for k in range(1):
        y[0, 0] = a


def set_to_one(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            y[i, j] = 1.0
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def added_twice(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                x[i, k] += v[i, k] * a


def subtracted(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] = a * w[k, j] - x[i, k]
                u[k, j] += v[i, k] * a


def added_to_another(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] = x[0, k] + a * w[k, j]
                u[k, j] += v[i, k] * a


def of_what_is_added(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += x[i, k] * a


def under_a_condition(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                if a > 0.0:
                    x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def of_a_variable_with_two_values(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j]
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
            a = a * 2.0
            for k in range(w.shape[0]):
                u[k, j] += v[i, k] * a


def of_random_numbers(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            a = y[i, j] * bw.rand()
            for k in range(w.shape[0]):
                x[i, k] += a * w[k, j]
                u[k, j] += v[i, k] * a


def of_terms_that_are_no_products(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for k in range(w.shape[0]):
                x[i, k] += y[i, j]
                u[k, j] += v[i, k] * y[i, j]


OTHERS = [
    read_behind_the_zero,
    read_again,
    read_elsewhere,
    met_again,
    of_the_last_iteration,
    wanted_afterwards,
    set_to_one,
    added_twice,
    subtracted,
    added_to_another,
    of_what_is_added,
    under_a_condition,
    of_a_variable_with_two_values,
    of_random_numbers,
    of_terms_that_are_no_products,
]
UNREAD = 2
"""Nobody reads what is left in `y`."""


def changed(program):
    def visit(node):
        if not isinstance(node, Launch):
            return node
        kernel = node.kernel
        unread = frozenset(tensor for tensor in kernel.tensors if tensor.name == "y")
        names = names_of((program,), 1 + max(tensor.number for tensor in kernel.tensors))
        return replace(node, kernel=with_sums_of_rows(kernel, analyse(kernel), unread, names))

    return rewrite(program, visit)


def arguments_of(rows, columns, terms, dtype=FLOAT32):
    def numbers(first, sizes):
        values = [[float((first + 5 * i + 3 * j) % 7 - 3) for j in range(sizes[1])] for i in range(sizes[0])]
        return memory(values, dtype)

    shapes = ((rows, terms), (terms, columns), (rows, columns), (terms, columns), (rows, terms))
    return [numbers(place, shape) for place, shape in enumerate(shapes)]


def is_split(function, sizes, dtype=FLOAT32):
    """Whether the loops of a function are a nest for each sum, which leave what they left."""
    given = program_of(function, *arguments_of(*sizes, dtype))
    found = changed(given)
    verify_program(found)
    left = []
    for program in (given, found):
        arguments = arguments_of(*sizes, dtype)
        run_program(program, arguments)
        left.append([nested(each) for place, each in enumerate(arguments) if place != UNREAD])
    assert left[0] == left[1]
    return found != given


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 4, 5)])
@pytest.mark.parametrize("function", TAKEN)
def test_a_nest_for_each_sum(function, sizes):
    assert is_split(function, sizes)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 4, 5)])
@pytest.mark.parametrize("function", OTHERS)
def test_loops_that_do_something_else(function, sizes):
    assert not is_split(function, sizes)


@pytest.mark.parametrize("function", [backwards, backwards_from_one_on])
def test_loops_that_count_backwards_count_forwards(function):
    loops = [
        node.index.name for node in walk(changed(program_of(function, *arguments_of(3, 4, 5)))) if isinstance(node, For)
    ]
    assert loops == ["i", "j", "k"] * 2


def test_sums_in_double_precision():
    assert not is_split(plain, (3, 4, 5), FLOAT64)


def test_elements_that_are_read_later():
    def plain_and_more(x: Tensor, u: Tensor, y: Tensor, w: Tensor, v: Tensor) -> None:
        for i in range(y.shape[0]):
            for j in range(y.shape[1]):
                a = y[i, j]
                y[i, j] = 0.0
                for k in range(w.shape[0]):
                    x[i, k] += a * w[k, j]
                    u[k, j] += v[i, k] * a
        for i in range(1):
            x[0, 0] = y[0, 0]

    assert not is_split(plain_and_more, (3, 4, 5))
