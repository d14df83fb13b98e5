"""Where the chunks of a staged factor are: in the tile, in shared memory, and which thread brings them.

A chunk is 16 bytes of neighbours along a row of shared memory: terms of the depth for one row (or column) of the tile,
or rows (or columns) for one term. A thread's chunks have the same place along such rows, which follow one another.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.contractions import Along, computed_from
from brickwork.codegen.builder import Known
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.tile import Side, Tile
from brickwork.codegen.tile_parts import narrow_type, narrowed, parts_of
from brickwork.codegen.words import Word, Words
from brickwork.ir.dtypes import FLOAT32, FLOAT64
from brickwork.ir.nodes import Assign, Expression, For
from brickwork.ir.signature import NARROW_EXTENT
from brickwork.ir.walk import read_symbols
from brickwork.records import dataclass
from brickwork.target.matrix import CHUNK_BYTES, ROW_BYTES

SHARED = "ptr addrspace(3)"
MEMORY = "@bw_tile"
MOST_ROWS = NARROW_EXTENT + (1 << 10)
"""Numbers of rows and columns, of which a narrow tensor has fewer elements: 32 bits are enough to divide them."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a factor's chunks.

    `thread` is the number of this thread, as i32, and `end` where the depth ends for the tile, as i64.
    """

    state: State
    tile: Tile
    side: Side
    thread: str
    end: str

    @property
    def count(self) -> int:
        """Chunks of a stage for each thread."""
        return self.side.size * ROW_BYTES // CHUNK_BYTES // self.tile.threads

    @property
    def step(self) -> int:
        """Rows of shared memory between a thread's chunks."""
        return self.tile.threads // self._chunks_across

    @property
    def _chunks_across(self) -> int:
        """Chunks of all that is laid out along rows of shared memory for one term, or for one row of the tile."""
        return ROW_BYTES // CHUNK_BYTES if self.side.along is Along.DEPTH else self.side.size // self.tile.chunk

    @property
    def first_along(self) -> str:
        """The first row or column, or term of a stage, of this thread's chunks along memory, as i64."""
        words = Words(self.state.writer)
        return words.wide(self._chunk if self.stride > 1 else words.mul(self._chunk, self.tile.chunk))

    @property
    def _chunk(self) -> Word:
        """The place of this thread's chunks along rows of shared memory; neighbouring threads go along memory."""
        words = Words(self.state.writer)
        if self.side.turned:
            return words.div(self.thread, self.step)
        return words.rem(self.thread, self._chunks_across)

    @property
    def _row(self) -> Word:
        """The first row of shared memory of this thread's chunks."""
        words = Words(self.state.writer)
        if self.side.turned:
            return words.rem(self.thread, self.step)
        return words.div(self.thread, self._chunks_across)

    @property
    def stride(self) -> int:
        """How far the terms of a chunk along the depth lie apart."""
        return self._chunks_across if self.side.along is Along.DEPTH and self.tile.spread else 1

    def across(self, number: int) -> str:
        """Return the term of a stage, or the row or column, of a chunk, as i64."""
        words = Words(self.state.writer)
        row = words.add(self._row, number * self.step)
        if self.side.along is Along.SIDE and self.tile.spread:
            chunk = self.tile.chunk
            row = words.add(words.mul(words.rem(row, chunk), self.tile.staged // chunk), words.div(row, chunk))
        return words.wide(row)

    def address(self, slot: Word, number: int, part: int = 0) -> str:
        """Return the address of a part of a chunk in shared memory; `slot` is where the stage begins."""
        words = Words(self.state.writer)
        row, chunk, hop = self._row, self._chunk, number * self.step
        at = words.add(slot, self.side.offset + part * self.side.part_bytes, words.mul(row, ROW_BYTES))
        if self.side.along is Along.SIDE:
            at = words.add(at, words.mul(words.right(chunk, 3), self.tile.staged * ROW_BYTES))
            chunk = words.both(chunk, 7)
        moved = words.xor(chunk, swizzle(words, self.tile, self.side, words.add(row, hop % 8)))
        at = words.add(at, words.left(moved, 4))
        return shared(self.state, words.add(at, hop * ROW_BYTES))

    @property
    def waiting_kind(self) -> str:
        """What computed numbers of a chunk wait as until they are put into shared memory: floats if they have parts."""
        chunk = self.tile.chunk
        narrow = self.side.parts == 1 and self.tile.bytes_each == 2
        wide = "double" if self.tile.dtype is FLOAT64 else "float"
        return f"<{chunk} x {narrow_type(self.tile.dtype) if narrow else wide}>"

    def waiting(self, values: str) -> str:
        """Return computed numbers (floats) as they wait."""
        narrow = self.side.parts == 1 and self.tile.bytes_each == 2
        return narrowed(self.state.writer, values, self.tile.chunk, self.tile.dtype) if narrow else values

    def put(self, slot: Word, number: int, values: str) -> None:
        """Put the numbers of a chunk that waited into shared memory."""
        writer, kind = self.state.writer, "<4 x i32>"
        if self.side.parts > 1:
            found = parts_of(writer, values, self.tile.chunk, self.tile.dtype, self.side.parts)
        else:
            found = [writer.emit(f"bitcast {self.waiting_kind} {values} to {kind}")]
        for part, text in enumerate(found):
            address = self.address(slot, number, part)
            writer.store(kind, text, address, f", align {CHUNK_BYTES}", pointer=SHARED)

    def needed(self, expressions: Sequence[Expression]) -> tuple[Assign, ...]:
        """Return the assignments before the sum that expressions are computed from."""
        return computed_from(self.tile.contraction.before, read_symbols(expressions))

    @property
    def start(self) -> str:
        """The first row or column of the tile, as i64."""
        return ends_of(self.state, self.side.loop)[0]

    @property
    def stop(self) -> str:
        """The end of the rows or columns of the tile that there are, as i64."""
        return ends_of(self.state, self.side.loop)[1]


def swizzle(words: Words, tile: Tile, side: Side, row: Word) -> Word:
    """Return what the places of chunks in a row of shared memory are xored with, so that warps meet in no bank.

    Threads read numbers of 16 bits, and others along the depth, a chunk each in eight rows; else numbers in four rows,
    which are two apart for float64.
    """
    deep = side.along is Along.DEPTH
    match tile.bytes_each:
        case FLOAT32.size if not deep:
            return words.left(words.both(row, 3), 1)
        case FLOAT64.size if deep:  # chunks of two neighbouring rows at once
            return words.both(words.add(words.left(row, 2), words.right(words.both(row, 7), 1)), 7)
        case FLOAT64.size:
            return words.both(row, 6)
        case _:
            return words.both(row, 7)


def ends_of(state: State, loop: For) -> tuple[str, str]:
    """Return the first row or column of a tile, and the end of those that there are, as i64."""
    start, stop = (emit_scalar(state, bound) for bound in (loop.start, loop.stop))
    for text in (start, stop):
        state.writer.learn(text, Known(0, NARROW_EXTENT))
    return start, stop


def numbered(state: State, side: Side, start: str, place: str) -> str:
    """Return the number of a row or column that is so far from the first one of a tile (i64)."""
    number = state.writer.emit(f"add i64 {start}, {place}")
    if len(side.reached) > 1:
        state.writer.learn(number, Known(0, MOST_ROWS))
    return number


def shared(state: State, at: Word) -> str:
    """Return an address in the block's shared memory."""
    state.module.globals[MEMORY] = f"{MEMORY} = external addrspace(3) global [0 x i8], align 1024"
    return state.writer.emit(f"getelementptr i8, {SHARED} {MEMORY}, i32 {at}")
