"""A `while` that counts towards a limit becomes a `for` with one iteration more than there can be."""

# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.interpret import run_kernel
from brickwork.ir.nodes import Apply, Block, Expression, For, Read, Statement, Tensor, TensorType, While
from brickwork.ir.walk import walk
from brickwork.transform.canonical.counted_while import BITS, counted_while
from brickwork.transform.scratch import names_of
from support.lowering import memory
from support.written import check, kernel, let, load, loop, op, repeat, store, symbol, when

X = Tensor("x", 0, TensorType(INT64, 1, contiguous=True, unit_axis=0))
"""Element 0 counts iterations, 1 takes the length of a `for`, 2 is for programs, and 3 ends loops."""
A, N, K, M, I = (symbol(name) for name in "ankmi")
T, U = symbol("t", BOOL), symbol("u", BOOL)
SEEN = store(X, (0,), op("add", load(X, 0), 1))
GOES_ON = op("lt", load(X, 0), load(X, 3))
"""Ends loops that do not by their counter; read again, as it loads."""
BELOW = op("lt", K, N)
COUNTED = let(K, op("add", K, 1))


def counted(block: Block) -> For | None:
    """Return the `for` that the last statement becomes."""
    made = counted_while(block, names_of(block, 1))[-1]
    return made if isinstance(made, For) else None


def lengths(block: Block, *numbers: int, most: int = 200) -> tuple[int, int]:
    """Return how many iterations the last statement of a block has, and what the `for` made of it says; -1 for none."""
    found = []
    made = counted(block)
    before = counted_while(block, names_of(block, 1))[:-1] if made else block[:-1]
    for body in (block, (*before, *(() if made is None else (store(X, (1,), made.stop),)))):
        data = memory([0, -1, 5, most], INT64)
        run_kernel(kernel((X,), *body, scalars=(A, N)), [data], numbers)
        found.append(int(data.data[len(found)]))
    return found[0], found[1]


def stepped(compare: Expression, step: Expression, *rest: Statement) -> While:
    """Return a loop whose counter takes a step, and which ends for another reason, too."""
    return repeat(op("logical_and", compare, GOES_ON), SEEN, *rest, let(K, step))


def _unfolded(name: str, by: int) -> Expression:
    """Return a step that changes nothing, which passes may leave."""
    step = op(name, K, 7)
    assert isinstance(step, Apply)
    return replace(step, operands=(build.read(K), build.integer(by)))


@pytest.mark.parametrize("by", [-3, -1, 1, 2])
@pytest.mark.parametrize("compare", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_counter_is_as_long_as_it_is_from_its_limit(by, compare, mirrored):
    sides = (N, K) if mirrored else (K, N)
    block = (let(K, A), stepped(op(compare, *sides), op("add", K, by)))
    up = (compare in {"lt", "le"}) != mirrored
    assert (counted(block) is not None) == (up == (by > 0))
    for a, n in ((-4, 3), (3, -4), (2, 2), (0, 6), (6, 0), (7, 1)):
        iterations, length = lengths(block, a, n)
        assert length in ({iterations + 1} if up == (by > 0) else {-1})


@pytest.mark.parametrize(
    ("begin", "compare", "limit", "step", "length"),
    [
        (1, "lt", N, op("mul", K, 2), BITS),
        (2, "le", N, op("mul", K, 3), BITS),
        (0, "lt", N, op("mul", K, 2), -1),  # It stays 0.
        (-1, "lt", N, op("mul", K, 2), -1),
        (A, "lt", N, op("mul", K, 2), -1),
        (1, "lt", N, _unfolded("mul", 1), -1),
        (1, "gt", N, op("mul", K, 2), -1),
        (1, "lt", N, op("mul", K, -2), -1),
        (A, "gt", 0, op("floordiv", K, 2), BITS),
        (A, "gt", 3, op("floordiv", K, 2), BITS),
        (A, "ge", 1, op("floordiv", K, 3), BITS),
        (A, "gt", -1, op("floordiv", K, 2), -1),  # It stays 0.
        (A, "ge", 0, op("floordiv", K, 2), -1),
        (A, "gt", 0, _unfolded("floordiv", 1), -1),
        (A, "gt", 0, op("floordiv", K, -2), -1),
        (A, "gt", N, op("floordiv", K, 2), -1),
        (A, "lt", 5, op("floordiv", K, 2), -1),
        (A, "gt", 0, op("sub", K, 2), 3),
        (A, "gt", 0, op("sub", K, N), -1),  # The step is no literal.
        (A, "lt", 9, op("sub", 9, K), -1),
        (A, "gt", N, _unfolded("add", 0), -1),
        (A, "lt", N, _unfolded("add", 0), -1),
        (0, "lt", 2**31, op("add", K, 1), 2**31),
        (0, "lt", 2**31 + 1, op("add", K, 1), -1),  # The difference of such could wrap.
        (-1, "le", 2**63 - 1, op("add", K, 1), -1),
        (-(2**31) - 1, "lt", 3, op("add", K, 1), -1),
    ],
)
def test_factors_and_literals_make_loops_of_known_lengths(begin, compare, limit, step, length):
    block = (let(K, begin), stepped(op(compare, K, limit), step))
    assert lengths(block, 5, 7)[1] == (length if length < 0 else length + 1)


def _named(condition: Expression, *prelude: Statement) -> While:
    return repeat(condition, SEEN, COUNTED, prelude=prelude)


def _choice(otherwise: Expression) -> Statement:
    return when(build.read(U), (let(T, GOES_ON),), (let(T, otherwise),))


LOOPS: list[tuple[str, bool, Statement]] = [
    ("the limit moves", False, stepped(BELOW, op("add", K, 1), let(N, op("add", N, 1)))),
    ("the limit is an element", False, stepped(op("lt", K, load(X, 3)), op("add", K, 1))),
    ("two steps", False, stepped(BELOW, op("add", K, 1), let(K, op("sub", K, 1)))),
    (
        "another goes away",
        True,
        stepped(op("logical_and", op("le", M, N), BELOW), op("add", K, 1), let(M, op("sub", M, 1))),
    ),
    ("in a variable", True, _named(build.read(T), let(T, op("logical_and", GOES_ON, BELOW)))),
    ("in a branch", True, _named(build.read(T), let(U, BELOW), _choice(build.read(U)))),
    (
        "after a branch",
        True,
        _named(build.read(T), let(U, GOES_ON), when(build.read(U), (let(T, BELOW),), (let(T, build.read(U)),))),
    ),
    ("either", False, _named(build.read(T), let(U, BELOW), _choice(GOES_ON))),
    ("another in the branch", True, _named(build.read(T), let(U, BELOW), let(T, BELOW), _choice(build.read(U)))),
    ("set again", False, _named(build.read(T), let(T, BELOW), let(T, GOES_ON))),
    ("set again in a branch", False, _named(build.read(T), let(T, BELOW), when(GOES_ON, (let(T, GOES_ON),)))),
    ("a check", True, _named(build.read(T), let(T, op("logical_and", GOES_ON, BELOW)), check(op("ge", N, -99)))),
]


@pytest.mark.parametrize(("name", "is_counted", "made"), LOOPS, ids=[name for name, *_ in LOOPS])
def test_what_holds_in_each_iteration_is_known_of_all_that_must(name, is_counted, made):
    block = (let(M, -9), let(K, A), made)
    assert (counted(block) is not None) == is_counted
    for a, n in ((0, 3), (2, 2), (5, 1)):
        iterations, length = lengths(block, a, n, most=9)
        assert length in ({max(n - a, 0) + 1} if is_counted else {-1})
        assert not is_counted or iterations < length


BEGINS: dict[str, Sequence[Statement]] = {
    "nothing": (),
    "other things since": (let(M, 3), store(X, (2,), op("add", load(X, 2), 1))),
    "from an element": (let(K, load(X, 2)), store(X, (2,), build.integer(1))),
    "in terms of what changes": (let(M, A), let(K, M), let(M, op("add", M, 3))),
    "in terms of itself": (let(K, op("sub", K, 3)),),
    "in a branch": (when(op("gt", N, 4), (let(K, 1),)),),
    "as an index": (loop(K, 0, 3, store(X, (2,), build.integer(1))), let(K, op("add", K, 0))),
}


@pytest.mark.parametrize("name", BEGINS)
def test_a_counter_begins_with_what_it_was_last_set_to(name):
    block = (let(K, A), *BEGINS[name], stepped(BELOW, op("add", K, 1)))
    for a, n in ((0, 3), (2, 9)):
        iterations, length = lengths(block, a, n)
        assert length == iterations + 1


def test_the_host_is_told_what_a_counter_begins_with():
    for begin, told in ((let(K, A), A), (let(K, load(X, 2)), K)):
        made = counted((begin, stepped(BELOW, op("add", K, 1))))
        assert made is not None
        read = {node.symbol for node in walk(made.stop) if isinstance(node, Read)}
        assert read == {told, N}
