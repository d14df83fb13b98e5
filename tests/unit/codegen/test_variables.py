"""Which variables need memory, and which differ between lanes."""

from brickwork.codegen.variables import bound_symbols, varying_symbols
from brickwork.ir.nodes import Break
from support.written import let, loop, op, symbol, when


def test_a_variable_assigned_once_before_its_reads_needs_no_memory():
    a, b, i = symbol("a"), symbol("b"), symbol("i")
    block = (let(a, 1), loop(i, 0, 9, let(b, op("add", a, i)), let(symbol("c"), b)))
    assert {a, b} <= bound_symbols(block)


def test_copies_of_a_block_bind_their_own_variables():
    a, b, i = symbol("a"), symbol("b"), symbol("i")
    body = (let(a, i), let(b, a))
    assert {a, b} <= bound_symbols((when(op("lt", i, 3), (loop(i, 0, 9, *body),), (loop(i, 0, 9, *body),)),))


def test_variables_carried_between_iterations_or_joined_need_memory():
    s, t, i = symbol("s"), symbol("t"), symbol("i")
    carried = (let(s, 0), loop(i, 0, 9, let(s, op("add", s, i))))
    joined = (when(op("lt", i, 3), (let(t, 1),), (let(t, 2),)), let(symbol("u"), t))
    assert s not in bound_symbols(carried)
    assert t not in bound_symbols(joined)


def test_what_depends_on_the_lane_varies():
    s, t, u, i, j = symbol("s"), symbol("t"), symbol("u"), symbol("i"), symbol("j")
    inner = loop(j, 0, 9, let(u, j), when(op("lt", i, 4), (Break(),)))
    block = (let(s, op("mul", i, 2)), let(t, 7), inner)
    assert varying_symbols(loop(i, 0, 64, *block)) == {i, s, u}
