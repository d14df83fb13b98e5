"""Writes branches that only choose what a variable is worth as one value, where both ways are cheap and cannot fail.

    if a:                                 c = a and y % 2 == 0
        c = y % 2 == 0         ->
    else:
        c = a

That is what `a and y % n == 0` looks like once `n` is known to be 2: before, the remainder could fail. Conditions that
variables stand for then fall into parts. Invariant: nothing is computed in vain but a few integers.
"""

from __future__ import annotations

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Apply, Assign, Block, Cast, Constant, Expression, If, Node, Read, Select, Size, Statement
from brickwork.ir.walk import rewrite_statements, walk
from brickwork.legality import legality

SIMPLE = frozenset({"add", "sub", "mul", "neg", "minimum", "maximum"}) | {
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not")
}
"""Operators that cost next to nothing and cannot fail."""
LARGEST = 48
"""Nodes of a condition, or of a value that is computed whether or not it is chosen, beyond which a branch stays.

Chosen, not measured."""


def without_choices(block: Block) -> Block:
    """Return the block with values in place of branches that choose them."""

    def visit(statement: Statement) -> Block:
        match statement:
            case If(
                condition=condition,
                then=(Assign(symbol=symbol, value=value),),
                otherwise=(Assign(symbol=same, value=other),),
            ) if symbol == same and all(map(is_cheap, (value, other))):
                return (Assign(symbol=symbol, value=choice(condition, value, other), loc=statement.loc),)
            case _:
                return (statement,)

    return rewrite_statements(block, visit)


def is_cheap(value: Expression) -> bool:
    """Whether a value is short and simple."""
    return len([*walk(value)]) <= LARGEST and is_simple(value)


def is_simple(value: Expression) -> bool:
    """Whether a value cannot fail, and is made of variables and sizes alone."""
    return all(map(_is_simple_node, walk(value)))


@legality
def _is_simple_node(node: Node) -> bool:
    """Whether a step of a computation is one of integers or truth values that cannot fail."""
    match node:
        case Apply(operator=operator, operands=(_, Constant(value=divisor))) if operator.name in {"floordiv", "mod"}:
            return divisor > 0
        case Apply(operator=operator) if operator.name not in SIMPLE:
            return False
        case _:
            return isinstance(node, Apply | Cast | Constant | Read | Select | Size) and node.dtype in {BOOL, INT64}


def choice(test: Expression, then: Expression, otherwise: Expression) -> Expression:
    """Return one of two values: of truth values with `and` and `or`, where that says the same."""
    if then == otherwise:
        return then
    if then.dtype is BOOL and otherwise in {test, build.constant(False, BOOL)}:
        return build.apply("logical_and", test, then)
    if then.dtype is BOOL and then in {test, build.constant(True, BOOL)}:
        return build.apply("logical_or", test, otherwise)
    return Select(condition=test, then=then, otherwise=otherwise)
