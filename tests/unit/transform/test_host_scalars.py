"""Long computations of scalars alone, made by the host."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from brickwork.ir.nodes import Apply, Assign, Kernel, Launch, Node
from brickwork.ir.walk import statements, walk
from support.lowering import numbers
from support.ptx import program_for_gpu
from support.scheduling import GPU, same
from support.shared import schedule_program


def corrected(x: Tensor, b: float, t: int) -> None:
    for i in range(x.shape[0]):
        x[i] = x[i] / (1 - b**t) + math.exp(b**t) * x.shape[0]


def integers(x: Tensor, n: int, m: int) -> None:
    for i in range(x.shape[0]):
        if m != 0:
            x[i] += math.log(n // m + 1.0)


def of_elements(x: Tensor, b: float, t: int) -> None:
    for i in range(x.shape[0]):
        x[i] = math.exp(x[i] * b)


def of_an_element(x: Tensor, b: float, t: int) -> None:
    for i in range(1, x.shape[0]):
        x[i] = math.exp(x[0])


def of_sums(x: Tensor, b: float, t: int) -> None:
    for i in range(x.shape[0]):
        x[i] = x[i] * math.exp(b * (t + 1))


def of_places(x: Tensor, b: float, t: int) -> None:
    for i in range(x.shape[0]):
        x[i] = b**i


def of_variables(x: Tensor, b: float, t: int) -> None:
    for i in range(x.shape[0]):
        c = b
        for _ in range(t):
            c = c * x[i]
        x[i] = math.exp(c)


def cheap(x: Tensor, b: float, t: int) -> None:
    for i in range(x.shape[0]):
        x[i] = x[i] * (1 - b)


def left(function: Callable[..., object], *arguments: object) -> tuple[int, set[str]]:
    """Return how many variables the host computes so, and the long operators that are left in kernels."""
    program, _ = schedule_program(program_for_gpu(function, *arguments), GPU)
    made = [node for node in program.body if isinstance(node, Assign) and node.symbol.name == "scalar"]
    kernels: list[Kernel] = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    inside: list[Node] = [node for kernel in kernels for node in walk(kernel.body)]
    found = {node.operator.name for node in inside if isinstance(node, Apply)}
    return len(made), found & {"pow", "exp", "log"}


@pytest.mark.parametrize("function", [corrected, of_elements, of_an_element, of_sums, of_places, of_variables, cheap])
def test_values(function: Callable[..., object]) -> None:
    same(function, numbers(5), 0.5, 3)


@pytest.mark.parametrize("divisor", [0, 2])
def test_a_divisor_is_tested_before(divisor: int) -> None:
    same(integers, numbers(5), 7, divisor)


def test_what_the_host_computes() -> None:
    x = torch.ones(4)
    assert left(corrected, x, 0.5, 3) == (2, set())
    assert left(of_elements, x, 0.5, 3) == (0, {"exp"})
    assert left(of_an_element, x, 0.5, 3) == (0, {"exp"})
    assert left(of_sums, x, 0.5, 3) == (1, set())
    assert left(of_places, x, 0.5, 3) == (0, {"pow"})
    assert left(of_variables, x, 0.5, 3) == (0, {"exp"})
    assert left(integers, x, 7, 2) == (0, {"log"})
    assert left(cheap, x, 0.5, 3) == (0, set())
