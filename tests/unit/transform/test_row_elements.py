"""Elements of rows that ascend, in one loop for all of them: where rows are few, and nothing else is done in a row."""

# pyright: basic
from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Ascending, Assign, For, Launch, Load, Size, Symbol, While
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform import row_elements
from brickwork.transform.canonical.form import canonical
from support.launches import as_launched
from support.lowering import argument_type, memory, nested
from support.scheduling import GPU, same, way
from support.shared import define, lower, schedule_program


def scaled(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Change each element of a row by what the row has."""
    for e in range(len(p) - 1):
        s = y[e] + e
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] * 2 + s


def powers(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Go along another tensor for each element, up to where it is large."""
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            s = x[i]
            for k in range(len(y)):
                s = s * 0.5 + y[k] * e
                if s > 5:
                    break
            x[i] = s


def inner_rows(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Take some of the rows."""
    for e in range(1, len(p) - 2):
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] * 2 + e


def two_stores(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Store into two tensors, of which one is shorter."""
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            x[i] = e
            y[i] = x[i] + 1


def sums(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Add up the elements of each row."""
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            y[e] += x[i]


def carried(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Each element depends on the one before it in the row."""
    for e in range(len(p) - 1):
        s = 0.0
        for i in range(p[e], p[e + 1]):
            s = s * 0.5 + x[i]
            x[i] = s


def read_before(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """A row begins with what its first element was before."""
    for e in range(len(p) - 1):
        if p[e] < p[e + 1]:
            s = x[p[e]]
            for i in range(p[e], p[e + 1]):
                x[i] = x[i] + s


def kept_before(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """A row begins with what its first element was before; no condition stands around it."""
    for e in range(len(p) - 1):
        s = x[min(p[e], len(x) - 1)]
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] + s


def two_in_a_row(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Go through each row twice."""
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] * 2
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] + e


def other_places(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Rows that reach over the next one."""
    for e in range(len(p) // 2):
        for i in range(p[2 * e], p[2 * e + 2]):
            x[i] = x[i] * 2 + e


def from_elsewhere(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """How many rows there are is an element, too."""
    for e in range(min(p[0], len(p) - 1)):
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] * 2 + e


def emptied(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Add all elements up at places that they say."""
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            y[int(x[i])] += x[i]
            x[i] = 0.0


def counted_all(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Count the elements that are changed."""
    count = 0
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            if x[i] > 1:
                count += 1
            x[i] = x[i] * 2
    y[0] = count


def from_the_first_on(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Number the elements of each row, which each row does at the same places."""
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] + 1
            y[i - p[e]] = e


def stored_before(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Store for each row, also for those without elements."""
    for e in range(len(p) - 1):
        y[e] = e + 3.0
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] * 2 + e


def begun_elsewhere(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """With which row to begin is an element, too."""
    for e in range(max(min(p[0], 1), 0), len(p) - 1):
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] * 2 + e


def rows_after(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Take the row after each."""
    for e in range(len(p) - 2):
        for i in range(p[e + 1], p[e + 2]):
            x[i] = x[i] * 2 + e


def every_second(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Take every second row."""
    for e in range(len(p) // 2):
        for i in range(p[2 * e], p[2 * e + 1]):
            x[i] = x[i] * 2 + e


def read_where_stored(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Read for a row what may be stored, but for its place: that is not asked."""
    z = torch.zeros(9, 2, dtype=x.dtype)
    for e in range(len(p) - 1):
        s = z[e, 0] + y[e]
        for i in range(p[e], p[e + 1]):
            z[i, 1] = x[i] + s
    for i in range(len(x)):
        x[i] = z[i, 1]


def at_places(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    """Read for a row at a place that an element says."""
    for e in range(len(p) - 1):
        s = y[int(y[e])]
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] * 2 + s


TAKEN = [scaled, powers, inner_rows, two_stores]
LEFT = [sums, carried, read_before, kept_before, two_in_a_row, other_places, from_elsewhere]
LEFT += [
    emptied,
    counted_all,
    from_the_first_on,
    stored_before,
    begun_elsewhere,
    rows_after,
    every_second,
    read_where_stored,
    at_places,
]
X = memory([float(i % 5) for i in range(9)], FLOAT64)
Y = memory([0.5, 1.5, -2.0, 3.0, 1.0, 2.0, 0.0, 1.0], FLOAT64)
ENDS = [
    [0, 2, 2, 5, 8],
    [2, 3, 3, 3, 7],
    [0, 0, 0, 0, 8],
    [3, 3, 3],
    [0, 8],
    [4],
    [0, 4, 1, 5, 6],
    [0, 2, 9],
    [-2, 1, 3],
]


def searches(function) -> bool:
    """Return whether a loop over elements looks for their rows."""
    signature = Signature(
        tuple(map(argument_type, (memory([0, 2], INT64), X, Y))), device="cuda", narrow=True, aligned=True
    )
    kernels = schedule_program(lower(define(function), signature), GPU)[1]
    return any(isinstance(node, While) for item in kernels for node in walk(item.kernel))


@pytest.mark.parametrize("function", TAKEN)
def test_elements_of_rows_are_one_loop(function) -> None:
    assert searches(function)


@pytest.mark.parametrize("function", LEFT)
def test_rows_that_are_more_than_their_elements_are_as_they_were(function) -> None:
    assert not searches(function)


@pytest.mark.parametrize("function", [*TAKEN, *LEFT])
@pytest.mark.parametrize("ends", ENDS)
def test_rows_are_the_same_in_one_loop(function, ends) -> None:
    same(function, memory(ends, INT64), X, Y)


@pytest.mark.parametrize("function", [scaled, at_places])
@pytest.mark.parametrize("ends", [[0, 2, 2, 5], [0, 0, 4, 5], [4, 4, 4, 4], [9, 9, 9, 9]])
@pytest.mark.parametrize("read", [[0.0, 2.0, 1.0], [0.0, 2.0], [], [1.0, 5.0, 1.0]])
def test_what_a_row_without_elements_reads_may_be_out_of_range(function, ends, read) -> None:
    def given():
        return [memory(ends, INT64), memory([1.0] * 9, FLOAT64), memory(read, FLOAT64)]

    signature = Signature(tuple(map(argument_type, given())), device="cuda", narrow=True, aligned=True)
    found, after = list[str](), list[object]()
    for pieces, run in (
        (way(function, signature), run_program),
        (way(function, signature, GPU), as_launched(run_program, (IndexError,))),
    ):
        arguments, failure = given(), ""
        try:
            run(pieces, arguments, check=True)
        except IndexError:
            failure = "IndexError"
        found.append(failure)
        after.append(nested(arguments[1]))
    assert found[0] == found[1]
    assert found[0] or after[0] == after[1]


def test_few_rows_have_one_loop_and_many_have_theirs() -> None:
    """A row more than the machine has blocks, each with no element or one."""
    target, signature = GPU, Signature(tuple(map(argument_type, (memory([0], INT64), X, Y))), device="cuda")
    program = way(inner_rows, signature, target)
    blocks = target.threads // target.block_threads
    for rows in (blocks - 1, blocks):
        ends = [min(place // 100, 9) for place in range(rows + 3)]
        x, wanted = memory([0.0] * 9, FLOAT64), [0.0] * 9
        for e in range(1, rows + 1):
            for i in range(ends[e], ends[e + 1]):
                wanted[i] = float(e)
        run_program(program, [memory(ends, INT64), x, Y])
        assert nested(x) == wanted


@bw.op("rows::drawn")
def drawn(p: torch.Tensor, x: torch.Tensor):
    """Draw a number for each element."""
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            x[i] = bw.rand()


def test_what_draws_is_as_it_was() -> None:
    """Which number an iteration draws depends on the loops around it."""
    p, x = torch.tensor([0, 2, 5]), torch.zeros(6)
    assert "while" not in drawn.inspect("schedule", p, x, device="sm_90")
    assert "while" in kept.inspect("schedule", p, x, device="sm_90")


@bw.op("rows::kept")
def kept(p: torch.Tensor, x: torch.Tensor):
    """Leave each element."""
    for e in range(len(p) - 1):
        for i in range(p[e], p[e + 1]):
            x[i] = 0.5


def begun_by_arguments(p: torch.Tensor, x: torch.Tensor, y: torch.Tensor, n: int):
    """As many rows as an argument says."""
    for e in range(n):
        s = y[e]
        for i in range(p[e], p[e + 1]):
            x[i] = x[i] + s


def parts():
    """Return a kernel, what is said of it, its loop over rows, that over elements, and the elements that end rows."""
    arguments = memory([0, 2], INT64), X, Y, 1
    program = canonical(lower(define(begun_by_arguments), Signature(tuple(map(argument_type, arguments)))))
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    p, x = (next(item for item in kernel.tensors if item.name == name) for name in "px")
    kernel = replace(kernel, ascending=(Ascending(p, (Size(tensor=x, axis=0),)),))
    around = next(item for item in kernel.body if isinstance(item, For))
    row = around.body[-1]
    ends = [item.value for item in around.body if isinstance(item, Assign) and isinstance(item.value, Load)]
    return kernel, analyse(kernel), around, row, [end for end in ends if end.tensor == p]


def found(kernel, analysis, around, row, **other):
    """Return what is found of rows that are others in something."""
    row = replace(row, **{name: other.pop(name) for name in ("start", "stop") if name in other})
    around = replace(around, body=(*around.body[:-1], row), **other)
    return row_elements._rows(around, kernel, analysis)


def test_ends_of_rows_may_stand_in_loops_themselves() -> None:
    kernel, analysis, around, row, (begin, end) = parts()
    known = found(kernel, analysis, around, row)
    heads = tuple(item for item in around.body[:-1] if not isinstance(item, Assign) or item.value not in (begin, end))
    assert known is not None
    assert len(heads) == len(around.body) - 3
    bare = replace(around, body=(*heads, row))
    again = found(kernel, analysis, bare, row, start=begin, stop=end)
    assert again is not None
    assert (again.heads, again.ends) == (heads, known.ends)
    assert {*again.guards} == {*known.guards}
    alone = found(kernel, analysis, replace(around, body=(row,)), row, start=begin, stop=end)
    assert alone is not None
    first, second = (row_elements._guards((at,), analysis) or () for at in (begin, end))
    assert {*alone.guards} == {*first, *second}
    assert {*first} - {*second}
    assert {*second} - {*first}


def test_rows_end_by_neighbours_in_a_tensor_that_ascends() -> None:
    kernel, analysis, around, row, (begin, end) = parts()
    (item,) = kernel.ascending
    another = next(tensor for tensor in kernel.tensors if tensor != item.tensor)
    other, elsewhere = replace(item, tensor=another), replace(end, tensor=another)
    last = build.read(Symbol("last", 999, INT64))
    assert found(kernel, analysis, around, row, start=begin, stop=end) is not None
    for ends in (
        {"start": build.integer(0)},
        {"stop": last},
        {"stop": elsewhere},
        {"start": end, "stop": begin},
    ):
        assert found(kernel, analysis, around, row, **ends) is None, ends
    for ascending in ((), (other,)):
        assert found(replace(kernel, ascending=ascending), analysis, around, row) is None
    assert found(kernel, analysis, replace(around, start=last), row) is None
    assert found(kernel, analysis, replace(around, stop=last), row) is None
