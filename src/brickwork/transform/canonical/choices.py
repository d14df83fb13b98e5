"""Writes branches that only choose what a variable is worth as one value, where both ways are cheap and cannot fail.

    if a:                                 c = a and y % 2 == 0
        c = y % 2 == 0         ->
    else:
        c = a

That is what `a and y % n == 0` looks like once `n` is known to be 2: before, the remainder could fail. Conditions that
variables stand for then fall into parts. Where the second part may fail, or reads elements, a branch alone that asks
for both is two, so that a search or a sum under a condition looks like any other:

    if a:                                 if a:
        c = x[i] > best                       if x[i] > best:
    else:                      ->                 best = x[i]
        c = a
    if c:
        best = x[i]

Invariant: nothing is computed in vain but a few integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from brickwork.analysis.definitions import LARGEST
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Cast,
    Constant,
    Expression,
    If,
    Node,
    Read,
    Select,
    Size,
    Statement,
    Symbol,
)
from brickwork.ir.walk import read_counts, rewrite_blocks, rewrite_statements, walk
from brickwork.legality import legality

SIMPLE = frozenset({"add", "sub", "mul", "neg", "minimum", "maximum"}) | {
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not")
}
"""Operators that cost next to nothing and cannot fail."""

OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
"""What a comparison of integers is called that holds where another does not."""


def without_choices(block: Block) -> Block:
    """Return the block with values in place of branches that choose them, and flags that one branch asks in that."""

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

    reads = read_counts(block)
    return rewrite_blocks(rewrite_statements(block, visit), lambda inner: _without_flags(inner, reads))


@legality
def _without_flags(block: Block, reads: Mapping[Symbol, int]) -> Block:
    """Return a block with the condition of a branch in it that a variable is worth, which nothing else reads."""
    result: list[Statement] = []
    for statement in block:
        match (result or (None,))[-1], statement:
            case Assign(symbol=symbol, value=value), If(condition=Read(symbol=flag)) if (
                symbol == flag and reads[symbol] == 1 and is_cheap(value)
            ):
                result[-1] = replace(statement, condition=value)
            case _:
                result.append(statement)
    return tuple(result)


def with_nested_conditions(block: Block) -> Block:
    """Return the block with two branches for one that asks for two conditions, the second where the first holds."""
    reads = Counter(read_counts(block))
    return rewrite_blocks(block, lambda inner: _nested(inner, reads))


@legality
def _nested(block: Block, reads: Counter[Symbol]) -> Block:
    """Return a block with branches inside the one that chooses what they ask, if nothing else reads that.

    Reads that go are taken from the number of `reads`.
    """
    result: list[Statement] = []
    for statement in reversed(block):
        match statement, (result or (None,))[-1]:
            case (
                If(
                    condition=condition,
                    then=(*before, Assign(symbol=flag, value=value)),
                    otherwise=(Assign(symbol=same, value=other),),
                ),
                If(condition=Read(symbol=asked), otherwise=()) as branch,
            ) if flag == same == asked and reads[flag] == 1 and other == condition:
                reads.subtract(read_counts(statement.otherwise))
                reads[flag] = 0
                result[-1] = replace(statement, then=(*before, replace(branch, condition=value)), otherwise=())
            case _:
                result.append(statement)
    return tuple(reversed(result))


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
    if (then, otherwise) == (build.constant(False, BOOL), build.constant(True, BOOL)):
        return negated(test)
    if then.dtype is BOOL and otherwise in {test, build.constant(False, BOOL)}:
        return build.apply("logical_and", test, then)
    if then.dtype is BOOL and then in {test, build.constant(True, BOOL)}:
        return build.apply("logical_or", test, otherwise)
    return Select(condition=test, then=then, otherwise=otherwise)


@legality
def negated(condition: Expression) -> Expression:
    """Return the opposite of a condition; of comparisons of integers without `not`, so that it falls into parts."""
    match condition:
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"logical_and", "logical_or"}:
            other = "logical_or" if operator.name == "logical_and" else "logical_and"
            return build.apply(other, negated(left), negated(right))
        case Apply(operator=operator, operands=(left, right)) if left.dtype is INT64:
            return build.apply(OPPOSITE[operator.name], left, right)
        case Apply(operator=operator, operands=(operand,)) if operator.name == "logical_not":
            return operand
        case _:
            return build.apply("logical_not", condition)
