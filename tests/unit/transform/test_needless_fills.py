"""Tensors that a kernel overwrites whole are not filled on grids, where sizes say that it does."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import (
    Allocate,
    Check,
    Failure,
    FailureKind,
    If,
    Kernel,
    Launch,
    Program,
    Rebind,
    Return,
    TensorType,
)
from brickwork.ir.nodes import Tensor as Tensor_
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import statements, walk
from brickwork.transform.needless_fills import Overwriting, without_needless_fills
from support.lowering import memory, nested
from support.ptx import program_for_gpu
from support.scheduling import GPU
from support.shared import schedule_program
from support.written import extent, kernel, let, load, loop, op, store, symbol

Function = Callable[..., object]


def rows(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]
    return out


def halves(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] // 2):
            out[i, j] = x[i, j]
            out[i, x.shape[1] // 2 + j] = -x[i, j]
    return out


def thirds(x: Tensor, n: int):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(n):
            out[i, 2 * n + j] = x[i, j]
            out[i, j] = x[i, j] * 2
            out[i, n + j] = x[i, j] * 3
    return out


def pairs(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] // 2):
            out[i, 2 * j] = x[i, j]
            out[i, 2 * j + 1] = -x[i, j]
    return out


def backwards(x: Tensor):
    out = torch.full((x.shape[0], 2), 7.0)
    for i in range(x.shape[0]):
        out[x.shape[0] - 1 - i, 0] = x[i, 0]
        out[x.shape[0] - 1 - i, 1] = x[i, 1]
    return out


def quarters(x: Tensor):
    out = torch.full((2 * x.shape[0], 2 * x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(2):
                out[2 * i, 2 * j + k] = x[i, j]
                out[2 * i + 1, 2 * j] = x[i, j] * 2
                out[2 * i + 1, 2 * j + 1] = x[i, j] * 3
    return out


def one(x: Tensor):
    out = torch.full((), 7.0)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i, 0]
    out[()] = s
    return out


WHOLE = [rows, halves, thirds, pairs, backwards, one]


def from_the_second(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]
    return out


def every_second(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] // 2):
            out[i, 2 * j] = x[i, j]
            out[i, 2 * j] = -x[i, j]
    return out


def positive(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 1:
                out[i, j] = x[i, j]
    return out


def until_one(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 1:
                break
            out[i, j] = x[i, j]
    return out


def up_to_one(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]
            if x[i, j] > 1:
                break
    return out


def added(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] += x[i, j]
    return out


def triangle(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i, j] = x[i, j]
    return out


def diagonal(x: Tensor):
    out = torch.full((x.shape[0], x.shape[0]), 7.0)
    for i in range(x.shape[0]):
        out[i, i] = x[i, 0]
    return out


def perhaps_never(x: Tensor, n: int):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for _ in range(n):
                out[i, j] = x[i, j]
    return out


def crossed(x: Tensor):
    """Store below one index and from the other one on."""
    n = x.shape[0]
    out = torch.full((n, n, n), 7.0)
    for b in range(n):
        for c in range(n):
            for a in range(b):
                out[a, b, c] = x[a, 0]
            for a in range(b, n):
                out[a, c, b] = x[a, 0] + 1
    return out


def surely(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for _ in range(2):
                out[i, j] = x[i, j]
    return out


def up_to_the_least(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(min(x.shape[1], 3)):
            out[i, j] = x[i, j]
    return out


def one_perhaps(x: Tensor):
    out = torch.full((), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 2:
                out[()] = 5.0
    return out


def at_places(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, int(x[i, j]) % 2] = 1.0
    return out


def checked(x: Tensor):
    out = torch.full((x.shape[0], x.shape[1]), 7.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, int(x[i, j])]
    return out


PARTLY = [
    from_the_second,
    up_to_the_least,
    one_perhaps,
    crossed,
    every_second,
    positive,
    until_one,
    up_to_one,
    added,
    triangle,
    diagonal,
    at_places,
    checked,
]


def scheduled(function: Function, *arguments: object) -> Program:
    return schedule_program(program_for_gpu(function, *arguments), GPU)[0]


def filled(program: Program) -> list[bool]:
    """Return of each kernel that fills a tensor whether it runs in any case."""
    inside = {id(node) for choice in statements(program.body) if isinstance(choice, If) for node in walk(choice)}
    kernels = (node for node in walk(program.body) if isinstance(node, Kernel) and "_fill_" in node.name)
    return [id(node) not in inside for node in kernels]


def values(count: int, length: int) -> list[list[float]]:
    return [[(5 * i + 3 * j) % 7 / 2 for j in range(length)] for i in range(count)]


def extra(function: Function, length: int) -> tuple[int, ...]:
    return (length // 3,) if function in {thirds, perhaps_never} else ()


def results(program: Program, function: Function, length: int) -> object:
    """Return what a program computes; what nothing was stored into is zero there, and seven after a fill."""
    try:
        (result,) = run_program(program, [memory(values(3, length)), *extra(function, length)])
    except IndexError:
        return None
    return nested(result)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 6, 7])
@pytest.mark.parametrize("function", [*WHOLE, *PARTLY, quarters, perhaps_never, surely])
def test_elements_are_what_they_were(function: Function, length: int) -> None:
    program = program_for_gpu(function, torch.tensor(values(3, 6)), *extra(function, 6))
    pieces, _ = schedule_program(program, GPU)
    assert results(pieces, function, length) == results(program, function, length)


@pytest.mark.parametrize("function", WHOLE)
def test_what_is_overwritten_whole_is_not_filled_in_any_case(function: Function) -> None:
    assert not any(filled(scheduled(function, torch.tensor(values(3, 6)), *extra(function, 6))))


def test_a_fill_falls_away_where_sizes_are_the_same_for_all_calls() -> None:
    assert filled(scheduled(rows, torch.tensor(values(3, 6)))) == []


@pytest.mark.parametrize("function", [*PARTLY, perhaps_never])
def test_what_is_overwritten_in_part_is_filled(function: Function) -> None:
    assert any(filled(scheduled(function, torch.tensor(values(3, 6)), *extra(function, 6))))


def sized(x: Tensor):
    """Make a tensor whose sizes matter alone."""
    unused = torch.full((x.shape[1], x.shape[0]), 7.0)
    out = torch.full((unused.shape[1], unused.shape[0]), 7.0)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            out[i, j] = x[i, j]
    return out


def exchanged(x: Tensor, n: int):
    """Return the one of two tensors that an even or odd number of exchanges leaves."""
    a = torch.full((x.shape[0],), 7.0)
    b = torch.full((x.shape[0],), 5.0)
    for _ in range(n):
        a, b = b, a
    return a


def returned(x: Tensor):
    return torch.full((x.shape[0],), 7.0)


@pytest.mark.parametrize(("function", "fills"), [(sized, 1), (returned, 1), (exchanged, 2)])
def test_what_has_only_sizes_is_not_filled(function: Function, fills: int) -> None:
    more = (3,) if function is exchanged else ()
    program = program_for_gpu(function, torch.tensor(values(3, 6)), *more)
    pieces, _ = schedule_program(program, GPU)
    assert len(filled(pieces)) == fills  # Of two tensors, together and one by one.
    found = [run_program(each, [memory(values(3, 6)), *more]) for each in (program, pieces)]
    assert nested(found[0][0]) == nested(found[1][0])


KIND = TensorType(FLOAT32, 1, True, 0)
OUT, X, OTHER = (Tensor_(name, number, KIND) for number, name in enumerate(("out", "x", "other")))
I = symbol("i")
STORED = store(OUT, (I,), load(X, I))


def fills_left(*body, alias: bool = False) -> int:
    """Return how many fills are left of a tensor that a loop along it with these statements follows."""
    made = Allocate(tensor=OUT, sizes=(build.size(X, 0),), fill=build.constant(7.0, FLOAT32))
    whole = replace(kernel((OUT, X, OTHER), loop(I, 0, extent(OUT), *body)), may_alias=alias)
    program = Program(name="p", parameters=(), body=(made, Launch(kernel=whole), Return(tensors=(OUT,))))
    analysis = analyse(whole)
    sure = replace(analysis, bounds={})
    result, late = without_needless_fills(program, {whole.name: Overwriting(whole, sure, ())})
    kept = sum(isinstance(node, Allocate) and node.fill is not None for node in result.body)
    return kept + sum(not build.is_constant(item.needless, 1) for items in late.values() for item in items)


def test_conditions_of_kernels() -> None:
    assert fills_left(STORED) == 0
    assert fills_left(STORED, alias=True) == 1
    assert fills_left(replace(STORED, combine=OPERATORS["add"])) == 1
    assert fills_left(STORED, let(symbol("v", FLOAT32), load(OUT, 0))) == 1
    assert fills_left(STORED, Rebind(targets=(OUT, OTHER), sources=(OTHER, OUT))) == 1
    assert fills_left(Check(condition=op("gt", I, 2), failure=Failure(FailureKind.VALUE, "no")), STORED) == 1
    assert fills_left(STORED, Check(condition=op("gt", I, 2), failure=Failure(FailureKind.VALUE, "no"))) == 1
