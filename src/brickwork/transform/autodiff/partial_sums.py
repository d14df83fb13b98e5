"""Adds what the innermost loops contribute to one element first, where their iterations depend on one another.

    for b in range(B):                             for b in range(B):
        for c in range(C):                             for c in range(C):
            h = 0                                          h, s = 0, 0
            for t in range(T):            ->               for t in range(T):
                h = h * x[b, t] + 1                            h = h * x[b, t] + 1
                g[c] += h                                      s += h
                                                           if 0 <= c < size(g): g[c] += s

Then what is added is one number for each of the iterations around, which may be added in any order. Sums are rounded in
another order than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce

from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Expression, For, If, Read, Statement, Store, Symbol, Tensor
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.records import dataclass
from brickwork.transform.autodiff.slices import Place, accumulations, loads, slice_of
from brickwork.transform.scratch import Names


def partial_sums(block: Block, names: Names) -> Block:
    """Return the block with the contributions of inner loops added first where that is of use."""
    return tuple(_nest(item, names) if isinstance(item, For) else item for item in block)


@dataclass(frozen=True, slots=True)
class _Sum:
    """What a loop adds to one element, in a variable: the element's place, and what was added there."""

    symbol: Symbol
    store: Store
    added: Expression


def _nest(root: For, names: Names) -> For:
    stored = effects(root).stores
    sums: dict[int, list[_Sum]] = {}
    for tensor, updates in accumulations(root).items():
        for place, added in updates:
            loop = _fixing(place)
            if loop is not None and _depends(place, added, loop, stored):
                symbol = Symbol(tensor.name, next(names.symbols), added.dtype)
                sums.setdefault(id(loop), []).append(_Sum(symbol, place.store, added))
    if not sums:
        return root
    return replace(root, body=tuple(_rewritten(root.body, sums, names)))


def _fixing(place: Place) -> For | None:
    """Return the outermost loop in whose iterations an update is of one element, if it is not the nest's outermost."""
    read = read_symbols(place.store.indices)
    outermost, *loops = place.loops
    if outermost.index in read:
        return None
    return next((loop for loop in loops if not read & (assigned_symbols(loop.body) | {loop.index})), None)


def _depends(place: Place, added: Expression, loop: For, stored: frozenset[Tensor]) -> bool:
    """Whether what is added cannot be computed for an iteration of a loop on its own."""
    if loads(added, stored):
        return True
    needs = slice_of(place, read_symbols(added), place.branches, stored)
    return needs is None or any(loop in kept.loops for kept in needs.kept)


def _rewritten(block: Block, sums: Mapping[int, list[_Sum]], names: Names) -> Iterator[Statement]:
    inside = {id(item.store): item for found in sums.values() for item in found}
    for statement in block:
        match statement:
            case For(body=body):
                found = sums.get(id(statement), [])
                for item in found:
                    zero = build.constant(0, item.symbol.dtype)
                    yield Assign(symbol=item.symbol, value=zero, loc=item.store.loc)
                yield replace(statement, body=tuple(_rewritten(body, sums, names)))
                yield from (_given(item, names) for item in found)
            case If(then=then, otherwise=otherwise):
                first, second = (tuple(_rewritten(part, sums, names)) for part in (then, otherwise))
                yield replace(statement, then=first, otherwise=second)
            case Store() if id(statement) in inside:
                item = inside[id(statement)]
                value = build.add(Read(symbol=item.symbol), item.added)
                yield Assign(symbol=item.symbol, value=value, loc=statement.loc)
            case _:
                yield statement


def _given(item: _Sum, names: Names) -> If:
    """Return the update by what a loop has added; without an iteration, the element may be none."""
    tensor, indices = item.store.tensor, item.store.indices
    value = build.add(names.load(tensor, *indices), build.read(item.symbol))
    update = replace(names.store(tensor, *indices, value), loc=item.store.loc)
    conditions = [
        condition
        for axis, index in enumerate(indices)
        for condition in (
            build.apply("le", build.integer(0), index),
            build.apply("lt", index, build.size(tensor, axis)),
        )
    ]
    whole = reduce(lambda one, two: build.apply("logical_and", one, two), conditions)
    return If(condition=whole, then=(update,), loc=item.store.loc)
