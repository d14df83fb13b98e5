"""Sums that begin with an element that elements choose: added to it last, so that iterations run at once on a grid."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Assign, Block, Kernel, Launch, Program, Statement
from brickwork.ir.signature import Signature
from brickwork.ir.walk import rewrite_statements, statements, substitute_block, walk
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.recognise_reductions import with_sums_added
from support.lowering import argument_type, memory
from support.scheduling import GPU, same
from support.shared import define, lower

Tensor = torch.Tensor
Function = Callable[..., object]


def element(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        for j in range(y.shape[1]):
            x[p] += y[i, j]


def variable(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            if y[i, j] > 0:
                s = s + y[i, j]
        x[p] = s


def in_place(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        s = x[at[i]]
        for j in range(y.shape[1]):
            s -= y[i, j]
        x[at[i]] = s


def product(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        for j in range(y.shape[1]):
            x[p] *= y[i, j]


def ragged(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0] - 1):
        for r in range(at[i], at[i + 1]):
            for j in range(y.shape[1]):
                x[r] += y[i, j]


def least(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s = min(s, y[i, j])
        x[p] = s


def greatest(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s = max(s, y[i, j])
        x[p] = s


def added_meanwhile(x: Tensor, at: Tensor, y: Tensor) -> None:
    """Add to the element, too, which is stored over."""
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s += y[i, j]
            x[at[j]] += 1.0
        x[p] = s


def read_after(x: Tensor, at: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s += y[i, j]
        x[p] = s
        z[i] = s


def read_elsewhere(x: Tensor, at: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s += y[i, j]
        x[p] = s
        z[i] = x[0]


def other_place(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s += y[i, j]
            p = j
        x[p] = s


def moved_place(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        s = x[at[i]]
        for j in range(y.shape[1]):
            s += y[i, j]
            at[j] = 0
        x[at[i]] = s


def unknown_place(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        if y[i, 0] > 0:
            p = 1
        s = x[p]
        for j in range(y.shape[1]):
            s += y[i, j]
            p = j
        x[p] = s


def own_place(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        s = x[at[i]]
        for j in range(y.shape[1]):
            s += y[i, j]
        at[i] = 0
        x[at[i]] = s


def own_element(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s += x[j]
        x[p] = s


def given_again(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s = y[i, j]
        x[p] = s


def two_operators(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            s += y[i, j]
            s *= 2
        x[p] = s


def ended(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        p = at[i]
        s = x[p]
        for j in range(y.shape[1]):
            if y[i, j] < 0:
                break
            s += y[i, j]
        x[p] = s


def arguments(dtype=FLOAT64, count: int = 6, width: int = 3) -> tuple[object, ...]:
    numbers = [[(3 * i + 2 * j) % 5 - 1 for j in range(width)] for i in range(count)]
    y = memory([list(map(float, row)) if dtype is FLOAT64 else row for row in numbers], dtype)
    x = memory([float(i + 1) for i in range(4)] if dtype is FLOAT64 else [1, 2, 3, 4], dtype)
    return x, memory([2, 0, 3, 3, 2, 1, 0][:count], INT64), y


Z = memory([0.0] * 6, FLOAT64)
ADDED = [element, variable, in_place, product, ragged, ended]
IN_ORDER = [
    least,
    greatest,
    added_meanwhile,
    read_after,
    read_elsewhere,
    other_place,
    moved_place,
    unknown_place,
    own_place,
    own_element,
    given_again,
    two_operators,
]


def all_of(function: Function, dtype=FLOAT64) -> tuple[object, ...]:
    return (*arguments(dtype), Z) if function in (read_after, read_elsewhere) else arguments(dtype)


def program_of(function: Function, *given: object) -> Program:
    types = tuple(map(argument_type, given or all_of(function)))
    return lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True))


def at_once(function: Function, *given: object) -> bool:
    """Whether the outermost loop is independent on a grid."""
    (kernel,) = [node.kernel for node in walk(program_of(function, *given).body) if isinstance(node, Launch)]
    return next(iter(schedule_kernel(kernel, GPU).analysis.loops.values())).independent


@pytest.mark.parametrize("function", ADDED)
def test_iterations_that_add_to_an_element_that_elements_choose_run_at_once(function: Function) -> None:
    assert at_once(function, *all_of(function))


@pytest.mark.parametrize("function", IN_ORDER)
def test_what_is_no_sum_of_its_own_stays_in_order(function: Function) -> None:
    assert not at_once(function, *all_of(function))


def test_a_least_of_integers_is_one_since_none_is_nan() -> None:
    assert at_once(least, *arguments(INT64))
    same(least, *arguments(INT64))


@pytest.mark.parametrize("function", [*ADDED, *IN_ORDER])
def test_elements_are_what_they_are_in_order(function: Function) -> None:
    same(function, *all_of(function))


@pytest.mark.parametrize(("count", "width"), [(1, 1), (6, 0), (7, 40)])
@pytest.mark.parametrize("function", [element, variable, product, in_place])
def test_elements_are_the_same_for_few_and_many(function: Function, count: int, width: int) -> None:
    same(function, *arguments(count=count, width=width))


def direct(function: Function) -> Kernel:
    """Return the kernel of a function with places in the accesses themselves, not in variables before them."""
    (kernel,) = [node.kernel for node in walk(program_of(function).body) if isinstance(node, Launch)]
    assigns = [node for node in statements(kernel.body) if isinstance(node, Assign)]
    places = {node.symbol: node.value for node in assigns if node.symbol.name == "index"}

    def visit(statement: Statement) -> Block:
        return () if isinstance(statement, Assign) and statement.symbol in places else (statement,)

    return replace(kernel, body=substitute_block(rewrite_statements(kernel.body, visit), places))


@pytest.mark.parametrize(
    ("function", "added"),
    [
        (variable, True),
        (in_place, True),
        (other_place, False),
        (moved_place, False),
        (unknown_place, False),
        (own_place, False),
    ],
)
def test_the_place_of_a_sum_stays_the_same(function: Function, added: bool) -> None:
    kernel = direct(function)
    assert (with_sums_added(kernel, analyse(kernel)) is not kernel) == added
