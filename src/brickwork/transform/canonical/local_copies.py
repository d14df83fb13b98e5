"""Takes out copies of a local that it already holds.

    for i in range(8): b[i] = a[i]                 for i in range(8): b[i] = a[i]
    ...                                ->          ...
    for i in range(8): a[i] = b[i]

Invariant: nothing between stores into either, or has another tensor stand for one.
"""

from __future__ import annotations

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Block, For, Load, Statement, Store, Tensor
from brickwork.ir.walk import rewrite_blocks
from brickwork.legality import legality
from brickwork.transform.canonical.dead import filled_local


def without_local_copies(block: Block) -> Block:
    """Return the block without copies of locals into those that are the same."""
    return rewrite_blocks(block, _without)


def _without(block: Block) -> Block:
    equal = set[frozenset[Tensor]]()
    kept: list[Statement] = []
    for statement in block:
        pair = _copied(statement)
        if pair is not None and pair in equal:
            continue
        found = effects(statement)
        changed = found.stores | found.declares | found.rebinds
        equal = {each for each in equal if each.isdisjoint(changed)}
        if pair is not None:
            equal.add(pair)
        kept.append(statement)
    return block if len(kept) == len(block) else tuple(kept)


@legality
def _copied(statement: Statement) -> frozenset[Tensor] | None:
    """Return a local and a tensor if a statement does nothing but fill the one from the same places of the other."""
    target = filled_local(statement)
    while isinstance(statement, For):
        statement = statement.body[0]
    match target, statement:
        case Tensor(), Store(indices=indices, value=Load(tensor=source, indices=places)) if indices == places:
            return frozenset((source, target))
        case _:
            return None
