"""Conditions of accumulating loops are asked as far out as they are known, and nothing else changes."""

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Continue, For, If, Launch
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.transform.pipeline import schedule_kernel
from support.lowering import memory, program_of
from support.scheduling import AVX2, agree


def window(x: torch.Tensor, w: torch.Tensor, stride: int, padding: int):
    """Sum what lies under a window that may hang over the border."""
    height, width = x.shape
    rows, columns = w.shape
    out = torch.empty(height, width, dtype=torch.float64)
    for y in range(height):
        for z in range(width):
            s = 0.0
            for u in range(rows):
                for v in range(columns):
                    i = y * stride + u - padding
                    j = z + v - padding
                    if 0 <= i < height and 0 <= j < width:
                        s += x[i, j] * w[u, v]
            out[y, z] = s
    return out


def skipped(x: torch.Tensor, w: torch.Tensor, stride: int, padding: int):
    """Sum what lies under a window, and leave out what hangs over the border."""
    height, width = x.shape
    out = torch.empty(height, width, dtype=torch.float64)
    for y in range(height):
        for z in range(width):
            s = 0.0
            for u in range(w.shape[0]):
                i = y * stride + u - padding
                if i < 0 or i >= height:
                    continue
                for v in range(w.shape[1]):
                    j = z + v - padding
                    if j < 0:
                        continue
                    if j >= width or i == j:
                        continue
                    s += x[i, j] * w[u, v]
            out[y, z] = s
    return out


def remembered(x: torch.Tensor, w: torch.Tensor):
    """Carry the last place out of the loop, and on to the next condition."""
    out = torch.empty(len(x), dtype=torch.float64)
    for y in range(len(x)):
        s = 0.0
        j = 0
        for v in range(len(w)):
            j = y + v - 1
            if 0 <= j < len(x):
                s += x[j] * w[v]
        out[y] = s + j
    return out


def turning(x: torch.Tensor, w: torch.Tensor):
    """Ask of what the branch itself changes."""
    out = torch.empty(len(x), dtype=torch.float64)
    for y in range(len(x)):
        s = 0.0
        left = 2
        for v in range(len(w)):
            if left > 0 and y > 1:
                s += x[y] * w[v]
                left = left - 1
        out[y] = s
    return out


def late(x: torch.Tensor, w: torch.Tensor):
    """Read a variable before the turn sets it."""
    out = torch.empty(len(x), dtype=torch.float64)
    for y in range(len(x)):
        s = 0.0
        j = y
        for v in range(len(w)):
            i = j
            j = v
            if i < 2:
                s += x[0] * w[v] + i
        out[y] = s
    return out


def read_again(x: torch.Tensor, at: torch.Tensor):
    """Ask of elements that the loop changes."""
    for y in range(len(x)):
        for v in range(len(x)):
            if at[y] > 0:
                x[v] += 1.0
                at[y] -= 1


def loops(function, *arguments):
    """Return the loops of a function by name, as they are before the schedule is written into them."""
    (launch,) = [node for node in walk(program_of(function, *arguments)) if isinstance(node, Launch)]
    body = schedule_kernel(launch.kernel, AVX2).source.body
    return {node.index.name: node for node in statements(body) if isinstance(node, For)}


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 1), (1, 2), (2, 1), (-1, 3), (0, 0)])
@pytest.mark.parametrize("size", [1, 5, 19])
def test_windows_at_borders_sum_what_they_did(size, stride, padding):
    x = memory([[float(7 * i + j) for j in range(size)] for i in range(3)], FLOAT64)
    w = memory([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], FLOAT64)
    agree(window, x, w, stride, padding)
    agree(skipped, x, w, stride, padding)


def test_each_condition_is_asked_where_it_is_known_first():
    found = loops(window, memory([[0.0]], FLOAT64), memory([[0.0]], FLOAT64), 1, 1)
    (rows,), (columns,) = found["u"].body, found["v"].body
    assert isinstance(rows, If)
    assert rows.then == (found["v"],)
    assert isinstance(columns, If)
    names = [{symbol.name for symbol in read_symbols(each.condition)} for each in (rows, columns)]
    assert names == [{"y", "u", "stride", "padding"}, {"z", "v", "padding"}]


def test_what_comes_after_continue_is_a_branch():
    found = loops(skipped, memory([[0.0]], FLOAT64), memory([[0.0]], FLOAT64), 1, 1)
    (rows,), (columns,) = found["u"].body, found["v"].body
    assert isinstance(rows, If)
    assert rows.then == (found["v"],)
    assert isinstance(columns, If)
    assert not any(isinstance(node, Continue) for node in walk(found["y"]))


@pytest.mark.parametrize("function", [remembered, turning, late])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_what_passes_between_turns_stays(function, size):
    x, w = memory([float(i + 1) for i in range(size)], FLOAT64), memory([1.0, 2.0, 4.0], FLOAT64)
    agree(function, x, w)


def test_conditions_on_elements_stay():
    agree(read_again, memory([0.0, 0.0, 0.0], FLOAT64), memory([2, 0, 9], INT64))
    found = loops(read_again, memory([0.0], FLOAT64), memory([0], INT64))
    assert not any(isinstance(item, If) for item in found["y"].body)
