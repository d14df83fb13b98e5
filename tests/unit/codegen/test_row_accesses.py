"""Which elements a thread goes along in rows of its own: records of an iteration, and steps of a loop in order."""

import pytest
import torch

from brickwork.codegen.grid import Form, grid_of
from brickwork.codegen.row_accesses import WHOLE, records, steps
from brickwork.codegen.variables import bound_symbols, varying_symbols
from brickwork.ir.nodes import For, Launch, Role
from brickwork.ir.walk import statements, walk
from brickwork.transform.pipeline import schedule_program
from support.ptx import program_for_gpu
from support.scheduling import GPU

X, Y = torch.zeros(64, 12), torch.zeros(64, 12)
WIDE = torch.zeros(64, 100)


def grids(function, *tensors):
    """Return the kernels whose threads take an iteration each, outermost conditions first."""
    program, _ = schedule_program(program_for_gpu(function, *tensors), GPU)
    kernels = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    found = [(kernel, grid_of(kernel)) for kernel in kernels]
    return [(kernel, grid) for kernel, grid in found if grid.form is Form.PARALLEL and grid.width == 1]


def records_of(function, *tensors):
    kernel, grid = grids(function, *tensors)[0]
    found = records(grid.body, varying_symbols(grid.loops[-1]), bound_symbols(kernel.body), kernel.facts)
    return {item.tensor.name: (item.low, item.sizes, item.most, item.loaded, item.stored) for item in found}


def steps_of(function, *tensors):
    kernel, grid = grids(function, *tensors)[0]
    around = [loop.index for loop in grid.loops]
    loops = [node for node in statements(grid.body) if isinstance(node, For) and node.role is Role.SEQUENTIAL]
    found = [
        item
        for loop in loops
        for item in steps(loop, varying_symbols(grid.loops[-1]), bound_symbols(kernel.body), around)
    ]
    return {(item.tensor.name, item.step, item.beyond, item.loaded, item.stored) for item in found}


def few(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 1] = x[i, 2]
        y[i, 2] = x[i, 4]
        y[i, 3] = y[i, 2] * 2.0


def test_records_are_boxes_with_what_is_loaded_between():
    assert records_of(few, X, Y) == {"x": ((2,), (3,), 3, True, False), "y": ((1,), (3,), 3, True, True)}
    assert records_of(few, torch.zeros(64, 24)[:, ::2], torch.zeros(12, 64).T) == {}


def gap(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 1] = x[i, 2]
        y[i, 3] = x[i, 2]


def branch(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 0] = 1.0
        if x[i, 2] > 0:
            y[i, 1] = x[i, 3]


def beyond(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 0] = 1.0
        y[i, 1] = y[i, 5]


def other_rows(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0] - 1):
        y[i, 0] = x[i, 0] + x[i + 1, 1]
        y[i, 1] = 0.0


def at_data(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(3):
            s += x[i, (i + k) % 3]
        y[i, 0] = s


def one_for_all(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 0] = x[3, 0] + x[3, 1]


@pytest.mark.parametrize("function", [gap, branch, beyond, at_data, one_for_all])
def test_what_is_no_record(function):
    assert records_of(function, X, Y) == {}


def test_a_tensor_of_which_two_rows_are_accessed_is_none():
    assert records_of(other_rows, X, Y) == {"y": ((0,), (2,), 2, False, True)}


def whole(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(x.shape[1]):
            s = max(s, x[i, k])
        for k in range(x.shape[1]):
            y[i, k] = x[i, k] - s


def test_short_rows_are_records_of_all_their_elements():
    found = records_of(whole, torch.empty(64, 5), torch.empty(64, 5))
    assert found == {"x": ((0,), (WHOLE,), 15, True, False)}


def like(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(x.shape[1]):
            s = max(s, x[i, k])
        for k in range(x.shape[1]):
            y[i, k] = x[i, k] - s
    return y


def test_rows_that_are_known_to_be_as_long_are_stored_whole():
    assert records_of(like, X)["y"] == ((0,), (WHOLE,), 15, False, True)


def matrices(m: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(m.shape[0]):
        s = 0.0
        for j in range(2):
            for k in range(3):
                s = max(s - 1.0, m[i, k, j])
                y[i, j, k] = s


def test_records_along_two_axes():
    found = records_of(matrices, torch.zeros(64, 3, 3), torch.zeros(64, 2, 3))
    assert found == {"m": ((0, 0), (3, 2), 6, True, False), "y": ((0, 0), (2, 3), 6, False, True)}


def running(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(2, x.shape[1]):
            s = max(s * 0.5, x[r, t] - x[r, t - 2])
            y[r, t - 1] = s


def backwards(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        for k in range(1, x.shape[1]):
            t = x.shape[1] - 1 - k
            y[r, t] = max(x[r, t], y[r, t + 1])


def test_steps_forwards_and_backwards():
    assert steps_of(running, WIDE, WIDE) == {("x", 1, 2, True, False), ("y", 1, 0, False, True)}
    assert steps_of(backwards, WIDE, WIDE) == {("x", -1, 0, True, False), ("y", -1, 1, False, True)}
    assert steps_of(running, torch.zeros(100, 64).T, torch.zeros(100, 64).T) == set()


def stored_late(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(1, x.shape[1] - 1):
            s = max(s - 1.0, y[r, t + 1])
            y[r, t] = s


def sometimes(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1]):
            s = s * 0.5 + 1.0
            if s > 1.5:
                y[r, t] = x[r, t]


def two_rows(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0] - 1):
        s = 0.0
        for t in range(x.shape[1]):
            s = max(s - 1.0, x[r, t] + x[r + 1, t])
        y[r, 0] = s


def every_second(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1] // 2):
            s = max(s - 1.0, x[r, 2 * t])
        y[r, 0] = s


def where_it_came_to(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s, at = 0.0, 0
        for t in range(x.shape[1]):
            s = max(s - 1.0, x[r, at])
            at = t
        y[r, 0] = s


def of_other_lengths(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(min(r, x.shape[1])):
            s = max(s - 1.0, x[r, t])
        y[r, 0] = s


def to_the_first(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1]):
            s = max(s - 1.0, x[r, t])
            if s > 3.0:
                break
        y[r, 0] = s


@pytest.mark.parametrize(
    "function", [stored_late, sometimes, two_rows, every_second, where_it_came_to, of_other_lengths, to_the_first]
)
def test_what_is_no_steps(function):
    assert steps_of(function, WIDE, WIDE) == set()


def flat(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(64):
        s = 0.0
        for t in range(x.shape[0] // 64):
            s = max(s - 1.0, x[r * (x.shape[0] // 64) + t])
        y[r] = s


def window(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(64):
        s = 0.0
        for t in range(x.shape[0] - 64):
            s = max(s - 1.0, x[r + t])
        y[r] = s


def test_rows_of_one_axis_and_windows():
    assert steps_of(flat, torch.zeros(6400), torch.zeros(64)) == {("x", 1, 0, True, False)}
    assert steps_of(window, torch.zeros(6400), torch.zeros(64)) == set()
