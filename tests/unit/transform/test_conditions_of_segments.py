"""Loops are rows of segments only where neighbouring elements that ascend begin and end them, one after the other."""

from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Ascending, Assign, For, Load, Store, Symbol
from brickwork.ir.walk import statements
from brickwork.transform.schedule.segments import headed, segments_of, sunk
from support.lowering import memory
from support.scheduling import kernel_of

Tensor = torch.Tensor
ENDS, TABLE, Y = memory([0, 1, 3], INT64), memory([[0, 1], [1, 3]], INT64), memory([1.0, 2.0, 3.0], FLOAT32)


def rows(ends: Tensor, y: Tensor) -> None:
    for b in range(2):
        for i in range(ends[b], ends[b + 1]):
            y[i] = 1.0


def from_the_second_on(ends: Tensor, y: Tensor) -> None:
    for b in range(1, 3):
        for i in range(ends[b - 1], ends[b]):
            y[i] = 1.0


def of_a_table(table: Tensor, y: Tensor) -> None:
    for c in range(2):
        for b in range(1):
            for i in range(table[c, b], table[c, b + 1]):
                y[i] = 1.0


def of_two(ends: Tensor, y: Tensor) -> None:
    for b in range(1):
        for i in range(ends[b], ends[b + 2]):
            y[i] = 1.0


def of_pairs(ends: Tensor, y: Tensor) -> None:
    for b in range(1):
        for i in range(ends[2 * b], ends[2 * b + 1]):
            y[i] = 1.0


def of_one_row(ends: Tensor, y: Tensor) -> None:
    for c in range(2):
        for b in range(2):
            for i in range(ends[c], ends[c + 1]):
                y[i] = 1.0


def from_the_first(ends: Tensor, y: Tensor) -> None:
    for b in range(2):
        for i in range(ends[b + 1]):
            y[i] = 1.0


def to_the_last(ends: Tensor, y: Tensor) -> None:
    for b in range(2):
        for i in range(ends[b], y.shape[0]):
            y[i] = 1.0


def from_one_more(ends: Tensor, y: Tensor) -> None:
    for b in range(2):
        for i in range(ends[b] + 1, ends[b + 1]):
            y[i] = 1.0


def along_a_diagonal(table: Tensor, y: Tensor) -> None:
    for b in range(1):
        for i in range(table[b, b], table[b, b + 1]):
            y[i] = 1.0


def at_a_variable(ends: Tensor, y: Tensor) -> None:
    for b in range(1):
        q = b + 1
        for i in range(ends[q], ends[q + 1]):
            y[i] = 1.0


def of_a_copy(ends: Tensor, y: Tensor) -> None:
    for b in range(2):
        first = ends[b]
        copy = first
        for i in range(copy, ends[b + 1]):
            y[i] = 1.0


def found(function, ascending=True, most=True, known=True):
    """Return the segments of the last two loops of a function."""
    kernel = kernel_of(function, TABLE if "table" in function.__annotations__ else ENDS, Y)
    given, rows_of = kernel.tensors
    sizes = (build.size(rows_of, 0),) if most else ()
    kernel = replace(kernel, ascending=(Ascending(given, sizes),) if ascending else ())
    *band, row = (node for node in statements(kernel.body) if isinstance(node, For))
    heads = tuple(node for node in band[-1].body if isinstance(node, Assign))
    if not known:
        row = replace(row, index=Symbol("i", 1000, INT64))
    return segments_of(band, heads, row, analyse(kernel))


@pytest.mark.parametrize("function", [rows, from_the_second_on, of_a_table])
def test_rows_of_segments(function):
    segments = found(function)
    assert segments is not None
    assert segments.first.tensor.name in {"ends", "table"}
    assert segments.around.index.name == "b"
    assert segments.most == build.size(segments.row.body[-1].tensor, 0)


@pytest.mark.parametrize(
    "function",
    [
        of_two,
        of_pairs,
        of_one_row,
        from_the_first,
        to_the_last,
        from_one_more,
        along_a_diagonal,
        at_a_variable,
        of_a_copy,
    ],
)
def test_other_rows(function):
    assert found(function) is None


def test_rows_of_which_too_little_is_known():
    assert found(rows, ascending=False) is None
    assert found(rows, most=False) is None
    assert found(rows, known=False) is None


def test_loops_of_which_nothing_is_known():
    kernel = kernel_of(rows, ENDS, Y)
    kernel = replace(kernel, ascending=(Ascending(kernel.tensors[0], (build.size(kernel.tensors[1], 0),)),))
    outer, row = (node for node in statements(kernel.body) if isinstance(node, For))
    heads = tuple(node for node in outer.body if isinstance(node, Assign))
    assert segments_of([replace(outer, index=Symbol("b", 1000, INT64))], heads, row, analyse(kernel)) is None


# ---------------------------------------------------------------- what is read first

B, C, E, F = (Symbol(name, number, INT64) for number, name in enumerate("bcef"))
TENSOR = kernel_of(rows, ENDS, Y).tensors[0]


def read(symbol, at, tensor=TENSOR):
    load = Load(tensor=tensor, indices=(build.read(at),), access=0, dtype=INT64)
    return Assign(symbol=symbol, value=load)


def store(value):
    return Store(tensor=TENSOR, indices=(build.integer(0),), value=value, access=1)


def band_of(*body):
    inner = For(index=C, start=build.integer(0), stop=build.integer(2), body=body)
    return [For(index=B, start=build.integer(0), stop=build.integer(2), body=(inner,)), inner]


def test_elements_that_the_outer_loop_says_are_read_once():
    head, last = read(E, B), store(build.read(E))
    assert sunk(band_of(head, last)) == (1, (head,), (last,))


@pytest.mark.parametrize(
    "body",
    [
        (store(build.read(B)),),
        (read(E, C), store(build.read(E))),
        (read(E, F), store(build.read(E))),
        (read(E, B), read(F, E), store(build.read(F))),
        (read(E, B), store(build.read(E)), read(E, C)),
    ],
)
def test_what_stays_inside(body):
    assert sunk(band_of(*body)) == (0, (), body)


def test_a_loop_behind_what_is_assigned_first():
    head, inner = read(E, B), band_of(store(build.read(B)))[0]
    assert headed((head, inner)) == ((head,), inner)
    assert headed((inner,)) is None
    assert headed((head,)) is None
    assert headed((head, store(build.read(E)), inner)) is None
    assert headed((store(build.read(B)), inner)) is None
