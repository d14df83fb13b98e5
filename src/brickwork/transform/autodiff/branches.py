"""Conditional expressions become branches, so that no derivative is taken of a value that is not chosen.

    y[i] = select(x[i] > 0, log(x[i]), 0)     ->     a = x[i]
                                                     if x[i] > 0: t = log(a)
                                                     else: t = 0
                                                     y[i] = t

What a branch computes has its adjoints in a branch, too, in derivatives of any order: nothing is multiplied by the
infinite derivative on the other side. Elements are read before the branch, as they are without it: so an adjoint that
each iteration stores, it stores in any case. Where both sides are linear the expression stays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    If,
    Load,
    Node,
    Select,
    Statement,
    Store,
)
from brickwork.ir.walk import EXPRESSIONS, rebuild, rewrite, rewrite_statements, walk
from brickwork.records import dataclass
from brickwork.transform.autodiff.activity import Activity
from brickwork.transform.scratch import Names

_LINEAR = frozenset({"add", "sub", "neg", "abs", "minimum", "maximum"})


def branched(block: Block, active: Activity, names: Names) -> Block:
    """Return the block with a branch in place of each conditional expression that a derivative may be infinite in."""
    brancher = _Brancher(active, names)

    def visit(statement: Statement) -> Block:
        ahead: list[Statement] = []
        match statement:
            case Assign(value=value) | Store(value=value):
                value = brancher.value(value, ahead)
                return (*ahead, replace(statement, value=value)) if ahead else (statement,)
            case _:
                return (statement,)

    return rewrite_statements(block, visit)


@dataclass(frozen=True, slots=True)
class _Brancher:
    """Writes branches for the conditional expressions of a block that gradients pass through."""

    active: Activity
    names: Names

    def value(self, node: Expression, ahead: list[Statement]) -> Expression:
        """Return an expression with variables in place of conditional expressions; branches go `ahead` of it."""

        def visit(child: Node) -> Node:
            return self.value(cast("Expression", child), ahead) if isinstance(child, EXPRESSIONS) else child

        match node:
            case Select(then=then, otherwise=otherwise) if self.bends(then) or self.bends(otherwise):
                return self.choice(node, ahead)
            case _:
                return rebuild(node, visit)

    def choice(self, node: Select, ahead: list[Statement]) -> Expression:
        """Return the variable that a branch assigns."""
        symbol = self.names.symbol("choice", node.dtype)
        sides: list[Block] = []
        for side in (node.then, node.otherwise):
            inside: list[Statement] = []
            value = self.value(self.loaded(side, ahead), inside)
            sides.append((*inside, Assign(symbol=symbol, value=value, loc=side.loc)))
        ahead.append(If(condition=node.condition, then=sides[0], otherwise=sides[1], loc=node.loc))
        return build.read(symbol, node.loc)

    def loaded(self, side: Expression, ahead: list[Statement]) -> Expression:
        """Return an expression with variables in place of the elements that it reads."""

        def visit(node: Node) -> Node:
            if not isinstance(node, Load):
                return node
            symbol = self.names.symbol(node.tensor.name, node.dtype)
            ahead.append(Assign(symbol=symbol, value=node, loc=node.loc))
            return build.read(symbol, node.loc)

        return rewrite(side, visit)

    def bends(self, node: Expression) -> bool:
        """Whether an expression has a derivative that depends on where it is taken."""
        applied = (inner for inner in walk(node) if isinstance(inner, Apply) and not _is_linear(inner))
        return any(map(self.active.is_active, applied))


def _is_linear(node: Apply) -> bool:
    match node.operator.name, node.operands:
        case "mul", (left, right):
            return isinstance(left, Constant) or isinstance(right, Constant)
        case "truediv", (_, right):
            return isinstance(right, Constant)
        case name, _:
            return name in _LINEAR
