"""Loops that begin by leaving at some index end there; others are left as they are."""

# pyright: basic
from __future__ import annotations

from dataclasses import replace

import pytest

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.interpret import run_kernel
from brickwork.ir.nodes import Break, Cast, For, Tensor, TensorType
from brickwork.ir.walk import statements
from brickwork.transform.canonical.ends import with_ends
from support.lowering import memory
from support.written import check, kernel, let, load, loop, op, store, symbol, when

X = Tensor("x", 0, TensorType(INT64, 1, contiguous=True, unit_axis=0))
"""Element 0 counts iterations, 1 adds their indices up, 2 is for what is read after the loop, and 3 ends loops."""
A, N, I, J, K = (symbol(name) for name in "anijk")
LEAVE = (Break(),)
SEEN = (store(X, (0,), op("add", load(X, 0), 1)), store(X, (1,), op("add", load(X, 1), I)))
PAIRS = [(a, n) for a in (-7, -1, 0, 1, 2, 5) for n in (-3, 0, 1, 4, 9)]


def run(block, a, n):
    """Return what a block leaves in the tensor."""
    data = memory([0, 0, 0, 4], INT64)
    run_kernel(kernel((X,), *block, scalars=(A, N)), [data], (a, n))
    return list(data.data)


def ends(*block):
    """Whether nothing leaves the loop of a block any more; it does the same in any case."""
    made = with_ends(block)
    assert all(run(block, *pair) == run(made, *pair) for pair in PAIRS)
    return not any(isinstance(node, Break) for node in statements(made))


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("compare", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_conditions_that_stay_true_are_ends(compare, mirrored, factor):
    left, right = op("add", op("mul", I, factor), A), op("sub", N, 1)
    condition = op(compare, right, left) if mirrored else op(compare, left, right)
    grows = compare in ({"lt", "le"} if mirrored else {"gt", "ge"})
    assert ends(loop(I, -2, 6, when(condition, LEAVE), *SEEN)) == grows


@pytest.mark.parametrize(
    ("leaves", "known"),
    [
        (op("ge", op("sub", I, A), N), True),
        (op("ge", op("sub", A, I), N), False),  # It becomes true going down.
        (op("ge", A, N), False),  # The index has no part in it.
        (op("ge", op("mul", I, A), N), False),
        (op("ge", op("minimum", I, 3), N), False),
        (op("ge", I, op("minimum", A, N)), True),
        (op("ge", I, op("floordiv", N, 2)), True),
        (op("ge", I, op("mod", N, A)), False),  # It may fail, where the loop has no iteration.
        (op("ge", I, load(X, 3)), False),
        (op("ge", I, load(X, 0)), False),
        (op("logical_or", op("ge", I, A), op("gt", I, N)), True),
        (op("logical_or", op("ge", I, A), op("ge", N, 0)), False),
        (op("logical_and", op("ge", I, A), op("gt", I, N)), False),
        (op("ge", I, 2**31), True),
        (op("ge", I, 2**31 + 1), False),  # The difference of such could wrap.
        (op("ge", op("add", I, -(2**31) - 1), N), False),
        (op("ge", *(Cast(operand=build.read(item), dtype=FLOAT64) for item in (I, N))), False),
    ],
)
def test_ends_are_of_integers_that_do_not_change(leaves, known):
    block = (loop(I, 0, 6, when(leaves, LEAVE), *SEEN),)
    if "mod" in repr(leaves):
        assert with_ends(block) == block
    else:
        assert ends(*block) == known


def test_statements_before_are_part_of_the_condition():
    begun = (let(J, op("add", I, A)), let(K, op("mul", J, 2)))
    assert ends(loop(I, 0, 6, *begun, when(op("gt", K, N), LEAVE), *SEEN))
    assert ends(loop(I, 0, 6, *begun, when(op("gt", K, N), LEAVE), when(op("ge", J, 2), LEAVE), *SEEN))
    assert not ends(loop(I, 0, 6, *begun, when(op("gt", K, N), LEAVE), when(op("ge", A, 2), LEAVE), *SEEN))
    # The first of two that are equal goes, and the second.
    assert ends(loop(I, 0, 6, *(2 * [when(op("gt", I, N), LEAVE)]), *SEEN))


def test_what_an_iteration_leaves_behind_keeps_its_condition():
    body = (let(J, op("add", I, A)), when(op("ge", J, N), LEAVE), *SEEN)
    after = store(X, (2,), build.read(J))
    assert not ends(let(J, 5), loop(I, 0, 6, *body), after)
    assert ends(let(J, 5), loop(I, 0, 6, *body), let(J, 1), after)
    # It is what the next iteration of a loop around begins with.
    assert not ends(let(J, 5), loop(K, 0, 3, after, loop(I, 0, 6, *body)))


@pytest.mark.parametrize(
    "first",
    [
        let(J, load(X, A)),
        let(K, load(X, A)),
        let(J, op("add", J, 1)),
        store(X, (2,), build.read(I)),
        check(op("lt", I, 3)),
        when(op("eq", I, 3), (store(X, (2,), build.read(I)),)),
        let(J, load(X, 3)),
    ],
)
def test_what_may_fail_or_is_seen_comes_before_the_condition(first):
    block = (let(J, 0), loop(I, 0, 6, first, when(op("ge", op("add", I, J), N), LEAVE), *SEEN))
    assert with_ends(block) == block


def test_more_than_leaving_is_no_end():
    condition = op("ge", I, N)
    assert not ends(loop(I, 0, 6, when(condition, (store(X, (2,), build.read(I)), *LEAVE)), *SEEN))
    assert not ends(loop(I, 0, 6, when(condition, LEAVE, (store(X, (2,), build.read(I)),)), *SEEN))
    assert not ends(loop(I, 0, 6, *SEEN, when(condition, LEAVE)))


def test_a_limit_that_the_body_changes_is_no_end():
    body = (when(op("ge", I, J), LEAVE), *SEEN, let(J, op("add", I, 2)))
    assert not ends(let(J, 1), loop(I, 0, 6, *body))


def test_inner_loops_end_by_indices_around_them():
    inner = loop(J, 0, 4, when(op("ge", op("add", I, J), N), LEAVE), *SEEN)
    (made,) = with_ends((loop(I, 0, 5, inner),))
    assert isinstance(made, For)
    assert isinstance(made.body[0], For)
    assert made.body[0].stop == op("minimum", 4, op("sub", N, I))
    assert ends(loop(I, 0, 5, inner))
    assert replace(made.body[0], stop=inner.stop).body == SEEN
