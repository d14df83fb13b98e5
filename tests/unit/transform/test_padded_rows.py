"""Loops that elements end, as lengths of samples are: on grids over all of an axis, with a condition."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Apply, Assign, For, Launch, Load, Node, Program, Read
from brickwork.ir.signature import Signature
from brickwork.ir.walk import rewrite, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.padded_rows import with_padded_rows
from support.lowering import argument_type, memory, nested
from support.padded_programs import (
    another_place,
    begun_by_elements,
    begun_late,
    beside,
    changed_before,
    cut_short,
    deeper,
    diagonal,
    divided_by_a_sum,
    doubled,
    drawn,
    ended,
    ended_late,
    ends_itself,
    filled,
    filled_before,
    from_the_second,
    greatest,
    in_another_loop,
    in_branch,
    marked,
    marked_from_another_place,
    marked_in_another_loop,
    of_pairs,
    of_two_places,
    read_before,
    running,
    scaled_after,
    scaled_by_an_element,
    scaled_by_its_element,
    scaled_inside,
    scattered,
    skipped,
    sought,
    sparse,
    stored_beside,
    summed,
    summed_before,
    told_on,
    triangle,
    twice_inside,
    two_rows,
    with_a_length_of_its_own,
    with_a_list,
    with_a_variable,
    with_lengths_stored_over,
)
from support.scheduling import AVX2, GPU, same
from support.shared import define, lower, schedule_program

Function = Callable[..., object]
GRID = {"device": "cuda", "narrow": True, "aligned": True}


X = memory([[1.0, 2.0, 3.0, 4.0], [5.0, -6.0, 7.0, 8.0]])
Y = memory([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])
CUBE = memory([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
Z = memory([[1.0, 0.5, 3.0, 2.0], [4.0, -6.0, 1.0, 8.0]])
FOUR, EIGHT = memory([1.0, 2.0, 3.0, 4.0]), memory([0.0] * 8)
AT = memory([[2, 0, 2, 3], [1, 2, 3, 0]], INT64)
N = memory([3, 2], INT64)
ENDS = memory([[2, 0, 0, 0], [3, 0, 0, 0]], INT64)
SHORT = memory([2, 1], INT64)


def made_longer(function: Function, *arguments: object, target=GPU, changed=lambda program: program) -> str:
    """Return the loops that go along all of an axis then, and were ended by elements."""
    grid = GRID if target is GPU else {}
    program = canonical(lower(define(function), Signature(tuple(map(argument_type, arguments)), **grid)), sizes=True)
    longer, _ = with_padded_rows(changed(program), target)
    ends = ((node.index.name, node.stop) for node in walk(longer.body) if isinstance(node, For))
    found = (name for name, stop in ends if isinstance(stop, Apply) and stop.operator.name == "maximum")
    return "".join(sorted(found))


@pytest.mark.parametrize(
    ("function", "arguments", "loops"),
    [
        (doubled, (X, N), "t"),
        (from_the_second, (X, N), "t"),
        (deeper, (CUBE, SHORT), "t"),
        (scattered, (X, AT, N), "t"),
        (beside, (X, N), "t"),
        (two_rows, (X, Y, N), "tu"),
        (skipped, (X, N), ""),
        (summed, (X, N), ""),
        (running, (X, N), ""),
        (greatest, (X, N), ""),
        (ended, (X, N), ""),
        (sought, (X, N), ""),
        (in_branch, (X, memory([4, 3], INT64)), ""),
        (another_place, (X, N), ""),
        (diagonal, (X, N), ""),
        (sparse, (X, SHORT), ""),
        (begun_by_elements, (X, N), ""),
        (of_two_places, (X, N), ""),
        (with_a_length_of_its_own, (CUBE, SHORT, memory([2, 1], INT64)), ""),
        (of_pairs, (X, memory([[1, 2], [3, 0]], INT64)), ""),
        (in_another_loop, (X, N), "t"),
        (with_a_list, (X, N), ""),
        (ends_itself, (X, ENDS), ""),
        (scaled_after, (X, N), ""),
        (read_before, (X, N), ""),
        (told_on, (X, N), ""),
        (filled, (X, N), "t"),
        (stored_beside, (X, N), ""),
        (ended_late, (X, N), ""),
        (filled_before, (X, N), ""),
        (summed_before, (X, N, Z), ""),
        (changed_before, (X, N), ""),
        (divided_by_a_sum, (X, N), ""),
        (with_lengths_stored_over, (X, ENDS), ""),
        (cut_short, (X, N, 2), "t"),
        (begun_late, (X, N), ""),
        (with_a_variable, (X, N), "t"),
        (triangle, (CUBE, SHORT), ""),
        (scaled_inside, (CUBE, SHORT), "t"),
        (scaled_by_an_element, (CUBE, SHORT, FOUR), ""),
        (scaled_by_its_element, (CUBE, SHORT, FOUR), "t"),
        (twice_inside, (CUBE, SHORT), "t"),
        (marked, (CUBE, SHORT, EIGHT), ""),
        (marked_in_another_loop, (CUBE, SHORT, memory([0.0] * 12)), ""),
        (marked_from_another_place, (CUBE, SHORT, memory([0.0] * 12)), ""),
    ],
)
def test_rows_are_made_longer_where_their_iterations_are_threads(function, arguments, loops):
    assert made_longer(function, *arguments) == loops
    same(function, *arguments)


def with_length_read_by_the_loop(program: Program) -> Program:
    """Let the loop itself read the element that ends it."""
    lengths = {node.symbol: node.value for node in walk(program) if isinstance(node, Assign)}

    def visit(node: Node) -> Node:
        if isinstance(node, For) and isinstance(node.stop, Read) and node.stop.symbol in lengths:
            return replace(node, stop=lengths[node.stop.symbol])
        return replace(node, value=build.integer(0)) if isinstance(node, Assign) else node

    return rewrite(program, visit)


def with_length_that_is_set_in_the_loop(program: Program) -> Program:
    """Let the variable that iterations set end the row, too: it begins as 9."""
    (variable,) = {node.symbol for node in walk(program) if isinstance(node, Assign) and node.symbol.name == "m"}

    def visit(node: Node) -> Node:
        if isinstance(node, For) and node.index.name == "t":
            return replace(node, stop=build.apply("minimum", node.stop, build.read(variable)))
        if isinstance(node, For) and node.index.name == "b":
            return replace(node, body=(Assign(symbol=variable, value=build.integer(9)), *node.body))
        return node

    return rewrite(program, visit)


def with_length_read_inside(program: Program) -> Program:
    """Let the length of the row end the loop inside, too, which reads it."""
    (length,) = [node.value for node in walk(program) if isinstance(node, Assign) and isinstance(node.value, Load)]
    length = replace(length, indices=(build.integer(0),))

    def visit(node: Node) -> Node:
        return replace(node, stop=length) if isinstance(node, For) and node.index.name == "h" else node

    return rewrite(program, visit)


@pytest.mark.parametrize(
    ("function", "arguments", "change", "loops"),
    [
        (doubled, (X, N), with_length_read_by_the_loop, "t"),
        (ends_itself, (X, ENDS), with_length_read_by_the_loop, ""),
        (with_a_variable, (X, N), with_length_that_is_set_in_the_loop, ""),
        (deeper, (CUBE, SHORT), with_length_read_inside, "h"),
    ],
)
def test_the_condition_of_iterations_is_what_ended_the_loop(function, arguments, change, loops):
    assert made_longer(function, *arguments, changed=change) == loops


def test_iterations_beyond_the_axis_run_where_they_do_not_access_it():
    same(marked, Memory([], (2, 2, 0), (0, 0, 1), FLOAT32), memory([4, 3], INT64), EIGHT)


def test_draws_are_made_by_the_iterations_of_the_source():
    assert made_longer(drawn, X, N) == ""


def test_processors_go_along_rows_as_they_are():
    assert made_longer(doubled, X, N, target=AVX2) == ""


@pytest.mark.parametrize("lengths", [[0, 0], [-1, 4], [4, 4], [1, 0]])
def test_rows_of_any_length(lengths):
    for function in (doubled, beside):
        same(function, X, memory(lengths, INT64))


def _failure(function: Function, *arguments: object) -> str:
    """Return how a function fails on a grid."""
    signature = Signature(tuple(map(argument_type, arguments)), **GRID)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    with pytest.raises(IndexError) as caught:
        run_program(pieces, cast("list[Memory]", [*arguments]), check=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (doubled, (X, memory([3, 5], INT64))),
        (deeper, (CUBE, memory([3, 1], INT64))),
        (doubled, (memory([[], []]), memory([0, 1], INT64))),
    ],
)
def test_a_row_that_is_too_long_fails_as_it_did(function, arguments):
    assert "is out of bounds for dimension 1 of tensor" in _failure(function, *arguments)


def test_what_no_iteration_accesses_may_be_too_short():
    """Rows of no numbers are never accessed, however many there would be."""
    x = memory([[[], []], [[], []]])
    assert nested(x) == [[[], []], [[], []]]
    signature = Signature(tuple(map(argument_type, (x, N))), **GRID)
    pieces, _ = schedule_program(lower(define(deeper), signature), GPU)
    run_program(pieces, [x, memory([5, 9], INT64)], check=True)


def empty(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for h in range(x.shape[2]):
                for k in range(x.shape[3]):
                    out[b, t, h, k] = x[b, t, h, k] * 2.0
    return out


def test_nor_what_the_outer_of_two_loops_does_not():
    x = Memory([], (2, 2, 0, 3), (0, 0, 3, 1), FLOAT32)
    signature = Signature(tuple(map(argument_type, (x, N))), **GRID)
    pieces, _ = schedule_program(lower(define(empty), signature), GPU)
    run_program(pieces, [x, memory([5, 9], INT64)], check=True)


def test_two_rows_are_for_threads_of_two_launches():
    program = lower(define(two_rows), Signature(tuple(map(argument_type, (X, Y, N))), **GRID))
    pieces, _ = schedule_program(program, GPU)
    names = {node.kernel.name for node in walk(pieces.body) if isinstance(node, Launch)}
    assert len(names) >= 2
