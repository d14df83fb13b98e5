"""Expressions of which equal ones are one object."""

from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.interned import Interned, parts
from brickwork.ir.nodes import Expression, Read, Symbol
from brickwork.ir.walk import walk

X, Y = (build.read(Symbol(name, number, FLOAT32)) for number, name in enumerate("xy"))


def chain(first: Expression, steps: int) -> Expression:
    """Return a value that has `first` in it 3 ** steps times."""
    for _ in range(steps):
        first = build.add(build.mul(first, first), first)
    return first


def test_each_part_of_a_chain_is_changed_once():
    changed: list[Expression] = []

    def to_y(node: Expression) -> Expression:
        changed.append(node)
        return Y if isinstance(node, Read) else node

    found = Interned().rewritten(chain(X, 40), to_y)
    assert len(changed) == 81
    assert len([*parts(found)]) == 81
    assert [*parts(found)][-1] == Y


def test_equal_expressions_are_identical_and_others_are_not():
    table = Interned()

    def same(node: Expression) -> Expression:
        return node

    one = table.rewritten(chain(X, 5), same)
    assert one == chain(X, 5)
    assert table.rewritten(chain(X, 5), same) is one
    assert table.rewritten(chain(Y, 5), same) is not one
    for value in (1, 1.0):
        node = replace(build.integer(1), value=value, dtype=FLOAT32)
        assert table.rewritten(node, same) is not table.rewritten(build.integer(1), same)
    assert table.rewritten(build.sub(X, Y), same) is not table.rewritten(build.sub(Y, X), same)
    assert table.rewritten(build.sub(X, Y), same) is not table.rewritten(build.add(X, Y), same)


def test_parts_come_in_the_order_in_which_a_walk_meets_them_first():
    value = build.sub(build.add(X, Y), build.mul(Y, X))
    assert [*parts(Interned().rewritten(value, lambda node: node))] == [*dict.fromkeys(walk(value))]
