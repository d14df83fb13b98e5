"""The order in which the backward sweep runs the loops of a kernel: that of the source, wherever any order will do.

    for u in range(n):
        t = n - 1 - u                                 for t in range(n):
        y[t] = y[t] + s * x[t]                ->          y[t] = y[t] + s * x[t]

So loops that only add up run as those in the source do, which the analyses know. Proofs rest on no guard, but on the
assumptions of the analysis, which the host checks. A loop that
was claimed parallel stays so, unless its adjoints are certain to meet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from brickwork.ir.nodes import Assign, Block, Expression, For, Kernel, Statement, Symbol
from brickwork.ir.walk import read_symbols, rewrite_statements, statements
from brickwork.transform.unguarded_analysis import unguarded_analysis


def in_source_order(kernel: Kernel, turned: Collection[Symbol]) -> tuple[Kernel, tuple[Expression, ...]]:
    """Return the kernel with those of the loops with `turned` indices run forwards whose order does not matter.

    That rests on the conditions that are returned, too.
    """
    loops = [node for node in statements(kernel.body) if isinstance(node, For)]
    if not any(loop.index in turned or loop.claimed for loop in loops):
        return kernel, ()

    def straightened(statement: Statement) -> Block:
        return (_straight(statement, turned) if isinstance(statement, For) else statement,)

    straight = replace(kernel, body=rewrite_statements(kernel.body, straightened))
    found = unguarded_analysis(straight, updated=True)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For):
            return (statement,)
        other = _straight(statement, turned)
        verdict = found.loops.get(other.index)
        if other is not statement and verdict is not None and verdict.independent:
            return (other,)
        refuted = verdict is not None and verdict.conflict is not None and verdict.conflict.refuted
        return (replace(statement, claimed=statement.claimed and not refuted),)

    return replace(kernel, body=rewrite_statements(kernel.body, visit)), found.assumptions


def _straight(statement: For, turned: Collection[Symbol]) -> For:
    """Return a turned loop run forwards: its index is the variable that its body sets first."""
    match statement:
        case For(index=index, body=(Assign(symbol=symbol, value=value), *rest)) if index in turned:
            if index in read_symbols(value):
                return replace(statement, index=symbol, body=tuple(rest))
        case _:
            pass
    return statement
