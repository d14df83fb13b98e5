"""Writes indices that are computed between loops into the loops inside, so that nests are perfect, or can be cut.

    for t in range(1, n):                  for t in range(1, n):
        i = 1 + n - 1 - t                      for u in range(m):
        for u in range(m):         ->              y[n - t, u] = x[n - t, u]
            y[i, u] = x[i, u]

That is what a gradient's loops back look like. What else stands there and is the same in all iterations, as a bound
that is read from data, stays where it is. Invariant: the index is assigned once, of what stays the same where it is
read, and read nowhere else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from brickwork.ir.nodes import Assign, Block, Expression, For, Statement, Symbol
from brickwork.ir.walk import (
    assigned_symbols,
    read_counts,
    read_symbols,
    rewrite_statements,
    statements,
    substitute,
)
from brickwork.legality import legality
from brickwork.transform.sums import sum_of


def fold_indices(block: Block) -> Block:
    """Return the block with the indices that stand between a loop and those in it folded into these."""
    assigned = Counter(node.symbol for node in statements(block) if isinstance(node, Assign))
    reads = read_counts(block)

    def visit(statement: Statement) -> Block:
        match statement:
            case For(body=(Assign(), *_) as body) if isinstance(body[-1], For):
                ahead = [item for item in body if isinstance(item, Assign)]
                inner = [item for item in body[len(ahead) :] if isinstance(item, For)]
                if len(ahead) + len(inner) == len(body):
                    folded = _folded(statement, ahead, inner, assigned, reads)
                    reads.update(read_counts(folded))
                    reads.subtract(read_counts(statement))
                    return (folded,)
            case _:
                pass
        return (statement,)

    return rewrite_statements(block, visit)


@legality
def _folded(loop: For, ahead: list[Assign], inner: list[For], assigned: Counter[Symbol], reads: Counter[Symbol]) -> For:
    """Return a loop with nothing but the inner ones and what is fixed in it, or as it is."""
    changing = assigned_symbols(loop.body)
    values: dict[Symbol, Expression] = {}
    kept: list[Assign] = []
    inside = read_counts((*inner,))
    for item in ahead:
        found = sum_of(substitute(item.value, values))
        if found is None:
            if read_symbols(item.value) & {*changing, loop.index}:
                return loop
            kept.append(item)
            continue
        if assigned[item.symbol] > 1 or any(read_symbols(term) & changing for term, _ in found.terms):
            return loop
        beside = sum(read_counts(other.value)[item.symbol] for other in ahead)
        if reads[item.symbol] > inside[item.symbol] + beside:
            return loop
        values[item.symbol] = found.expression()
    return replace(loop, body=(*kept, *(substitute(item, values) for item in inner)))
