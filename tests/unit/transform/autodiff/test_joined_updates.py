"""Additions to one element in one block are one addition, where nothing between them asks for the element."""

# pyright: basic
from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
import torch

from brickwork.ir.build import constant
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import (
    Assign,
    Block,
    Break,
    Check,
    Failure,
    FailureKind,
    For,
    Launch,
    Load,
    Store,
    Tensor,
    TensorType,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import read_symbols, walk
from brickwork.transform.autodiff.joined_updates import joined_updates
from brickwork.transform.scratch import Names
from support.gradients import check_gradients
from support.written import let, load, loop, op, store, symbol, when

VECTOR, NUMBERS = TensorType(FLOAT32, 1, True, 0), TensorType(INT64, 1, True, 0)
X, G, Y = (Tensor(name, number, VECTOR) for number, name in enumerate("xgy"))
P = Tensor("p", 3, NUMBERS)
I, K, V = symbol("i"), symbol("k"), symbol("v", FLOAT32)

NOUGHT = constant(0.0, FLOAT32)


def add(tensor: Tensor, index, value) -> Store:
    """Return an addition to an element."""
    return store(tensor, (index,), op("add", load(tensor, index), value))


def stores(block: Block, tensor: Tensor) -> int:
    """Return how many stores into a tensor are left in a loop with these statements in it."""
    nest = loop(I, 0, 4, *block)
    names = Names(count(9000), count(9000), count(9000))
    return sum(isinstance(node, Store) and node.tensor == tensor for node in walk(joined_updates((nest,), names)))


FIRST, LAST = add(G, I, load(X, I)), add(G, I, load(Y, I))

JOINED = {
    "next to one another": (FIRST, LAST),
    "three": (FIRST, add(G, I, load(X, 0)), LAST),
    "other elements": (FIRST, add(G, op("add", I, 1), load(X, I)), LAST, add(G, op("add", I, 1), load(Y, I))),
    "what is computed between": (FIRST, let(V, load(X, I)), LAST),
    "other tensors": (FIRST, store(X, (I,), load(Y, I)), LAST),
    "a difference": (store(G, (I,), op("sub", load(G, I), load(X, I))), LAST),
    "places that elements say": (add(G, load(P, I), load(X, I)), add(G, load(P, I), load(Y, I))),
}
ZEROS = {
    "a 0, and what is added to it": (store(G, (I,), NOUGHT), FIRST),
    "with what is computed between": (store(G, (I,), NOUGHT), let(V, load(X, I)), FIRST),
    "with another addition": (store(G, (I,), NOUGHT), FIRST, LAST),
}
NO_ZEROS = {
    "another number": (store(G, (I,), constant(1.0, FLOAT32)), FIRST),
    "an addition between": (store(G, (I,), NOUGHT), add(G, K, load(X, I)), FIRST),
    "a look between": (store(G, (I,), NOUGHT), let(V, load(G, K)), FIRST),
    "a store between": (store(G, (I,), NOUGHT), store(G, (K,), constant(2.0, FLOAT32)), FIRST),
    "another element": (store(G, (K,), NOUGHT), FIRST),
}
APART = {
    "a look at the tensor": (FIRST, let(V, load(G, 0)), LAST),
    "an element of the tensor is added": (FIRST, add(G, op("add", I, 1), load(G, 0)), LAST),
    "a store": (FIRST, store(G, (op("add", I, 1),), load(X, I)), LAST),
    "another index": (add(G, K, load(X, I)), let(K, op("add", K, 1)), add(G, K, load(Y, I))),
    "another place": (add(G, load(P, I), load(X, I)), store(P, (I,), I), add(G, load(P, I), load(Y, I))),
    "an end": (FIRST, when(op("gt", I, 2), (Break(),)), LAST),
    "a check": (FIRST, Check(condition=op("gt", I, 2), failure=Failure(FailureKind.VALUE, "no")), LAST),
    "in a loop": (FIRST, loop(symbol("j"), 0, 2, add(G, I, load(Y, I)))),
    "products": (FIRST, store(G, (I,), op("mul", load(G, I), load(Y, I)))),
    "one that is atomic": (FIRST, replace(LAST, combine=OPERATORS["add"])),
    "the element itself": (add(G, I, load(G, I)), LAST),
}


@pytest.mark.parametrize("block", ZEROS.values(), ids=ZEROS)
def test_what_is_set_to_0_to_be_added_to_is_stored(block):
    nest = loop(I, 0, 4, *block)
    (result,) = joined_updates((nest,), Names(count(9000), count(9000), count(9000)))
    assert stores(block, G) == 1
    assert not any(isinstance(node, Load) and node.tensor == G for node in walk(result))


@pytest.mark.parametrize("block", NO_ZEROS.values(), ids=NO_ZEROS)
def test_a_0_stays_that_something_may_see(block):
    assert stores(block, G) == sum(isinstance(node, Store) for node in block)


@pytest.mark.parametrize("name", JOINED)
def test_additions_that_are_joined(name: str) -> None:
    block = JOINED[name]
    places = {str(node.indices) for node in block if isinstance(node, Store) and node.tensor == G}
    assert stores(block, G) == (2 if name == "other elements" else 1), places


@pytest.mark.parametrize("name", APART)
def test_additions_that_stay_apart(name: str) -> None:
    assert stores(APART[name], G) == 2 + (name in {"a store", "an element of the tensor is added"})


def test_a_term_goes_to_the_same_tensor() -> None:
    nest = loop(I, 0, 4, FIRST, add(Y, I, load(X, I)), add(G, I, load(X, 0)))
    (joined,) = joined_updates((nest,), Names(count(9000), count(9000), count(9000)))
    terms = {node.symbol for node in walk(joined) if isinstance(node, Assign)}
    update = next(node for node in walk(joined) if isinstance(node, Store) and node.tensor == G)
    assert terms
    assert terms <= read_symbols(update)


def rotated(x: torch.Tensor, w: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for d in range(x.shape[1] // 2):
            c = w[d]
            s = w[d] * w[d]
            out[i, 2 * d] = x[i, 2 * d] * c - x[i, 2 * d + 1] * s
            out[i, 2 * d + 1] = x[i, 2 * d] * s + x[i, 2 * d + 1] * c
    return out


def test_gradients_of_a_rotation_are_stored_once() -> None:
    program = check_gradients(rotated, torch.rand(3, 6).double(), torch.rand(3).double(), wanted=(True, False))
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    nest = next(node for node in kernel.body if isinstance(node, For))
    assert sum(isinstance(node, Store) for node in walk(nest)) == 2
