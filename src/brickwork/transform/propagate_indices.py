"""Copy propagation of loop indices: takes out variables that only repeat one, so that nests are perfect.

    for i0 in range(n):                     for i in range(n):
        i = i0                                  for j in range(m):
        for j in range(m):         ->               x[i, j] = 0
            x[i, j] = 0
    i = n                                   i = n

A function that uses a name for a loop and for other things makes such variables. Invariant: a variable that is taken
out is read nowhere but in its loop, after the index was put into it.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.scalars import NONE, Symbols, live_after_loops, live_before
from brickwork.ir.nodes import Assign, Block, For, Kernel, Read, Statement, Symbol
from brickwork.ir.walk import rewrite_statements, statements, substitute_block
from brickwork.legality import legality


def propagate_indices(kernel: Kernel) -> Kernel:
    """Return the kernel with indices in place of the variables that repeat them."""
    if not any(isinstance(node, For) and _copies(node) for node in statements(kernel.body)):
        return kernel
    live = live_after_loops(kernel.body)

    def visit(statement: Statement) -> Block:
        return (_plain(statement, live[statement.index]),) if isinstance(statement, For) else (statement,)

    body = rewrite_statements(kernel.body, visit)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _copies(loop: For) -> list[Symbol]:
    """Return the variables that a statement of a loop's body sets to the index."""
    return [
        item.symbol
        for item in loop.body
        if isinstance(item, Assign) and isinstance(item.value, Read) and item.value.symbol == loop.index
    ]


@legality
def _plain(loop: For, live_after: Symbols) -> For:
    for symbol in _copies(loop):
        assigned = sum(isinstance(node, Assign) and node.symbol == symbol for node in statements(loop.body))
        if assigned > 1 or symbol in live_after or symbol in live_before(loop.body, NONE):
            continue
        kept = tuple(item for item in loop.body if not (isinstance(item, Assign) and item.symbol == symbol))
        loop = replace(loop, body=substitute_block(kept, {symbol: Read(symbol=loop.index, loc=loop.loc)}))
    return loop
