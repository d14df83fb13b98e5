"""Tables: arrays of constants that nothing stores into. Here they are placed where all of a kernel sees them.

Invariant: a table holds the same numbers wherever it is declared, so one declaration at the top stands for all.
"""

from __future__ import annotations

from brickwork.ir.nodes import Block, Local, Statement, Tensor
from brickwork.ir.walk import rewrite_statements


def tables_first(block: Block) -> Block:
    """Return the block with its tables declared before everything else, each once."""
    found: dict[Tensor, Local] = {}

    def change(statement: Statement) -> Block:
        if isinstance(statement, Local) and statement.values:
            found.setdefault(statement.tensor, statement)
            return ()
        return (statement,)

    body = rewrite_statements(block, change)
    return (*found.values(), *body)
