"""Steps of a thread through a nest of loops that a block shares out, counted level by level, as an odometer does.

    for n in range(N): for y in range(H): for z in range(W):      step t, t + T, t + 2 T, ... of the N * H * W
        z += T % W;  y += T // W % H + carry;  n += T // (W * H) + carry

The divisions are made once; a step costs an addition and a comparison a level. Invariant: at each step the places of
all levels but the outermost are inside of their loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.codegen.builder import ANYTHING, FunctionWriter, Known
from brickwork.codegen.division import long_quotient
from brickwork.codegen.emitter_state import State, Team
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.lane_values import Uniform
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import For
from brickwork.records import dataclass

Places = tuple[str, ...]
"""A step's place in each loop, in steps from its start, as i64; outermost first."""


@dataclass(frozen=True, slots=True)
class Odometer:
    """What counts the steps of a thread in a nest: `width` iterations of the innermost loop are a step."""

    writer: FunctionWriter
    levels: tuple[For, ...]
    starts: Places
    stops: Places
    counts: Places
    """Steps along each loop."""
    strides: Places
    """Places between two steps of a thread."""
    slots: Places
    ahead: int
    """Most places that a thread looks ahead: each of its steps is at most as many as there are threads."""

    @classmethod
    def begin(cls, state: State, team: Team, levels: tuple[For, ...], steps: int) -> Odometer:
        """Write what a thread computes before its first step; so many `steps` are asked for at once at most."""
        writer = state.writer
        starts = tuple(emit_scalar(state, loop.start) for loop in levels)
        stops = tuple(emit_scalar(state, loop.stop) for loop in levels)
        counts = _none_if_empty(writer, [_count(writer, *each) for each in zip(levels, starts, stops, strict=True)])
        slots = tuple(writer.alloca("i64") for _ in levels)
        made = cls(
            writer, levels, starts, stops, counts, _places(writer, team.size, counts), slots, team.most * (steps + 1)
        )
        made.write(_places(writer, team.thread, counts))
        return made

    def write(self, places: Places) -> None:
        """Keep the places of the thread's next step."""
        for slot, place in zip(self.slots, places, strict=True):
            self.writer.store("i64", place, slot)

    def read(self) -> Places:
        """Return the places of the thread's next step."""
        places = tuple(self.writer.load("i64", slot) for slot in self.slots)
        self._learn(places)
        return places

    def after(self, places: Places) -> Places:
        """Return the places one step later."""
        emit, found, carry = self.writer.emit, list[str](), ""
        for level in reversed(range(len(places))):
            place = emit(f"add i64 {places[level]}, {self.strides[level]}")
            if carry:
                place = emit(f"add i64 {place}, {carry}")
            if level:
                beyond = emit(f"icmp sge i64 {place}, {self.counts[level]}")
                carry = emit(f"zext i1 {beyond} to i64")
                less = emit(f"sub i64 {place}, {self.counts[level]}")
                place = emit(f"select i1 {beyond}, i64 {less}, i64 {place}")
            found.append(place)
        later = tuple(reversed(found))
        self._learn(later)
        return later

    def is_inside(self, places: Places) -> str:
        """Return whether there is such a step."""
        return self.writer.emit(f"icmp slt i64 {places[0]}, {self.counts[0]}")

    def index(self, level: int, places: Places) -> str:
        """Return the index of a loop at a step; of the innermost one that of the first lane."""
        writer, loop, place = self.writer, self.levels[level], places[level]
        if loop.width > 1:
            place = writer.emit(f"mul i64 {place}, {loop.width}")
        index = place if self.starts[level] == "0" else writer.emit(f"add i64 {self.starts[level]}, {place}")
        low, high = writer.known(self.starts[level]), writer.known(self.stops[level])
        writer.learn(index, Known(low.low, max(high.high - 1, low.low), writer.known(index).multiple))
        return index

    def at(self, state: State, places: Places) -> State:
        """Return the state in which the loops around the innermost one are at a step."""
        inner = state.inner()
        for level, loop in enumerate(self.levels[:-1]):
            inner.values[loop.index] = Uniform(self.index(level, places), INT64)
        return inner

    def _learn(self, places: Sequence[str]) -> None:
        for level, (place, count) in enumerate(zip(places, self.counts, strict=True)):
            high = self.writer.known(count).high
            beyond = min(high + self.ahead, ANYTHING.high)
            self.writer.learn(place, Known(0, max(high - 1, 0) if level else beyond))


def _count(writer: FunctionWriter, loop: For, start: str, stop: str) -> str:
    length = writer.emit(f"sub i64 {stop}, {start}")
    if writer.known(length).low < 0:
        length = writer.emit(f"call i64 @llvm.smax.i64(i64 {length}, i64 0)")
    if loop.width == 1:
        return length
    return writer.emit(f"udiv i64 {writer.emit(f'add i64 {length}, {loop.width - 1}')}, {loop.width}")


def _none_if_empty(writer: FunctionWriter, counts: list[str]) -> Places:
    """Return the steps along loops, of which the outermost has none where one inside has none."""
    for count in counts[1:]:
        empty = writer.emit(f"icmp eq i64 {count}, 0")
        high = writer.known(counts[0]).high
        counts[0] = writer.emit(f"select i1 {empty}, i64 0, i64 {counts[0]}")
        writer.learn(counts[0], Known(0, high))
    return tuple(counts)


def _places(writer: FunctionWriter, steps: str, counts: Places) -> Places:
    """Return the place in each loop that so many steps lead to; it says nothing where a loop is empty."""
    left, found = steps, list[str]()
    for count in reversed(counts[1:]):
        divisor = writer.emit(f"call i64 @llvm.smax.i64(i64 {count}, i64 1)")
        quotient = long_quotient(writer, left, divisor)
        found.append(writer.emit(f"sub i64 {left}, {writer.emit(f'mul i64 {quotient}, {divisor}')}"))
        left = quotient
    return (left, *reversed(found))
