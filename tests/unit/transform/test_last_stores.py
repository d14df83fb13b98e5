"""Stores at places that elements say: on grids in parallel, once it is known which iteration stores last."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, Assign, Block, For, If, Kernel, Launch, Node, Read, Statement
from brickwork.ir.signature import Signature
from brickwork.ir.walk import rewrite, rewrite_statements, walk
from brickwork.language.loops import prange
from brickwork.language.random import rand
from brickwork.transform import derive
from brickwork.transform.canonical.form import canonical
from brickwork.transform.derivation import Backward, Derived
from brickwork.transform.explanation import OTHERWISE
from brickwork.transform.last_stores import with_last_stores
from support import scheduling
from support.lowering import argument_type, memory, nested
from support.scheduling import AVX2, GPU, same
from support.shared import define, lower, schedule_program

Function = Callable[..., object]


def scatter(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor):
    for t in range(len(at)):
        x[at[t]] = y[t]


def rows(cache: torch.Tensor, slot: torch.Tensor, k: torch.Tensor):
    """Store rows, but those whose place is below zero, into blocks of two."""
    for t in range(1, k.shape[0]):
        if slot[t] >= 0:
            for h in range(1, k.shape[1]):
                cache[slot[t] // cache.shape[1], slot[t] % cache.shape[1], h] = k[t, h]


def planes(x: torch.Tensor, at: torch.Tensor):
    """Store within planes, which have places of their own."""
    out = torch.zeros(at.shape[0], 3, 3)
    for b in range(at.shape[0]):
        for i in range(at.shape[1]):
            for j in range(at.shape[2]):
                out[b, at[b, i, j] // 3, at[b, i, j] % 3] = x[b, i, j]
    return out


def two_tensors(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        x[at[t]] = k[t]
        y[at[t], t] = -k[t]
        y[t, at[t]] = k[t] * 2


def caches(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    """Fill two caches, of which one has a row for each place, and count beside it."""
    count = torch.zeros(1)
    for t in range(k.shape[0]):
        for d in range(k.shape[1]):
            x[at[t]] = k[t, 0]
            y[at[t], d] = k[t, d] * 2
    for t in range(len(at)):
        count[0] += at[t]
    return count


def random_places(x: torch.Tensor, at: torch.Tensor):
    for t in range(len(at)):
        if rand() < 2.0:
            x[at[t]] = 1.0 + t


def searched(x: torch.Tensor, at: torch.Tensor):
    for t in range(len(at)):
        p = at[t]
        while at[p] > p:
            p = at[p]
        x[p] = 1.0 + t


def ended(x: torch.Tensor, at: torch.Tensor):
    for t in range(len(at)):
        if at[t] == 3:
            break
        x[at[t]] = 1.0 + t


def two_stores(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        x[at[t]] = k[t]
        x[t] = -k[t]


def flags(x: torch.Tensor, at: torch.Tensor, value: float):
    for t in range(len(at)):
        x[at[t]] = value + 1.0


def changing_value(x: torch.Tensor, at: torch.Tensor):
    for t in range(len(at)):
        x[at[t]] = float(t)


def column_of_place(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    """Let the column say the row, too."""
    for t in range(at.shape[0]):
        for d in range(at.shape[1]):
            x[at[t, d], d] = k[t, d]


def column_in_condition(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        for d in range(k.shape[1]):
            if k[t, d] > 0.0:
                x[at[t], d] = k[t, d]


def column_twice(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        for d in range(k.shape[1]):
            x[at[t], d, d] = k[t, d]


def first_columns(x: torch.Tensor, at: torch.Tensor, n: int):
    for t in range(len(at)):
        for j in range(n):
            x[at[t], j] = t * 3 + j


def first_columns_outside(x: torch.Tensor, at: torch.Tensor, n: int):
    for j in range(n):
        for t in range(len(at)):
            x[at[t], j] = t * 3 + j


def ragged_columns(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    """Store fewer columns in each iteration."""
    for t in range(len(at)):
        for d in range(len(at) - t):
            x[at[t], d] = k[t, d]


def ragged_start(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        for d in range(t, len(at)):
            x[at[t], d] = k[t, d]


def skipped(x: torch.Tensor, at: torch.Tensor):
    for t in range(len(at)):
        for u in range(2):
            if at[t] == u + 2:
                break
            x[at[t]] = 1.0 + t


def ragged_steps(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        for u in range(t):
            x[at[u]] = k[t, u]


def appended(x: torch.Tensor, ends: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    """Store rows whose ends elements say."""
    for b in range(len(ends) - 1):
        for i in range(ends[b], ends[b + 1]):
            x[at[i]] = k[i] + b


def seen(x: torch.Tensor, first: torch.Tensor, behind: torch.Tensor, y: torch.Tensor):
    """Store along rows that elements of two tensors begin and end, until little is left to see."""
    for r in range(len(first)):
        left = 1.0
        for i in range(first[r], behind[r]):
            x[i] = left * y[i]
            left *= 0.5
            if left < 0.2:
                break


def run_lengths(x: torch.Tensor, first: torch.Tensor, many: torch.Tensor):
    for r in range(len(first)):
        for i in range(many[r]):
            x[first[r] + i] = 1.0 + r


def tails(x: torch.Tensor, k: torch.Tensor):
    for t in range(k.shape[0]):
        for d in range(t, len(x)):
            x[d] = k[t, 0]


def whole_rows(x: torch.Tensor, ends: torch.Tensor):
    """Store along rows whose ends may ascend."""
    for r in range(len(ends) - 1):
        for i in range(ends[r], ends[r + 1]):
            x[i] = 1.0 + r


def pages(x: torch.Tensor, ends: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for b in range(len(ends) - 1):
        for i in range(ends[b], ends[b + 1]):
            p = at[ends[b]] if k[i, 0] < 0.0 else at[i]
            for d in range(k.shape[1]):
                x[p, d] = k[i, d] + b


def boxes(x: torch.Tensor, n: torch.Tensor, at: torch.Tensor):
    """Store boxes one number after the other, from places on that elements say."""
    for b in range(len(n)):
        p = at[b]
        for i in range(n[b]):
            for j in range(n[b]):
                x[p] = 100 * b + 10 * i + j
                p += 1


def boxes_of_rows(x: torch.Tensor, n: torch.Tensor, at: torch.Tensor):
    """Store boxes whose rows are of one length."""
    for b in range(len(n)):
        for i in range(n[b]):
            for j in range(2):
                x[at[b] + i + j] = 100 * b + 10 * i + j


def placed(x: torch.Tensor, ends: torch.Tensor, at: torch.Tensor):
    """Store rows whose ends elements say into a tensor of its own."""
    out = torch.zeros(4)
    for b in range(len(ends) - 1):
        for i in range(ends[b], ends[b + 1]):
            out[at[i]] = x[i]
    return out


def read_elsewhere(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        x[at[t]] = k[t] + x[0]


def read_of_others(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        x[t] = x[at[t]] + k[t]


def counted(x: torch.Tensor, at: torch.Tensor):
    """Store at places after one another, of which a variable tells."""
    n = 0
    for t in range(len(at)):
        if at[t] > 1:
            n = n + 1
            x[at[t]] = n


def claimed(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor):
    for t in prange(len(at)):
        x[at[t]] = y[t]


def claimed_inside(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        for d in prange(k.shape[1]):
            x[at[t], d] = k[t, d]


def turned(x: torch.Tensor, at: torch.Tensor):
    """Store each element several times, at places of its own."""
    out = torch.zeros(3, 4)
    for i in range(at.shape[0]):
        for r in range(3):
            out[r, at[i, r]] = x[i]
    return out


def taken(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor):
    """Take what is there, and leave zero."""
    for t in range(len(at)):
        p = at[t]
        v = x[p]
        x[p] = 0.0
        y[t] = v


def exchanged(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor):
    for t in range(len(at)):
        p = at[t]
        v = x[p]
        x[p] = y[t]
        y[t] = v


def taken_beside(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor):
    for t in range(len(at)):
        p = at[t]
        v = x[p - 1]
        x[p] = 0.0
        y[t] = v


X = memory([10.0, 20.0, 30.0, 40.0])
AT = memory([2, 0, 2, 3, 0], INT64)
ENDS = memory([0, 3, 1, 1, 5], INT64)
Y = memory([1.0, 2.0, 3.0, 4.0, 5.0])
SLOTS = memory([1, 3, -1, 3, 0], INT64)
CACHE = memory([[[float(100 * i + 10 * j + h) for h in range(3)] for j in range(2)] for i in range(2)])
MATRIX = memory([[float(10 * t + d - 20) for d in range(3)] for t in range(5)])
SQUARE = memory([[float(10 * t + d) for d in range(5)] for t in range(5)])
PLACES = memory([[[8, 1], [1, 8]], [[0, 0], [0, 4]]], INT64)
VALUES = memory([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
COLUMNS = memory([[0, 1, 2], [0, 2, 2], [3, 1, 0]], INT64)


def slanted(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    """The row of an element comes from the one before it."""
    for t in range(len(at)):
        row = at[t]
        for h in range(x.shape[1]):
            x[row, h] = k[t, h]
            row = (row + 1) % x.shape[0]


def slanted_by_list(x: torch.Tensor, at: torch.Tensor, k: torch.Tensor):
    for t in range(len(at)):
        row = [at[t], 0]
        for h in range(x.shape[1]):
            x[row[0], h] = k[t, h]
            row[0] = (row[0] + 1) % x.shape[0]


def place_in_list(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor):
    for t in range(len(at)):
        places = [at[t], at[t]]
        for k in range(2):
            places[k] = (places[k] + k) % x.shape[0]
        x[places[1]] = y[t]


def place_stored_before(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor):
    places = torch.zeros(len(at), dtype=torch.int64)
    for t in range(len(at)):
        places[t] = at[t]
        x[places[t]] = y[t]


def halved(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor):
    """A `while` that says what is stored, but not where."""
    for t in range(len(at)):
        steps = 0.0
        left = y[t]
        while left > 1.0:
            left = left / 2.0
            steps += 1.0
        x[at[t]] = steps


def paths(x: torch.Tensor, starts: torch.Tensor, at: torch.Tensor):
    """Prefix products of rows that elements begin and end, whose gradient keeps some steps in a `while`."""
    out = torch.zeros(4)
    for r in range(len(at)):
        total = 0.0
        weight = 0.0
        for s in range(starts[r], starts[r + 1]):
            total += x[s] * weight
            weight += x[s]
        out[at[r]] = total
    return out


def found(function: Function, *arguments: object, target=GPU) -> str:
    """Return which loops around stores are independent as the last ones are noted, and how many axes the notes have."""
    grid = {"device": "cuda", "narrow": True, "aligned": True} if target is GPU else {}
    program = lower(define(function), Signature(tuple(map(argument_type, arguments)), **grid))
    changed, remarks = with_last_stores(canonical(program, sizes=True), target)
    if not remarks:
        return ""
    (name,) = [each for each, remark in remarks.items() if remark != OTHERWISE]
    kernels = {node.kernel.name: node.kernel for node in walk(changed.body) if isinstance(node, Launch)}
    analysis = analyse(kernels[name])
    last = {item.number: item for item in analysis.accesses if item.number in kernels[name].alone}
    inside = {loop.node.index for access in last.values() for loop in access.loops}
    loops = "".join(index.name for index in analysis.loops if index in inside and analysis.loops[index].independent)
    (choice,) = [node for node in changed.body if isinstance(node, If)]
    return loops + "".join(str(node.tensor.type.rank) for node in choice.then if isinstance(node, Allocate))


@pytest.mark.parametrize(
    ("function", "arguments", "loops"),
    [
        (scatter, (X, AT, Y), "t1"),
        (rows, (CACHE, SLOTS, MATRIX), "th2"),
        (planes, (VALUES, PLACES), "bij3"),
        (two_tensors, (X, SQUARE, AT, Y), ""),
        (caches, (X, memory([[0.0] * 3] * 4), AT, MATRIX), "td11"),
        (searched, (X, AT), ""),
        (halved, (X, AT, Y), "t1"),
        (place_in_list, (X, AT, Y), "t1"),
        (place_stored_before, (X, AT, Y), ""),
        (ended, (X, AT), ""),
        (two_stores, (X, AT, Y), ""),
        (flags, (X, AT, 1.5), "t1"),
        (changing_value, (X, AT), "t1"),
        (column_of_place, (memory([[0.0] * 3] * 4), COLUMNS, MATRIX), "td2"),
        (column_in_condition, (memory([[0.0] * 3] * 4), AT, MATRIX), "td2"),
        (column_twice, (memory([[[0.0] * 3] * 3] * 4), AT, MATRIX), "td3"),
        (ragged_columns, (memory([[0.0] * 5] * 4), AT, SQUARE), "td2"),
        (ragged_start, (memory([[0.0] * 5] * 4), AT, SQUARE), "td2"),
        (skipped, (X, AT), "t1"),
        (ragged_steps, (X, AT, SQUARE), "tu11"),
        (appended, (X, ENDS, AT, Y), "bi11"),
        (pages, (memory([[0.0] * 3] * 4), ENDS, AT, MATRIX), "bid11"),
        (boxes, (memory([0.0] * 9), memory([1, 0, 2], INT64), memory([2, 1, 5], INT64)), "bj111"),
        (boxes_of_rows, (memory([0.0] * 9), memory([1, 0, 2], INT64), memory([2, 1, 5], INT64)), "bij11"),
        (seen, (X, memory([0, 3, 0, 1], INT64), memory([4, 3, 1, 3], INT64), Y), "r11"),
        (run_lengths, (X, memory([1, 3, 0], INT64), memory([3, 0, 2], INT64)), "ri11"),
        (tails, (X, MATRIX), ""),
        (whole_rows, (X, ENDS), ""),
        (read_elsewhere, (X, AT, Y), ""),
        (counted, (X, AT), ""),
        (claimed, (X, memory([2, 0, 1], INT64), Y), ""),
        (claimed_inside, (memory([[0.0] * 3] * 4), memory([2, 0, 1], INT64), MATRIX), ""),
        (taken, (X, AT, Y), "t1"),
        (exchanged, (X, AT, Y), ""),
        (taken_beside, (X, AT, Y), ""),
    ],
)
def test_loops_are_independent_where_the_last_store_is_known(
    function: Function, arguments: tuple[object, ...], loops: str
) -> None:
    assert found(function, *arguments) == loops
    same(function, *arguments)


@pytest.mark.parametrize(("function", "stores"), [(read_elsewhere, True), (read_of_others, False)])
def test_one_access_that_is_alone_is_not_enough(function: Function, stores: bool) -> None:
    program = lower(define(function), Signature(tuple(map(argument_type, (X, AT, Y)))))
    (kernel,) = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    accesses = analyse(kernel).accesses
    alone = frozenset(item.number for item in accesses if item.tensor.name == "x" and item.store == stores)
    (verdict,) = analyse(replace(kernel, alone=alone)).loops.values()
    assert len(alone) == 1
    assert not verdict.independent


@pytest.mark.parametrize("end", ["start", "stop"])
@pytest.mark.parametrize("kept", [True, False])
def test_what_a_loop_begins_and_ends_by_stays_the_same_in_it(end: str, *, kept: bool) -> None:
    types = tuple(map(argument_type, (X, ENDS, AT, Y)))
    program = canonical(lower(define(appended), Signature(types, device="cuda", narrow=True, aligned=True)), sizes=True)
    (ragged,) = [node for node in walk(program.body) if isinstance(node, For) and node.index.name == "i"]
    changed = {"start": ragged.start, "stop": ragged.stop}[end]
    assert isinstance(changed, Read)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or statement.index != ragged.index or kept:
            return (statement,)
        zero = Assign(symbol=changed.symbol, value=build.integer(0))
        return (replace(statement, body=(*statement.body, zero)),)

    def within(node: Node) -> Node:
        return replace(node, body=rewrite_statements(node.body, visit)) if isinstance(node, Kernel) else node

    _, remarks = with_last_stores(rewrite(program, within), GPU)
    assert bool(remarks) == kept


def test_draws_are_made_once() -> None:
    assert not found(random_places, X, AT)


def test_places_below_zero_are_those_from_the_end() -> None:
    same(scatter, X, memory([-1, 3, 0, -4, 3], INT64), Y)


def test_places_out_of_range_are_errors_as_they_were() -> None:
    same(scatter, X, memory([1, 4, 0], INT64), Y)


@pytest.mark.parametrize("columns", [0, 2])
def test_places_of_rows_without_columns_are_not_looked_at(columns: int) -> None:
    x = memory([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    places = memory([1, 0, 17 if columns == 0 else 2, 1], INT64)
    same(first_columns, x, places, columns)
    same(first_columns_outside, x, places, columns)


def test_places_that_a_loop_carries_along_are_noted_in_each_of_its_iterations() -> None:
    x = memory([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    rows = memory([[t * 3.0 + h for h in range(3)] for t in range(1, 5)])
    same(slanted, x, memory([1, 0, 1, 2], INT64), rows)
    same(slanted_by_list, x, memory([1, 0, 1, 2], INT64), rows)


def test_no_steps_and_one() -> None:
    same(scatter, X, memory([1], INT64), Y)
    same(rows, CACHE, memory([1], INT64), memory([[1.0, 2.0, 3.0]]))


def test_what_takes_too_much_runs_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "GPU", replace(GPU, scratch_bytes=8))
    same(scatter, X, AT, Y)
    same(rows, CACHE, SLOTS, MATRIX)


def test_processors_store_in_order() -> None:
    assert not found(scatter, X, AT, Y, target=AVX2)


GRAD = memory([[[float(9 * b + 3 * i + j + 1) for j in range(3)] for i in range(3)] for b in range(2)])
TURNED = memory([[float(4 * r + i + 1) for i in range(4)] for r in range(3)])


@pytest.mark.parametrize(
    ("function", "memories", "expected"),
    [
        (planes, [VALUES, PLACES, GRAD], [[[0.0, 0.0], [2.0, 9.0]], [[0.0, 0.0], [10.0, 14.0]]]),
        (turned, [memory([1.0, 2.0, 3.0]), COLUMNS, TURNED], [0.0, 19.0, 19.0]),
        (placed, [Y, ENDS, AT, X], [0.0, 0.0, 30.0, 40.0, 10.0]),
        (paths, [Y, memory([0, 2, 3, 5], INT64), memory([2, 1, 2], INT64), X], [0.0, 0.0, 0.0, 150.0, 120.0]),
    ],
)
def test_gradients_take_from_the_last_store_alone(function, memories, expected) -> None:
    given = (True, *(False for _ in memories[2:]))
    made = Derived(define(function), Backward(given), (True,), (*range(len(given)),), (True,) * len(given))
    signature = Signature(tuple(map(argument_type, memories)), device="cuda", narrow=True, aligned=True)
    program = derive.program_of(made, signature)
    ways, kernels = schedule_program(program, GPU)
    assert any(item.remark for item in kernels)
    results = [[nested(item) for item in run_program(each, memories, check=each is ways)] for each in (program, ways)]
    assert results[0] == results[1]
    assert results[0][0] == expected
