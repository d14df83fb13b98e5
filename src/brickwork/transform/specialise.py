"""Value specialisation: where guards fix a scalar argument, the guarded body has its value in its place.

if n == x.shape[0] and m == 0: y[i % n + i * m]   ->   if ...: y[i % x.shape[0]]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from brickwork.ir import build
from brickwork.ir.nodes import Apply, Block, Constant, Expression, Node, Read, Size, Symbol
from brickwork.ir.walk import rewrite_expressions


def specialise(block: Block, conditions: Iterable[Expression]) -> Block:
    """Return the block for arguments that satisfy `conditions`: scalars known to equal a size or literal become it."""
    values: dict[Symbol, Expression] = {}
    sizes: dict[Expression, Expression] = {}
    for condition in conditions:
        values.update(_fixed(condition))
        match condition:
            case Apply(operator=operator, operands=(Size() as one, Size() as other)) if operator.name == "eq":
                one, other = _first(one, sizes), _first(other, sizes)
                sizes |= {one: other} if one != other else {}
            case _:
                pass
    if not values and not sizes:
        return block

    def change(node: Expression) -> Expression:
        match node:
            case Read(symbol=symbol):
                return _first(values.get(symbol, node), sizes)
            case Size():
                return _first(node, sizes)
            case Apply(operator=operator, operands=operands):
                return build.apply(operator.name, *operands, loc=node.loc)
            case _:
                return node

    return rewrite_expressions(block, change)


def _first(size: Expression, sizes: Mapping[Expression, Expression]) -> Expression:
    """Return what stands for a size."""
    while size in sizes:
        size = sizes[size]
    return size


def _fixed(condition: Node) -> tuple[tuple[Symbol, Expression], ...]:
    if not isinstance(condition, Apply) or condition.operator.name != "eq":
        return ()
    for one, other in (condition.operands, condition.operands[::-1]):
        if isinstance(one, Read) and isinstance(other, Constant | Size):
            return ((one.symbol, cast("Expression", other)),)
    return ()
