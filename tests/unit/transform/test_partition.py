"""What of a kernel the host may run, what is a nest of a launch, and which checks a nest outlives.

Loops over `p` are parallel ones, loops over `b` are for blocks, all others run in order.
"""

from dataclasses import replace

import torch

import brickwork as bw
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import (
    Assign,
    Check,
    For,
    If,
    Load,
    Node,
    Random,
    Reduction,
    Role,
    Symbol,
    While,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import rewrite, walk
from brickwork.transform.host_device_partition import Partition, outlives_check, partition
from support.lowering import memory
from support.scheduling import kernel_of, loops_of

Tensor = torch.Tensor
N = memory([3, 1, 4], INT64)
M = memory([[3, 1], [4, 1]], INT64)
ROLES = {"p": Role.PARALLEL, "b": Role.BLOCK}
NOTHING = Partition(frozenset())


def body_of(function, *numbers):
    """The body of a function's kernel, with the roles that the names of its loops say."""

    def visit(node: Node) -> Node:
        return replace(node, role=ROLES.get(node.index.name[0], node.role)) if isinstance(node, For) else node

    return rewrite(kernel_of(function, N, M, *numbers), visit).body


def statement_of(function, *numbers):
    """The last statement of a function, and what of it the device knows."""
    body = body_of(function, *numbers)
    return body[-1], partition(body)


# ---------------------------------------------------------------- expressions


def test_the_host_knows_integers_and_the_plain_arithmetic_of_floats():
    one, two = build.read(Symbol("x", 1, FLOAT64)), build.read(Symbol("y", 2, FLOAT64))
    i, k = build.read(Symbol("i", 3, INT64)), build.read(Symbol("k", 4, INT64))
    for name in ("add", "mul", "truediv", "lt"):
        assert NOTHING.is_known(build.apply(name, one, two))
    for name in ("add", "floordiv", "mod"):
        assert NOTHING.is_known(build.apply(name, i, k))
    for name in ("pow", "mod", "floordiv", "atan2"):
        assert not NOTHING.is_known(build.apply(name, one, two))
    assert not NOTHING.is_known(build.apply("sin", one))
    assert not Partition(frozenset({i.symbol})).is_known(build.apply("add", i, k))


def draws(n: Tensor, m: Tensor) -> None:
    for i in range(n.shape[0]):
        n[i] = int(bw.rand() * 3.0)


def test_the_host_knows_no_element_and_no_draw():
    for kind in (Random, Load):
        function = draws if kind is Random else copies
        (node,) = [node for node in walk(kernel_of(function, N, M)) if isinstance(node, kind)]
        assert not NOTHING.is_known(node)


def copies(n: Tensor, m: Tensor) -> None:
    for p in range(n.shape[0]):
        n[p] = m[p, 0]


# ---------------------------------------------------------------- nests


def rectangle(n: Tensor, m: Tensor) -> None:
    for p in range(m.shape[0]):
        for p1 in range(m.shape[1]):
            m[p, p1] = 1


def triangle(n: Tensor, m: Tensor) -> None:
    for p in range(m.shape[0]):
        for p1 in range(p):
            m[p, p1] = 1


def two_statements(n: Tensor, m: Tensor) -> None:
    for p in range(m.shape[0]):
        for p1 in range(m.shape[1]):
            m[p, p1] = 1
        n[p] = 2


def in_order_inside(n: Tensor, m: Tensor) -> None:
    for p in range(m.shape[0]):
        for j in range(m.shape[1]):
            m[p, j] = 1


def as_long_as_says(n: Tensor, m: Tensor, h: int) -> None:
    for p in range(m.shape[0]):
        for p1 in range(h):
            m[p, p1] = 1


def levels_of(function, *numbers, places=NOTHING):
    (loop,) = body_of(function, *numbers)
    return [level.index.name for level in places.nest(loop)]


def test_levels_stand_right_inside_one_another_and_the_host_knows_where_they_begin():
    assert levels_of(rectangle) == ["p", "p1"]
    for function in (triangle, two_statements, in_order_inside):
        assert levels_of(function) == ["p"]
    assert levels_of(as_long_as_says, 2) == ["p", "p1"]
    (loop,) = body_of(as_long_as_says, 2)
    (inner,) = loop.body
    assert Partition(frozenset({inner.stop.symbol})).nest(loop) == (loop,)
    assert NOTHING.nest(replace(loop, width=4)) == (replace(loop, width=4),)
    summed = replace(inner, reductions=(Reduction(Symbol("s", 99, INT64), OPERATORS["add"]),))
    assert len(NOTHING.nest(replace(loop, body=(summed,)))) == 1


def test_a_launch_runs_nests_whose_length_the_host_knows():
    (loop,) = body_of(as_long_as_says, 2)
    (inner,) = loop.body
    device = Partition(frozenset({inner.stop.symbol}))
    assert device.is_nest(loop)
    assert not device.is_nest(inner)
    assert not device.is_nest(replace(inner, start=inner.stop, stop=loop.stop))
    assert not NOTHING.is_nest(loops_of(kernel_of(in_order_inside, N, M))["j"])


# ---------------------------------------------------------------- what the host runs


def repeats(n: Tensor, m: Tensor) -> None:
    for i in range(m.shape[0]):
        for p in range(n.shape[0]):
            n[p] += m[i, 0]


def as_often_as_an_element_says(n: Tensor, m: Tensor) -> None:
    k = n[0]
    for i in range(k):
        for p in range(n.shape[0]):
            n[p] += m[i, 0]


def a_number_ends_it(n: Tensor, m: Tensor) -> None:
    for i in range(m.shape[0]):
        if i > 0:
            break
        if i < 0:
            continue
        for p in range(n.shape[0]):
            n[p] += m[i, 0]


def an_element_ends_it(n: Tensor, m: Tensor) -> None:
    for i in range(m.shape[0]):
        if n[0] > 3:
            break
        for p in range(n.shape[0]):
            n[p] += m[i, 0]


def an_element_ends_it_in_a_branch(n: Tensor, m: Tensor) -> None:
    for i in range(m.shape[0]):
        if i > 0:
            if n[0] > 3:
                break
            for p in range(n.shape[0]):
                n[p] += m[i, 0]


def waits(n: Tensor, m: Tensor) -> None:
    k = 0
    while k < 3:
        for p in range(n.shape[0]):
            n[p] += m[k, 0]
        k += 1


def an_element_ends_a_while(n: Tensor, m: Tensor) -> None:
    k = 0
    while k < 3:
        if n[0] > 3:
            break
        for p in range(n.shape[0]):
            n[p] += m[k, 0]
        k += 1


def waits_for_an_element(n: Tensor, m: Tensor) -> None:
    while n[0] < 3:
        for p in range(n.shape[0]):
            n[p] += m[p, 0]


def asks(n: Tensor, m: Tensor, h: int) -> None:
    if h > 2:
        for p in range(n.shape[0]):
            n[p] += m[p, 0]


def asks_an_element(n: Tensor, m: Tensor, h: int) -> None:
    if n[0] > 2:
        for p in range(n.shape[0]):
            n[p] += m[p, 0]


def test_the_host_runs_what_it_knows_and_nothing_on_the_device_leaves():
    for function in (repeats, waits, a_number_ends_it):
        statement, places = statement_of(function)
        assert places.is_host(statement)
    statement, places = statement_of(asks, 3)
    assert places.is_host(statement)
    for function in (
        as_often_as_an_element_says,
        an_element_ends_it,
        an_element_ends_it_in_a_branch,
        an_element_ends_a_while,
        waits_for_an_element,
        copies,
    ):
        statement, places = statement_of(function)
        assert not places.is_host(statement)
    statement, places = statement_of(asks_an_element, 3)
    assert not places.is_host(statement)
    loop, places = statement_of(waits)
    (element,) = [node for node in walk(body_of(copies)) if isinstance(node, Load)]
    ahead = Assign(symbol=Symbol("t", 99, INT64), value=element)
    assert not places.is_host(replace(loop, prelude=(ahead,)))
    known = replace(ahead, value=build.integer(0))
    assert NOTHING.is_host(known)
    assert not Partition(frozenset({known.symbol})).is_host(known)


def checks(n: Tensor, m: Tensor, h: int) -> None:
    n[0] = 7 // h


def test_the_host_makes_the_checks_that_it_can():
    check = next(node for node in body_of(checks, 3) if isinstance(node, Check))
    assert NOTHING.is_host(check)
    assert not Partition(frozenset(node.symbol for node in walk(check) if hasattr(node, "symbol"))).is_host(check)


def keeps_variables(n: Tensor, m: Tensor) -> None:
    for p in range(n.shape[0]):
        t = m[p, 0] + 1
        n[p] = t * t


def gives_a_variable(n: Tensor, m: Tensor) -> None:
    k = 0
    while k < 3:
        for p in range(n.shape[0]):
            n[p] += m[k, 0]
        t = n[0]
        n[1] = t
        k += 1


def test_what_the_device_assigns_is_its_own_but_for_what_stays_in_a_nest():
    assert partition(body_of(keeps_variables)).device == frozenset()
    assert {symbol.name for symbol in partition(body_of(gives_a_variable)).device} == {"t"}
    (nest,) = body_of(copies)
    (element,) = [node for node in walk(nest) if isinstance(node, Load)]
    one, other = (Assign(symbol=Symbol("t", number, INT64), value=element) for number in (98, 99))
    flag = build.apply("gt", build.read(Symbol("h", 97, INT64)), build.integer(0))
    branch = If(condition=flag, then=(nest, one), otherwise=(nest, other))
    around = replace(nest, index=Symbol("i", 96, INT64), role=Role.SEQUENTIAL, body=(nest, one))
    assert partition((branch,)).device == {one.symbol, other.symbol}
    assert partition((around,)).device == {one.symbol}


# ---------------------------------------------------------------- checks and nests


def test_what_is_launched_after_a_check_of_one_thread_outlives_it():
    (nest,) = body_of(copies)
    (element,) = [node for node in walk(nest) if isinstance(node, Load)]
    flag = build.apply("gt", build.read(Symbol("h", 98, INT64)), build.integer(0))
    place = build.integer(0)
    first = replace(element, indices=(place, place))
    known_check = next(node for node in body_of(checks, 3) if isinstance(node, Check))
    check = replace(known_check, condition=build.apply("gt", first, place), values=())
    serial = Assign(symbol=Symbol("t", 99, INT64), value=first)
    known = Assign(symbol=Symbol("u", 97, INT64), value=place)
    checking = replace(nest, body=(check, *nest.body))
    index = Symbol("i", 96, INT64)
    inside = For(index=index, start=place, stop=build.integer(3), body=(check, serial))

    def branch(then, otherwise=()):
        return If(condition=flag, then=then, otherwise=otherwise)

    def repeated(body):
        return For(index=index, start=place, stop=build.integer(3), body=body)

    def waited(body):
        return While(prelude=(), condition=flag, body=body)

    for block in (
        (check, nest),
        (check, serial, nest),
        (check, known, nest),
        (inside, nest),
        (check, nest, branch((nest,))),
        (check, nest, known),
        (branch((nest, check)), nest),
        (branch((nest,), (nest, check)), nest),
        (branch((check, nest)), known),
        (branch((nest,), (check, nest)),),
        (repeated((nest, check)),),
        (waited((nest, check)),),
        (check, known, serial),
        (branch((branch((nest, check)),)), nest),
        (branch((nest, check), (nest,)), serial),
        (check, branch((nest,), (serial, nest))),
        (branch((serial, nest), (nest, check)), known, serial),
        (check, nest, serial),
    ):
        assert outlives_check(block, partition(block))
    for block in (
        (nest, check),
        (nest, serial, nest),
        (branch((nest,)), check),
        (check, serial, check),
        (checking, nest),
        (checking, known, serial),
        (branch((nest, check), (nest, serial)),),
        (nest, serial, check, serial),
    ):
        assert not outlives_check(block, partition(block))
