"""Loops of contractions in tiles give what they give as written: rows of several loops, and gradients of windows."""

from collections.abc import Callable

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.nodes import For, If, Launch, Role
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.schedule.contract_loops import levelled
from support import contractions
from support.contracted import in_tiles, planned_for, result
from support.derivatives import derived
from support.lowering import memory, program_of
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


@pytest.mark.parametrize(
    "function", [*LEVELLED, rows_and_columns_of_three_loops, a_batch_is_innermost], ids=lambda item: item.__name__
)
def test_tiles_have_what_each_row_has(function: Callable[..., None]) -> None:
    given = [memory([[1.0 * i * i + 3 * j + n for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(function, *given))
    tiles = in_tiles(program)
    verify_program(tiles)
    assert any(node.role.is_tile for node in walk(tiles) if isinstance(node, For))
    assert result(tiles, given) == result(program, given)


@pytest.mark.parametrize("function", [a_stop_rises_and_falls, a_start_falls_and_rises])
def test_rows_whose_bounds_rise_and_fall_are_notin_tiles(function: Callable[..., None]) -> None:
    given = [memory([[1.0 * i * i + 3 * j + n for j in range(N)] for i in range(N)]) for n in range(3)]
    program = canonical(program_of(function, *given))
    assert result(in_tiles(program), given) == result(program, given)


STAYING = [rows_and_columns_of_three_loops, a_range_begins_at_its_row]


@pytest.mark.parametrize("function", [*LEVELLED, *STAYING], ids=lambda item: item.__name__)
def test_ranges_go_with_no_rows_that_are_several_loops(function: Callable[..., None]) -> None:
    program = canonical(program_of(function, *[memory([[0.0] * N] * N)] * 3))
    (kernel,) = (node.kernel for node in walk(program) if isinstance(node, Launch))
    planner = planned_for(kernel)
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
    nest = planned_for(kernel).contracted(loop)
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
    tiles = in_tiles(program)
    verify_program(tiles)
    (kernel,) = (node.kernel for node in walk(program) if isinstance(node, Launch))
    nests = [planned_for(kernel).contracted(node) for node in statements(kernel.body) if isinstance(node, For)]
    nest = next(nest for nest in nests if nest is not None)
    assert (nest.depth.index.name, [symbol.name for symbol in nest.rows]) == (depth, rows)
    assert Role.CONTRACT in {node.role for node in walk(tiles) if isinstance(node, For)}
    assert result(tiles, given) == result(program, given)


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
    planner = planned_for(kernel)
    (loop,) = kernel.body
    assert isinstance(loop, For)
    nest = planner.contracted(loop)
    assert nest is not None
    conditions = [*nest.chunks()]
    assert not read_symbols(conditions) & {node.index for node in nest.band}
    assert any(build.is_constant(item, 0) for item in conditions) == (function is sums_begin_at_a_column)
