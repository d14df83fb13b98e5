"""Checks of arguments alone, as that a divisor is not 0, are asked once before a kernel instead of in its loops.

    for k in range(n): check group != 0; s += x[k] * scale[k // group]   ->   if group != 0: the loops without the check

Loops that check something are no contractions. Where a condition does not hold, the loops run
as they are written, and the check fails where it is reached.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Block, Check, Expression, Kernel, Statement
from brickwork.ir.walk import read_symbols, rewrite_statements, statements, walk
from brickwork.legality import legality

_PARTIAL = frozenset({"floordiv", "mod", "pow", "shift_left", "shift_right"})
"""Operators that have no value for some operands: a check of these may stand before what asks for the value."""


def without_argument_checks(kernel: Kernel) -> tuple[Kernel, tuple[Expression, ...]]:
    """Return a kernel without its checks of arguments alone, and their conditions."""
    checks = (node for node in statements(kernel.body) if isinstance(node, Check))
    found = dict.fromkeys(node.condition for node in checks if _is_of_arguments(node.condition, kernel))
    if not found:
        return kernel, ()

    def visit(statement: Statement) -> Block:
        return () if isinstance(statement, Check) and statement.condition in found else (statement,)

    return replace(kernel, body=rewrite_statements(kernel.body, visit)), (*found,)


@legality
def _is_of_arguments(condition: Expression, kernel: Kernel) -> bool:
    """Whether a condition can be asked before the kernel, and has the same answer all the time."""
    if not effects(condition).plain or any(
        isinstance(n, Apply) and n.operator.name in _PARTIAL for n in walk(condition)
    ):
        return False
    return read_symbols(condition) <= frozenset(kernel.scalars)
