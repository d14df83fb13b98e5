"""Windows that are kept inside of borders are turned around with the choices that say where they begin."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
import torch

from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.effects import effects
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Program, Store
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.gather import gather
from brickwork.transform.canonical.form import canonical
from brickwork.transform.scratch import Names
from support.lowering import program_of, strides

Tensor = torch.Tensor


def numbers(*sizes: int) -> Memory:
    """Return a tensor of small integers: sums of them are exact in any order."""
    total = 1
    for size in sizes:
        total *= size
    return Memory([float(place * 7 % 11 - 5) for place in range(total)], sizes, strides(sizes), FLOAT32)


def windows(g: Tensor, w: Tensor) -> Tensor:
    """Add to a neighbourhood of each element, which is moved inside at borders."""
    x = torch.zeros(g.shape[0], g.shape[1])
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            top = min(max(i - w.shape[0] // 2, 0), g.shape[0] - w.shape[0])
            left = min(max(j - w.shape[1] // 2, 0), g.shape[1] - w.shape[1])
            for a in range(w.shape[0]):
                for c in range(w.shape[1]):
                    x[top + a, left + c] += g[i, j] * w[a, c]
    return x


def apart(g: Tensor, w: Tensor) -> Tensor:
    """Take every second element of neighbourhoods, the lower border first; and look back far."""
    x = torch.zeros(g.shape[0], g.shape[1])
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            top = max(min(i - 2, g.shape[0] - 5), 0)
            left = min(max(j - 5, 0), g.shape[1] - 5)
            for a in range(3):
                for c in range(3):
                    x[top + 2 * a, left + 4 - 2 * c] += g[i, j] * w[a, c]
    return x


def before(g: Tensor, w: Tensor) -> Tensor:
    """Begin one element before the border: indices of -1 are of the last element."""
    x = torch.zeros(g.shape[0], g.shape[1])
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            top = min(max(i - 1, 0), g.shape[0] - 3)
            left = min(max(j - 1, 0), g.shape[1] - 3)
            for a in range(3):
                for c in range(3):
                    x[top + a - 1, left + c - 1] += g[i, j] * w[a, c]
    return x


def nearest(g: Tensor, w: Tensor) -> Tensor:
    """Add to the nearest elements inside: many are those at borders."""
    x = torch.zeros(g.shape[0], g.shape[1])
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            for a in range(w.shape[0]):
                for c in range(w.shape[1]):
                    y = min(max(i + a - 1, 0), g.shape[0] - 1)
                    z = min(max(j + c - 1, 0), g.shape[1] - 1)
                    x[y, z] += g[i, j] * w[a, c]
    return x


def doubled(g: Tensor, w: Tensor) -> Tensor:
    """Begin windows at twice the place: they are as far from it as the tensor is long."""
    x = torch.zeros(2 * g.shape[0] + 2, 2 * g.shape[1] + 2)
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            top = min(max(2 * i - 1, 0), x.shape[0] - w.shape[0])
            left = min(max(2 * j - 1, 0), x.shape[1] - w.shape[1])
            for a in range(w.shape[0]):
                for c in range(w.shape[1]):
                    x[top + a, left + c] += g[i, j] * w[a, c]
    return x


def moved(g: Tensor, w: Tensor) -> Tensor:
    """Move a window by the place in it, too."""
    x = torch.zeros(g.shape[0], g.shape[1])
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            for a in range(3):
                for c in range(3):
                    top = min(max(i - a, 0), g.shape[0] - 3)
                    left = min(max(j - c, 0), g.shape[1] - 3)
                    x[top + a, left + c] += g[i, j] * w[a, c]
    return x


def ways(g: Tensor, w: Tensor) -> Tensor:
    """Choose by two conditions at once."""
    x = torch.zeros(g.shape[0] + 8, g.shape[1] + 8)
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            top = i if i > 2 and i < 6 else i + 1
            left = j if j > 2 and j < 6 else min(j + 1, 4)
            for a in range(w.shape[0]):
                for c in range(w.shape[1]):
                    x[top + a, left + c] += g[i, j] * w[a, c]
    return x


def turned(program: Program) -> Program:
    result = gather(canonical(program), Names(count(500_000), count(500_000), count(500_000)))
    verify_program(result)
    return result


def results(program: Program, *arguments: Memory) -> list[float]:
    (result,) = run_program(program, list(arguments), check=True)
    return [*result.data]


SIZES = [(5, 5, 3, 3), (9, 6, 3, 3), (6, 9, 4, 5), (7, 7, 1, 7), (7, 8, 7, 2), (1, 1, 1, 1)]
WIDER = [(3, 4, 4, 5), (2, 9, 3, 3), (9, 2, 3, 3)]
"""Windows that are wider than the tensor begin before it: such indices count from the end."""
CASES = (
    *((function, sizes) for function in (windows, nearest, doubled, ways) for sizes in SIZES),
    *((windows, sizes) for sizes in WIDER),
    *(
        (function, (*sizes, 3, 3))
        for function in (apart, before, moved)
        for sizes in ((5, 5), (6, 9), (9, 5), (12, 12))
    ),
)


@pytest.mark.parametrize(("function", "sizes"), CASES)
def test_each_addition_is_made_once(function: Callable[..., Tensor], sizes: tuple[int, int, int, int]) -> None:
    n, m, k, l = sizes
    arguments = numbers(n, m), numbers(k, l)
    program = program_of(function, *arguments)
    assert results(turned(program), *arguments) == results(program, *arguments)


def adds(program: Program) -> list[bool]:
    """Return of each store of a program whether it adds to what is there."""
    stores = [node for node in walk(program) if isinstance(node, Store)]
    return [node.tensor in effects(node.value).loads for node in stores]


@pytest.mark.parametrize("function", [windows, apart])
def test_elements_of_windows_are_written_once(function: Callable[..., Tensor]) -> None:
    assert not all(adds(turned(program_of(function, numbers(1, 1), numbers(1, 1)))))


@pytest.mark.parametrize("function", [before, doubled, moved])
def test_other_windows_are_added_to(function: Callable[..., Tensor]) -> None:
    assert all(adds(turned(program_of(function, numbers(1, 1), numbers(1, 1)))))
