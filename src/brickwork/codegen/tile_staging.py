"""Staging: the factors of a tile's next terms, on their way into shared memory.

Where a factor is an element as it is laid out in memory, and rows begin at chunks, copies run on while the threads
multiply (`cp.async`); else threads compute the numbers of their chunks, and keep them until the products of the stage
before are on their way. Beyond the rows, the columns or the terms that there are, and where masks do not hold, zeros
are staged, and nothing is read.
"""

from __future__ import annotations

from brickwork.analysis.contractions import Along
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_expression, emit_scalar
from brickwork.codegen.lane_values import Uniform
from brickwork.codegen.memory import element_addresses
from brickwork.codegen.tile import Side, Tile
from brickwork.codegen.tile_places import SHARED, Places
from brickwork.codegen.tile_reads import Reads, reads_of
from brickwork.codegen.words import Word
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Expression, Load
from brickwork.records import dataclass

_GLOBAL = "ptr addrspace(1)"
_COPY = "llvm.nvvm.cp.async.cg.shared.global.16"


@dataclass(frozen=True, slots=True)
class Copier:
    """Copies chunks as they are laid out in memory."""

    places: Places
    element: Load
    ends: tuple[Expression, ...]
    """Where the depth ends in a row, beside where it ends for the tile."""

    def begin(self, slot: Word, terms: State, first: str) -> None:
        """Write what copies the terms from `first` (i64) on; `terms` has the indices of outer sums."""
        writer, places = terms.writer, self.places
        addresses = self._addresses(terms, first)
        deep = writer.emit(f"icmp sle i64 {writer.emit(f'add i64 {first}, {places.tile.staged}')}, {places.end}")
        for bound in self._ends(places.start), self._ends(writer.emit(f"sub i64 {places.stop}, 1")):
            for end in bound:
                more = writer.emit(f"icmp sle i64 {writer.emit(f'add i64 {first}, {places.tile.staged}')}, {end}")
                deep = writer.emit(f"and i1 {deep}, {more}")
        broad = writer.emit(f"icmp sle i64 {writer.emit(f'add i64 {places.start}, {places.side.size}')}, {places.stop}")
        whole, parts, after = (writer.label(stem) for stem in ("whole", "parts", "copied"))
        writer.branch_if(writer.emit(f"and i1 {deep}, {broad}"), whole, parts)
        writer.place(whole)
        for number, address in enumerate(addresses):
            self._copy(slot, number, address, None)
        writer.branch(after)
        writer.place(parts)
        for number, address in enumerate(addresses):
            self._copy(slot, number, address, self._bytes(terms, first, number))
        writer.place(after)

    def end(self, _slot: Word) -> None:
        """Write nothing: copies end by themselves."""

    def _copy(self, slot: Word, number: int, address: str, count: str | None) -> None:
        """Copy a chunk, of which `count` bytes are there; the rest becomes zeros."""
        state = self.places.state
        kinds = (SHARED, _GLOBAL) if count is None else (SHARED, _GLOBAL, "i32")
        suffix = "" if count is None else ".s"
        name = state.module.declare(f"{_COPY}{suffix}", "void", kinds, "convergent nocallback nounwind")
        target = self.places.address(slot, number)
        more = "" if count is None else f", i32 {count}"
        state.writer.effect(f"call void {name}({SHARED} {target}, {_GLOBAL} {address}{more})")

    def _bytes(self, state: State, first: str, number: int) -> str:
        """Return how many bytes of a chunk are there, as i32."""
        writer, places = state.writer, self.places
        along, across = places.first_along, places.across(number)
        if places.side.along is Along.DEPTH:
            ends = (
                (writer.emit(f"add i64 {first}, {along}"), places.end),
                (writer.emit(f"add i64 {places.start}, {across}"), places.stop),
            )
        else:
            ends = (
                (writer.emit(f"add i64 {places.start}, {along}"), places.stop),
                (writer.emit(f"add i64 {first}, {across}"), places.end),
            )
        (begin, stop), (row, last) = ends
        for end in self._ends(row):
            stop = writer.emit(f"call i64 @llvm.smin.i64(i64 {stop}, i64 {end})")
        left = writer.emit(f"call i64 @llvm.smax.i64(i64 {writer.emit(f'sub i64 {stop}, {begin}')}, i64 0)")
        left = writer.emit(f"call i64 @llvm.umin.i64(i64 {left}, i64 {places.tile.chunk})")
        held = writer.emit(f"mul i64 {left}, {places.tile.bytes_each}")
        there = writer.emit(f"icmp slt i64 {row}, {last}")
        return writer.emit(f"trunc i64 {writer.emit(f'select i1 {there}, i64 {held}, i64 0')} to i32")

    def _ends(self, row: str) -> list[str]:
        """Return where the depth ends in a row (i64)."""
        inner = self.places.state.inner()
        inner.values[self.places.side.index] = Uniform(row, INT64)
        return [emit_scalar(inner, bound) for bound in self.ends]

    def _addresses(self, state: State, first: str) -> list[str]:
        """Return the addresses of the chunks in memory: evenly apart, where their rows are."""
        places, writer = self.places, state.writer
        start = _opaque(state, self._address(state, first, 0))
        if places.count == 1:
            return [start]
        if not places.side.is_even(places.tile.depth.index):
            return [start, *(self._address(state, first, number) for number in range(1, places.count))]
        ends = [writer.emit(f"ptrtoint {_GLOBAL} {self._address(state, first, n)} to i64") for n in (1, 0)]
        hop = writer.emit(f"sub i64 {ends[0]}, {ends[1]}")
        hops = (writer.emit(f"mul i64 {hop}, {number}") for number in range(1, places.count))
        return [start, *(writer.emit(f"getelementptr i8, {_GLOBAL} {start}, i64 {far}") for far in hops)]

    def _address(self, state: State, first: str, number: int) -> str:
        """Return the address of a chunk in memory."""
        places, inner, writer = self.places, state.inner(), state.writer
        along, across = places.first_along, places.across(number)
        names = [places.tile.depth.index, places.side.index]
        begins = [first, places.start]
        if places.side.along is Along.SIDE:
            names.reverse()
            begins.reverse()
        for name, begin, more in zip(names, begins, (along, across), strict=True):
            inner.values[name] = Uniform(writer.emit(f"add i64 {begin}, {more}"), INT64)
        for item in places.needed((self.element,)):
            inner.values[item.symbol] = emit_expression(inner, item.value)
        indices = tuple(emit_expression(inner, each) for each in self.element.indices)
        return element_addresses(inner, self.element.tensor, indices)


@dataclass(frozen=True, slots=True)
class Computer:
    """Computes the numbers of chunks, which wait in `chunks` (addresses of registers) from `begin` to `end`."""

    places: Places
    reads: Reads
    chunks: tuple[str, ...]

    def fetch(self, terms: State, first: str) -> None:
        """Write what reads elements early, for the terms from `first` (i64) on; `terms` has other indices."""
        if self.reads.early is not None:
            self.reads.early.begin(reading=True)
            self.reads.chunks(terms, first)

    def begin(self, _slot: Word, terms: State, first: str) -> None:
        """Write what computes these terms, if nothing is read early."""
        if self.reads.early is None:
            self._compute(terms, first)

    def resume(self, terms: State, first: str) -> None:
        """Write what computes these terms of what was read early."""
        if self.reads.early is not None:
            self.reads.early.begin(reading=False)
            self._compute(terms, first)

    def end(self, slot: Word) -> None:
        """Write what puts the chunks into shared memory."""
        for number, place in enumerate(self.chunks):
            self.places.put(slot, number, self.places.state.writer.load(self.places.waiting_kind, place))

    def _compute(self, terms: State, first: str) -> None:
        for place, text in zip(self.chunks, self.reads.chunks(terms, first), strict=True):
            self.places.state.writer.store(self.places.waiting_kind, text, place)


def stager(state: State, tile: Tile, side: Side, thread: str, end: str) -> Copier | Computer:
    """Return what stages a factor."""
    places = Places(state, tile, side, thread, end)
    if side.copied is not None:
        return Copier(places, side.copied, side.factor.ends(tile.depth.index, tile.deep, side.index) or ())
    chunks = tuple(state.writer.alloca(places.waiting_kind) for _ in range(places.count))
    return Computer(places, reads_of(places), chunks)


def _opaque(state: State, text: str) -> str:
    """Return an address as one that LLVM knows nothing of: it keeps one for each chunk otherwise."""
    return state.writer.emit(f'call {_GLOBAL} asm sideeffect "", "=l,0"({_GLOBAL} {text})')
