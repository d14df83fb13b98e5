"""Of checks that are the same, on a grid, the first is made: as long as nothing that they read has changed."""

from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Check, For, Launch, Role
from brickwork.ir.walk import rewrite_statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.guard import careful_body
from brickwork.transform.repeated_checks import without_repeated
from support.lowering import memory, program_of

Tensor = torch.Tensor


def kernel_in_form(function):
    """The kernel of a function in the form that schedules are made for, in which copies have gone."""
    program = canonical(program_of(function, memory([1.0] * 9), memory([0.0] * 8), memory([1] * 8, INT64)))
    (launch,) = [node for node in walk(program) if isinstance(node, Launch)]
    return launch.kernel


def again(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(8):
        k = n[i]
        y[i] = x[k] + x[k] * x[k]
        for j in range(3):
            y[i] += x[k]
        if k > 2:
            y[i] += x[k]


def anew(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(8):
        k = n[i]
        y[i] = x[k]
        k += 1
        y[i] += x[k]


def in_a_branch(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(8):
        k = n[i]
        if k > 2:
            y[i] = x[k]
        y[i] += x[k]


def changed_in_a_branch(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(8):
        k = n[i]
        y[i] = x[k]
        if k > 2:
            k = k * 2
        y[i] += x[k]


def changed_in_a_loop(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(8):
        k = n[i]
        y[i] = x[k]
        for j in range(3):
            y[i] += x[k]
            k += 1
        while k > 0:
            y[i] += x[k]
            k -= 2


def in_a_loop(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(8):
        k = n[i]
        for j in range(n[0]):
            y[i] += x[k]
        y[i] += x[k]


def asserted(x: Tensor, y: Tensor, n: Tensor) -> None:
    for i in range(8):
        assert x[0] > 0.0
        x[0] -= 1.0
        assert x[0] > 0.0


@pytest.mark.parametrize(
    ("function", "left"),
    [(again, 1), (anew, 2), (in_a_branch, 2), (changed_in_a_branch, 2), (changed_in_a_loop, 3), (in_a_loop, 2)],
)
def test_a_check_of_an_index_is_made_once_while_it_stays_the_same(function, left):
    kernel = kernel_in_form(function)
    body = without_repeated(careful_body(kernel.body, analyse(kernel)))
    found = [node for node in walk(body) if isinstance(node, Check) and "of tensor 'x'" in node.failure.message]
    assert len(found) == left


def test_what_reads_elements_is_asked_again():
    kernel = kernel_in_form(asserted)
    (loop,) = [node for node in kernel.body if isinstance(node, For)]
    twice = replace(loop, body=(*loop.body, *loop.body))
    found = [node for node in walk(without_repeated((twice,))) if isinstance(node, Check)]
    assert len(found) == 4


@pytest.mark.parametrize(("role", "left"), [(Role.SEQUENTIAL, 1), (Role.THREAD, 2), (Role.PARALLEL, 2)])
def test_loops_that_are_shared_out_check_for_themselves(role, left):
    kernel = kernel_in_form(again)

    def shared(statement):
        inner = isinstance(statement, For) and statement.index.name == "j"
        return (replace(statement, role=role) if inner else statement,)

    body = rewrite_statements(careful_body(kernel.body, analyse(kernel)), shared)
    found = [node for node in walk(without_repeated(body)) if isinstance(node, Check)]
    assert sum("of tensor 'x'" in node.failure.message for node in found) == left
