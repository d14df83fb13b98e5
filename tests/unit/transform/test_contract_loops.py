"""Loops of contractions in tiles give what they give as written: rows of several loops, and gradients of windows."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.ir import build
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Assign, For, If, Kernel, Launch, Node, Program, Role
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import read_symbols, rewrite, statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.schedule.contract import ContractionPlanner
from brickwork.transform.schedule.contract_loops import levelled, opened
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.schedule import Contract, Schedule, planned
from brickwork.transform.verbs.apply import apply_schedule
from support import contractions
from support.derivatives import derived
from support.lowering import memory, nested, program_of
from support.scheduling import GPU
from support.tensors import to_memory

Tensor = torch.Tensor
N = 4


def a_bound_goes_with_one_of_several_rows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(2):
        for n in range(2):
            for j in range(N):
                s = 0.0
                for k in range(n, min(n + 3, N)):
                    for m in range(2):
                        s += a[i * 2 + n, (k + m) % N] * b[(k + m) % N, j]
                y[i * 2 + n, j] = s


def a_bound_goes_with_rows_that_begin_later(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(1, N):
        for j in range(N):
            s = 0.0
            for k in range(i):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def bounds_fall(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(2):
            for m in range(2):
                s = 0.0
                for k in range(max(1 - m, 0), N - j):
                    s += a[i, k] * b[k, 2 * j + m]
                y[i, 2 * j + m] = s


def rows_and_columns_of_three_loops(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(2):
        for j in range(1, 2):
            for n in range(2):
                for m in range(3):
                    s = 0.0
                    for k in range(N):
                        s += a[2 * i + n, k] * b[k, j + m]
                    y[2 * i + n, j + m] = s


def a_stop_rises_and_falls(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(1, N):
        for j in range(N):
            s = 0.0
            for k in range(i * 2 % 5):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def a_start_falls_and_rises(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(1, N):
        for j in range(N):
            s = 0.0
            for k in range(i * 3 % 5, N):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def a_range_begins_at_its_row(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(i, N):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def a_batch_is_innermost(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(2):
        for j in range(N):
            for h in range(2):
                s = 0.0
                for k in range(2):
                    s += a[i, k * 2 + h] * b[k * 2 + h, j]
                y[i * 2 + h, j] = s


LEVELLED = [a_bound_goes_with_one_of_several_rows, a_bound_goes_with_rows_that_begin_later, bounds_fall]


def _planned(kernel: Kernel) -> ContractionPlanner:
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    return ContractionPlanner(analysis, GPU, lengths_in(kernel.body))


def _in_tiles(program: Program) -> Program:
    """Return a program with all of its contractions in tiles."""

    def visit(node: Node) -> Node:
        if not isinstance(node, Kernel):
            return node
        planner = _planned(node)
        verbs = [verb for verb in planned(planner.block(node.body)).verbs if isinstance(verb, Contract)]
        return replace(node, body=apply_schedule(node.body, Schedule(tuple(verbs)), planner.analysis))

    return rewrite(program, visit)


def _result(program: Program, given: list[Memory]) -> list[object]:
    copies = [memory(nested(item), item.dtype) for item in given]
    results = run_program(program, copies, check=True)
    return [nested(item) for item in (*copies, *results)]


@pytest.mark.parametrize(
    "function", [*LEVELLED, rows_and_columns_of_three_loops, a_batch_is_innermost], ids=lambda item: item.__name__
)
def test_tiles_have_what_each_row_has(function: Callable[..., None]) -> None:
    given = [memory([[1.0 * i * i + 3 * j + n for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(function, *given))
    tiles = _in_tiles(program)
    verify_program(tiles)
    assert any(node.role.is_tile for node in walk(tiles) if isinstance(node, For))
    assert _result(tiles, given) == _result(program, given)


@pytest.mark.parametrize("function", [a_stop_rises_and_falls, a_start_falls_and_rises])
def test_rows_whose_bounds_rise_and_fall_are_not_in_tiles(function: Callable[..., None]) -> None:
    given = [memory([[1.0 * i * i + 3 * j + n for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(function, *given))
    assert _result(_in_tiles(program), given) == _result(program, given)


STAYING = [rows_and_columns_of_three_loops, a_range_begins_at_its_row]


@pytest.mark.parametrize("function", [*LEVELLED, *STAYING], ids=lambda item: item.__name__)
def test_ranges_go_with_no_rows_that_are_several_loops(function: Callable[..., None]) -> None:
    program = canonical(program_of(function, *[memory([[0.0] * N] * N)] * 3))
    (kernel,) = (node.kernel for node in walk(program) if isinstance(node, Launch))
    planner = _planned(kernel)
    (loop,) = kernel.body
    assert isinstance(loop, For)
    nest = planner.contracted(loop)
    assert nest is not None
    assert nest.leans == (function is a_range_begins_at_its_row)
    body, sides = nest.band[-1].body, (frozenset(nest.rows), frozenset(nest.columns))
    changed = levelled(body, nest.band, sides)
    assert any(isinstance(node, If) for node in walk(changed)) == (function in LEVELLED)
    assert (changed == body) == (function not in LEVELLED)


def test_a_range_that_goes_with_one_loop_of_rows_stays() -> None:
    given = torch.zeros(1, 2, 2), torch.zeros(1, 2, 2)
    program = canonical(derived(contractions.below_diagonal, given))
    (kernel,) = (node.kernel for node in walk(program) if isinstance(node, Launch))
    (loop,) = kernel.body
    assert isinstance(loop, For)
    nest = _planned(kernel).contracted(loop)
    assert nest is not None
    assert nest.leans


def gradient_of_weights(x: Tensor, g: Tensor, y: Tensor) -> None:
    for f in range(y.shape[0]):
        for c in range(x.shape[1]):
            for p in range(y.shape[2]):
                for q in range(y.shape[3]):
                    s = 0.0
                    for n in range(x.shape[0]):
                        for i in range(x.shape[2]):
                            for j in range(x.shape[3]):
                                if 0 <= i + p - 1 < x.shape[2] and 0 <= j + q - 1 < x.shape[3]:
                                    s += g[n, f, i, j] * x[n, c, i + p - 1, j + q - 1]
                    y[f, c, p, q] = s


def gradient_of_input(g: Tensor, w: Tensor, y: Tensor) -> None:
    for n in range(y.shape[0]):
        for c in range(w.shape[1]):
            for i in range(y.shape[2]):
                for j in range(y.shape[3]):
                    s = 0.0
                    for f in range(g.shape[1]):
                        for p in range(min(i + 2, w.shape[2])):
                            if g.shape[2] + p >= i + 2:
                                for q in range(min(j + 2, w.shape[3])):
                                    if g.shape[3] + q >= j + 2:
                                        s += g[n, f, i + 1 - p, j + 1 - q] * w[f, c, p, q]
                    y[n, c, i, j] = s


IMAGE, WEIGHTS = (1, 2, 3, 6), (2, 2, 3, 3)
GRADIENTS = [
    (gradient_of_weights, (IMAGE, IMAGE, WEIGHTS), "j", ["f"]),
    (gradient_of_input, (IMAGE, WEIGHTS, IMAGE), "f", ["c"]),
]


@pytest.mark.parametrize(("function", "sizes", "depth", "rows"), GRADIENTS)
def test_gradients_of_a_convolution_are_contractions(
    function: Callable[..., None], sizes: tuple[tuple[int, ...], ...], depth: str, rows: list[str]
) -> None:
    """That of the input sums over filters and windows, that of the weights over images and places."""
    drawn = [torch.arange(36.0).reshape(size) % (3 + place) for place, size in enumerate(sizes)]
    given = [to_memory(item) for item in drawn]
    program = canonical(program_of(function, *given))
    tiles = _in_tiles(program)
    verify_program(tiles)
    (kernel,) = (node.kernel for node in walk(program) if isinstance(node, Launch))
    nests = [_planned(kernel).contracted(node) for node in statements(kernel.body) if isinstance(node, For)]
    nest = next(nest for nest in nests if nest is not None)
    assert (nest.depth.index.name, [symbol.name for symbol in nest.rows]) == (depth, rows)
    assert Role.CONTRACT in {node.role for node in walk(tiles) if isinstance(node, For)}
    assert _result(tiles, given) == _result(program, given)


def sums_begin_at_a_column(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = 0.0
            for k in range(max(0, j - 2), a.shape[1]):
                s += a[i, k] * b[j, k]
            y[i, j] = s


@pytest.mark.parametrize("function", [sums_begin_at_a_column, contractions.transposed], ids=lambda item: item.__name__)
def test_terms_of_a_tile_that_begin_anywhere_are_not_copied_in_chunks(function: Callable[..., None]) -> None:
    """The host, which chooses between versions, knows no column."""
    given = [memory([[0.0] * N] * N)] * (3 if function is sums_begin_at_a_column else 2)
    program = canonical(program_of(function, *given))
    (kernel,) = (node.kernel for node in walk(program) if isinstance(node, Launch))
    planner = _planned(kernel)
    (loop,) = kernel.body
    assert isinstance(loop, For)
    nest = planner.contracted(loop)
    assert nest is not None
    conditions = [*nest.chunks()]
    assert not read_symbols(conditions) & {node.index for node in nest.band}
    assert any(build.is_constant(item, 0) for item in conditions) == (function is sums_begin_at_a_column)


# ---------------------------------------------------------------- conditions around all of an iteration


def below_the_diagonal(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def of_some_rows_and_columns(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if i + j != 3:
                if a[i, j] > 2.0:
                    s = 1.0
                    for k in range(N):
                        s += a[i, k] * b[k, j]
                    y[i, j] = s


def of_elements_that_are_there(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if i + j < N:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j] * a[i + j, j]
                y[i, j] = s


def otherwise_something_else(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            else:
                y[i, j] = b[i, j]


def nothing_but_the_sum_where_it_holds(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            t = a[i, j]
            if j <= i:
                for k in range(N):
                    t += a[i, k] * b[k, j]
            else:
                y[i, j] = 1.0
            y[i, j] += 2.0 * t


def a_value_is_chosen(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            t = b[j, i]
            if a[i, j] < 4.0 * t:
                s = 1.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                t = s * t
            y[i, j] = t + 1.0


@pytest.mark.parametrize(
    "function",
    [
        below_the_diagonal,
        of_some_rows_and_columns,
        otherwise_something_else,
        nothing_but_the_sum_where_it_holds,
        a_value_is_chosen,
    ],
    ids=lambda item: item.__name__,
)
def test_a_condition_around_all_is_asked_around_the_sum_and_what_follows(function: Callable[..., None]) -> None:
    given = [memory([[1.0 * i * i + 3 * j + n for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(function, *given))
    tiles = _in_tiles(program)
    verify_program(tiles)
    assert any(node.role.is_tile for node in walk(tiles) if isinstance(node, For))
    assert _result(tiles, given) == _result(program, given)


def test_what_is_read_where_a_condition_holds_alone_is_not_read_elsewhere() -> None:
    given = [memory([[1.0 * i + j + n for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(of_elements_that_are_there, *given))
    assert _result(_in_tiles(program), given) == _result(program, given)


def no_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                y[i, j] = a[i, j] * b[i, j]


def something_is_read_before(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if i + j < N:
                s = b[i + j, j]
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def something_is_stored_before(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                y[i, j] = 1.0
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] += s


def the_condition_changes(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        s = 1.0
        for j in range(N):
            if s > 0.0:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def something_stands_beside(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            y[i, j] = 1.0
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def the_other_branch_reads_the_sum(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 2.0
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            else:
                y[i, j] = s


def the_sum_is_read_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 2.0
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def elements_that_are_asked_change(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if y[i, j] > 0.0:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                    y[i, j] = -1.0
                y[i, j] = s


def the_other_branch_has_a_loop(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            else:
                for k in range(N):
                    y[i, j] += b[k, j]


def the_sum_is_scaled_and_read_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 2.0
            if j <= i:
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                s = 2.0 * s
            y[i, j] = s


def what_is_asked_is_assigned_first(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        t = 1.0
        for j in range(N):
            if t > 0.0:
                t = 1.0 - j
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def something_is_repeated(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            if j <= i:
                s = 8.0
                while s > 1.0:
                    s = s / 2.0
                y[i, j] = s


CLOSED = [
    the_sum_is_scaled_and_read_behind,
    what_is_asked_is_assigned_first,
    something_is_repeated,
    the_other_branch_reads_the_sum,
    the_sum_is_read_behind,
    elements_that_are_asked_change,
    the_other_branch_has_a_loop,
    no_sum,
    something_is_read_before,
    something_is_stored_before,
    the_condition_changes,
    something_stands_beside,
]


@pytest.mark.parametrize("function", [below_the_diagonal, *CLOSED], ids=lambda item: item.__name__)
def test_other_conditions_stay_around_all(function: Callable[..., None]) -> None:
    program = program_of(function, *[memory([[0.0] * N] * N)] * 3)
    (body,) = (node.body for node in walk(program) if isinstance(node, For) and node.index.name == "j")
    found = opened(body)
    assert (found == body) == (function in CLOSED)
    if function is below_the_diagonal:
        assert [type(item) for item in found] == [Assign, If, If]
