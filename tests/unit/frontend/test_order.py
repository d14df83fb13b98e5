"""Operands are evaluated from left to right, each before what later ones store."""

import pytest
import torch

from brickwork.frontend.definition import define
from brickwork.frontend.reference import python_function
from support.lowering import memory, nested, run


def bump(t, i):
    t[i] += 1
    return t[i]


def joined(a, b):
    return a * 100 + b


def of_a_builtin(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = max(x[i], bump(x, i) - 10)


def of_a_helper(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = joined(x[i], bump(x, i))


def of_a_chain(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        if x[i] < bump(x, i) < x[i] + 1:
            out[i] = 1


def of_a_tuple(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        a, b = x[i], bump(x, i)
        out[i] = a * 10 + b


def of_an_operator(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i] - 2 * bump(x, i)


@pytest.mark.parametrize("function", [of_a_builtin, of_a_helper, of_a_chain, of_a_tuple, of_an_operator])
def test_an_operand_has_the_value_from_before_what_a_later_one_stores(function):
    x, out = memory([0.0, 1.0, 2.0]), memory([0.0] * 3)
    tensors = torch.tensor(nested(x)), torch.zeros(3)
    run(function, x, out)
    python_function(define(function))(*tensors)
    assert (nested(x), nested(out)) == (tensors[0].tolist(), tensors[1].tolist())


def through_other_names(x: torch.Tensor, out: torch.Tensor) -> None:
    s, t = 0.0, 1.0
    for i in range(x.shape[0]):
        t = x[i]
        s, t = t, s
    s = 7.0
    out[0] = s


def test_a_statement_between_loops_keeps_its_place_whatever_reached_the_name():
    x, out = memory([1.0, 2.0]), memory([0.0])
    run(through_other_names, x, out)
    assert nested(out) == [7.0]


def after_a_while(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        n = 0
        while n < i:
            n += 1
        else:
            s = x[i]
            s += n
            out[i] = s + x[i]


def test_an_else_after_a_while_has_values_in_python_too():
    x, out = memory([1.0, 2.0, 3.0]), memory([0.0] * 3)
    tensors = torch.tensor(nested(x)), torch.zeros(3)
    run(after_a_while, x, out)
    python_function(define(after_a_while))(*tensors)
    assert (nested(x), nested(out)) == (tensors[0].tolist(), tensors[1].tolist()) == ([1.0, 2.0, 3.0], [2.0, 5.0, 8.0])
