"""Parts of an axis, and places of several digits, are gathered with one iteration for each element."""

from __future__ import annotations

import pytest
import torch

from brickwork.ir.nodes import Allocate, For, Store
from brickwork.ir.walk import read_symbols, walk
from support.lowering import program_of
from unit.transform.autodiff.test_gather import gathered, kernel_of, numbers, results


def parts(g: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each iteration adds to one of two tensors."""
    p, q = a.shape[0], b.shape[0]
    left, right = torch.zeros((p,)), torch.zeros((q,))
    for j in range(p + q):
        if j < p:
            left[j] += g[j]
        else:
            right[j - p] += g[j]
    return left, right


def both(g: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each iteration adds to both, if not always."""
    p, q = a.shape[0], b.shape[0]
    left, right = torch.zeros((p,)), torch.zeros((q,))
    for j in range(p + q):
        if j < p:
            left[j] += g[j]
        if j < q:
            right[j] += g[j]
    return left, right


def digits(g: torch.Tensor) -> torch.Tensor:
    """Pixels are taken from channels."""
    xb = torch.zeros((4 * g.shape[0], g.shape[1] // 2, g.shape[2] // 2))
    for c in range(g.shape[0]):
        for y in range(g.shape[1]):
            for z in range(g.shape[2]):
                xb[c * 4 + (y % 2) * 2 + z % 2, y // 2, z // 2] += g[c, y, z]
    return xb


SIZES = [(0, 0), (3, 0), (0, 2), (3, 2), (2, 5)]


@pytest.mark.parametrize("function", [parts, both])
@pytest.mark.parametrize(("p", "q"), SIZES)
def test_parts_are_what_iterations_add(function, p, q):
    arguments = (numbers(p + q), numbers(p), numbers(q))
    program = program_of(function, *arguments)
    assert results(gathered(program), arguments) == results(program, arguments)


def test_what_one_branch_adds_to_is_written_once():
    program = gathered(program_of(parts, numbers(5), numbers(3), numbers(2)))
    assert not [node for node in program.body if isinstance(node, Allocate) and node.fill is not None]


def test_what_an_iteration_adds_to_two_tensors_stays():
    kernel = kernel_of(gathered(program_of(both, numbers(5), numbers(3), numbers(2))))
    stores = [node for node in walk(kernel) if isinstance(node, Store)]
    assert len(stores) == 2
    assert sum(isinstance(node, For) for node in walk(kernel)) == 1


@pytest.mark.parametrize("sizes", [(0, 2, 2), (2, 4, 6), (1, 2, 2), (3, 2, 0)])
def test_digits_of_a_place_are_found(sizes):
    program = program_of(digits, numbers(*sizes))
    changed = gathered(program)
    assert results(changed, (numbers(*sizes),)) == results(program, (numbers(*sizes),))
    inside = [node for node in walk(kernel_of(changed)) if isinstance(node, For)][3:]
    assert inside
    assert all(read_symbols((loop.start,)) for loop in inside)


def windows(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Columns of windows, each of which is of one channel and one place."""
    h = g.shape[1]
    xb = torch.zeros(x.shape)
    for c in range(x.shape[0] // 9):
        for dy in range(3):
            for dx in range(3):
                for y in range(h):
                    for z in range(h):
                        if 0 <= y + dy - 1 < h and 0 <= z + dx - 1 < h:
                            xb[(c * 3 + dy) * 3 + dx, y * h + z] += g[c, y + dy - 1, z + dx - 1]
    return xb


def test_elements_do_not_go_through_all_channels_to_find_the_one_of_theirs():
    arguments = numbers(2, 4, 4), numbers(18, 16)
    program = program_of(windows, *arguments)
    changed = gathered(program)
    assert results(changed, arguments) == results(program, arguments)
    loops = [node for node in walk(kernel_of(changed)) if isinstance(node, For)]
    assert all(read_symbols((loop.start, loop.stop)) for loop in loops[3:]) or len(loops) == 5
