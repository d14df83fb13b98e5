"""Loads and stores of lanes one by one, for targets whose lanes are iterations of one thread.

There a mask is a branch for each lane, which keeps memory that is not theirs untouched.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.codegen import lanes
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import Wrapped
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """An address, and the bytes of which it is known to be a multiple."""

    address: str
    alignment: int


def load_lanes(state: State, kind: str, places: Sequence[Place], mask: str | None, note: str, pointer: str) -> str:
    """Return the elements at the lanes' places; lanes out of `mask` take zeros."""
    writer, width = state.writer, state.width
    whole, result, active = f"<{width} x {kind}>", "zeroinitializer", lanes.known_lanes(mask, width)
    for lane, place in enumerate(places):
        if active is not None and not active[lane]:
            continue
        if mask is None or active is not None:
            item = writer.load(kind, place.address, _aligned(place, note), pointer=pointer)
        else:
            before = writer.emit(f"extractelement {whole} zeroinitializer, i64 {lane}")
            item = _load_if(state, kind, place, (mask, lane), before, note, pointer)
        result = writer.emit(f"insertelement {whole} {result}, {kind} {item}, i64 {lane}")
    return result


def _aligned(place: Place, note: str) -> str:
    return f", align {place.alignment}{note}"


def _load_if(state: State, kind: str, place: Place, flag: tuple[str, int], before: str, note: str, pointer: str) -> str:
    writer, start = state.writer, state.writer.block
    active, after = writer.label("active"), writer.label("after")
    condition = writer.emit(f"extractelement <{state.width} x i1> {flag[0]}, i64 {flag[1]}")
    writer.branch_if(condition, active, after)
    writer.place(active)
    item = writer.load(kind, place.address, _aligned(place, note), pointer=pointer)
    writer.place(after)
    return writer.emit(f"phi {kind} [{before}, %{start}], [{item}, %{active}]")


def store_lanes(
    state: State, kind: str, text: str, places: Sequence[Place], mask: str | None, note: str, pointer: str
) -> None:
    """Store the lanes of a vector at their places, in order."""
    writer, width, active = state.writer, state.width, lanes.known_lanes(mask, state.width)
    for lane, place in enumerate(places):
        if active is not None and not active[lane]:
            continue
        item = writer.emit(f"extractelement <{width} x {kind}> {text}, i64 {lane}")
        if mask is None or active is not None:
            writer.store(kind, item, place.address, _aligned(place, note), pointer=pointer)
            continue
        with writer.when(writer.emit(f"extractelement <{width} x i1> {mask}, i64 {lane}")):
            writer.store(kind, item, place.address, _aligned(place, note), pointer=pointer)


def wrapped_places(state: State, offset: Wrapped) -> str:
    """Return the offsets of lanes that wrap at most once, as a vector of i64."""
    writer, width = state.writer, state.width
    result = "poison"
    for lane in range(width):
        place = writer.emit(f"add i64 {offset.base}, {offset.stride * lane}")
        past = writer.emit(f"icmp sge i32 {lane}, {offset.wraps.distance}")
        beyond = writer.emit(f"add i64 {place}, {offset.jump}")
        place = writer.emit(f"select i1 {past}, i64 {beyond}, i64 {place}")
        result = writer.emit(f"insertelement <{width} x i64> {result}, i64 {place}, i64 {lane}")
    return result


def wraps_once(state: State, offset: Wrapped) -> str:
    """Return whether no lane wraps twice, as i1."""
    return state.writer.emit(f"icmp sge i32 {offset.wraps.period}, {state.width - 1}")


def wrapped_offsets(state: State, offset: Wrapped) -> str:
    """Return the offsets of lanes that wrap, as a vector of i64."""
    writer, kind = state.writer, f"<{state.width} x i64>"
    once, often, after = writer.label("once"), writer.label("often"), writer.label("placed")
    writer.branch_if(wraps_once(state, offset), once, often)
    writer.place(once)
    near = wrapped_places(state, offset)
    writer.branch(after)
    writer.place(often)
    far, last = lanes.vector(state, offset), writer.block
    writer.place(after)
    return writer.emit(f"phi {kind} [{near}, %{once}], [{far}, %{last}]")
