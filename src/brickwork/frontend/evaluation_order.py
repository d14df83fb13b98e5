"""Operands that have been evaluated keep their values, whatever the program does before they are used.

    p + (p := 3)              the old p and 3
    for v in (p, q): p = 0    both items are those of the tuple as it was made
    x[p % 4][h(x)]            the row that p named before `h` ran

An operand is an expression that is written where it is used. Invariant: whoever lowers something between an operand
and its use settles it before, or asks `kept` afterwards.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from brickwork.diagnostics.location import Location
from brickwork.frontend.indexing import load, numeric
from brickwork.frontend.lowering_state import Key, State
from brickwork.frontend.row_arrays import (
    demand_array,
    is_array_there,
    is_row_array,
    kept_row,
    owners,
    part_of,
    whole_row,
)
from brickwork.frontend.rules import SharedRowError, unsupported
from brickwork.frontend.typing import Operand, Record, Row, Value, View, numbers_of, with_parts
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Expression, Tensor


def settle(state: State, found: Operand, loc: Location) -> Operand:
    """Return the operand with its values as they are now; elements are read at `loc`."""
    match found:
        case Value():
            return replace(found, expression=state.fix(found.expression))
        case View() if found.is_element:
            return settle(state, load(state, found, loc), loc)
        case Row():
            return _held(state, found, loc)
        case View() if found.rank and is_row_array(state, found.tensor):
            return _held(state, found, loc)
        case View():
            return View(found.tensor, tuple(state.fix(item, "index") for item in found.indices), found.indexed)
        case _:
            return with_parts(found, lambda item: settle(state, item, loc))


def _held(state: State, found: Row | View, loc: Location) -> Operand:
    """Return a row that may be read later: in an array, where what it is made of changes until then."""
    key = array_key(state, loc)
    row = whole_row(found) if isinstance(found, View) else found
    if key in state.rows or row.dear:
        kept = kept_row(state, found, key, "row", loc, named=True, roomy=True)
        if (row.view or row in state.part_of) and not is_array_there(state, row):
            state.shared |= {kept.tensor, *owners(state, row)}
        return part_of(state, kept, row.sizes, loc)
    state.held.append((state.block, len(state.block), row, key))
    return found


def array_key(state: State, loc: Location) -> Key:
    """Return what tells a row of a place of the source from others of it."""
    place = state.frames[-1].path if state.frames else (), f"row at {loc.line}:{loc.column}"
    state.kept_at[place] += 1
    return place[0], f"{place[1]}, {state.kept_at[place]}"


def in_array(state: State, row: Row, loc: Location) -> Row:
    """Return a row that an array holds, computed now."""
    return part_of(state, kept_row(state, row, array_key(state, loc), "row", loc, roomy=True), row.sizes, loc)


def settled_number(state: State, found: Operand, loc: Location) -> Value | Record:
    """Return a number, which may be complex, with its value as it is now."""
    return numeric(state, settle(state, numeric(state, found, loc), loc), loc)


def keep_stale(state: State, first: int = 0) -> None:
    """Keep rows with a name, from the first on that is given, whose tensors are stored into while the name is known.

    A row is a formula: it would read what is stored. Its name is known up to the end of the block.
    """
    for block, position, row, key in state.held[first:]:
        found = _overwritten(state, row, effects(block[position:]).stores)
        part = row in state.part_of and found in state.kept_arrays
        if found is not None and (is_row_array(state, found) or part or not row.view):
            demand_array(state, key)
    del state.held[first:]


def refuse_shared(state: State) -> None:
    """Refuse arrays that are changed in place where Python would have another name see it."""
    for tensor, loc in state.changed_in_place.items():
        if tensor in state.shared:
            message = f"`{tensor.name}` is changed in place, and another name stands for the same items"
            advice = "copy them where it gets them, `h = x[i].clone()`, or make a new row"
            raise SharedRowError(unsupported(message, loc, advice).diagnostics)


def _overwritten(state: State, row: Row, stored: Collection[Tensor]) -> Tensor | None:
    """Return a tensor that a row reads and that stores may change; lists are nobody else's."""
    shared = state.may_alias and not state.lists.keys() >= {*stored}
    sources = (slab.tensor for slab in row.reads)
    return next((tensor for tensor in sources if tensor in stored or (shared and tensor not in state.lists)), None)


def kept(state: State, item: Operand, position: int, loc: Location) -> Operand:
    """Return an operand with the values that it had at a position of the block, where they may have changed since."""
    match item:
        case View() if item.is_element:
            element = load(state, item, loc)
            same = not any(_is_stale(state, each.expression, position) for each in numbers_of(element))
            return item if same else kept(state, element, position, loc)
        case View():
            return kept_place(state, item, position)
        case Value():
            return kept_value(state, item, position)
        case Row():
            if _overwritten(state, item, effects(state.block[position:]).stores) is not None:
                message = "what is beside a part of a tensor stores into tensors"
                raise unsupported(message, loc, "give that a line of its own before")
            return item
        case _:
            return with_parts(item, lambda one: kept(state, one, position, loc))


def kept_value(state: State, item: Value, position: int) -> Value:
    """Return a number as it was at a position of the block."""
    return replace(item, expression=_kept(state, item.expression, position, "value"))


def kept_place(state: State, view: View, position: int) -> View:
    """Return the part of a tensor that a view was at a position of the block."""
    return View(view.tensor, tuple(_kept(state, item, position, "index") for item in view.indices), view.indexed)


def _kept(state: State, expression: Expression, position: int, name: str) -> Expression:
    return state.pin(expression, name, position) if _is_stale(state, expression, position) else expression


def _is_stale(state: State, expression: Expression, position: int) -> bool:
    """Whether what an expression reads has been assigned or stored since a position of the block."""
    since, now = effects(state.block[position:]), effects(expression)
    return bool(now.reads & since.assigns or (now.loads and since.stores))
