"""Rows of segments, which elements begin and end, run by tiles of one segment each, and which are no such rows."""

import random

import pytest
import torch

from brickwork.ir.nodes import For, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.ascending import IN_ORDER
from brickwork.transform.pipeline import schedule_program
from support.fuzz.check_contractions import few_rows
from support.fuzz.execute import in_interpreter
from support.scheduling import GPU
from support.shared import define, lower
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


def scheduled(function, dtype):
    given = torch.zeros(8, 8, dtype=dtype), torch.zeros(3, dtype=torch.int64), torch.zeros(2, 8, 8, dtype=dtype)
    types = tuple(map(argument_type, (*given, torch.zeros(8, 8))))
    program = lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True))
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


def test_rows_that_do_not_ascend_are_one_launch():
    """What runs at once stands around the loops in order over segments and rows."""
    pieces = scheduled(product, torch.float32)
    kernels = [node.kernel.name for node in walk(pieces) if isinstance(node, Launch)]
    assert any(IN_ORDER in name for name in kernels)
    loops = (node for node in walk(pieces) if isinstance(node, For))
    assert not any(isinstance(node, Launch) for loop in loops for node in walk(loop))
