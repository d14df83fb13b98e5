"""Elements of gradients are stored once where that leaves them what they were, and left as they are elsewhere."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT16, FLOAT32, INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import (
    Allocate,
    Block,
    Expression,
    For,
    Launch,
    Load,
    Program,
    Rebind,
    Return,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorParameter,
    TensorType,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.gather import untouched
from brickwork.transform.autodiff.single_stores import store_once
from brickwork.transform.scratch import Names
from support.gradients import derived, numbers
from support.lowering import memory
from support.tensors import to_memory, to_tensor
from support.written import extent, kernel, let, load, loop, op, store, symbol, when

ROWS, COLUMNS = 2, 3
MATRIX, VECTOR = TensorType(FLOAT32, 2, True, 1), TensorType(INT64, 1, True, 0)
X, G, B = (Tensor(name, number, MATRIX) for number, name in enumerate("xgb"))
P = Tensor("p", 3, VECTOR)
A, OTHER = Tensor("a", 4, MATRIX), Tensor("other", 7, MATRIX)
R, LIKE = Tensor("r", 5, replace(MATRIX, dtype=FLOAT16)), Tensor("like", 6, MATRIX)
I, S, T, V = symbol("i"), symbol("s", FLOAT32), symbol("t"), symbol("v", FLOAT32)
ZERO, ONE = build.constant(0.0, FLOAT32), build.constant(1.0, FLOAT32)


def add(tensor: Tensor, where: tuple, value) -> Store:
    """Return an addition to an element."""
    return store(tensor, where, op("add", load(tensor, *where), value))


def columns(
    *body: Callable[[Symbol], Statement], start: int | Expression = 0, stop: int | Expression | None = None
) -> For:
    """Return a loop over the columns."""
    j = symbol("j")
    return loop(j, start, extent(X, 1) if stop is None else stop, *(item(j) for item in body))


def plus(value: Callable[[Symbol], object], tensor: Tensor = A) -> Callable[[Symbol], Store]:
    """Return what makes an addition to the element of a column."""
    return lambda j: add(tensor, (I, j), value(j))


def rows(*body: Statement) -> For:
    """Return a nest over the rows."""
    return loop(I, 0, extent(X, 0), *body)


def copy(source: Tensor = A, target: Tensor = R) -> For:
    """Return a nest that copies all elements."""
    i, j = symbol("i"), symbol("j")
    inner = loop(j, 0, extent(source, 1), store(target, (i, j), load(source, i, j)))
    return loop(i, 0, extent(source, 0), inner)


def program(
    *nests: Statement, fill: Expression | None = ZERO, results: tuple[Tensor, ...] = (R,), more: Block = ()
) -> Program:
    """Return a program of these nests, with tensors that it makes."""
    sizes = (extent(X, 0), extent(X, 1))
    made = (Allocate(tensor=A, sizes=sizes, fill=fill), Allocate(tensor=R, sizes=sizes), *more)
    used = [node.tensor for node in walk(nests) if isinstance(node, Load | Store)]
    used += [tensor for node in walk(nests) if isinstance(node, Rebind) for tensor in node.targets]
    run = Launch(kernel=kernel(tuple(dict.fromkeys((*used, X))), *nests))
    parameters = tuple(TensorParameter(tensor, mutated=tensor is B) for tensor in (X, G, B, P))
    body = (*made, run, Return(tensors=results))
    return Program(name="operator", parameters=parameters, body=body, device="cuda")


def changed(given: Program) -> Program:
    """Return what becomes of a program, which leaves the same."""
    names = Names(count(900_000), count(900_000), count(900_000))
    first = next(place for place, item in enumerate(given.body) if isinstance(item, Launch))
    found = store_once(given, untouched(given.body[:first]), names)
    verify_program(found)
    assert values(found) == values(given)
    return found


def values(given: Program) -> list[list[float]]:
    arguments = [memory([[float(7 * k + 5 * i + j) for j in range(COLUMNS)] for i in range(ROWS)]) for k in range(3)]
    places = Memory([1, 0, 2], (COLUMNS,), (1,), INT64)
    results = run_program(given, [*arguments, places])
    return [[*item.data] for item in (*results, arguments[2])]


def stores(given: Program, tensor: Tensor) -> int:
    return sum(isinstance(node, Store) and node.tensor == tensor for node in walk(given.body))


def test_a_copy_into_a_larger_tensor_is_made_as_before():
    given = program(rows(columns(plus(lambda j: load(X, I, j))), columns(plus(lambda j: load(G, I, j)))), copy())
    assert not stores(changed(given), A)
    sizes = (op("add", extent(X, 0), 1), extent(X, 1))
    body = tuple(
        replace(item, sizes=sizes) if item == Allocate(tensor=R, sizes=given.body[0].sizes) else item
        for item in given.body
    )
    assert body != given.body
    assert stores(changed(replace(given, body=body)), A)


def test_additions_of_loops_after_one_another_are_made_by_the_last_one_and_rounded_once():
    v = symbol("v", FLOAT32)
    nest = rows(
        columns(plus(lambda j: op("mul", load(X, I, j), load(G, I, j)))),
        let(S, ZERO),
        columns(lambda j: let(S, op("add", S, load(G, I, j)))),
        columns(lambda j: let(v, op("mul", load(X, I, j), load(X, I, j))), plus(lambda _: op("mul", v, S))),
    )
    found = changed(program(nest, copy()))
    assert (stores(found, A), stores(found, R)) == (0, 1)
    made = [node for node in found.body if isinstance(node, Allocate)]
    assert [node.tensor for node in made] == [R]
    assert made[0].fill is not None


def test_what_else_a_loop_does_stays_there():
    first = columns(lambda j: store(B, (I, j), load(X, I, j)), plus(lambda j: load(G, I, j)))
    found = changed(program(rows(first, SECOND), copy()))
    assert (stores(found, A), stores(found, R), stores(found, B)) == (0, 1, 1)


def test_elements_that_no_loop_comes_to_stay_zero():
    triangle = op("add", I, 1)
    nest = rows(
        columns(plus(lambda j: load(X, I, j)), stop=triangle), columns(plus(lambda j: load(G, I, j)), stop=triangle)
    )
    found = changed(program(nest, copy()))
    assert (stores(found, A), stores(found, R)) == (0, 1)
    assert values(found)[0][1] == 0.0


def test_an_element_is_rounded_after_its_last_addition():
    large, small = build.constant(2048.0, FLOAT32), ONE
    first = columns(lambda j: store(A, (I, j), large))
    found = changed(
        program(rows(first, columns(plus(lambda _: small)), columns(plus(lambda _: small))), copy(), fill=None)
    )
    assert stores(found, R) == 1
    assert set(values(found)[0]) == {2050.0}


def test_processors_keep_the_elements_that_they_add_to():
    nest = rows(columns(plus(lambda j: load(X, I, j))), columns(plus(lambda j: load(G, I, j))))
    found = changed(replace(program(nest, copy()), device="cpu"))
    assert stores(found, A) == 2


FIRST, SECOND = columns(plus(lambda j: load(X, I, j))), columns(plus(lambda j: load(G, I, j)))
PLAIN = columns(lambda j: store(A, (I, j), load(X, I, j)))
STAYS: dict[str, tuple[Block, Expression | None]] = {
    "another loop reads the elements": (
        (FIRST, columns(lambda j: store(B, (I, j), load(A, I, j))), SECOND),
        ZERO,
    ),
    "the elements are not zero before": ((FIRST, SECOND), ONE),
    "a variable changes between the loops": (
        (let(S, ONE), columns(plus(lambda _: build.read(S))), let(S, ZERO), SECOND),
        ZERO,
    ),
    "a variable comes from the iteration before": (
        (let(S, ONE), columns(plus(lambda _: build.read(S)), lambda _: let(S, op("add", S, ONE))), SECOND),
        ZERO,
    ),
    "the length changes between the loops": (
        (
            let(T, 3),
            columns(lambda j: store(A, (I, j), load(X, I, j)), stop=build.read(T)),
            let(T, 1),
            columns(plus(lambda j: load(G, I, j)), stop=build.read(T)),
        ),
        ZERO,
    ),
    "the start changes between the loops": (
        (
            let(T, 1),
            columns(lambda j: store(A, (I, j), load(X, I, j)), start=build.read(T)),
            let(T, 0),
            columns(plus(lambda j: load(G, I, j)), start=build.read(T)),
        ),
        ZERO,
    ),
    "the place changes between the loops": (
        (
            let(T, 1),
            columns(lambda j: store(A, (T, j), load(X, I, j))),
            let(T, 0),
            columns(lambda j: add(A, (T, j), load(G, I, j))),
        ),
        ZERO,
    ),
    "what a step reads changes between the loops": (
        (
            columns(lambda j: let(S, load(B, I, j)), plus(lambda _: build.read(S))),
            columns(lambda j: store(B, (I, j), ZERO)),
            SECOND,
        ),
        ZERO,
    ),
    "rows meet on an element": (
        (
            columns(lambda j: add(A, (op("floordiv", I, 2), j), load(X, I, j))),
            columns(lambda j: add(A, (op("floordiv", I, 2), j), load(G, I, j))),
        ),
        ZERO,
    ),
    "iterations store the same element": (
        (columns(lambda j: store(A, (I, 0), load(X, I, j))), columns(lambda j: add(A, (I, 0), load(G, I, j)))),
        ZERO,
    ),
    "what is read changes between the loops": (
        (columns(plus(lambda j: load(B, I, j))), columns(lambda j: store(B, (I, j), ZERO)), SECOND),
        ZERO,
    ),
    "a loop computes what is added": (
        (
            columns(
                lambda _: let(S, ZERO),
                lambda j: columns(lambda k: let(S, op("add", S, load(X, I, k)))),
                plus(lambda _: build.read(S)),
            ),
            SECOND,
        ),
        ZERO,
    ),
    "iterations meet on an element": (
        (columns(lambda j: add(A, (I, 0), load(X, I, j))), columns(lambda j: add(A, (I, 0), load(G, I, j)))),
        ZERO,
    ),
    "places come from elements": (
        (
            columns(lambda j: add(A, (load(P, j), j), load(X, I, j)), stop=2),
            columns(lambda j: add(A, (load(P, j), j), load(G, I, j)), stop=2),
        ),
        ZERO,
    ),
    "the loops have other lengths": ((columns(plus(lambda j: load(X, I, j)), stop=2), SECOND), ZERO),
    "the loops come to other elements": (
        (columns(lambda j: store(A, (I, op("sub", op("sub", extent(X, 1), 1), j)), load(G, I, j))), FIRST),
        ZERO,
    ),
    "what a step needs changes between the loops": (
        (
            let(S, ONE),
            columns(lambda j: let(V, op("mul", S, load(X, I, j))), plus(lambda _: build.read(V))),
            let(S, ZERO),
            SECOND,
        ),
        ZERO,
    ),
    "the last loop stores": ((FIRST, PLAIN), ZERO),
    "the first loop stores what it reads elsewhere": (
        (columns(lambda j: store(A, (I, j), op("add", load(A, I, 0), ONE))), SECOND),
        ZERO,
    ),
    "an addition is one step": (
        (columns(lambda j: replace(store(A, (I, j), load(X, I, j)), combine=OPERATORS["add"])), SECOND),
        ZERO,
    ),
    "a loop adds twice": ((columns(plus(lambda j: load(X, I, j)), plus(lambda j: load(G, I, j))), SECOND), ZERO),
    "a branch adds": (
        (columns(lambda j: when(op("lt", j, 1), (add(A, (I, j), load(X, I, j)),))), SECOND),
        ZERO,
    ),
}


@pytest.mark.parametrize("name", STAYS)
def test_additions_stay_where(name: str):
    body, fill = STAYS[name]
    found = changed(program(rows(*body), fill=fill, results=(A,)))
    assert stores(found, A) == stores(program(rows(*body)), A)


def test_additions_stay_where_a_nest_comes_to_an_element_again():
    again = symbol("again")
    nest = rows(loop(again, 0, 2, FIRST, SECOND))
    assert stores(changed(program(nest, results=(A,))), A) == 2
    stored = rows(loop(again, 0, 2, PLAIN, SECOND))
    assert stores(changed(program(stored, results=(A,))), A) == 1


def test_additions_stay_where_an_earlier_nest_has_stored():
    assert stores(changed(program(rows(PLAIN), rows(FIRST, SECOND), results=(A,))), A) == 3


def either(j: Symbol, *more: Statement, where: tuple = ()) -> Statement:
    """Return branches that both add to the element of a column."""
    where = where or (I, j)
    large = op("lt", build.constant(6.0, FLOAT32), load(X, I, j))
    inner = when(op("lt", j, 2), (add(A, where, load(G, I, j)),))
    return when(large, (add(A, where, load(X, I, j)), *more), (inner, add(A, where, ONE)))


def test_what_branches_add_to_an_element_is_stored_after_them():
    found = changed(program(rows(columns(either)), results=(A,)))
    (store_,) = [node for node in walk(found.body) if isinstance(node, Store) and node.tensor == A]
    inner = next(node for node in walk(found.body) if isinstance(node, For) and store_ in node.body)
    assert inner.body[-1] is store_
    assert not any(isinstance(node, Load) and node.tensor == A for node in walk(found.body))


def test_what_else_branches_store_stays_there():
    found = changed(program(rows(columns(lambda j: either(j, store(B, (I, j), load(X, I, j))))), results=(A,)))
    assert (stores(found, A), stores(found, B)) == (1, 1)


def again(j: Symbol) -> For:
    return loop(symbol("again"), 0, 2, either(j))


AS_THEY_ARE: dict[str, tuple[tuple[Statement, ...], Expression | None]] = {
    "an iteration around comes to an element again": ((loop(symbol("again"), 0, 2, rows(columns(either))),), ZERO),
    "a loop in it comes to an element again": ((rows(columns(again)),), ZERO),
    "elements say which is added to": (
        (rows(columns(lambda j: either(j, where=(I, load(P, j))))),),
        ZERO,
    ),
    "the place is another one": (
        (rows(columns(lambda j: either(j, where=(I, op("sub", op("sub", extent(X, 1), 1), j))))),),
        ZERO,
    ),
    "an addition is one step": (
        (rows(columns(lambda j: either(j, replace(store(A, (I, j), ONE), combine=OPERATORS["add"])))),),
        ZERO,
    ),
    "an addition is one step, and doubles": (
        (rows(columns(lambda j: either(j, replace(add(A, (I, j), ONE), combine=OPERATORS["add"])))),),
        ZERO,
    ),
    "a branch stores what another element is": (
        (rows(columns(lambda j: either(j, store(A, (I, j), op("add", load(A, I, 0), ONE))))),),
        ZERO,
    ),
    "a part of the place is computed": (
        (rows(either(I, where=(I, op("sub", 2, I)))),),
        ZERO,
    ),
    "a branch stores": ((rows(columns(lambda j: either(j, store(A, (I, j), ONE)))),), ZERO),
    "a branch reads it": (
        (rows(columns(lambda j: either(j, store(B, (I, j), load(A, I, j))))),),
        ZERO,
    ),
    "elements hold something": ((rows(columns(either)),), ONE),
    "an earlier nest has stored": ((rows(PLAIN), rows(columns(either))), ZERO),
    "a branch adds to its neighbour": ((rows(columns(lambda j: either(j, add(A, (j, I), ONE)), stop=2)),), ZERO),
    "it is added to before, too": (
        (rows(columns(plus(lambda j: load(X, I, j)), either)),),
        ZERO,
    ),
}


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_what_branches_add_stays_where(name: str):
    nests, fill = AS_THEY_ARE[name]
    given = program(*nests, fill=fill, results=(A,))
    assert stores(changed(given), A) == stores(given, A)


def within(j: Symbol, *, above: int = 0) -> Statement:
    """Return branches that add to an element where there is one, and touch nothing else in each iteration."""
    return when(op("lt", j, extent(X, 1)), (when(op("lt", above, j), (add(A, (I, j), load(G, I, j)),)),))


@pytest.mark.parametrize(
    ("start", "stop", "count_of_loads"),
    [(0, extent(X, 1), 0), (0, op("add", extent(X, 1), 1), 1), (-1, extent(X, 1), 1), (0, COLUMNS, 1)],
)
def test_elements_are_stored_where_they_are_surely_there(start: int, stop: object, count_of_loads: int):
    found = changed(program(rows(columns(within, start=start, stop=stop)), results=(A,)))
    assert sum(isinstance(node, Load) and node.tensor == A for node in walk(found.body)) == count_of_loads


@pytest.mark.parametrize(("touched", "loads"), [((I,), 0), ((0,), 1)])
def test_elements_are_there_where_another_tensor_has_them(touched: tuple, loads: int):
    def body(j: Symbol) -> Statement:
        return when(op("lt", ONE, load(X, *touched, j)), (add(A, (I, j), load(G, I, j)),))

    found = changed(program(rows(columns(body, stop=COLUMNS)), results=(A,)))
    assert sum(isinstance(node, Load) and node.tensor == A for node in walk(found.body)) == loads


ONCE = rows(PLAIN)
SIZES = (extent(A, 0), extent(A, 1))
KEPT: dict[str, Program] = {
    "another tensor is made like it": program(
        ONCE, copy(), results=(R, LIKE), more=(Allocate(tensor=LIKE, sizes=SIZES, like=A, fill=ZERO),)
    ),
    "it is filled with ones": program(loop(I, 0, 1, PLAIN), copy(), fill=ONE),
    "it is a result": program(ONCE, copy(), results=(R, A)),
    "it is read by others": program(ONCE, copy(), copy(A, B)),
    "it changes places": program(
        ONCE,
        Rebind(targets=(A, OTHER), sources=(OTHER, A)),
        copy(),
        more=(Allocate(tensor=OTHER, sizes=(extent(X, 0), extent(X, 1)), fill=ZERO),),
    ),
    "it is stored into later": program(ONCE, copy(), rows(columns(lambda j: store(A, (I, j), ONE)))),
    "it is added to in one step": program(
        rows(columns(lambda j: replace(store(A, (I, j), load(X, I, j)), combine=OPERATORS["add"]))), copy()
    ),
    "it is stored into as well": program(
        rows(
            PLAIN,
            columns(lambda j: replace(store(A, (I, j), load(X, I, j)), combine=OPERATORS["add"])),
        ),
        copy(),
    ),
    "others store into the copy": program(rows(columns(lambda j: store(R, (I, j), ONE))), ONCE, copy()),
    "others read the copy": program(ONCE, copy(), rows(columns(lambda j: store(B, (I, j), load(R, I, j))))),
    "the copy is of a part": program(
        ONCE, rows(columns(lambda j: store(R, (I, j), load(A, I, j)), stop=extent(A, 1))), fill=None
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_tensor_stays_where(name: str):
    assert any(isinstance(node, Allocate) and node.tensor == A for node in changed(KEPT[name]).body)


def test_how_other_tensors_are_stored_into_does_not_matter():
    other = rows(columns(lambda j: replace(store(B, (I, j), load(X, I, j)), combine=OPERATORS["add"])))
    assert stores(changed(program(other, ONCE, copy())), R) == 1
    assert stores(changed(program(other, ONCE, copy())), A) == 0


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(x[i, j])
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j]) / total
    return out


def test_gradients_of_rows_are_stored_once():
    given = numbers(3, 4).float(), numbers(3, 4).float()
    plain = replace(derived(softmax, given[:1]), device="cuda")
    names = Names(count(900_000), count(900_000), count(900_000))
    first = next(place for place, item in enumerate(plain.body) if isinstance(item, Launch))
    found = store_once(plain, untouched(plain.body[:first]), names)
    verify_program(found)
    one, other = (to_tensor(run_program(each, [to_memory(item) for item in given])[0]) for each in (plain, found))
    assert torch.equal(one, other)
    assert [sum(isinstance(node, Store) for node in walk(each.body)) for each in (plain, found)] == [2, 1]
