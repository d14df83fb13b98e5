"""Checks of places are made ahead only where these stay the same and are known before the nest."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
import torch

from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Apply, Assign, Check, For, If, Launch, TensorType
from brickwork.ir.nodes import Tensor as IrTensor
from brickwork.ir.signature import Signature
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.checks_ahead import CHECKED, _Checks, _UncheckedError, _with_places, with_checks_ahead
from support.lowering import argument_type, memory, numbers
from support.scheduling import GPU, same
from support.shared import define, lower
from support.written import check, let, load, loop, op, store, symbol

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let all sizes be worth it."""
    with patch.multiple(nests_apart, LEAST_SIDE=0, LEAST_AREA=0, LEAST_TERMS=0):
        yield


def plain(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[i], k] * w[k, j]
            out[i, j] = s
    return out


def by_an_argument(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[i] + n, k] * w[k, j]
            out[i, j] = s
    return out


def of_rows_before(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for t in range(i):
                s += x[at[t], i % 3] * w[t % 3, j]
            out[i, j] = s
    return out


def of_rows_behind(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for t in range(i + 1, at.shape[0]):
                s += x[at[t], i % 3] * w[t % 3, j]
            out[i, j] = s
    return out


def beside_a_number(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    """Elements that are no places stay where they are read."""
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            f = x[0, 0]
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[i], k] * w[k, j]
            out[i, j] = s * f
    return out


TAKEN = [plain, by_an_argument, of_rows_before, of_rows_behind, beside_a_number]


def changed_in_the_nest(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[at[i], k] * w[k, j]
            out[i, j] = s
            at[i] = (at[i] + 1) % 3
    return out


def noted_and_changed(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            row = at[i]
            at[i] = (row + 1) % 3
            s = 0.0
            for k in range(w.shape[0]):
                s += x[row, k] * w[k, j]
            out[i, j] = s
    return out


def at_another_row_at_times(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            row = at[i]
            if j > 1:
                row = at[0]
            s = 0.0
            for k in range(w.shape[0]):
                s += x[row, k] * w[k, j]
            out[i, j] = s
    return out


def at_a_place_that_moves_on(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            c = i * i % 3
            row = at[c]
            c = c + 1
            s = 0.0
            for k in range(w.shape[0]):
                s += x[row, k] * w[k, j]
            out[i, j] = s + c
    return out


def as_far_as_a_variable_says(x: Tensor, at: Tensor, w: Tensor, n: int) -> Tensor:
    out = torch.empty(at.shape[0], w.shape[1])
    for i in range(at.shape[0]):
        for j in range(w.shape[1]):
            c = i * i % 3
            if c > 1:
                c = 0
            s = 0.0
            for k in range(min(c, w.shape[0])):
                s += x[at[i], k] * w[k, j]
            out[i, j] = s
    return out


OTHERS = [
    changed_in_the_nest,
    noted_and_changed,
    at_another_row_at_times,
    at_a_place_that_moves_on,
    as_far_as_a_variable_says,
]
X, W = numbers(5, 3), numbers(3, 5)
PLACES = [0, 2, -4, -1, 2, 3]


def kernel(function):
    """Return the kernel with checks ahead of a function for a GPU."""
    types = tuple(map(argument_type, (X, memory(PLACES, INT64), W, 1)))
    signature = Signature(types, device="cuda", narrow=True, aligned=True)
    program, _ = with_checks_ahead(canonical(lower(define(function), signature), sizes=True), GPU)
    found = (node.kernel for node in walk(program.body) if isinstance(node, Launch))
    return next((item for item in found if item.name.endswith(CHECKED)), None)


@pytest.mark.parametrize("places", [PLACES, [], [3], [1, 0], [2, 1, 0, 3], [9, 0], [0, 9]])
@pytest.mark.parametrize("function", [*TAKEN, *OTHERS])
def test_rows_are_those_of_the_source(function, places):
    """What changes places may have changed fewer of them where a place is not there."""
    if 9 not in places or function not in {changed_in_the_nest, noted_and_changed}:
        same(function, X, memory(places, INT64), W, 1)


@pytest.mark.parametrize("function", TAKEN)
def test_checks_stand_ahead(function):
    found = kernel(function)
    assert found is not None
    assert not any(isinstance(node, Check) for node in statements(found.body[-1]))


@pytest.mark.parametrize("function", OTHERS)
def test_checks_stay(function):
    assert kernel(function) is None


def test_a_check_goes_with_the_loops_that_say_its_place():
    for function, names in ((plain, ["i"]), (of_rows_before, ["i", "t"]), (of_rows_behind, ["i", "t"])):
        check, _ = kernel(function).body
        assert [node.index.name for node in statements(check) if isinstance(node, For)] == names


def test_a_check_asks_whether_the_other_loops_run():
    check, _ = kernel(plain).body
    (branch,) = (node for node in statements(check) if isinstance(node, If))
    asked = [node for node in walk(branch.condition) if isinstance(node, Apply) and node.operator.name == "lt"]
    assert len(asked) == 2


def test_numbers_stay_where_they_are_read():
    *_, nest = kernel(beside_a_number).body
    assert "f" in {node.symbol.name for node in statements(nest) if isinstance(node, Assign)}


# ---------------------------------------------------------------- in pieces of IR


INTEGERS, FLOATS = TensorType(INT64, 1, True, 0), TensorType(FLOAT32, 1, True, 0)
AT, MOVED, FROM = IrTensor("at", 1, INTEGERS), IrTensor("moved", 2, INTEGERS), IrTensor("x", 3, FLOATS)
I, K, N, P, Q = (symbol(name) for name in "iknpq")
HERE = op("lt", load(AT, I), 5)


@pytest.mark.parametrize(
    ("condition", "asked", "stop", "loops"),
    [
        (op("lt", load(MOVED, I), 5), (), N, 2),
        (op("lt", op("add", load(AT, I), P), 5), (), N, 2),
        (HERE, (op("lt", load(MOVED, I), 3),), N, 2),
        (HERE, (op("lt", P, 3),), N, 2),
        (HERE, (), P, 2),
        (HERE, (), N, 1),
    ],
)
def test_what_is_asked_ahead_is_known_there(condition, asked, stop, loops):
    around = [loop(I, 0, N), loop(K, 0, stop)][:loops]
    known = _Checks(frozenset(), frozenset((AT,)), frozenset((N,)))
    known.check(check(HERE), [loop(I, 0, N), loop(K, I, N)], (op("lt", I, N),))
    assert len(known.nests) == 1
    with pytest.raises(_UncheckedError):
        known.check(check(condition), around, asked)


@pytest.mark.parametrize(
    ("before", "stands"),
    [
        ((let(P, load(AT, I)),), True),
        ((let(P, load(AT, I)), let(P, 3)), False),
        ((let(P, load(MOVED, I)),), False),
        ((let(Q, 1), let(Q, I), let(P, op("add", load(AT, I), Q))), False),
    ],
)
def test_places_stand_where_they_are_used_if_they_are_the_same_there(before, stands):
    use = store(FROM, (I,), load(FROM, P))
    made = _with_places(loop(I, 0, N, *before, use), frozenset((AT, FROM)))
    assert (P in read_symbols(made.body[-1])) is not stands


def test_places_stand_where_they_are_used_if_nothing_else_is_known():
    made = _with_places(loop(I, 0, N, let(P, load(AT, I)), store(FROM, (I,), load(FROM, P))), frozenset((AT,)))
    assert P not in read_symbols(made.body[-1])
