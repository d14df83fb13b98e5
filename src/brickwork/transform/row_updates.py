"""Updates of elements in loops over items that are written out: added up first, or made for several items at once.

    for t in range(T):                                      for j in range(64): sum[j] = 0
        for j in range(64):                                 for t in range(T):
            atomic w[h, j] += a[j] * s[j]                       for j in range(32):
            atomic r[b, t, j] += s[j] * g           ->              sum[j] += a[j] * s[j]
                                                                    part[j] = s[j] * g
                                                                for j in range(32): atomic r[b, t, j] += part[j]
                                                                for j in range(32, 64): ...
                                                            for j in range(64): atomic w[h, j] += sum[j]

A loop that does nothing but such updates of up to 32 items is a row: threads of a warp make those together
(`codegen/row_updates.py`). Sums are rounded in another order than the atomic additions, which have none.
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
from brickwork.ir.walk import assigned_symbols, read_symbols, substitute, walk, with_blocks
from brickwork.legality import legality
from brickwork.target.target import WARP
from brickwork.transform.register_lists import FEW
from brickwork.transform.scratch import Names, empty_sum

# ---------------------------------------------------------------- rows


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


# ---------------------------------------------------------------- sums


def with_sums(body: Block, names: Names) -> Block:
    """Return what a thread runs with updates of the same elements in each iteration of a loop added up first."""
    result: list[Statement] = []
    for statement in body:
        sums = _sums(statement) if isinstance(statement, For) else []
        if isinstance(statement, For) and sums:
            result += _summed(statement, sums, names)
        elif isinstance(statement, For):
            result.append(replace(statement, body=with_sums(statement.body, names)))
        else:
            result.append(statement)
    return tuple(result)


@legality
def _sums(loop: For) -> list[tuple[For, Store]]:
    """Return the updates in loops over items in a loop whose elements are the same in each of its iterations.

    Lists are short: with a long one a thread that has two already would spill registers.
    """
    found: list[tuple[For, Store]] = []
    if _items(loop) or effects(loop.body).jumps or effects(loop.body).fails:
        return found
    changing = assigned_symbols(loop.body) | {loop.index}
    for inner in _surely_run(loop):
        if not 0 < _items(inner) <= FEW:
            continue
        for store in inner.body:
            if isinstance(store, Store) and _is_updated(store, loop.body):
                reads = read_symbols(store.indices)
                alone = not effects(store.indices).loads and reads & changing == frozenset((inner.index,))
                found += [(inner, store)] if alone else []
    return found


def _surely_run(loop: For) -> list[For]:
    """Return the loops that stand in a loop itself."""
    return [node for node in loop.body if isinstance(node, For)]


def _summed(loop: For, sums: Sequence[tuple[For, Store]], names: Names) -> Iterator[Statement]:
    """Yield a loop with sums in lists, which begin before it and are given after it, if it has an iteration."""
    held: dict[int, Statement] = {}
    after: list[Statement] = []
    for inner, store in sums:
        part = _local(f"{store.tensor.name}_sum", _items(inner), names)
        index = names.symbol(inner.index.name, inner.index.dtype)
        here, there = (build.sub(build.read(each), inner.start) for each in (inner.index, index))
        yield Local(tensor=part, loc=store.loc)
        yield replace(inner, index=index, body=(names.store(part, there, empty_sum(FLOAT32)),))
        total = build.add(names.load(part, here), store.value)
        held[id(store)] = replace(names.store(part, here, total), loc=store.loc)
        places = tuple(substitute(each, {inner.index: build.read(index)}) for each in store.indices)
        given = replace(store, indices=places, value=names.load(part, there), access=next(names.accesses))
        after.append(replace(inner, index=index, body=(given,)))
    yield replace(loop, body=tuple(_with(node, held) for node in loop.body))
    yield If(condition=build.apply("lt", loop.start, loop.stop), then=tuple(after), loc=loop.loc)


def _with(node: Statement, held: dict[int, Statement]) -> Statement:
    if not isinstance(node, For):
        return node
    return replace(node, body=tuple(held.get(id(each), each) for each in node.body))
