"""What no result depends on goes: of what users write assignments and empty loops, of derivatives nearly all of it."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Assign,
    Break,
    Check,
    Failure,
    FailureKind,
    For,
    If,
    Launch,
    Load,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import statements
from brickwork.transform.canonical.dead import filled_local, without_dead, without_dead_assignments
from brickwork.transform.canonical.form import canonical
from support.lowering import memory, program_of
from support.scheduling import same

X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
S, T, V = (Symbol(name, number, INT64) for number, name in enumerate("stv"))


def kernel_of(function, *arguments):
    """Return the kernel of a function in canonical form."""
    return next(node.kernel for node in canonical(program_of(function, *arguments)).body if isinstance(node, Launch))


def assign(symbol, value):
    return Assign(symbol=symbol, value=build.integer(value) if isinstance(value, int) else build.read(value))


def nothing_reads_it_but_it_fails(x: torch.Tensor, y: torch.Tensor, a: int) -> None:
    _p = 0
    for i in range(x.shape[0]):
        y[i] = x[i]
        _t = x[i + a]  # may be out of range
        _u = i * 2
        _p = i - _p


def test_what_is_never_read_goes():
    kernel = kernel_of(nothing_reads_it_but_it_fails, X, X, 0)
    assert [node.symbol.name for node in statements(kernel) if isinstance(node, Assign)] == ["_t"]


def test_a_loop_that_only_counts_goes():
    def remainders(x: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            rest = i % 8
            while rest > 1:
                rest -= 2
            x[i] = rest

    same(remainders, X)
    assert len([node for node in statements(kernel_of(remainders, X)) if isinstance(node, For)]) == 1


def test_only_a_derivative_leaves_out_what_may_fail():
    row = Tensor("row", 4, TensorType(INT64, 1))
    read = Assign(symbol=S, value=Load(tensor=row, indices=(build.read(T),), access=0, dtype=INT64))
    assert without_dead_assignments((read, assign(V, 1))) == (read,)
    assert without_dead((read, assign(V, 1)), ()) == ()


RESULT = Tensor("result", 5, TensorType(INT64, 1))
ASKED = Check(
    condition=build.apply("ne", build.read(V), build.integer(0)),
    failure=Failure(FailureKind.DIVISION, "by zero"),
    values=(),
)


def store(value, tensor=RESULT, *indices):
    return Store(tensor=tensor, indices=indices or (build.read(T),), value=value, access=1)


def loop(*body, index=T, start=0, stop=3):
    return For(index=index, start=build.integer(start), stop=build.integer(stop), body=body)


def test_a_branch_with_a_check_that_leaves_a_loop_stays():
    divided = build.apply("floordiv", build.integer(6), build.read(V))
    leaving = If(condition=build.apply("gt", build.read(T), build.integer(1)), then=(ASKED, Break()))
    whole = (loop(leaving, store(build.integer(1))), store(divided, RESULT, build.integer(0)))
    assert without_dead(whole, {RESULT}) == whole
    whole = (loop(replace(leaving, then=(ASKED,)), store(build.integer(1))), *whole[1:])
    assert without_dead(whole, {RESULT}) == (loop(store(build.integer(1))), *whole[1:])


def test_a_branch_with_a_check_that_gives_a_variable_a_value_stays():
    divided = build.apply("floordiv", build.integer(6), build.read(V))
    choice = If(condition=build.apply("gt", build.read(T), build.integer(1)), then=(assign(S, 2), ASKED))
    whole = (assign(S, 1), loop(choice, store(build.read(S))), store(divided, RESULT, build.integer(0)))
    assert without_dead(whole, {RESULT}) == whole


ROW = Tensor("row", 6, TensorType(INT64, 1), sizes=(3,))
TABLE = Tensor("table", 7, TensorType(INT64, 2), sizes=(3, 2))
AT = (build.read(T), build.read(S))


def test_a_list_is_filled_by_a_nest_over_all_of_it():
    value = build.integer(1)
    assert filled_local(loop(store(value, ROW))) == ROW
    assert filled_local(loop(loop(store(value, TABLE, *AT), index=S, stop=2))) == TABLE
    for other in (
        loop(store(value, ROW), start=1),
        loop(store(value, ROW), stop=2),
        loop(store(value, ROW, build.sub(build.integer(2), build.read(T)))),
        loop(store(Load(tensor=ROW, indices=(build.read(T),), access=2, dtype=INT64), ROW)),
        loop(loop(store(value, TABLE, AT[0], AT[0]), index=S, stop=2)),
        loop(store(value, RESULT)),
        loop(loop(store(value, TABLE, *AT), index=S, start=1, stop=2)),
        loop(store(value, ROW), assign(V, 1)),
        Store(tensor=Tensor("one", 8, TensorType(INT64, 0)), indices=(), value=value, access=3),
    ):
        assert filled_local(other) is None


def taken_once(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if n - i == n - at[0]:
            y[i] += p
            p = 0.0


def taken_once_inside(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        last = x.shape[0] - 1 - i
        if x[i] > -2.0:
            if last + n == n + 2:
                y[i] += p
                p = 0.0


def asked_the_other_way(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if n == i:
            y[i] += p
            p = 0.0


def read_behind(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i == n:
            y[i] += p
            p = 0.0
    y[0] += p


def read_beside(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i == n:
            p = 0.0
            y[i] += p
        y[i] += p


def taken_again(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for _ in range(3):
        for i in range(x.shape[0]):
            if i == n:
                y[i] += p
                p = 0.0


def of_an_inner_loop(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        for j in range(3):
            if i == n:
                y[j] += p
                p = 0.0


def half_an_index(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i // 2 == n:
            y[i] += p
            p = 0.0


def an_index_that_is_added_twice(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i + (n - i) == n:
            y[i] += p
            p = 0.0


def what_is_asked_moves(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    m = 0
    for i in range(x.shape[0]):
        if i == m:
            y[i] += p
            p = 0.0
        m += 1


def what_is_added_moves(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    m = 0
    for i in range(x.shape[0]):
        if i + m == n:
            y[i] += p
            p = 0.0
        m -= 1


def elements_that_are_asked_change(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i == at[0]:
            y[i] += p
            p = 0.0
            at[0] = i + 1


def what_is_asked_jumps(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    m = 1
    for i in range(x.shape[0]):
        if i == m:
            y[i] += p
            p = 0.0
        m = m * 3 % 5


def what_is_added_jumps(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    m = 1
    for i in range(x.shape[0]):
        if i + m == n + 3:
            y[i] += p
            p = 0.0
        m = m * 3 % 5


def the_index_by_one(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i == i * n:
            y[i] += p
            p = 0.0


def elements_that_are_added_change(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i + at[0] == n + 1:
            y[i] += p
            p = 0.0
            at[0] = n - i


def below_an_index(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i > n:
            y[i] += p
            p = 0.0


def either_or(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, n: int) -> None:
    p = 2.0
    for i in range(x.shape[0]):
        if i == n or x[i] < 0.0:
            y[i] += p
            p = 0.0


ONCE = [taken_once, taken_once_inside, asked_the_other_way]
MORE = [
    *(read_behind, read_beside, taken_again, of_an_inner_loop, half_an_index, an_index_that_is_added_twice),
    *(what_is_asked_moves, what_is_added_moves, elements_that_are_asked_change, either_or),
    *(what_is_asked_jumps, what_is_added_jumps, the_index_by_one, elements_that_are_added_change, below_an_index),
]


@pytest.mark.parametrize("function", [*ONCE, *MORE], ids=lambda item: item.__name__)
def test_what_one_iteration_at_most_leaves_for_its_own_branch_goes(function):
    given = X, memory([0.0] * 6), memory([2], INT64), 1
    kernel = kernel_of(function, *given)
    zeros = [node for node in statements(kernel) if isinstance(node, Assign) and node.symbol.name == "p"]
    assert (len(zeros) == 1) == (function in ONCE)
    same(function, *given)
