"""Loops as long as elements say: an index that is counted from such an end is no other number in 64 bits."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.expressions import Values
from brickwork.analysis.polynomial import INT64_RANGE, IndexAtom, Interval, UnknownAtom, number, of_atom
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Launch, Symbol
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from support.shared import define, lower
from support.tensors import argument_type

ROWS = torch.zeros(2, 8, 4)
LENGTHS = torch.zeros(2, dtype=torch.int64)


def conflicts(function):
    """Return which loops of a function conflict, by their names."""
    signature = Signature(tuple(map(argument_type, (ROWS, LENGTHS))))
    program = lower(define(function), signature)
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    return {symbol.name: verdict.conflict is not None for symbol, verdict in analyse(kernel).loops.items()}


def backwards(y: torch.Tensor, n: torch.Tensor) -> None:
    for b in range(y.shape[0]):
        for t in range(1, n[b]):
            u = n[b] - t
            for s in range(1, y.shape[2]):
                y[b, u - 1, s] = y[b, u, s] + y[b, u, s - 1]


def negated(y: torch.Tensor, n: torch.Tensor) -> None:
    for b in range(y.shape[0]):
        for t in range(1, n[b]):
            for s in range(1, y.shape[2]):
                y[b, t - n[b] - 1, s] = y[b, t - n[b], s] + y[b, t - n[b], s - 1]


def twice(y: torch.Tensor, n: torch.Tensor) -> None:
    for b in range(y.shape[0]):
        for t in range(1, n[b]):
            for u in range(t, n[b]):
                for s in range(1, y.shape[2]):
                    y[b, u - t, s] = y[b, u - t + 1, s] + y[b, u - t + 1, s - 1]


@pytest.mark.parametrize("function", [backwards, negated, twice])
def test_steps_from_such_an_end_are_apart(function):
    found = conflicts(function)
    assert found["t"]
    assert not found["s"]


def beyond(y: torch.Tensor, n: torch.Tensor) -> None:
    for b in range(y.shape[0]):
        for t in range(1, n[b]):
            for s in range(1, y.shape[2]):
                y[b, n[b] + t - n[b] * 2, s] = y[b, n[b] * 2, s] + y[b, n[b] + t, s - 1]


def squared(y: torch.Tensor, n: torch.Tensor) -> None:
    for b in range(y.shape[0]):
        for t in range(1, n[b]):
            for s in range(1, y.shape[2]):
                y[b, t * t - n[b], s] = y[b, t * t - n[b] + 1, s - 1]


def by_elements(y: torch.Tensor, n: torch.Tensor) -> None:
    for b in range(y.shape[0]):
        for t in range(1, n[b]):
            for s in range(1, y.shape[2]):
                y[b, t * n[b] - t, s] = y[b, t * n[b] - t + 1, s - 1]


@pytest.mark.parametrize("function", [beyond, squared, by_elements])
def test_what_may_wrap_is_any_element(function):
    assert conflicts(function)["s"]


ANY, SMALL, FEW, LOW = (UnknownAtom(number, 1) for number in range(4))
T = IndexAtom(Symbol("t", 5, INT64), 0, 2)
WITHIN = {SMALL: Interval(-10, 10), FEW: Interval(0, 10), LOW: Interval(INT64_RANGE.low, 0)}


@pytest.mark.parametrize(
    ("start", "stop", "value", "fits"),
    [
        (of_atom(ANY), number(4), of_atom(SMALL) + of_atom(T), False),
        (number(1), of_atom(ANY), of_atom(SMALL) + of_atom(T), False),
        (number(1), of_atom(ANY), of_atom(ANY) - of_atom(T), True),
        (number(1), of_atom(ANY), of_atom(T) - of_atom(ANY), True),
        (number(1), of_atom(ANY), of_atom(ANY) * of_atom(T) - of_atom(T), False),
        (of_atom(LOW), number(3), of_atom(FEW) * of_atom(T), False),
    ],
)
def test_a_value_fits_where_it_does_at_both_ends(start, stop, value, fits):
    known = Values((), {ANY: INT64_RANGE, T: INT64_RANGE, **WITHIN})
    known.ends[T] = start, stop
    assert (known.exact(value) == value) == fits
