"""Additions to one element that stand in one block are one addition.

    x[2 * i] = x[2 * i] + a                        s = a
    b = f(a)                          ->           b = f(a)
    x[2 * i] = x[2 * i] + b                        x[2 * i] = x[2 * i] + (s + b)

Then each element is read and stored once, and not at all read where it holds zero: what an element is set to 0 for is
stored. What is added is added in the order of the source. Invariant: between two additions that are joined nothing
looks at the tensor, nor adds to it after a 0, and the block runs on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.searches import without_numbers
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Expression, For, Load, Statement, Store, Symbol
from brickwork.ir.walk import read_symbols, rewrite_blocks, walk
from brickwork.legality import legality
from brickwork.transform.autodiff.slices import added_by
from brickwork.transform.scratch import Names


def joined_updates(block: Block, names: Names) -> Block:
    """Return the block with the additions to an element joined, in its nests."""

    def joined(inner: Block) -> Block:
        result = [*inner]
        for place in range(len(result)):
            update = result[place]
            added = _added(update)
            if not isinstance(update, Store) or added is None:
                continue
            again = _again(update, result[place + 1 :])
            if again is not None:
                term = names.symbol(f"{update.tensor.name}_term", added.dtype)
                result[place] = Assign(symbol=term, value=added, loc=update.loc)
                result[place + 1 + again] = _with(result[place + 1 + again], term)
        return tuple(_without_zeros(result))

    return tuple(
        replace(item, body=rewrite_blocks(item.body, joined)) if isinstance(item, For) else item for item in block
    )


@legality
def _added(statement: Statement) -> Expression | None:
    """Return what an update adds to its element, if it reads nothing else of the tensor; None for other statements."""
    if not isinstance(statement, Store) or statement.combine is not None:
        return None
    reads = sum(isinstance(node, Load) and node.tensor == statement.tensor for node in walk(statement))
    return added_by(statement) if reads == 1 else None


@legality
def _again(update: Store, later: Sequence[Statement]) -> int | None:
    """Return which of the statements after an update adds to the same element again, before all else that matters."""
    place = tuple(map(without_numbers, update.indices))
    fixed, told = read_symbols(update.indices), effects(update.indices).loads
    for number, statement in enumerate(later):
        found = effects(statement)
        adds = False
        if isinstance(statement, Store) and statement.tensor == update.tensor and _added(statement) is not None:
            if tuple(map(without_numbers, statement.indices)) == place:
                return number
            adds = _added(update) is not None
        looks = update.tensor in found.loads | found.changes and not adds
        if looks or found.leaves or found.fails or found.assigns & fixed or found.changes & told:
            return None
    return None


def _without_zeros(block: Sequence[Statement]) -> Iterator[Statement]:
    """Yield the statements of a block; an element that is set to 0 to be added to is set to what is added."""
    alone: dict[int, Store] = {}
    for place, statement in enumerate(block):
        if isinstance(statement, Store) and statement.combine is None and build.is_constant(statement.value, 0):
            again = _again(statement, block[place + 1 :])
            if again is not None and isinstance(update := block[place + 1 + again], Store):
                alone[place + 1 + again] = replace(update, value=_added(update) or update.value)
                continue
        yield alone.get(place, statement)


def _with(update: Statement, term: Symbol) -> Statement:
    """Return an update that adds a term before its own."""
    added = _added(update)
    if not isinstance(update, Store) or added is None:
        raise TypeError("only updates are joined")
    element = next(node for node in walk(update.value) if isinstance(node, Load) and node.tensor == update.tensor)
    return replace(update, value=build.add(element, build.add(build.read(term), added)))
