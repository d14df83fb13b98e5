"""Scratch tensors lie so that neighbouring threads access neighbours, and mean the same."""

from types import SimpleNamespace

import pytest
import torch

from brickwork.analysis.verdicts import Bound, BoundVerdict
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    For,
    If,
    Kernel,
    Load,
    Role,
    Select,
    Size,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.signature import Signature
from brickwork.ir.walk import read_symbols, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.scratch_layout import Layout, layouts
from support.shared import define, lower, schedule_program, verify_program
from support.tensors import argument_type, to_memory, to_tensor

GPU = cuda_target((9, 0))


def pieces_of(function, *arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = lower(define(function), signature)
    pieces, _ = schedule_program(program, GPU)
    verify_program(pieces)
    return program, pieces


def assert_same(function, *arguments):
    program, pieces = pieces_of(function, *arguments)
    results = [run_program(each, [to_memory(item.clone()) for item in arguments]) for each in (program, pieces)]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(to_tensor(one), to_tensor(other))
    return pieces


def sizes_of(pieces, name):
    """The sizes that a scratch tensor is made with, as text."""
    (made,) = [node for node in walk(pieces) if isinstance(node, Allocate) and node.tensor.name == name]
    return [str(size) for size in made.sizes]


def last_indices(pieces, name):
    """What the last index of the accesses by threads reads, with the index of these threads."""
    found = []
    for loop in walk(pieces):
        if isinstance(loop, For) and loop.role in {Role.PARALLEL, Role.THREAD}:
            accesses = [node for node in walk(loop.body) if isinstance(node, Load | Store) and node.tensor.name == name]
            found += [(loop.index, read_symbols(node.indices[-1])) for node in accesses]
    return found


def kept_steps(x: torch.Tensor) -> torch.Tensor:
    rows, steps = x.shape
    kept = torch.empty(rows, steps)
    out = torch.empty(rows)
    for i in range(rows):
        s = 0.0
        for t in range(steps):
            kept[i, t] = s
            s = s * s + x[i, t]
        total = 0.0
        for t in range(steps):
            total = total * kept[i, steps - 1 - t] + s
        out[i] = total
    return out


def rows_of_lengths(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    rows, steps, width = x.shape
    kept = torch.zeros(rows, steps, width)
    out = torch.empty(rows)
    for i in range(rows):
        for t in range(1, steps):
            for k in range(lengths[i]):
                kept[i, t, k] = kept[i, t - 1, k] * 0.5 + x[i, t, k]
        out[i] = kept[i, steps - 1, 0]
    return out


def returned_steps(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, steps = x.shape
    kept = torch.empty(rows, steps)
    out = torch.empty(rows)
    for i in range(rows):
        s = 0.0
        for t in range(steps):
            kept[i, t] = s
            s = s * s + x[i, t]
        out[i] = s
    return out, kept


def aligned_pairs(x: torch.Tensor) -> torch.Tensor:
    B, N, M = x.shape
    R = torch.zeros(B, N + 1, M + 1)
    out = torch.empty(B)
    for b in range(B):
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                R[b, i, j] = x[b, i - 1, j - 1] + max(R[b, i - 1, j], R[b, i, j - 1], R[b, i - 1, j - 1])
        out[b] = R[b, N, M]
    return out


def from_the_end(x: torch.Tensor, back: int) -> torch.Tensor:
    B, N, M = x.shape
    R = torch.zeros(B, N + 1, M + 1)
    out = torch.empty(B)
    for b in range(B):
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                R[b, i, j] = x[b, i - 1, j - 1] + max(R[b, i - 1, j], R[b, i, j - 1])
        out[b] = R[b, back, M]
    return out


def test_a_tape_lies_along_the_threads():
    pieces = assert_same(kept_steps, torch.rand(7, 5))
    (parts,) = [node for node in pieces.body if isinstance(node, If)]
    pieces = parts.otherwise
    assert all(index in reads for index, reads in last_indices(pieces, "kept"))
    (rows,) = {node.tensor for node in walk(pieces) if isinstance(node, Size) and node.tensor.name == "x"}
    first, last = sizes_of(pieces, "kept")
    assert "axis=1" in first
    assert "axis=0" in last
    assert rows.name == "x"


def test_a_result_lies_as_it_was_asked_for():
    pieces = assert_same(returned_steps, torch.rand(7, 5))
    assert "axis=0" in sizes_of(pieces, "kept")[0]


@pytest.mark.parametrize("shape", [(2, 4, 6), (3, 40, 33), (1, 1, 1), (2, 0, 3)])
def test_antidiagonals_lie_along_the_threads(shape):
    pieces = assert_same(aligned_pairs, torch.rand(shape))
    inner = [(index, reads) for index, reads in last_indices(pieces, "R") if index.name == "i"]
    assert inner
    assert all(reads == {index} for index, reads in inner)


def test_what_may_count_from_the_end_is_not_added_up():
    x = torch.rand(2, 40, 33)
    signature = Signature((argument_type(x), argument_type(3)), device="cuda", narrow=True, aligned=True)
    program = lower(define(from_the_end), signature)
    pieces, _ = schedule_program(program, GPU)
    for back in (-1, 3):
        results = [run_program(each, [to_memory(x.clone()), back]) for each in (program, pieces)]
        torch.testing.assert_close(*(to_tensor(each[0]) for each in results))
    inner = [reads for index, reads in last_indices(pieces, "R") if index.name == "i"]
    assert any(len(reads) > 1 for reads in inner)


# ---------------------------------------------------------------- indices that may count from the end

R, OTHER = (Tensor(name, n, TensorType(FLOAT32, 2, contiguous=True, unit_axis=1)) for n, name in enumerate("ro"))
I, D, T = Symbol("i", 1, INT64), Symbol("d", 2, INT64), Symbol("t", 4, INT64)


def wrapped(tensor, index, axis):
    below = build.apply("lt", index, build.integer(0))
    return Select(condition=below, then=build.add(index, build.size(tensor, axis)), otherwise=index)


def kernel_with(tensor, index, *, store):
    """A kernel whose threads access an antidiagonal."""
    indices = (build.read(I), index)
    load = Load(tensor=tensor, indices=indices, access=7, dtype=FLOAT32)
    touch = Assign(symbol=Symbol("s", 3, FLOAT32), value=load)
    if store:
        touch = Store(tensor=tensor, indices=indices, value=build.read(Symbol("s", 3, FLOAT32)), access=7)
    loop = For(index=I, start=build.integer(0), stop=build.read(D), body=(touch,), role=Role.PARALLEL)
    return Kernel(name="k", tensors=(R, OTHER), scalars=(D,), facts=(), body=(loop,))


PROVED = BoundVerdict(Bound.PROVED)


def chosen(verdict, assumptions=(), *, first=PROVED, store=False, tensor=R):
    """Whether a layout with a sum is chosen for R, whose indices are as the verdicts say."""
    plain = build.sub(build.read(D), build.read(I))
    scheduled = kernel_with(R, plain, store=False)
    written = kernel_with(tensor, wrapped(tensor, plain, 1), store=store)
    analysis = SimpleNamespace(
        assumptions=assumptions, bounds={(7, 0): first} if verdict is None else {(7, 0): first, (7, 1): verdict}
    )
    return bool(layouts([(scheduled, written, analysis)], frozenset({R})))


@pytest.mark.parametrize("store", [False, True])
def test_indices_are_added_up_where_none_counts_from_the_end(store):
    assert chosen(PROVED, store=store)
    assert chosen(None, tensor=OTHER, store=store)
    assert not chosen(None, store=store)
    assert not chosen(BoundVerdict(Bound.CHECKED), store=store)
    assert not chosen(BoundVerdict(Bound.PROVED, plain=False), store=store)
    assert not chosen(PROVED, (build.integer(1),), store=store)
    assert not chosen(PROVED, first=BoundVerdict(Bound.GUARDED), store=store)


def layouts_of(*accesses):
    """The layouts for reads of R by threads along I, in turns along T; each access has a number and its indices."""
    reads = []
    for place, (number, *indices) in enumerate(accesses):
        load = Load(tensor=R, indices=tuple(map(build.read, indices)), access=number, dtype=FLOAT32)
        reads.append(Assign(symbol=Symbol("s", 9 + place, FLOAT32), value=load))
    turns = For(index=T, start=build.integer(0), stop=build.read(D), body=tuple(reads))
    loop = For(index=I, start=build.integer(0), stop=build.read(D), body=(turns,), role=Role.PARALLEL)
    kernel = Kernel(name="k", tensors=(R,), scalars=(D,), facts=(), body=(loop,))
    return layouts([(kernel, kernel, SimpleNamespace(assumptions=(), bounds={}))], frozenset({R}))


def test_of_two_ways_that_are_as_good_the_own_one_stays():
    assert layouts_of((1, I, D)) == {R: Layout(0)}
    assert layouts_of((1, D, I)) == layouts_of((1, I, D), (2, D, I)) == layouts_of((1, D, I), (2, I, D)) == {}


def test_neighbours_that_one_thread_reads_turn_by_turn_are_no_neighbours_of_threads_but_better_than_none():
    assert layouts_of((1, I, T)) == {R: Layout(0)}
    assert layouts_of((1, I, T), (2, D, I)) == layouts_of((1, I, T), (2, T, I)) == {}
    assert layouts_of((1, I, D), (2, T, I)) == {R: Layout(0)}


def test_an_access_counts_once_for_all_versions():
    assert layouts_of((1, I, T), (2, I, T), (3, D, I)) == {}
    assert layouts_of((1, D, I), (1, I, D), (1, I, D)) == {}


def test_threads_that_read_one_element_do_not_count():
    assert layouts_of((1, I, D), (2, D, T), (3, D, D)) == {R: Layout(0)}


def test_rows_that_threads_share_out_stay_rows():
    x, lengths = torch.rand(3, 4, 6), torch.tensor([6, 1, 0])
    pieces = assert_same(rows_of_lengths, x, lengths)
    threads = {index.name for index, last in last_indices(pieces, "kept") if index in last}
    assert "k" in threads
    assert "i" not in threads
