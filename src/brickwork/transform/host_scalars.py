"""Long computations of scalars alone, which the host makes once and not each thread of a grid.

    for i in parallel:                                     c = pow(b, t)
        p[i] -= m[i] / (1 - pow(b, t))          ->         for i in parallel:
                                                               p[i] -= m[i] / (1 - c)

Invariant: what is computed early has no effect and cannot fail, whatever its operands are.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Cast, Expression, Kernel, Node, Read, Select, Symbol
from brickwork.ir.operators import FLOATS
from brickwork.ir.walk import assigned_symbols, rewrite, walk
from brickwork.legality import legality
from brickwork.transform.schedule.planner import is_long_computation
from brickwork.transform.scratch import Names

_DIVIDING = frozenset({"floordiv", "mod", "pow"})
"""Operators that fail for some integers; checks that they do not stand before them."""


def with_host_scalars(kernel: Kernel, names: Names) -> tuple[Kernel, tuple[Assign, ...]]:
    """Return the kernel with variables in place of long computations of its scalars, and what gives these a value."""
    if not any(map(is_long_computation, walk(kernel.body))):
        return kernel, ()
    found: dict[Expression, Symbol] = {}
    given = frozenset(kernel.scalars) - assigned_symbols(kernel.body)

    def visit(node: Node) -> Node:
        if not isinstance(node, Apply | Cast | Select) or not _is_of_scalars(node, given.union(found.values())):
            return node
        if not any(map(is_long_computation, walk(node))):
            return node
        if node not in found:
            found[node] = names.symbol("scalar", node.dtype)
        return Read(symbol=found[node], loc=node.loc)

    body = tuple(rewrite(statement, visit) for statement in kernel.body)
    made = tuple(Assign(symbol=symbol, value=value) for value, symbol in found.items())
    return replace(kernel, body=body, scalars=(*kernel.scalars, *found.values())), made


@legality
def _is_of_scalars(expression: Expression, scalars: frozenset[Symbol]) -> bool:
    """Whether an expression is computed from variables of the host and sizes alone, and never fails."""
    found = effects(expression)
    applied = (node for node in walk(expression) if isinstance(node, Apply) and node.operator.name in _DIVIDING)
    return found.plain and found.reads <= scalars and all(node.operands[0].dtype in FLOATS for node in applied)
