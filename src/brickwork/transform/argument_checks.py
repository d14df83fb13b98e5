"""Checks of arguments alone, as that a divisor is not 0, are asked once before a kernel instead of in its loops.

    for k in range(n): check group != 0; s += x[k] * scale[k // group]   ->   if group != 0: the loops without the check

Loops that check something are no contractions. Where a condition does not hold, the loops run
as they are written, and the check fails where it is reached.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Block, Check, Constant, Expression, Kernel, Node, Statement
from brickwork.ir.walk import NodeType, read_symbols, rewrite, rewrite_statements, statements, walk
from brickwork.legality import legality

_DIVIDING = frozenset({"floordiv", "mod"})
"""Operators that have no value for a divisor of 0: a check of that stands before what asks for the value."""
_PARTIAL = frozenset({"pow", "shift_left", "shift_right"})
"""Operators that have no value for other operands."""


def without_argument_checks(kernel: Kernel) -> tuple[Kernel, tuple[Expression, ...]]:
    """Return a kernel without its checks of arguments alone, and their conditions."""
    checks = (node for node in statements(kernel.body) if isinstance(node, Check))
    found = dict.fromkeys(node.condition for node in checks if _is_of_arguments(node.condition, kernel))
    if not found:
        return kernel, ()

    def visit(statement: Statement) -> Block:
        return () if isinstance(statement, Check) and statement.condition in found else (statement,)

    return replace(kernel, body=rewrite_statements(kernel.body, visit)), tuple(map(total, found))


def total(expression: NodeType) -> NodeType:
    """Return an expression whose quotients and remainders have some value for a divisor of 0 as well."""
    return rewrite(expression, _total)


def _total(node: Node) -> Node:
    match node:
        case Apply(operator=operator, operands=(value, divisor)) if operator.name in _DIVIDING and not isinstance(
            divisor, Constant
        ):
            zero = build.constant(0, divisor.dtype)
            one = build.constant(1, divisor.dtype)
            some = build.select(build.apply("eq", divisor, zero), one, divisor)
            return replace(node, operands=(value, some))
        case _:
            return node


@legality
def _is_of_arguments(condition: Expression, kernel: Kernel) -> bool:
    """Whether a condition can be asked before the kernel, and has the same answer all the time."""
    if not effects(condition).plain or any(
        isinstance(n, Apply) and n.operator.name in _PARTIAL for n in walk(condition)
    ):
        return False
    return read_symbols(condition) <= frozenset(kernel.scalars)
