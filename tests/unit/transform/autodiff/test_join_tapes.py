"""Tapes that one expression alone reads, kept as what it computes."""

import torch

from brickwork.ir.nodes import Allocate, Load, Program
from brickwork.ir.walk import statements, walk
from support.gradients import check_gradients, numbers


def heat(u: torch.Tensor, k: torch.Tensor, steps: int) -> torch.Tensor:
    a = torch.empty_like(u)
    b = torch.empty_like(u)
    for i in range(u.shape[0]):
        a[i] = u[i]
        b[i] = u[i]
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            b[i] = a[i] + k[i] * (a[i - 1] - 2 * a[i] + a[i + 1])
        a, b = b, a
    return a


def products(u: torch.Tensor, steps: int) -> torch.Tensor:
    a = torch.empty_like(u)
    b = torch.empty_like(u)
    for i in range(u.shape[0]):
        a[i] = u[i]
        b[i] = u[i]
    for _ in range(steps):
        for i in range(1, u.shape[0]):
            b[i] = a[i] * a[i - 1]
        a, b = b, a
    return a


def tapes(program: Program) -> int:
    return sum(isinstance(node, Allocate) and "tape" in node.tensor.name for node in statements(program.body))


def test_neighbours_of_a_stencil_take_one_tape():
    program = check_gradients(heat, numbers(5), numbers(5), 2)
    assert tapes(program) == 1
    assert sum(isinstance(node, Load) and "tape" in node.tensor.name for node in walk(program)) == 1


def test_values_that_are_needed_apart_stay_apart():
    assert tapes(check_gradients(products, numbers(4), 2)) == 2
