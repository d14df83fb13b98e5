"""What a variable is worth is known as long as nothing in it changes."""

# pyright: basic
from __future__ import annotations

from brickwork.analysis.definitions import LARGEST, definitions_in
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Assign,
    Block,
    Draw,
    Expression,
    For,
    If,
    Load,
    Random,
    Read,
    Rebind,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import walk

P, Q, N, I = (Symbol(name, number, INT64) for number, name in enumerate("pqni"))
X, Y = (Tensor(name, 10 + number, TensorType(INT64, 1)) for number, name in enumerate("xy"))
p, q, n, i = (build.read(symbol) for symbol in (P, Q, N, I))


def put(symbol: Symbol, value: Expression) -> Assign:
    return Assign(symbol=symbol, value=value)


def element(tensor: Tensor, index: Expression) -> Load:
    return Load(tensor=tensor, indices=(index,), access=0, dtype=INT64)


def at_end(block: Block, wanted: Expression) -> Expression | None:
    known = definitions_in(block)
    for statement in block:
        known = known.after(statement)
    return known.value(wanted)


def test_what_does_not_change_stays():
    assert at_end((), q) == q
    assert at_end((put(Q, build.add(n, i)),), q) == build.add(n, i)
    assert at_end((put(Q, n), put(P, build.add(q, i))), p) == build.add(n, i)


def test_a_copy_of_what_changes_later_is_not_known():
    assert at_end((put(Q, p), put(P, i)), q) is None
    assert at_end((put(P, build.sub(p, build.integer(1))),), p) is None


def test_an_assignment_ends_what_was_known():
    assert at_end((put(Q, n), put(Q, i)), q) == i
    assert at_end((put(Q, n), put(Q, build.add(q, i))), q) == build.add(n, i)
    assert at_end((put(Q, n), put(Q, element(X, i)), Store(tensor=X, indices=(i,), value=n, access=1)), q) is None


def test_a_branch_or_a_loop_that_assigns_ends_what_was_known():
    condition = build.apply("lt", n, i)
    assert at_end((put(Q, n), If(condition=condition, then=(put(Q, i),))), q) is None
    assert at_end((put(Q, n), If(condition=condition, then=(), otherwise=(put(Q, i),))), q) is None
    assert at_end((put(Q, n), If(condition=condition, then=(put(P, i),))), q) == n
    loop = For(index=P, start=build.integer(0), stop=n, body=(put(Q, i),))
    assert at_end((put(Q, n), loop), q) is None
    known = definitions_in((put(Q, n), loop)).after(put(Q, n))
    assert (known.value(q), known.inside(loop).value(q), known.inside(loop).value(p)) == (n, None, None)


def test_elements_that_are_stored_or_move_are_not_known():
    store = Store(tensor=X, indices=(i,), value=n, access=1)
    assert at_end((put(Q, element(X, i)),), q) == element(X, i)
    assert at_end((put(Q, element(Y, i)), store), q) == element(Y, i)
    assert at_end((put(Q, element(X, i)), store), q) is None
    assert at_end((put(Q, element(X, i)), Rebind(targets=(X, Y), sources=(Y, X))), q) is None
    assert at_end((put(Q, build.size(X, 0)), store), q) == build.size(X, 0)


def test_draws_are_not_known():
    bounds = (build.integer(0), n)
    draw = Random(draw=Draw.INTEGER, key=n, counter=i, extra=n, site=0, bounds=bounds, dtype=INT64)
    assert at_end((put(Q, draw),), q) is None


def test_values_stay_small():
    doubled = at_end((put(Q, build.add(n, i)), *(put(Q, build.add(q, q)) for _ in range(40))), q)
    assert doubled is None or sum(1 for _ in walk(doubled)) <= LARGEST
    assert isinstance(q, Read)
