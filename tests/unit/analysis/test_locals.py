"""Locals in the analysis: private to the loops around their declaration, ordinary to the loops in their block."""

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.verdicts import Bound
from brickwork.ir.build import select
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Block, Kernel, Local, Symbol, Tensor, TensorType
from support.written import extent, kernel, load, loop, op, store, symbol

X = Tensor("x", 0, TensorType(INT64, 1))
Y = Tensor("y", 2, TensorType(INT64, 1))
H = Tensor("h", 1, TensorType(INT64, 1, contiguous=True, unit_axis=0), (4,))


def verdicts(made: Kernel) -> dict[str, bool]:
    return {index.name: verdict.independent for index, verdict in find_updates(made, analyse(made)).loops.items()}


def body(i: Symbol, j: Symbol) -> Block:
    return (
        loop(j, 0, 4, store(H, (j,), op("add", load(H, op("mod", j, 2)), load(X, i)))),
        store(X, (i,), load(H, 3)),
    )


def test_iterations_around_the_declaration_have_their_own():
    i, j = symbol("i"), symbol("j")
    inside = kernel((X,), loop(i, 0, extent(X), Local(tensor=H), *body(i, j)))
    assert verdicts(inside) == {"i": True, "j": False}
    outside = kernel((X,), Local(tensor=H), loop(i, 0, extent(X), *body(i, j)))
    assert verdicts(outside) == {"i": False, "j": False}


def test_updates_of_a_local_are_not_made_indivisible():
    i, k = symbol("i"), symbol("k")
    place = op("mod", load(X, k), 4)
    count = loop(k, 0, extent(X), store(H, (place,), op("add", load(H, place), 1)))
    made = kernel((X,), loop(i, 0, 1, Local(tensor=H), count, store(X, (i,), load(H, 0))))
    assert not verdicts(made)["k"]


def test_updates_beside_a_local_that_is_carried_leave_a_loop_in_order():
    i, place = symbol("i"), symbol("k")
    carried = store(H, (op("mod", i, 4),), op("add", load(H, op("mod", op("add", i, 1), 4)), load(X, i)))
    update = store(Y, (load(X, i),), op("add", load(Y, load(X, i)), 1))
    made = kernel((X, Y), Local(tensor=H), loop(i, 0, extent(X), carried, update))
    assert verdicts(made) == {"i": False}
    alone = kernel(
        (X, Y), loop(place, 0, extent(X), store(Y, (load(X, place),), op("add", load(Y, load(X, place)), 1)))
    )
    assert verdicts(alone) == {"k": True}


def test_a_negative_index_of_a_local_is_seen_through():
    i, j = symbol("i"), symbol("j")
    back = op("sub", j, 2)
    index = op("add", back, 4)
    wrapped = load(H, select(op("lt", back, 0), index, back))
    made = kernel((X,), loop(i, 0, extent(X), Local(tensor=H), loop(j, 0, 4, store(X, (i,), wrapped))))
    assert analyse(made).bounds[wrapped.access, 0].bound is Bound.PROVED
