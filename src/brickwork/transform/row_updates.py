"""Updates of elements in loops over items that are written out: made for several items at once.

    for t in range(T):                                for t in range(T):
        for j in range(64):                               for j in range(32): part[j] = s[j] * g
            atomic r[b, t, j] += s[j] * g      ->         for j in range(32): atomic r[b, t, j] += part[j]
                                                          for j in range(32, 64): ...

A loop that does nothing but such updates of up to 32 items is a row: threads of a warp make those together
(`codegen/row_updates.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Block,
    Constant,
    For,
    If,
    Load,
    Local,
    Role,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, walk, with_blocks
from brickwork.legality import legality
from brickwork.target.target import WARP
from brickwork.transform.scratch import Names


@legality
def row_update(loop: For) -> Store | None:
    """Return the update that a loop makes for each item of a list, if it does nothing else and is short."""
    items = _items(loop)
    if items < 2 or items > WARP or items & (items - 1):
        return None
    match loop.body:
        case (Store(value=Load(indices=indices, tensor=part)) as store,) if part.is_local and _is_sum(store):
            moving = (build.read(loop.index), build.sub(build.read(loop.index), loop.start))
            return store if len(indices) == 1 and indices[0] in moving else None
        case _:
            return None


def _items(loop: For) -> int:
    """Return the number of iterations of a loop in order, where it is known; else 0."""
    match loop:
        case For(start=Constant(value=start), stop=Constant(value=stop), role=Role.SEQUENTIAL):
            return max(int(stop) - int(start), 0)
        case _:
            return 0


@legality
def _is_sum(store: Store) -> bool:
    """Whether a store adds floats to an element at once."""
    added = store.combine is not None and store.combine.name == "add"
    return added and store.tensor.type.dtype == FLOAT32 and not store.tensor.is_local


def with_rows(body: Block, along: Symbol, names: Names) -> Block:
    """Return what threads that lie `along` a loop run, with updates of the same items made after one another."""
    return tuple(made for statement in body for made in _with_rows(statement, along, names))


def _with_rows(statement: Statement, along: Symbol, names: Names) -> Block:
    match statement:
        case For() if row_update(statement) is None and (updates := _row_updates(statement, along)):
            return tuple(_grouped(statement, updates, names))
        case For() | If():
            return (with_blocks(statement, lambda block: with_rows(block, along, names)),)
        case _:
            return (statement,)


@legality
def _row_updates(loop: For, along: Symbol) -> list[Store]:
    """Return the updates that a loop over items makes in each iteration, at the item's number along one axis.

    Elements do not depend on `along`, by which threads differ.
    """
    if _items(loop) < 2 or effects(loop.body).jumps or effects(loop.body).fails:
        return []
    inside, found = assigned_symbols(loop.body), list[Store]()
    for node in loop.body:
        if isinstance(node, Store) and _is_updated(node, loop.body):
            own = [axis for axis in node.indices if axis == build.read(loop.index)]
            others = read_symbols([axis for axis in node.indices if axis != build.read(loop.index)])
            if len(own) == 1 and not others & (inside | {loop.index, along}) and not effects(node.indices).loads:
                found.append(node)
    return found


@legality
def _is_updated(store: Store, block: Block) -> bool:
    """Whether nothing but additions touches the tensor of a store in a block, which is one of them."""
    return not any(
        (isinstance(node, Load) and node.tensor == store.tensor)
        or (isinstance(node, Store) and node.tensor == store.tensor and not _is_sum(node))
        for node in walk(block)
    )


def _grouped(loop: For, updates: Sequence[Store], names: Names) -> Iterator[Statement]:
    """Yield a loop in groups of items, each with rows after it."""
    parts = [_local(f"{store.tensor.name}_part", WARP, names) for store in updates]
    yield from (Local(tensor=part, loc=loop.loc) for part in parts)
    first = int(loop.start.value) if isinstance(loop.start, Constant) else 0
    stop = first + _items(loop)
    while first < stop:
        size = min(1 << ((stop - first).bit_length() - 1), WARP)
        start, end = build.integer(first), build.integer(first + size)
        place = build.sub(build.read(loop.index), start)
        held = {
            id(store): replace(names.store(part, place, store.value), loc=store.loc)
            for store, part in zip(updates, parts, strict=True)
        }
        yield replace(loop, start=start, stop=end, body=tuple(held.get(id(node), node) for node in loop.body))
        for store, part in zip(updates, parts, strict=True):
            row = replace(store, value=names.load(part, place), access=next(names.accesses))
            yield replace(loop, start=start, stop=end, body=(row,))
        first += size


def _local(name: str, items: int, names: Names) -> Tensor:
    return Tensor(name, next(names.tensors), TensorType(FLOAT32, 1, contiguous=True, unit_axis=0), (items,))
