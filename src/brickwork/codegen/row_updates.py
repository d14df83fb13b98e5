"""Additions of a few items to elements, which the threads of a warp make together (`transform/row_updates.py`).

    for j in range(32): atomic r[b, t, j] += part[j]       (the same elements for all threads of the warp)

After 31 exchanges each thread has the sum of one item, and adds it to its element.
"""

from __future__ import annotations

from brickwork.codegen.atomics import add_float, emit_update
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_all, emit_expression
from brickwork.codegen.lane_values import memory_type
from brickwork.codegen.lanes import vector
from brickwork.codegen.memory import element_addresses
from brickwork.codegen.shuffles import branch_if_together, lane_number, scattered_sum
from brickwork.codegen.variables import may_vary
from brickwork.ir.nodes import Constant, Expression, For, Store
from brickwork.target.target import WARP
from brickwork.transform.row_updates import row_update


def is_row(state: State, loop: For) -> bool:
    """Whether a loop adds items to elements that are the same for neighbouring threads."""
    store = row_update(loop)
    if store is None or state.width > 1 or state.neighbours is None:
        return False
    return not any(may_vary(index, state.neighbours) for index in store.indices)


def emit_row(state: State, loop: For) -> None:
    """Emit such a loop."""
    store = row_update(loop)
    if store is None:
        raise TypeError("only rows of items are added together")
    writer, emit = state.writer, state.writer.emit
    count, operator, kind = _end(loop.stop) - _end(loop.start), store.combine, memory_type(store.tensor.type.dtype)
    same, alone, added = (writer.label(stem) for stem in ("same", "alone", "added"))
    first = _end(loop.start)
    items = range(first, first + count)
    branch_if_together(state, _address(state, loop, store, str(first)), same, alone)
    writer.place(same)
    values = [vector(state, emit_expression(state.at(loop, str(item)), store.value)) for item in items]
    lane = lane_number(state)
    total = scattered_sum(state, kind, values, lane)
    item = emit(f"zext i32 {emit(f'and i32 {lane}, {count - 1}')} to i64")
    item = emit(f"add i64 {item}, {first}")
    if count == WARP:
        add_float(state, store.tensor.type.dtype, _address(state, loop, store, item), total)
    else:
        with writer.when(emit(f"icmp ult i32 {lane}, {count}")):
            add_float(state, store.tensor.type.dtype, _address(state, loop, store, item), total)
    writer.branch(added)
    writer.place(alone)
    for number in items:
        at = state.at(loop, str(number))
        indices, value = emit_all(at, store.indices), emit_expression(at, store.value)
        if operator is not None:
            emit_update(at, store.tensor, indices, value, operator, together=False)
    writer.branch(added)
    writer.place(added)


def _end(end: Expression) -> int:
    if not isinstance(end, Constant):
        raise TypeError("a row has literal ends")
    return int(end.value)


def _address(state: State, loop: For, store: Store, item: str) -> str:
    at = state.at(loop, item)
    return element_addresses(at, store.tensor, emit_all(at, store.indices))
