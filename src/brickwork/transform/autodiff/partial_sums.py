"""Adds what inner loops contribute to one element first, where that stays a scatter or iterations depend on others.

    for b in range(B):                             for b in range(B):
        for c in range(C):                             for c in range(C):
            h = 0                                          h, s = 0, 0
            for t in range(T):            ->               for t in range(T):
                h = h * x[b, t] + 1                            h = h * x[b, t] + 1
                g[c] += h                                      s += h
                                                           if 0 <= c < size(g): g[c] += s

Then what is added is one number for each of the iterations around, which may be added in any order: `g[i, label[i]]` in
a loop over j takes one addition for each i. Sums are rounded in another order than before. A loop may have no
iteration that adds, so that the element may be none, and so may what tells its place: both are asked first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from brickwork.analysis.definitions import definitions_in
from brickwork.analysis.found_places import is_found, known_outside, searched
from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Expression,
    For,
    If,
    Load,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, statements, walk, with_blocks
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.autodiff.slices import Place, accumulations, loads, loads_of, slice_of
from brickwork.transform.scratch import Names


def partial_sums(block: Block, names: Names, *, grid: bool = False) -> Block:
    """Return the block with the contributions of inner loops added first where that is of use, for a `grid` or not."""
    return tuple(_nest(item, names, grid=grid) if isinstance(item, For) else item for item in block)


@dataclass(frozen=True, slots=True)
class _Sum:
    """What a loop adds to one element, in a variable: the element's place, and what was added there."""

    symbol: Symbol
    store: Store
    indices: tuple[Expression, ...]
    added: Expression


def _nest(root: For, names: Names, *, grid: bool) -> For:
    changing = loads_of(root, effects(root).stores)
    told = searched(root)
    sums: dict[int, list[_Sum]] = {}
    updated = accumulations(root)
    around = [place.loops for updates in updated.values() for place, _ in updates]
    for tensor, updates in updated.items():
        scatters = any(is_found(place.store.indices, told) for place, _ in updates)
        for place, added in updates:
            fixed = _fixing(place)
            if fixed is None or _is_once(place, fixed.loop):
                continue
            if grid and not scatters and _is_kept(fixed.loop, around, updated):
                continue
            moves = place.loops[0].index in read_symbols(fixed.indices)
            if scatters or (not moves and _depends(place, added, fixed.loop, changing)):
                symbol = Symbol(tensor.name, next(names.symbols), added.dtype)
                sums.setdefault(id(fixed.loop), []).append(_Sum(symbol, place.store, fixed.indices, added))
    if not sums:
        return root
    return replace(root, body=tuple(_rewritten(root.body, sums, names)))


def _is_once(place: Place, loop: For) -> bool:
    """Whether a branch leads to an update in one iteration of a loop alone: then there is nothing to add first."""
    counted = {loop.index}
    for node in statements(loop):
        if isinstance(node, Assign) and effects(node.value).plain and read_symbols(node.value) & counted:
            counted.add(node.symbol)
    first = next(number for number, step in enumerate(place.steps) if step.into is loop)
    inside = [step.into for step in place.steps[first:] if step.then]
    return any(_equates(node.condition, counted) for node in inside if isinstance(node, If))


def _equates(condition: Expression, counted: set[Symbol]) -> bool:
    """Whether a condition asks for one value of a variable that counts iterations."""
    match condition:
        case Apply(operator=operator, operands=operands) if operator.name == "logical_and":
            return any(_equates(each, counted) for each in operands)
        case Apply(operator=operator, operands=operands) if operator.name == "eq":
            return bool(read_symbols(operands) & counted) and not effects(condition).loads
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A loop in whose iterations an update is of one element, and where that is, in terms of what is known outside."""

    loop: For
    indices: tuple[Expression, ...]


@legality
def _fixing(place: Place) -> _Fixed | None:
    """Return the outermost loop in whose iterations an update is of one element, if it is not the nest's outermost."""
    for depth, step in enumerate(place.steps[1:], 1):
        if isinstance(step.into, For):
            indices = _outside(step.into, place, depth)
            if indices is not None:
                return _Fixed(step.into, indices)
    return None


@legality
def _outside(loop: For, place: Place, depth: int) -> tuple[Expression, ...] | None:
    """Return the element of an update in terms of what is known outside of the loop that a step leads into."""
    known = definitions_in((loop,))
    blocks = [*(step.before for step in place.steps[depth + 1 :]), place.before]
    for step, before in zip(place.steps[depth:], blocks, strict=True):
        known = known.inside(step.into)
        for statement in before:
            known = known.after(statement)
    return known_outside(place.store.indices, known)


def _depends(place: Place, added: Expression, loop: For, changing: frozenset[int]) -> bool:
    """Whether what is added cannot be computed for an iteration of a loop on its own."""
    if loads(added, changing):
        return True
    needs = slice_of(place, read_symbols(added), place.branches, changing)
    return needs is None or any(loop in kept.loops for kept in needs.kept)


def _is_kept(loop: For, around: Sequence[Sequence[For]], updated: Collection[Tensor]) -> bool:
    """Whether iterations of a loop depend on no other, and what they add is kept for updates of loops inside.

    So it is for the weights of `f(x * w + b)`: each iteration sums for itself, and what is kept is added for `b`, too.
    """
    inside = any(loop in loops[:-1] for loops in around)
    carried = live_before(loop.body, NONE) & assigned_symbols(loop.body)
    found = effects(loop.body)
    return inside and not carried and not (found.loads & found.stores).difference(updated)


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
            case If():
                yield with_blocks(statement, lambda part: _rewritten(part, sums, names))
            case Store() if id(statement) in inside:
                item = inside[id(statement)]
                value = build.add(Read(symbol=item.symbol), item.added)
                yield Assign(symbol=item.symbol, value=value, loc=statement.loc)
            case _:
                yield statement


def _given(item: _Sum, names: Names) -> If:
    """Return the update by what a loop has added; without an iteration, the element may be none."""
    tensor, at = item.store.tensor, item.indices
    loads = [node for node in walk(at) if isinstance(node, Load)]
    given: list[Statement] = []
    if loads:
        found = [names.symbol(f"{tensor.name}_at", INT64) for _ in at]
        given = [Assign(symbol=each, value=index) for each, index in zip(found, at, strict=True)]
        at = tuple(map(build.read, found))
    value = build.add(names.load(tensor, *at), build.read(item.symbol))
    update = replace(names.store(tensor, *at, value), loc=item.store.loc)
    result = If(condition=_inside(tensor, at), then=(update,), loc=item.store.loc)
    body: Block = (*given, result)
    # Those of a place that is an element itself stand around it.
    for condition in reversed(dict.fromkeys(_inside(load.tensor, load.indices) for load in reversed(loads))):
        result = If(condition=condition, then=body, loc=item.store.loc)
        body = (result,)
    return rewrite(result, lambda node: replace(node, access=next(names.accesses)) if isinstance(node, Load) else node)


def _inside(tensor: Tensor, indices: Sequence[Expression]) -> Expression:
    """Return whether an element is one of a tensor's."""
    conditions = [
        condition
        for axis, index in enumerate(indices)
        for condition in (
            build.apply("le", build.integer(0), index),
            build.apply("lt", index, build.size(tensor, axis)),
        )
    ]
    return reduce(lambda one, two: build.apply("logical_and", one, two), conditions)
