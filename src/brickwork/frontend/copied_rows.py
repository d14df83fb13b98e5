"""Arrays that hold a row which Python would share with a tensor: refused where one is read after that has changed.

    r = y[0]                          in an array, as `r` becomes another row in the loop
    for k in range(n): r = y[k]
    y[0, 0] = 9.0
    out[0] = r[0]                     Python sees 9.0 here, the array does not: refused

The statements are followed in order, loops until nothing new is found, whichever helper or branch they came from. An
array that is filled again is a copy of what it is filled with then. Invariant: no array is read that may be a copy of
a row which may have been stored into since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from brickwork.diagnostics.location import Location
from brickwork.frontend.lowering_state import Copied, State, describe
from brickwork.frontend.row_arrays import is_all, whole_row
from brickwork.frontend.rules import SharedRowError, unsupported
from brickwork.frontend.typing import Along, Row, View
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Break,
    Continue,
    Expression,
    For,
    If,
    Load,
    Node,
    Read,
    Rebind,
    Statement,
    Store,
    Tensor,
    While,
)
from brickwork.ir.walk import EXPRESSIONS, children, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class _Copy:
    """What an array is a copy of: `row`, by the statement at `loc`.

    `stale`: it may have been stored into since. `whole`: the array has the items of `row`, each at its own place.
    """

    row: Row
    loc: Location
    whole: bool = True
    stale: bool = False

    @property
    def along(self) -> tuple[Along | None, ...]:
        """How it runs along each axis of the tensor."""
        return tuple(axis if isinstance(axis, Along) else None for axis in self.row.reads[0].axes)


_ADVICE = "copy it, `h = x[i].clone()`, or store into another tensor"

Copies: TypeAlias = dict[Tensor, dict[Tensor, _Copy]]
"""Of each array the tensors with which Python would share its items."""


def refuse_stale_copies(state: State, block: Sequence[Statement]) -> None:
    """Refuse a program that reads an array after what Python would share with it has been stored into."""
    if any(each.source is not None for each in state.copied.values()):
        _Walk(state, []).block(block, {})


@dataclass(slots=True)
class _Walk:
    """`exits`: what is known at the `break`s and `continue`s of each loop around; `filling`: what the loop fills."""

    state: State
    exits: list[list[Copies]]
    filling: Tensor | None = None

    def block(self, block: Iterable[Statement], known: Copies) -> Copies:
        """Return what is known after some statements."""
        for statement in block:
            known = self.statement(statement, known)
        return known

    def statement(self, statement: Statement, known: Copies) -> Copies:
        """Return what is known after a statement; refuse it if it reads what Python would see changed."""
        if not isinstance(statement, While):
            self.reads([part for part in children(statement) if isinstance(part, EXPRESSIONS)], known)
        match statement:
            case For(index=index) if index in self.state.copied:
                copied = self.state.copied[index]
                _Walk(self.state, [], filling=copied.array).loop(None, statement.body, known)
                return filled(self.state, copied, known)
            case For() if (store := _item_by_item(self.state, statement, known)) is not None:
                return _joined(known, self.statement(store, known))
            case For():
                return self.loop(None, statement.body, known)
            case While():
                return self.loop(statement, statement.body, known)
            case If():
                return _joined(self.block(statement.then, known), self.block(statement.otherwise, known))
            case Break() | Continue():
                self.exits[-1].append(known)
                return known
            case Rebind(targets=targets, sources=sources):
                moved = {target: known.get(source, {}) for target, source in zip(targets, sources, strict=True)}
                return self.changed({**known, **moved}, targets)
            case Store(tensor=tensor) if tensor != self.filling:
                return self.changed(known, (tensor,))
            case _:
                return known

    def loop(self, head: While | None, body: Sequence[Statement], known: Copies) -> Copies:
        """Return what is known after a loop, of however many iterations."""
        while True:
            self.exits.append([])
            begun = known
            if head is not None:
                begun = self.block(head.prelude, known)
                self.reads((head.condition,), begun)
            after = _joined(begun, self.block(body, begun))
            for each in self.exits.pop():
                after = _joined(after, each)
            if (joined := _joined(known, after)) == known:
                return known
            known = joined

    def reads(self, expressions: Sequence[Node], known: Copies) -> None:
        """Refuse expressions that read an array which is no longer what Python would see."""
        for tensor in effects(expressions).loads:
            for owner, copy in known.get(tensor, {}).items():
                if copy.stale:
                    message = f"{describe(copy.row)}, is kept while `{owner.name}`, which it is made of, is stored into"
                    if owner in self.state.kept_arrays:
                        message = f"`{owner.name}` is changed in place, and another name stands for the same items"
                    raise SharedRowError(unsupported(message, copy.loc, _ADVICE).diagnostics)

    @hazard
    def changed(self, known: Copies, tensors: Sequence[Tensor]) -> Copies:
        """Return what is known after tensors are stored into, which other arguments may share memory with."""
        own = self.state.lists.keys() | self.state.kept_arrays
        stored = {tensor for tensor in tensors if tensor not in self.state.lists}
        for tensor in stored & self.state.kept_arrays:
            for owner, copy in known.get(tensor, {}).items():
                if owner not in own:
                    message = f"`{tensor.name}` is changed in place, and is a part of `{owner.name}`"
                    raise SharedRowError(unsupported(message, copy.loc, _ADVICE).diagnostics)
        shared = self.state.may_alias and not stored <= own
        return {
            array: {
                owner: replace(copy, stale=copy.stale or owner in stored or (shared and owner not in own))
                for owner, copy in copies.items()
            }
            for array, copies in known.items()
        }


@hazard
def filled(state: State, copied: Copied, known: Copies) -> Copies:
    """Return what is known after an array has been filled.

    It stands for another row from here on: what has been stored into is known all the same, of the others nothing.
    """
    source, array, found = copied.source, copied.array, dict[Tensor, _Copy]()
    if copied.adds:
        there = known.get(array, {})
        known = filled(state, replace(copied, adds=False), known)
        return {**known, array: _either(there, known[array])}
    known = {
        each: {owner: copy for owner, copy in copies.items() if owner is not array or copy.stale}
        for each, copies in known.items()
    }
    if source is None or source.reads[0].tensor == array:
        return {**known, array: found}
    slab = source.reads[0]
    if slab.tensor not in state.kept_arrays:
        return {**known, array: {slab.tensor: _Copy(source, copied.loc, whole=not slab.anywhere)}}
    before, whole = known.get(slab.tensor, {}), is_all(slab) and not slab.anywhere
    found = {owner: replace(copy, whole=copy.whole and whole) for owner, copy in before.items() if owner is not array}
    found[slab.tensor] = _Copy(source, copied.loc, whole=whole)
    own = _Copy(whole_row(View(array)), copied.loc, whole=whole)
    names = {owner: {**known.get(owner, {}), array: own} for owner in found if owner in state.kept_arrays}
    return {**known, **names, array: found}


@legality
def _item_by_item(state: State, loop: For, known: Copies) -> Store | None:
    """Return the store of a nest that stores formulas of a row's items, each where the row has it, if anywhere there.

    Each iteration reads its item before it stores there, and none that another one stores.
    """
    indices, body = (Read(symbol=loop.index),), loop.body
    while len(body) == 1 and isinstance(inner := body[0], For) and inner.index not in state.copied:
        indices, body = (*indices, Read(symbol=inner.index)), inner.body
    if len(body) != 1 or not isinstance(store := body[0], Store):
        return None
    for load in (node for node in walk(store) if isinstance(node, Load)):
        copy = known.get(load.tensor, {}).get(store.tensor)
        if copy is not None and not (load.indices == indices and _is_place(copy, store, indices)):
            return None
    return store


@legality
def _is_place(copy: _Copy, store: Store, indices: Sequence[Expression]) -> bool:
    """Return whether a store is at the place of an item of a row along all axes that it runs along."""
    pairs = [(axis, given) for axis, given in zip(copy.along, store.indices, strict=True) if axis is not None]
    return copy.whole and all(axis.place(own) == given for own, (axis, given) in zip(indices, pairs, strict=False))


def _joined(one: Copies, other: Copies) -> Copies:
    """Return what is known where two ways meet."""
    return {array: _either(one.get(array, {}), other.get(array, {})) for array in {**one, **other}}


def _either(one: dict[Tensor, _Copy], other: dict[Tensor, _Copy]) -> dict[Tensor, _Copy]:
    found = {**other, **one}
    for owner in one.keys() & other.keys():
        left, right = one[owner], other[owner]
        whole = left.whole and right.whole and left.along == right.along
        found[owner] = replace(left, stale=left.stale or right.stale, whole=whole)
    return found
