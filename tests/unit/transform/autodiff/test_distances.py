"""Gradients of what is read at a distance, clamped or not: loops over elements in lanes, distances inside in order."""

import math

import torch

from brickwork.ir.nodes import Apply, Assign, For, Program, Role
from brickwork.ir.walk import read_symbols, walk
from support.gradients import check_gradients, derived, numbers
from support.scheduling import scheduled


def correlated(a: torch.Tensor, b: torch.Tensor, r: int) -> torch.Tensor:
    n = a.shape[0]
    out = torch.zeros((2 * r + 1, n), dtype=a.dtype)
    for d in range(-r, r + 1):
        for i in range(max(0, -d), min(n, n - d)):
            out[d + r, i] = a[i] * b[i + d]
    return out


def filtered(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = 0.0
            for d in range(-1, 2):
                y = min(max(j + d, 0), x.shape[1] - 1)
                s += math.exp(x[i, y] - x[i, j])
            out[i, j] = s
    return out


def test_loops_over_distances_begin_at_one_place_for_all_elements():
    program = check_gradients(correlated, numbers(5), numbers(5), 2)
    starts = [node.start for node in walk(program) if isinstance(node, For) and node.index.name == "d"]
    indices = {node.index for node in walk(program) if isinstance(node, For)}
    assert starts
    assert not any(read_symbols(start) & indices for start in starts)


def elements(program: Program) -> list[For]:
    return [node for node in walk(program) if isinstance(node, For) and node.index.name == "x_gradient_1"]


def test_what_is_read_where_a_clamped_index_leads_is_read_at_the_element():
    turned, _ = elements(check_gradients(filtered, numbers(2, 4)))
    values = [node.value for node in walk(turned) if isinstance(node, Assign)]
    chosen = {node.operator.name for node in walk(values) if isinstance(node, Apply)}
    assert "exp" in chosen
    assert not chosen & {"minimum", "maximum"}


def test_elements_take_the_lanes_and_not_windows_that_end_early():
    loops = elements(scheduled(derived(filtered, (numbers(2, 4),))))
    assert {node.role for node in loops} == {Role.VECTOR}
