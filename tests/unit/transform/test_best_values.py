"""Searches that keep the place of their best value alone keep the value, too."""

# pyright: basic
from __future__ import annotations

from itertools import product
from math import nan

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32, INT64
from brickwork.ir.interpret import run_kernel
from brickwork.ir.nodes import Break, Continue, For, If, Load, Tensor, TensorType
from brickwork.ir.walk import walk
from brickwork.transform.canonical.best_values import with_best_values
from brickwork.transform.scratch import names_of
from support.lowering import memory
from support.scheduling import same
from support.written import check, kernel, let, load, loop, op, store, symbol, when

X = Tensor("x", 0, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0))
Y = Tensor("y", 1, TensorType(INT64, 1, contiguous=True, unit_axis=0))
FLAGS = Tensor("flags", 2, TensorType(BOOL, 1, contiguous=True, unit_axis=0))
N, I, J, AT, T = (symbol(name) for name in ("n", "i", "j", "at", "t"))
V = symbol("v", FLOAT32)
AFTER = store(Y, (0,), build.read(AT))
ROWS = [
    *product([-1.0, 0.5, 2.0], repeat=4),
    [nan, 1.0, 0.0, 2.0],
    [0.0, nan, -1.0, nan],
    [nan, nan, nan, nan],
]
KEPT = load(X, AT)


def run(block, row, count):
    """Return what a block stores of a search through so many elements of a row."""
    places = memory([-5, 7], INT64)
    flags = memory([row[place] != 2.0 for place in range(4)], BOOL)
    run_kernel(kernel((X, Y, FLAGS), *block, scalars=(N,)), [memory(list(row)), places, flags], (count,))
    return list(places.data)


def kept(*block):
    """Whether a block keeps values, too; it does the same in any case."""
    made = with_best_values(block, names_of(block, 1))
    for row in ROWS:
        assert [run(block, row, count) for count in range(5)] == [run(made, row, count) for count in range(5)]
    return made != block


def search(condition, *more, first=0, before=()):
    """Return a search that notes an index where a condition holds."""
    return let(AT, first), loop(J, 0, N, *before, when(condition, (let(AT, J), *more))), AFTER


@pytest.mark.parametrize("compare", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("mirrored", [False, True])
def test_places_of_extremes_have_their_values_kept(compare, mirrored):
    sides = (KEPT, load(X, J)) if mirrored else (load(X, J), KEPT)
    assert kept(*search(op(compare, *sides))) == (compare not in {"eq", "ne"})


def test_values_are_of_any_elements_that_stay():
    wrapped = build.select(op("lt", T, 0), op("add", T, build.size(X, 0)), build.read(T))
    assert kept(*search(op("gt", load(X, J), load(X, wrapped)), before=(let(T, AT),)))
    assert kept(*search(op("gt", load(X, J), load(X, wrapped)), before=(let(T, AT),), first=-1))
    assert kept(*search(op("gt", op("abs", load(X, J)), op("abs", KEPT)), first=2))
    assert kept(*search(op("gt", V, KEPT), before=(let(V, load(X, J)),)))
    both = op("logical_and", op("lt", J, 3), op("gt", load(X, J), KEPT))
    assert kept(*search(both, store(Y, (1,), build.read(J))))


@pytest.mark.parametrize(
    "condition",
    [
        op("gt", load(X, J), load(X, 0)),  # That is no search.
        op("gt", load(X, J), load(X, op("sub", 3, AT))),
        op("gt", op("abs", load(X, J)), KEPT),
        op("gt", *(load(X, op("minimum", op("mul", place, J), 3)) for place in (J, AT))),
        op("gt", J, AT),  # It has no element.
        op("gt", load(FLAGS, J), load(FLAGS, AT)),
        op("logical_or", op("lt", J, 2), op("gt", load(X, J), KEPT)),
        op("gt", load(X, J), load(X, build.select(op("gt", AT, 0), build.read(AT), build.integer(0)))),
        op("gt", load(X, J), load(X, build.select(op("lt", AT, 2), op("add", AT, 2), build.read(AT)))),
    ],
)
def test_other_conditions_are_left_as_they_are(condition):
    assert not kept(*search(condition))


def test_what_else_happens_to_places_or_elements_is_seen():
    better = op("gt", load(X, J), KEPT)
    assert not kept(*search(better, store(X, (0,), build.constant(1.0, FLOAT32))))
    assert not kept(*search(better, let(AT, 0)))
    assert not kept(let(AT, 0), loop(J, 0, N, when(better, (let(AT, op("minimum", op("add", J, 1), 3)),))), AFTER)
    assert not kept(let(AT, 0), loop(J, 0, N, when(better, (let(AT, J),), (let(AT, 3),))), AFTER)
    assert not kept(let(AT, 0), loop(J, 0, N, when(better, (let(AT, J),)), when(op("eq", J, 2), (let(AT, 1),))), AFTER)
    # Which place it is changes in between, too.
    moved = op("gt", *(load(X, op("minimum", op("add", place, T), 3)) for place in (J, AT)))
    changed = (when(moved, (let(AT, J),)), let(T, op("minimum", J, 1)))
    assert not kept(let(AT, 3), let(T, 0), loop(J, 0, N, *changed), AFTER)


@pytest.mark.parametrize(
    "first", [check(op("lt", J, 9)), when(op("ge", J, 2), (Break(),)), loop(I, 0, 1), store(Y, (1,), build.read(J))]
)
def test_an_element_is_read_first_only_where_the_first_iteration_reads_it(first):
    block = (let(AT, 0), loop(J, 0, N, first, when(op("gt", load(X, J), KEPT), (let(AT, J),))), AFTER)
    assert with_best_values(block, names_of(block, 1)) == block


@pytest.mark.parametrize("before", [False, True])
def test_values_are_kept_with_their_places_where_branches_go_on(before):
    better = op("gt", load(X, J), KEPT)
    goes_on = when(load(FLAGS, J), (Continue(),))
    then = (goes_on, let(AT, J)) if before else (let(AT, J), goes_on)
    assert kept(let(AT, 0), loop(J, 0, N, when(better, (*then, store(Y, (1,), build.read(J))))), AFTER)


ODD = op("ne", op("mod", J, 2), 0)


@pytest.mark.parametrize("leaves", [Break(), Continue()])
@pytest.mark.parametrize("condition", [load(FLAGS, J), ODD, op("lt", load(X, J), build.constant(1.0, FLOAT32))])
def test_values_are_kept_only_with_what_is_noted(leaves, condition):
    def twice(inner):
        return (loop(I, 0, 2, *inner),)

    left = when(condition, (leaves,))
    assert kept(let(AT, 0), loop(J, 0, N, when(op("gt", load(X, J), KEPT), (left, let(AT, J)))), AFTER)
    assert kept(*keyed(when(LARGER, (left, *TAKEN)), around=twice))
    assert kept(*keyed(when(LARGER, (*TAKEN, left)), around=twice))
    assert kept(*keyed(when(LARGER, (TAKEN[1], left, TAKEN[0])), around=twice))


def test_a_search_under_a_condition_reads_nothing_before():
    inner = when(op("gt", load(X, J), KEPT), (let(AT, J),))
    assert not kept(let(AT, 0), loop(J, 0, N, when(load(FLAGS, J), (inner,))), AFTER)


B, W, K = symbol("b", FLOAT32), symbol("w", FLOAT32), symbol("k", FLOAT32)
ONE = build.constant(1.0, FLOAT32)
SIZE = op("abs", B)
MINE = op("abs", load(X, J))
LARGER = op("gt", MINE, SIZE)


def keyed(*body, around=lambda inner: inner):
    """Return a search that keeps the value and the place of an extreme of what is made of values."""
    final = (store(Y, (0,), build.read(AT)), when(op("lt", B, ONE), (store(Y, (1,), build.integer(3)),)))
    return (
        let(B, build.constant(0.25, FLOAT32)),
        let(W, build.constant(0.5, FLOAT32)),
        let(AT, -1),
        *around((loop(J, 0, N, *body),)),
        *final,
    )


TAKEN = (let(B, load(X, J)), let(AT, J))


def test_what_is_made_of_the_best_value_is_kept():
    assert kept(*keyed(when(LARGER, TAKEN)))
    assert kept(*keyed(when(LARGER, TAKEN[::-1])))
    assert kept(*keyed(when(op("le", SIZE, MINE), TAKEN)))
    assert kept(*keyed(let(V, load(X, J)), when(op("gt", op("abs", V), SIZE), (let(B, V), let(AT, J)))))
    assert kept(*keyed(let(V, load(X, J)), let(K, op("abs", V)), when(op("gt", K, SIZE), (let(B, V), let(AT, J)))))
    assert kept(*keyed(let(K, SIZE), when(op("gt", MINE, K), TAKEN)))
    assert kept(*keyed(when(op("gt", op("mul", load(X, J), W), op("mul", B, W)), TAKEN)))
    assert kept(*keyed(when(op("logical_and", op("lt", J, 3), LARGER), TAKEN)))
    assert kept(*keyed(when(LARGER, (*TAKEN, Break()))))
    assert kept(*keyed(when(op("ge", J, 1), (when(LARGER, TAKEN),))))


def test_it_is_kept_through_the_loops_around():
    twice = keyed(when(LARGER, (*TAKEN, Break())), around=lambda inner: (loop(I, 0, 2, *inner),))
    assert kept(*twice)
    (outer,) = [item for item in with_best_values(twice, names_of(twice, 1)) if isinstance(item, For)]
    assert not any(isinstance(item, If) for item in outer.body)
    # There it is another value in each iteration.
    again = keyed(when(LARGER, TAKEN), around=lambda inner: (loop(I, 0, 2, let(B, load(X, I)), *inner),))
    assert kept(*again)
    (outer,) = [item for item in with_best_values(again, names_of(again, 1)) if isinstance(item, For)]
    assert any(isinstance(item, If) for item in outer.body)


@pytest.mark.parametrize(
    "body",
    [
        (when(op("gt", load(X, J), B), TAKEN),),  # The value itself is what is compared.
        (when(op("gt", load(X, J), SIZE), TAKEN),),
        (when(LARGER, (let(B, MINE), let(AT, J))),) * 2,
        (when(LARGER, TAKEN), let(B, op("sub", B, ONE))),
        (when(LARGER, (let(B, build.constant(0.75, FLOAT32)), let(AT, J))),),
        (when(LARGER, (let(AT, J),), (let(B, load(X, J)),)),),
        (when(op("gt", op("mul", load(X, J), W), op("mul", B, W)), TAKEN), let(W, op("add", W, ONE))),
        (
            let(V, load(X, J)),
            when(op("gt", op("abs", V), SIZE), (let(V, ONE), let(B, V), let(AT, J))),
        ),
        (when(LARGER, (store(X, (J,), build.constant(9.0, FLOAT32)), *TAKEN)),),
        (let(V, load(X, J)), store(X, (J,), op("add", V, ONE)), when(op("gt", op("abs", V), SIZE), TAKEN)),
        (when(op("ne", MINE, SIZE), TAKEN),),
        (when(op("gt", load(FLAGS, J), load(FLAGS, 0)), TAKEN),),
    ],
)
def test_other_values_are_compared_as_they_are(body):
    assert not kept(*keyed(*body))


def test_elements_keep_their_numbers():
    block = search(op("gt", load(X, J), KEPT))
    numbers = [node.access for made in (block, with_best_values(block, names_of(block, 1))) for node in _loads(made)]
    assert len(numbers) == 4
    assert len({*numbers}) == 2


def _loads(block):
    return [node for node in walk(block) if isinstance(node, Load)]


def into_what_was_the_best(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    k = 0
    for i in range(x.shape[0]):
        if x[i] > x[k]:
            k = i
        y[k] = y[k] - 3
    out[0] = k


def test_a_best_value_may_change_with_what_shares_its_memory() -> None:
    given = memory([8.0, 0.0, 2.0, 6.0, 7.0, 6.0, 7.0])
    (_, _, (found,)) = same(into_what_was_the_best, given, given, memory([0.0]), may_alias=True)
    assert found == 6.0
