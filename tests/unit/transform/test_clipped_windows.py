"""Windows whose ends are kept inside of a tensor, or are quotients: how long they are, and who goes along them."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir.nodes import For, If, Launch, Role
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_expression
from brickwork.ir.walk import walk
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.short_rows import FEW_ROWS
from support.lowering import argument_type, numbers
from support.scheduling import GPU, kernel_of, same
from support.shared import define, lower, schedule_program


def filtered(x: torch.Tensor, f: torch.Tensor, before: int, after: int):
    """Insert zeros, pad and filter, as an image is doubled: a window begins at a quotient, and ends by a size."""
    rows, columns = f.shape
    height, width = x.shape[1] * 2 + before + after - rows + 1, x.shape[2] * 2 + before + after - columns + 1
    out = torch.empty(x.shape[0], height, width, dtype=torch.float32)
    for c in range(x.shape[0]):
        for oy in range(height):
            for ox in range(width):
                mid_y = oy + 1 - before
                in_y = min(max(mid_y // 2, 0), x.shape[1])
                first_y = mid_y + rows - (in_y + 1) * 2
                mid_x = ox + 1 - before
                in_x = min(max(mid_x // 2, 0), x.shape[2])
                first_x = mid_x + columns - (in_x + 1) * 2
                s = 0.0
                for i in range(min(max((mid_y + rows) // 2, 0), x.shape[1]) - in_y):
                    for j in range(min(max((mid_x + columns) // 2, 0), x.shape[2]) - in_x):
                        s += x[c, in_y + i, in_x + j] * f[first_y - i * 2, first_x - j * 2]
                out[c, oy, ox] = s
    return out


def pooled(x: torch.Tensor, n: int):
    """Add up as many parts of a row as there are to be, each as long as the others or one longer."""
    out = torch.empty(n, dtype=torch.float32)
    for o in range(n):
        s = 0.0
        for j in range(o * x.shape[0] // n, (o * x.shape[0] + x.shape[0] + n - 1) // n):
            s += x[j]
        out[o] = s
    return out


def spread(x: torch.Tensor, f: torch.Tensor, before: int):
    """Add what each place of a doubled row has to the few elements that it was made of."""
    y = torch.zeros(x.shape[0] // 2, dtype=torch.float32)
    for o in range(x.shape[0]):
        mid = o + 1 - before
        at = min(max(mid // 2, 0), y.shape[0])
        for j in range(min(max((mid + f.shape[0]) // 2, 0), y.shape[0]) - at):
            y[at + j] += x[o] * f[mid + f.shape[0] - (at + 1) * 2 - j * 2]
    return y


def reached(x: torch.Tensor, m: int):
    """Stop where a quotient by another number ends: it may be anywhere."""
    out = torch.empty(x.shape[0], dtype=torch.float32)
    for o in range(x.shape[0]):
        s = 0.0
        for j in range(o // 3, (o + m) // 2):
            s += x[j]
        out[o] = s
    return out


X, F = numbers(2, 4, 3), numbers(4, 4)


def lengths(function, *arguments):
    kernel = kernel_of(function, *arguments)
    loops = {node.index.name: node for node in walk(kernel) if isinstance(node, For)}
    found = lengths_in(kernel.body)
    return {
        name: None if (most := found.most(loop)) is None else print_expression(most) for name, loop in loops.items()
    }


@pytest.mark.parametrize(
    ("function", "arguments", "known"),
    [(filtered, (X, F, 2, 1), {"i", "j"}), (pooled, (numbers(9), 4), {"j"}), (reached, (numbers(9), 3), set())],
)
def test_windows_are_as_long_as_what_lies_between_their_ends(function, arguments, known):
    found = lengths(function, *arguments)
    inner = {name for name, length in found.items() if length is not None and name in {"i", "j"}}
    assert inner == known


def test_all_that_windows_read_is_in_range():
    """isl would combine all choices of limits, and run out of steps, did comparisons not rule most of them out."""
    kernel = kernel_of(filtered, X, F, 2, 1)
    assert {verdict.bound for verdict in analyse(kernel).bounds.values()} == {Bound.PROVED}


@pytest.mark.parametrize("before", [-3, 0, 2, 30])
def test_windows_agree(before):
    same(filtered, X, F, before, 1)
    same(pooled, numbers(9), before + 4)
    same(spread, numbers(18), numbers(4), before)


def test_neighbouring_threads_take_neighbouring_windows():
    """Not channels, for which the filter is the same: they lie far apart."""
    signature = Signature(tuple(map(argument_type, (X, F, 2, 1))), device="cuda", narrow=True, aligned=True)
    program = schedule_program(lower(define(filtered), signature), GPU)[0]
    kernels = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    assert {[node.index.name for node in walk(each) if isinstance(node, For)][2] for each in kernels} == {"ox"}


@pytest.mark.parametrize(("function", "arguments"), [(filtered, (X, F, 2, 1)), (spread, (numbers(18), numbers(4), 2))])
def test_a_thread_takes_a_short_window_whose_neighbours_read_neighbours(function, arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = schedule_program(lower(define(function), signature), GPU)[0]
    few = {
        id(node)
        for each in walk(program)
        if isinstance(each, If) and each.version == FEW_ROWS
        for node in walk(each.then)
    }
    kernels = [node.kernel for node in walk(program) if isinstance(node, Launch) and id(node) not in few]
    loops = [node for node in walk(kernels) if isinstance(node, For) and node.index.name.startswith("o")]
    assert {node.role for node in loops} == {Role.PARALLEL}
