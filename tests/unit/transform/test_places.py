"""Indices that are computed between loops are written into the loops inside; all others stay variables."""

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Assign, For, Launch, Read, Store, Symbol, Tensor, TensorType
from brickwork.ir.walk import statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.canonical.places import fold_indices
from support.gradients import derived, numbers
from support.lowering import memory, program_of
from support.scheduling import GPU, same
from support.shared import schedule_program

T, U, I, J, P = (Symbol(name, place, INT64) for place, name in enumerate("tuijp"))
N = Symbol("n", 9, INT64)
Y = Tensor("y", 1, TensorType(FLOAT32, 2, contiguous=True, unit_axis=1))
LARGE = 2**63 - 1


def loop(index, *body):
    return For(index=index, start=build.integer(0), stop=build.read(N), body=body)


def store(*indices):
    return Store(tensor=Y, indices=indices, value=build.constant(1.0, FLOAT32), access=0)


def below(index):
    """Return `n - 1 - index`."""
    return build.sub(build.sub(build.read(N), build.integer(1)), build.read(index))


AT = Assign(symbol=I, value=below(T))
INNER = loop(U, store(build.read(I), build.read(U)))


def test_an_index_between_two_loops_is_folded_into_the_inner_one():
    second = Assign(symbol=J, value=build.add(build.read(I), build.integer(3)))
    (found,) = fold_indices((loop(T, AT, second, loop(U, store(build.read(I), build.read(J)))),))
    (inner,) = found.body
    assert not any(isinstance(node, Assign) for node in statements(found))
    first = build.sub(build.read(N), build.read(T))
    assert inner.body == (store(build.add(first, build.integer(-1)), build.add(first, build.integer(2))),)


CHANGING = loop(U, store(build.read(I), build.read(U)), Assign(symbol=P, value=build.integer(1)))
SQUARE = Assign(symbol=J, value=build.mul(build.read(T), build.read(T)))


def test_an_index_before_several_loops_is_folded_into_each():
    (found,) = fold_indices((loop(T, AT, INNER, loop(P, store(build.read(P), build.read(I)))),))
    first, second = found.body
    place = build.add(build.sub(build.read(N), build.read(T)), build.integer(-1))
    assert first.body == (store(place, build.read(U)),)
    assert second.body == (store(build.read(P), place),)


def test_what_is_fixed_stays_beside_an_index():
    fixed = Assign(symbol=J, value=build.mul(build.read(P), build.read(N)))
    (given, found) = fold_indices((Assign(symbol=P, value=build.integer(1)), loop(T, fixed, AT, INNER)))
    assert found.body[0] == fixed
    assert [node.symbol for node in statements((given, found)) if isinstance(node, Assign)] == [P, J]


def test_an_index_of_a_variable_that_the_loop_does_not_change_is_folded():
    given = Assign(symbol=P, value=build.integer(1))
    from_there = Assign(symbol=I, value=build.sub(build.read(P), build.read(T)))
    (_, found) = fold_indices((given, loop(T, from_there, INNER)))
    assert found.body == (loop(U, store(build.sub(build.read(P), build.read(T)), build.read(U))),)


def test_a_variable_that_is_folded_in_and_read_after_the_loop_stays():
    doubled = Assign(symbol=I, value=build.add(build.read(J), build.read(T)))
    rows = loop(T, doubled, loop(U, store(build.read(I), build.read(I))))
    around = loop(P, Assign(symbol=J, value=build.read(P)), rows)
    block = fold_indices((around, Assign(symbol=N, value=build.read(J))))
    assert [node.symbol for node in statements(block) if isinstance(node, Assign)] == [J, N]


STAY = {
    "read after the loop": (loop(T, AT, INNER), Assign(symbol=P, value=build.read(I))),
    "read before it is assigned": (loop(T, Assign(symbol=P, value=build.read(I)), AT, INNER),),
    "assigned twice": (loop(T, AT, INNER), AT),
    "of what changes": (loop(T, Assign(symbol=I, value=build.read(P)), CHANGING),),
    "of what changes and what does not": (
        loop(T, Assign(symbol=I, value=build.add(build.read(P), build.read(N))), CHANGING),
    ),
    "beside a product of the index": (loop(T, AT, SQUARE, INNER),),
    "beside a product of what changes": (
        loop(T, AT, Assign(symbol=J, value=build.mul(build.read(P), build.read(P))), CHANGING),
    ),
    "beside a product of what is folded": (
        loop(T, AT, Assign(symbol=J, value=build.mul(build.read(I), build.read(I))), INNER),
    ),
    "read after the loop, and often in it": (
        loop(
            T,
            AT,
            Assign(symbol=J, value=build.add(build.read(I), build.read(I))),
            loop(U, store(build.read(J), build.read(J))),
        ),
        Assign(symbol=P, value=build.read(I)),
    ),
    "a product": (loop(T, Assign(symbol=I, value=build.mul(build.read(T), build.read(N))), INNER),),
    "beside a store": (loop(T, AT, store(build.read(I), build.read(I)), INNER),),
    "beside a loop": (loop(T, INNER, AT, INNER),),
}


@pytest.mark.parametrize("block", STAY.values(), ids=STAY)
def test_others_stay(block):
    kept = [node.symbol for node in statements(fold_indices(block)) if isinstance(node, Assign)]
    assert kept.count(I) == sum(isinstance(node, Assign) and node.symbol == I for node in statements(block))


def from_the_last(x: torch.Tensor, y: torch.Tensor, s: int) -> None:
    for t in range(x.shape[0]):
        i = x.shape[0] - 1 - t
        k = i + s - s
        for u in range(x.shape[1]):
            y[i, u] = x[k, u] + i


def test_what_runs_stays_the_same_whatever_wraps():
    x, y = memory([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), memory([[0.0, 0.0]] * 3)
    for s in (0, 5, LARGE, -LARGE - 1):
        same(from_the_last, x, y, s)
    program = canonical(program_of(from_the_last, x, y, 0))
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    assert not any(isinstance(node, Assign) for node in statements(kernel.body))
    assert not any(isinstance(node, Read) and node.symbol.name == "s" for node in walk(kernel.body))


def least_costs(d: torch.Tensor, r: torch.Tensor) -> None:
    for b in range(d.shape[0]):
        for i in range(1, d.shape[1] + 1):
            for j in range(1, d.shape[2] + 1):
                r[b, i, j] = d[b, i - 1, j - 1] + 0.5 * r[b, i - 1, j - 1] + 0.25 * r[b, i - 1, j] + r[b, i, j - 1]


def test_loops_back_run_along_diagonals_as_the_loops_did():
    program = derived(least_costs, (numbers(2, 3, 4), numbers(2, 4, 5)))
    pieces, _ = schedule_program(program, GPU)
    assert [node for node in walk(pieces) if isinstance(node, For) and node.index.name == "j_diagonal"]
