"""Places that go round an axis are turned around with few iterations for each element."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
import torch

from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import For, Program
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.gather import gather
from brickwork.transform.scratch import Names
from support.lowering import program_of, strides

Tensor = torch.Tensor


def numbers(*sizes: int) -> Memory:
    """Return a tensor of small integers: sums of them are exact in any order."""
    total = 1
    for size in sizes:
        total *= size
    return Memory([float(place * 7 % 11 - 5) for place in range(total)], sizes, strides(sizes), FLOAT32)


def rolled(g: Tensor, n: int, shift: int) -> Tensor:
    """Add the rows of windows to an axis that begins elsewhere. g: (windows, size) -> (n,)."""
    x = torch.zeros(n)
    for w in range(g.shape[0]):
        for i in range(g.shape[1]):
            x[(w * g.shape[1] + i - shift) % x.shape[0]] += g[w, i]
    return x


def tiles(g: Tensor, n: int, shift: int) -> Tensor:
    """Add windows of two axes. g: (rows, columns, size, size) -> (n, n)."""
    x = torch.zeros(n, n)
    for v in range(g.shape[0]):
        for w in range(g.shape[1]):
            for i in range(g.shape[2]):
                for j in range(g.shape[3]):
                    y = (v * g.shape[2] + i - shift) % x.shape[0]
                    x[y, (w * g.shape[3] + j - shift) % x.shape[1]] += g[v, w, i, j]
    return x


def backwards(g: Tensor, n: int, shift: int) -> Tensor:
    """Go round an axis from its end."""
    x = torch.zeros(n)
    for w in range(g.shape[0]):
        for i in range(g.shape[1]):
            x[(shift - w - 2 * i) % x.shape[0]] += g[w, i]
    return x


def gathered(program: Program) -> Program:
    """Return the program in gather form, verified."""
    changed = gather(program, Names(count(10_000), count(10_000), count(10_000)))
    verify_program(changed)
    return changed


@pytest.mark.parametrize("n", [1, 3, 6, 7])
@pytest.mark.parametrize("shift", [0, 2, -1, 9, -20])
@pytest.mark.parametrize(
    ("function", "sizes"), [(rolled, (3, 2)), (rolled, (0, 2)), (tiles, (3, 2, 2, 3)), (backwards, (4, 3))]
)
def test_each_contribution_is_added_once(
    function: Callable[..., Tensor], sizes: tuple[int, ...], n: int, shift: int
) -> None:
    arguments = numbers(*sizes), n, shift
    program = program_of(function, *arguments)
    changed = gathered(program)
    assert _result(changed, arguments) == _result(program, arguments)


@pytest.mark.parametrize(("function", "sizes"), [(rolled, (8, 4)), (tiles, (8, 8, 4, 4))])
def test_an_element_looks_at_windows_around_it_alone(function: Callable[..., Tensor], sizes: tuple[int, ...]) -> None:
    """Loops over the windows would be in each element as long as there are windows."""
    program = gathered(program_of(function, numbers(*sizes), 32, 3))
    loops = [node.index.name for node in walk(program.body) if isinstance(node, For)]
    found = [name for name in loops if name in {"turn", "w", "v"}]
    assert found[: len(sizes)] == ["turn", "v", "turn", "w"][-len(sizes) :]  # then those of the nest as it was


def _result(program: Program, arguments: tuple[object, ...]) -> list[float]:
    (found,) = run_program(program, arguments)
    return list(found.data)
