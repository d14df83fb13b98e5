"""Names that stand for one thing before a loop and for another in it or after it: as in Python, or refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw


def argument_in_the_head(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(3)
    for n in range(3):
        out[n] = x[n]
    out[0] = n
    return out


def argument_in_an_inner_head(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(3)
    for i in range(3):
        for n in range(2):
            out[i] += x[n]
        out[i] += n
    return out


def size_in_the_head(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(3)
    m = x.shape[0]
    for m in range(3):
        out[m] = x[m] + n
    m = m + 1
    out[0] = m
    return out


def one_name_in_two_heads(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(3)
    for i in range(3):
        for i in range(2):
            out[i] += x[i]
        out[i] += n
    return out


def size_that_loops_count(x: torch.Tensor, n: int) -> torch.Tensor:
    count = 0
    for i in range(n):
        if x[i % 3] > 0:
            count += 1
    out = torch.zeros(count)
    for i in range(count):
        out[i] = i
    return out


def argument_in_the_head_of_a_piece(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros(3)
    for n in range(3):
        out[n] = x[n]
    return out * n


RIGHT = [
    argument_in_the_head,
    argument_in_an_inner_head,
    size_in_the_head,
    one_name_in_two_heads,
    size_that_loops_count,
    argument_in_the_head_of_a_piece,
]


@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__name__)
def test_a_name_outlives_its_loop(function: Callable[..., torch.Tensor]) -> None:
    operator, x = bw.op(f"reused::{function.__name__}")(function), torch.tensor([-1.0, 2.0, 3.0])
    expected = function(x, 7)
    assert torch.equal(operator(x, 7), expected)
    assert torch.equal(operator.python(x, 7), expected)


def replaces_the_result(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(3)
    for i in range(3):
        out = x[i]
    return out


def replaces_an_argument(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(3)
    for i in range(3):
        x = x[i]
        out[i] = x
    return out


def replaces_a_tuple(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(3)
    pair = (1.0, 2.0)
    for i in range(3):
        pair = x[i]
    out[0] = pair[0]
    return out


@pytest.mark.parametrize("function", [replaces_the_result, replaces_an_argument, replaces_a_tuple])
def test_a_number_takes_no_name_of_a_tensor_or_tuple(function: Callable[..., Any]) -> None:
    operator = bw.op(f"reused::{function.__name__}")(function)
    with pytest.raises(bw.CompileError, match="before the loop, and a number in it"):
        operator(torch.ones(3))
