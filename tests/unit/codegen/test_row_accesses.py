"""Which elements a thread goes along in rows of its own: records of an iteration, and steps of a loop in order."""

from dataclasses import replace

import pytest
import torch

from brickwork.codegen.grid import Form, grid_of
from brickwork.codegen.row_accesses import WHOLE, records, steps
from brickwork.codegen.variables import bound_symbols, varying_symbols
from brickwork.ir import build
from brickwork.ir.nodes import Check, For, Launch, Role, Size
from brickwork.ir.walk import rewrite_statements, statements, walk
from support.ptx import program_for_gpu
from support.scheduling import GPU
from support.shared import schedule_program

X, Y = torch.zeros(64, 12), torch.zeros(64, 12)
WIDE = torch.zeros(64, 100)


def grids(function, *tensors):
    """Return the kernels whose threads take an iteration each, outermost conditions first."""
    program, _ = schedule_program(program_for_gpu(function, *tensors), GPU)
    kernels = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    found = [(kernel, grid_of(kernel)) for kernel in kernels]
    return [(kernel, grid) for kernel, grid in found if grid.form is Form.PARALLEL and grid.width == 1]


def records_of(function, *tensors, facts=None):
    kernel, grid = grids(function, *tensors)[0]
    facts = kernel.facts if facts is None else facts
    found = records(grid.body, varying_symbols(grid.loops[-1]), bound_symbols(kernel.body), facts)
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
    assert set(records_of(few, torch.zeros(64, 24)[:, ::2], Y)) == {"y"}
    assert set(records_of(few, torch.zeros(64, 24)[:, :12], Y)) == {"x", "y"}


def gap(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 1] = x[i, 2]
        y[i, 3] = x[i, 2]


def branch(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 0] = 1.0
        y[i, 1] = 2.0
        if x[i, 2] > 0:
            y[i, 2] = x[i, 3]


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


def other_branch(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = x[i, 2] + x[i, 4]
        y[i, 0] = 1.0
        y[i, 1] = 2.0
        if s > 0:
            s = s * s
        else:
            y[i, 2] = x[i, 3] + s
        y[i, 0] = s


def updated(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i // 2, 0] += x[i, 0]
        y[i // 2, 1] += x[i, 0]


def some_more(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = x[i, 1]
        for k in range(x.shape[1]):
            s = max(s - 1.0, x[i, k])
        y[i, 0] = s


def in_a_while(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = x[i, 1]
        while s < 3.0:
            s = s * s + 1.0 + x[i, 2]
        y[i, 0] = s


def in_other_loops(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(i):
            for k in range(3):
                s = max(s - 1.0, x[i, k])
        y[i, 0] = s


def at_a_variable(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s, at = 0.0, 0
        for k in range(3):
            s = max(s - 1.0, x[i, at])
            at = k
        y[i, 0] = s


def too_many(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(9):
            for k in range(9):
                s = max(s - 1.0, x[i, j] - x[i, k])
        y[i, 0] = s


@pytest.mark.parametrize(
    "function",
    [gap, branch, other_branch, beyond, at_data, one_for_all, some_more, in_a_while, in_other_loops, at_a_variable],
)
def test_what_is_no_record(function):
    assert records_of(function, X, Y) == {}


def test_what_is_updated_by_several_threads_is_no_record():
    assert "y" not in records_of(updated, X, Y)


def test_records_have_few_elements():
    assert records_of(too_many, X, Y)["x"][2] == 9
    assert records_of(many, torch.zeros(64, 9, 9), Y) == {}


def many(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(9):
            for k in range(9):
                s = max(s - 1.0, x[i, j, k])
        y[i, 0] = s


def parts(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(2):
            for k in range(x.shape[2]):
                s = max(s - 1.0, x[i, j, k])
        y[i, 0] = s


def columns(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0, 1] + x[i, 1, 1]


@pytest.mark.parametrize("function", [parts, columns])
def test_records_along_two_axes_lie_together(function):
    x = torch.zeros(64, 2, 3)
    assert records_of(function, x, Y, facts=limits(function, x, Y)) == {}


def limits(function, *tensors, most=3):
    """Return facts that say that all axes are short."""
    kernel, _ = grids(function, *tensors)[0]
    sizes = [Size(tensor=item, axis=axis) for item in kernel.tensors for axis in range(1, item.type.rank)]
    return tuple(build.apply("le", size, build.integer(most)) for size in sizes)


def half(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[0], x.shape[1], 2)
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(x.shape[1]):
            s = max(s - 1.0, x[i, k])
            y[i, k, 0] = s
        y[i, 1, 1] = s
    return y


def test_what_is_not_stored_whole_is_no_record():
    kernel, _ = grids(half, X)[-1]
    body = without_checks(grids(half, X)[-1][1].body)
    x, y = sorted(kernel.tensors, key=lambda item: item.type.rank)
    facts = (build.apply("eq", Size(tensor=y, axis=1), Size(tensor=x, axis=1)), *limits(half, X))
    grid = grids(half, X)[-1][1]
    found = records(body, varying_symbols(grid.loops[-1]), bound_symbols(kernel.body), facts)
    assert y not in {item.tensor for item in found}


def without_checks(body):
    return rewrite_statements(body, lambda statement: () if isinstance(statement, Check) else (statement,))


def test_bodies_that_check_have_none():
    (_, fast), *_, (kernel, careful) = grids(few, X, Y)
    assert fast.body != careful.body
    assert any(isinstance(node, Check) for node in statements(careful.body))
    assert records(careful.body, varying_symbols(careful.loops[-1]), bound_symbols(kernel.body), ()) == []


def test_loops_without_iterations_access_nothing():
    kernel, grid = grids(too_many, X, Y)[0]

    def visit(statement):
        return (replace(statement, stop=statement.start) if isinstance(statement, For) else statement,)

    body = rewrite_statements(grid.body, visit)
    found = records(body, varying_symbols(grid.loops[-1]), bound_symbols(kernel.body), ())
    assert "x" not in {item.tensor.name for item in found}


def in_one_plane(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[1]):
        y[i, 0] = x[1, i, 0] + x[1, i, 1]


def test_one_of_the_indices_of_a_row_is_enough():
    assert set(records_of(in_one_plane, torch.zeros(2, 64, 4), Y)) == {"x"}
    assert set(records_of(in_one_plane, torch.zeros(2, 64, 8)[:, :, :4], Y)) == {"x"}


def between(x: torch.Tensor, n: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(n[i, 0], n[i, 1]):
            s = s * 0.5 + 1.0
        y[i, 0] = s


def by_index(x: torch.Tensor, n: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i, 0] = n[n[i, 2] % n.shape[0], 0] + n[n[i, 2] % n.shape[0], 1]


def test_records_of_numbers_that_say_how_long_loops_are():
    n = torch.zeros(64, 3, dtype=torch.int64)
    assert records_of(between, X, n, Y) == {"n": ((0,), (2,), 2, True, False)}
    kernel, grid = grids(by_index, X, n, Y)[0]
    body = without_checks(grid.body)
    found = records(body, varying_symbols(grid.loops[-1]), bound_symbols(kernel.body), ())
    assert "n" not in {item.tensor.name for item in found}


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


def test_lengths_are_known_from_what_is_equal_and_below():
    kernel, _ = grids(like, X)[0]
    x, y = (Size(tensor=tensor, axis=1) for tensor in kernel.tensors)
    same = build.apply("eq", y, x)
    for name, least in (("lt", 8), ("le", 7), ("eq", 7)):
        found = records_of(like, X, facts=(build.apply(name, x, build.integer(least)), same))
        assert {item[2] for item in found.values()} == {7}
    assert set(records_of(like, X, facts=(build.apply("le", x, build.integer(7)),))) == {kernel.tensors[0].name}
    assert records_of(like, X, facts=(same, build.apply("ge", x, build.integer(7)))) == {}
    assert records_of(like, X, facts=(build.apply("ge", y, x),)) == {}
    assert records_of(like, X, facts=()) == {}
    rows = build.apply("le", Size(tensor=x.tensor, axis=0), build.integer(3))
    assert records_of(like, X, facts=(rows, same)) == {}
    assert set(records_of(like, X, facts=limits(like, X))) == {x.tensor.name}


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
    found = records_of(matrices, torch.zeros(64, 3, 6)[:, :, :3], torch.zeros(64, 2, 3))
    assert set(found) == {"y"}


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
    assert steps_of(backwards, WIDE, WIDE) == {("x", -1, 0, True, False), ("y", -1, 0, False, True)}
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


def in_other_rows(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s, q = 0.0, r
        for t in range(x.shape[1]):
            q = (q * 3 + 1) % x.shape[0]
            s = max(s - 1.0, x[q, t])
        y[r, 0] = s


def moved_on(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s, q = 0.0, 0
        for t in range(x.shape[1]):
            s = max(s - 1.0, x[r, t + q])
            q = (q * 3 + 1) % 5
        y[r, 0] = s


def test_places_that_move_on_by_themselves_are_no_steps():
    kernel, grid = grids(moved_on, WIDE, WIDE)[0]
    (loop,) = [node for node in statements(without_checks(grid.body)) if isinstance(node, For)]
    around = [each.index for each in grid.loops]
    found = steps(loop, varying_symbols(grid.loops[-1]), bound_symbols(kernel.body), around)
    assert "x" not in {item.tensor.name for item in found}


def twice(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1]):
            for u in range(2):
                s = max(s * s - u, x[r, t])
        y[r, 0] = s


def test_what_a_step_reads_in_short_loops_is_read_if_these_run():
    assert steps_of(twice, WIDE, WIDE) == {("x", 1, 0, True, False)}
    kernel, grid = grids(twice, WIDE, WIDE)[0]
    (loop,) = [node for node in grid.body if isinstance(node, For)]

    def visit(statement):
        inner = isinstance(statement, For) and statement.index != loop.index
        return (replace(statement, stop=statement.start) if inner else statement,)

    loop = replace(loop, body=rewrite_statements(loop.body, visit))
    around = [each.index for each in grid.loops]
    assert steps(loop, varying_symbols(grid.loops[-1]), bound_symbols(kernel.body), around) == []


def in_the_same_row(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = r * 1.0
        for t in range(x.shape[1]):
            s = max(s - 1.0, x[3, t])
        y[r, 0] = s


def along_diagonals(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1] - x.shape[0]):
            s = max(s - 1.0, x[r, t + r])
        y[r, 0] = s


def far_apart(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1] // 2):
            s = max(s - 1.0, x[r, t] - x[r, t + x.shape[1] // 2])
        y[r, 0] = s


def by_squares(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(10):
            for u in range(x.shape[1]):
                s = max(s - 1.0, x[r, t * t])
        y[r, 0] = s


def in_a_whole_loop(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1]):
            for u in range(y.shape[1]):
                s = max(s - 1.0, x[r, t])
        y[r, 0] = s


@pytest.mark.parametrize(
    "function",
    [in_other_rows, in_the_same_row, along_diagonals, far_apart, by_squares, in_a_whole_loop],
)
def test_what_does_not_go_along_rows(function):
    assert not {item for item in steps_of(function, WIDE, WIDE) if item[0] == "x"}


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


def chunks(x: torch.Tensor, y: torch.Tensor) -> None:
    size = x.shape[0] // 64
    for r in range(64):
        s = 0.0
        for t in range(r * size, min(r * size + size, x.shape[0])):
            s = max(s - 1.0, x[t])
        y[r] = s


def chunks_of_other_lengths(x: torch.Tensor, y: torch.Tensor) -> None:
    size = x.shape[0] // 64
    for r in range(64):
        s = 0.0
        for t in range(r * size, min(2 * r * size, x.shape[0])):
            s = max(s - 1.0, x[t])
        y[r] = s


def windows_from_there(x: torch.Tensor, y: torch.Tensor) -> None:
    for r in range(64):
        s = 0.0
        for t in range(r, r + x.shape[0] - 64):
            s = max(s - 1.0, x[t])
        y[r] = s


def test_chunks_of_rows():
    """Chunks are as long as one another, and begin far apart."""
    assert steps_of(chunks, torch.zeros(6400), torch.zeros(64)) == {("x", 1, 0, True, False)}
    assert steps_of(chunks_of_other_lengths, torch.zeros(6400), torch.zeros(64)) == set()
    assert steps_of(windows_from_there, torch.zeros(6400), torch.zeros(64)) == set()


def test_rows_of_one_axis_and_windows():
    assert steps_of(flat, torch.zeros(6400), torch.zeros(64)) == {("x", 1, 0, True, False)}
    assert steps_of(window, torch.zeros(6400), torch.zeros(64)) == set()
