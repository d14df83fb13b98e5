"""Sums over several loops are cut into pieces for blocks of threads, which begin and end inside of rows."""

# pyright: basic
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import For, Reduction, Role, Symbol
from brickwork.ir.operators import OPERATORS
from brickwork.ir.signature import Signature
from brickwork.ir.walk import read_symbols, walk
from brickwork.transform.verbs import rfactor
from support.lowering import argument_type, numbers
from support.scheduling import GPU, same
from support.shared import define, lower, schedule_program
from support.sweep import sampled

I, J, S = Symbol("i", 1, INT64), Symbol("j", 2, INT64), Symbol("s", 3, FLOAT32)


def context(reductions) -> Any:
    """What a verb asks of a kernel whose loops accumulate these."""
    schedule = SimpleNamespace(bound=lambda _loop, _level: None)
    verdict = {index: SimpleNamespace(reductions=found) for index, found in reductions.items()}
    return SimpleNamespace(schedule=schedule, verdict=verdict.__getitem__)


def mean_of_cells(x: torch.Tensor):
    s = 0.0
    for i in range(1, x.shape[0]):
        for j in range(2, x.shape[1]):
            for k in range(x.shape[2]):
                if x[i, j, k] > 0.0:
                    s += x[i, j, k]
    return s


def sum_of_a_triangle(x: torch.Tensor):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            for k in range(x.shape[2]):
                s += x[i, j, k]
    return s


def sums_of_rows(x: torch.Tensor):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                s += x[i, j, k]
        s += i
    return s


def least_of_sums(x: torch.Tensor):
    s = 100.0
    for i in range(x.shape[0]):
        least = 0.0
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                least += x[i, j, k]
        s = min(s, least)
    return s


def place_of_the_least(x: torch.Tensor):
    least, row, column = 100.0, -1, -1
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                if abs(x[i, j, k] - 1.0) < least:
                    least, row, column = abs(x[i, j, k] - 1.0), i, j
    return least, row, column


def sum_of_the_rest(x: torch.Tensor):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0] - i, x.shape[1]):
            for k in range(x.shape[2]):
                s += x[i, j, k]
    return s


@pytest.mark.parametrize(
    ("function", "rows", "columns"),
    sampled(
        product(
            [mean_of_cells, sum_of_a_triangle, sums_of_rows, least_of_sums, place_of_the_least, sum_of_the_rest],
            [0, 1, 2, 5, 9],
            [0, 1, 3, 4],
        ),
        3,
    ),
)
def test_pieces_are_of_several_loops_together(monkeypatch, function, rows, columns):
    monkeypatch.setattr(rfactor, "MOST_PIECES", 4)
    same(function, numbers(rows, columns, 3))


@pytest.mark.parametrize(("function", "loops"), [(mean_of_cells, "ij"), (sums_of_rows, "i")])
def test_pieces_begin_in_the_middle_of_rows(function, loops):
    signature = Signature((argument_type(numbers(2, 2, 3)),), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    found = (node for node in walk(pieces) if isinstance(node, For) and node.role is Role.BLOCK)
    cuts = {
        "".join(
            node.index.name
            for node in walk(parts.body)
            if isinstance(node, For) and parts.index in _needed(parts, node)
        )
        for parts in found
    }
    assert loops in cuts


def test_loops_that_accumulate_something_else_stay_whole():
    """Pieces are joined as the outer loop accumulates: a search tells by its index which iteration was first."""
    inner = For(index=J, start=build.integer(0), stop=build.integer(3), body=())
    outer = For(index=I, start=build.integer(0), stop=build.integer(3), body=(inner,))
    sums = {I: (Reduction(S, OPERATORS["add"]),), J: (Reduction(S, OPERATORS["add"]),)}
    assert rfactor.cut_together(outer, context(sums)) == [outer, inner]
    assert rfactor.cut_together(outer, context({**sums, J: ()})) == [outer]


def _needed(parts, loop):
    """What the bounds of a loop in a piece read, and what the bounds of those around it read, which it counts from."""
    read = read_symbols((loop.start, loop.stop))
    around = [node for node in walk(parts.body) if isinstance(node, For) and node.index in read]
    return read.union(*(_needed(parts, node) for node in around))
