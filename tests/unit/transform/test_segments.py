"""Rows of segments, which elements begin and end, run by tiles of one segment each, and which are no such rows."""

import random

import pytest
import torch

from brickwork.ir.nodes import For, Launch, Role
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform.ascending import IN_ORDER
from brickwork.transform.derivation import Backward
from brickwork.transform.derive import base_signature
from brickwork.transform.pipeline import schedule_program
from support.fuzz.check_contractions import few_rows
from support.fuzz.execute import in_interpreter
from support.scheduling import GPU
from support.shared import define, derive, lower, verify_program
from support.tensors import argument_type

Tensor = torch.Tensor


def product(x: Tensor, ends: Tensor, w: Tensor, y: Tensor) -> None:
    for b in range(w.shape[0]):
        for i in range(ends[b], ends[b + 1]):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[b, k, j]
                y[i, j] = s


def along_memory(x: Tensor, ends: Tensor, w: Tensor, y: Tensor) -> None:
    """Rows of segments are columns of the result."""
    for b in range(w.shape[0]):
        for i in range(ends[b], ends[b + 1]):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[b, k, j]
                y[j, i] = s


def leaning(x: Tensor, ends: Tensor, w: Tensor, y: Tensor) -> None:
    for b in range(w.shape[0]):
        for i in range(ends[b], ends[b + 1]):
            for j in range(w.shape[2]):
                if j <= i:
                    s = 0.0
                    for k in range(max(0, i - 2), min(i + 1, x.shape[1])):
                        s += x[i, k] * w[b, k, j]
                    y[i, j] = s + b


def from_the_second_on(x: Tensor, ends: Tensor, w: Tensor, y: Tensor) -> None:
    for b in range(1, w.shape[0]):
        for i in range(ends[b - 1], ends[b]):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[b, k, j]
                y[i, j] = s


def in_place(x: Tensor, ends: Tensor, w: Tensor, y: Tensor) -> None:
    """Elements become variables where the loop that adds to them has iterations, which is asked around all segments."""
    for b in range(w.shape[0]):
        for i in range(ends[b], ends[b + 1]):
            for k in range(x.shape[1]):
                for j in range(w.shape[2]):
                    y[i, j] += x[i, k] * w[b, k, j]


def of_pairs(x: Tensor, ends: Tensor, w: Tensor, y: Tensor) -> None:
    """Segments are not next to each other: there may be as many tiles as rows more."""
    for b in range(w.shape[0] // 2):
        for i in range(ends[2 * b], ends[2 * b + 1]):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[b, k, j]
                y[i, j] = s


def of_two(x: Tensor, ends: Tensor, w: Tensor, y: Tensor) -> None:
    """Segments overlap, and rows are added up."""
    for b in range(w.shape[0] - 1):
        for i in range(ends[b], ends[b + 2]):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[b, k, j]
                y[i, j] = s


SEGMENTS = (product, along_memory, leaning, from_the_second_on, in_place)
OTHERS = (of_pairs, of_two)
CONTRACTED = {Role.CONTRACT, Role.CONTRACT_GROUPS}


def made(x: Tensor, ends: Tensor, w: Tensor) -> Tensor:
    y = x.new_empty((x.shape[0], w.shape[2]))
    for b in range(w.shape[0]):
        for i in range(ends[b], ends[b + 1]):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[b, k, j]
                y[i, j] = s
    return y


def gradients_and_rest(x: Tensor, ends: Tensor, w: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The zeros are read after all."""
    kept, u, v = torch.empty(g.shape), torch.zeros(x.shape), torch.zeros(w.shape)
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            kept[i, j] = g[i, j]
    for b in range(w.shape[0]):
        for i in range(ends[b], ends[b + 1]):
            for j in range(w.shape[2]):
                a = 1.0 * kept[i, j]
                kept[i, j] = 0.0
                for k in range(x.shape[1]):
                    u[i, k] += a * w[b, k, j]
                    v[b, k, j] += a * x[i, k]
    return u, v, kept


def of_made(x, ends, w, g):
    """Return the gradients of `made`: a row is of the last segment that it is in."""
    owners = {i: b for b in range(len(w)) for i in range(ends[b], ends[b + 1])}
    u, v = torch.zeros_like(x), torch.zeros_like(w)
    for i, b in owners.items():
        u[i] = w[b] @ g[i]
        v[b] += torch.outer(x[i], g[i])
    return u, v


def scheduled(function, dtype):
    """Return a function's program, or that of its gradients, as it is scheduled for a GPU."""
    given = torch.zeros(8, 8, dtype=dtype), torch.zeros(3, dtype=torch.int64), torch.zeros(2, 8, 8, dtype=dtype)
    types = tuple(map(argument_type, (*given, torch.zeros(8, 8, dtype=dtype if function is made else torch.float32))))
    signature = Signature(types, device="cuda", narrow=True, aligned=True)
    if function is made:
        backward = Backward((True, False, True), (False,))
        program = lower(define(function), base_signature(3, backward, signature))
        program = derive(program, backward, signature)
    else:
        program = lower(define(function), signature)
    with few_rows():
        pieces, _ = schedule_program(program, GPU)
    verify_program(pieces)
    return pieces


def has_tiles(pieces):
    return any(isinstance(node, For) and node.role.is_tile for node in walk(pieces))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", [*SEGMENTS, *OTHERS])
def test_rows_of_segments_are_those_of_plain_python(function, dtype):
    """Of no segment, empty ones, those that begin behind the first row, and ends that do not ascend."""
    pieces = scheduled(function, dtype)
    assert has_tiles(pieces) is (function in SEGMENTS)
    run, source = in_interpreter(pieces), random.Random(f"{function.__name__} {dtype}")
    for number in range(20):
        segments, rows, terms, columns = (
            source.choice(sizes) for sizes in ((0, 1, 2, 5), (0, 1, 7, 20), (1, 4, 8), (2, 4, 8))
        )
        ends = sorted(source.randint(0, rows) for _ in range(segments + 1))
        if number % 5 == 4:
            source.shuffle(ends)
        x = torch.randint(-3, 4, (rows, terms)).to(dtype)
        w = torch.randint(-3, 4, (segments, terms, columns)).to(dtype)
        found = torch.zeros((columns, rows) if function is along_memory else (rows, columns))
        wanted = found.clone()
        run(x, torch.tensor(ends), w, found)
        function(x.float(), ends, w.float(), wanted)
        assert torch.equal(found, wanted), (ends, found, wanted)


@pytest.mark.parametrize("function", [made, gradients_and_rest])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_rows_of_segments_are_contractions(function, dtype):
    """Both of them, by tiles of rows and by sums over rows, if nobody reads the zeros."""
    pieces = scheduled(function, dtype)
    depths = {node.index.name for node in walk(pieces) if isinstance(node, For) and node.role in CONTRACTED}
    assert depths == ({"j", "i"} if function is made else set())
    run, source = in_interpreter(pieces), random.Random(f"{dtype}")
    for number in range(10):
        segments, rows = source.choice((0, 1, 2, 5)), source.choice((0, 1, 7, 20))
        terms, columns = source.choice((1, 4, 8)), source.choice((1, 4, 8))
        ends = sorted(source.randint(0, rows) for _ in range(segments + 1))
        if number % 5 == 4:
            source.shuffle(ends)
        x, w = (torch.randint(-3, 4, shape).to(dtype) for shape in ((rows, terms), (segments, terms, columns)))
        g = torch.randint(-3, 4, (rows, columns))
        found = run(x, torch.tensor(ends), w, g.to(dtype if function is made else torch.float32))
        wanted = (of_made if function is made else function)(x.float(), ends, w.float(), g.float())
        assert all(torch.equal(one.float(), other) for one, other in zip(found, wanted, strict=False)), ends


def test_rows_that_do_not_ascend_are_one_launch():
    """What runs at once stands around the loops in order over segments and rows."""
    pieces = scheduled(product, torch.float32)
    kernels = [node.kernel.name for node in walk(pieces) if isinstance(node, Launch)]
    assert any(IN_ORDER in name for name in kernels)
    loops = (node for node in walk(pieces) if isinstance(node, For))
    assert not any(isinstance(node, Launch) for loop in loops for node in walk(loop))
