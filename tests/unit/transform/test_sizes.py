"""What is computed of sizes and arguments alone is computed once by the host; the rest stays where it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Assign, Launch
from brickwork.ir.walk import walk
from brickwork.transform.canonical.sizes import name_sizes
from brickwork.transform.scratch import names_of
from support.lowering import memory, numbers, program_of

Tensor = torch.Tensor
I6 = memory([1, 2, 3, 4, 5, 6], INT64)


def of_a_size(x: Tensor, k: Tensor, n: int, h: float) -> None:
    for i in range(3):
        x[i * (k.shape[0] // 3)] += 1.0


def of_an_argument(x: Tensor, k: Tensor, n: int, h: float) -> None:
    for i in range(3):
        x[i * (n // 2)] += 1.0


def of_a_power(x: Tensor, k: Tensor, n: int, h: float) -> None:
    for i in range(3):
        x[i * (2**n)] += 1.0


def of_an_element(x: Tensor, k: Tensor, n: int, h: float) -> None:
    for i in range(3):
        x[i * (k[0] // 3)] += 1.0


def of_an_index(x: Tensor, k: Tensor, n: int, h: float) -> None:
    for i in range(3):
        x[i * ((i + 2) // 2)] += 1.0


def of_a_float(x: Tensor, k: Tensor, n: int, h: float) -> None:
    for i in range(3):
        x[i * (int(h * 2.0) // 2)] += 1.0


def of_a_choice(x: Tensor, k: Tensor, n: int, h: float) -> None:
    for i in range(3):
        x[i * ((2 if n > 1 else 4) // 2)] += 1.0


def of_a_comparison(x: Tensor, k: Tensor, n: int, h: float) -> None:
    for i in range(3):
        x[i * ((n > 1) // 2)] += 1.0


def named(function: Callable[..., object]) -> list[Assign]:
    """Return what the host computes for the loops of a function."""
    program = program_of(function, numbers(9), I6, 2, 0.5)
    return [node for node in name_sizes(program.body, names_of(program)) if isinstance(node, Assign)]


@pytest.mark.parametrize("function", [of_a_size, of_an_argument, of_a_power])
def test_sizes_are_named(function: Callable[..., object]) -> None:
    (size,) = named(function)
    assert size.symbol.name == "size"


@pytest.mark.parametrize("function", [of_an_element, of_an_index, of_a_float, of_a_choice, of_a_comparison])
def test_what_is_no_size_stays(function: Callable[..., object]) -> None:
    assert not named(function)


def test_the_kernel_is_given_the_size() -> None:
    program = program_of(of_an_argument, numbers(9), I6, 2, 0.5)
    body = name_sizes(program.body, names_of(program))
    (kernel,) = (node.kernel for node in walk(body) if isinstance(node, Launch))
    assert [symbol.name for symbol in kernel.scalars] == ["size"]
