"""Tapes that one expression alone reads become one tape of what it computes.

    for t: for i:                                  for t: for i:
        a_tape[t, i] = a                               tape[t, i] = a + 2 * b
        b_tape[t, i] = b                  ->
    ...                                            ...
        g[i] += h * (a_tape[t, i] + 2 * b_tape[t, i])      g[i] += h * tape[t, i]

So a stencil's neighbours take the memory of one element. Invariant: the value is computed by the same operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Cast,
    Constant,
    Expression,
    Load,
    Node,
    Statement,
    Store,
    Tensor,
)
from brickwork.ir.walk import (
    assigned_symbols,
    blocks_in,
    children,
    read_symbols,
    rewrite,
    rewrite_expressions,
    rewrite_statements,
    walk,
)
from brickwork.records import dataclass
from brickwork.transform.scratch import Names


def join_tapes(block: Block, tapes: Iterable[Allocate], names: Names) -> tuple[Block, tuple[Allocate, ...]]:
    """Return a block with fewer tapes, and the new ones."""
    made = {item.tensor: item for item in tapes}
    nodes = [node for node in walk(block) if isinstance(node, Load | Store) and node.tensor in made]
    loads = Counter(node.tensor for node in nodes if isinstance(node, Load))
    stores = Counter(node.tensor for node in nodes if isinstance(node, Store))
    single = {tensor for tensor in made if loads[tensor] == stores[tensor] == 1}
    places = {tensor: place for tensor, place in _places(block) if tensor in single}
    allocated: list[Allocate] = []
    for read in _expressions(block, places):
        parts = [node for node in walk(read) if isinstance(node, Load)]
        group = _group([places[node.tensor] for node in parts])
        if group is None:
            continue
        sizes = made[parts[0].tensor].sizes
        tensor, allocation = names.tensor(parts[0].tensor.name, read.dtype, *sizes)
        allocated.append(allocation)
        block = _replaced(block, read, group, tensor, names)
    return block, tuple(allocated)


@dataclass(frozen=True, slots=True)
class _Place:
    """The store into a tape, where it stands, and the block that it stands in."""

    block: Block
    at: int
    store: Store


def _places(block: Block) -> Iterator[tuple[Tensor, _Place]]:
    """Yield the stores of a block and of those in it."""
    for at, statement in enumerate(block):
        if isinstance(statement, Store):
            yield statement.tensor, _Place(block, at, statement)
        for inner in blocks_in(statement):
            yield from _places(inner)


def _expressions(root: Node | Block, places: Mapping[Tensor, _Place]) -> Iterator[Expression]:
    """Yield the largest expressions over elements of several tapes at one place, and over nothing else."""
    for node in root if isinstance(root, tuple) else children(root):
        if isinstance(node, Apply | Cast) and _is_of(node, places):
            loads = [inner for inner in walk(node) if isinstance(inner, Load)]
            if len(loads) > 1 and all(load.indices == loads[0].indices for load in loads):
                yield node
                continue
        yield from _expressions(node, places)


def _is_of(node: Expression, places: Mapping[Tensor, _Place]) -> bool:
    """Whether an expression is made of elements of tapes and constants."""
    match node:
        case Load(tensor=tensor):
            return tensor in places
        case Apply(operands=operands):
            return all(_is_of(operand, places) for operand in operands)
        case Cast(operand=operand):
            return _is_of(operand, places)
        case _:
            return isinstance(node, Constant)


def _group(places: Sequence[_Place]) -> list[_Place] | None:
    """Return stores in the order of their block if the last of them could make all, or None."""
    ordered = sorted(places, key=lambda place: place.at)
    first, last = ordered[0], ordered[-1]
    if any(place.block is not first.block or place.store.indices != first.store.indices for place in ordered):
        return None
    between = first.block[first.at : last.at]
    tapes = {place.store.tensor for place in ordered}
    plain = all(isinstance(node, Assign) or (isinstance(node, Store) and node.tensor in tapes) for node in between)
    kept = all(
        not read_symbols(place.store) & assigned_symbols(first.block[place.at : last.at]) for place in ordered[:-1]
    )
    return ordered if plain and kept else None


def _replaced(block: Block, read: Expression, group: Sequence[_Place], tensor: Tensor, names: Names) -> Block:
    """Return the block with a tape of an expression in place of those of a group."""
    values = {place.store.tensor: place.store.value for place in group}
    last = group[-1].store
    place = next(node.indices for node in walk(read) if isinstance(node, Load))

    def computed(node: Node) -> Node:
        return values[node.tensor] if isinstance(node, Load) and node.tensor in values else node

    store = replace(names.store(tensor, *last.indices, rewrite(read, computed)), loc=last.loc)

    def stored(node: Statement) -> Block:
        if not isinstance(node, Store) or node.tensor not in values:
            return (node,)
        return (store,) if node.access == last.access else ()

    def loaded(node: Expression) -> Expression:
        return replace(names.load(tensor, *place), loc=read.loc) if node == read else node

    return rewrite_expressions(rewrite_statements(block, stored), loaded)
