"""The box of elements that windows of a tile read, kept in shared memory for all steps of the loops that move them.

A place in the box is a cell. Words of the terms of a cell lie `CELLS` and a few cells apart, and cells next to one
another: neither threads that fill neighbouring cells nor fragments, which are rows of neighbouring cells, meet in a
bank. A box is filled when the first stage of its terms begins; masks of borders are zeros in it.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.contractions import Factor
from brickwork.analysis.windows import Window, WindowAxis
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_expression, emit_scalar
from brickwork.codegen.lane_values import Strided, Uniform
from brickwork.codegen.tile_places import SHARED, Places, shared
from brickwork.codegen.tile_reads import Reads, cell_reads, first_bits
from brickwork.codegen.words import Word, Words
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Apply, Expression, Symbol
from brickwork.records import dataclass
from brickwork.target.matrix import CELL_PITCH, CHUNK_BYTES, READ_TOGETHER, ROW_BYTES


@dataclass(frozen=True, slots=True)
class Box:
    """The box of a tile: its first places (i64) and the cells between neighbours along each axis, and all cells (i32).

    `ranges` has start and stop of each moving loop (i64); `moved` is the address of how many cells the stage that is
    multiplied lies from the first.
    """

    places: Places
    window: Window
    ranges: dict[Symbol, tuple[str, str]]
    rows: dict[Symbol, str]
    lows: tuple[str, ...]
    pitches: tuple[Word, ...]
    cells: str
    moved: str

    @property
    def state(self) -> State:
        """The state of the tile."""
        return self.places.state

    def fill(self, first: str) -> None:
        """Write what fills the box with the terms from `first` (i64) on."""
        writer, tile = self.state.writer, self.places.tile
        words = Words(writer)
        turns = words.div(words.add(self.cells, tile.threads - 1), tile.threads)
        with writer.count("0", words.wide(turns)) as turn:
            cell = words.add(self.places.thread, words.mul(writer.emit(f"trunc i64 {turn} to i32"), tile.threads))
            with writer.when(writer.emit(f"icmp ult i32 {cell}, {self.cells}")):
                self._fill(str(cell), first)

    def _fill(self, cell: str, first: str) -> None:
        """Put all terms of a cell into shared memory."""
        writer, tile, words = self.state.writer, self.places.tile, Words(self.state.writer)
        inner, rest = self.state.inner(), cell
        for axis, low, pitch in zip(self.window.axes, self.lows, self.pitches, strict=True):
            along = rest if pitch == 1 else writer.emit(f"udiv i32 {rest}, {pitch}")
            rest = writer.emit(f"sub i32 {rest}, {writer.emit(f'mul i32 {along}, {pitch}')}")
            place = writer.emit(f"add i64 {low}, {words.wide(along)}")
            inner.values[axis.place] = Uniform(place, INT64)
        reads = cell_reads(self.places, inner)
        place = shared(self.state, words.add(words.mul(cell, FLOAT32.size), tile.window_offset))
        with writer.count("0", str(ROW_BYTES // CHUNK_BYTES // READ_TOGETHER)) as turn:
            begin = writer.emit(f"mul i64 {turn}, {READ_TOGETHER}")
            for number in range(READ_TOGETHER):
                chunk = writer.emit(f"add i64 {begin}, {number}")
                term = writer.emit(f"add i64 {first}, {writer.emit(f'mul i64 {chunk}, {tile.chunk}')}")
                far = writer.emit(f"mul i64 {chunk}, {CHUNK_BYTES * CELL_PITCH}")
                self._put(reads, term, writer.emit(f"getelementptr i8, {SHARED} {place}, i64 {far}"))

    def _put(self, reads: Reads, term: str, place: str) -> None:
        """Put a chunk of terms of a cell into shared memory."""
        writer, tile = self.state.writer, self.places.tile
        bits = first_bits(self.state, term, self.places.end, tile.chunk)
        text, bits, zeros = reads.numbers(reads.around[0], Strided(term, 1), 0, bits)
        if not zeros:
            (text,) = reads.kept(self.state, [(text, bits)])
        chunk = writer.emit(f"bitcast {self.places.waiting_kind} {text} to <4 x i32>")
        for item in range(CHUNK_BYTES // FLOAT32.size):
            word = writer.emit(f"extractelement <4 x i32> {chunk}, i32 {item}")
            address = writer.emit(f"getelementptr i8, {SHARED} {place}, i64 {item * CELL_PITCH * FLOAT32.size}")
            writer.store("i32", word, address, pointer=SHARED)

    def move(self, terms: State) -> None:
        """Go to the stage with the indices of moving loops in `terms`."""
        emit = self.state.writer.emit
        far = "0"
        for axis, pitch in zip(self.window.axes, self.pitches, strict=True):
            for symbol, step in axis.moves.items():
                start, stop = self.ranges[symbol]
                here = emit_scalar(terms, build.read(symbol))
                apart = emit(f"sub i64 {here}, {start}") if step > 0 else emit(f"sub i64 {stop}, {here}")
                text = emit(f"trunc i64 {apart if step > 0 else emit(f'sub i64 {apart}, 1')} to i32")
                far = emit(f"add i32 {far}, {emit(f'mul i32 {text}, {pitch}')}")
        self.state.writer.store("i32", far, self.moved)

    def cell(self, row: Word) -> str:
        """Return the cell of a row of the tile at the first stage; of rows that are not there, that of the last one."""
        places, emit = self.places, self.state.writer.emit
        here = emit(f"add i64 {places.start}, {Words(self.state.writer).wide(row)}")
        last = emit(f"sub i64 {places.stop}, 1")
        rows = _rows(places, self.window, emit(f"call i64 @llvm.smin.i64(i64 {here}, i64 {last})"))
        found = "0"
        for axis, pitch in zip(self.window.axes, self.pitches, strict=True):
            far = emit(f"trunc i64 {emit(f'sub i64 {rows[axis.row]}, {self.rows[axis.row]}')} to i32")
            found = emit(f"add i32 {found}, {emit(f'mul i32 {far}, {pitch}')}")
        return found


def box_of(places: Places, window: Window, ranges: dict[Symbol, tuple[str, str]]) -> Box:
    """Write what is found once for a tile."""
    state, emit = places.state, places.state.writer.emit
    ends = [_rows(places, window, text) for text in (places.start, emit(f"sub i64 {places.stop}, 1"))]
    rows, lows, extents = dict[Symbol, str](), list[str](), list[str]()
    for axis in window.axes:
        whole = _whole(places, axis)
        low, high = (ends[0][axis.row], ends[1][axis.row]) if whole is None else _both(state, whole)
        extent = emit(f"add i64 {emit(f'sub i64 {high}, {low}')}, 1")
        inner = state.inner()
        inner.values[axis.row] = Uniform(low, INT64)
        for symbol, step in axis.moves.items():
            start, stop = ranges[symbol]
            last = emit(f"sub i64 {stop}, 1")
            inner.values[symbol] = Uniform(start if step > 0 else last, INT64)
            extent = emit(f"add i64 {extent}, {emit(f'sub i64 {last}, {start}')}")
        rows[axis.row] = low
        lows.append(emit_scalar(inner, axis.index))
        extents.append(emit(f"trunc i64 {extent} to i32"))
    pitches: list[Word] = [1]
    for extent in reversed(extents[1:]):
        pitches.insert(0, extent if pitches[0] == 1 else emit(f"mul i32 {pitches[0]}, {extent}"))
    cells = emit(f"mul i32 {pitches[0]}, {extents[0]}")
    side = replace(places.side, factor=Factor(window.value, window.masks))
    return Box(
        replace(places, side=side), window, ranges, rows, tuple(lows), tuple(pitches), cells, state.writer.alloca("i32")
    )


def _rows(places: Places, window: Window, number: str) -> dict[Symbol, str]:
    """Return the indices of the loops of rows at a row of the tile (i64)."""
    inner = places.state.inner()
    inner.values[places.side.index] = Uniform(number, INT64)
    reads = [build.read(axis.row) for axis in window.axes]
    for item in places.needed(reads):
        inner.values[item.symbol] = emit_expression(inner, item.value)
    return {axis.row: emit_scalar(inner, build.read(axis.row)) for axis in window.axes}


def _whole(places: Places, axis: WindowAxis) -> tuple[Expression, Expression] | None:
    """Return the first index and the count of a loop of rows that goes through all in a tile: not the outermost."""
    for item in places.needed([build.read(axis.row)]):
        match item.value:
            case Apply(operator=operator, operands=(start, Apply(operator=inner, operands=(_, count)))) if (
                item.symbol == axis.row and (operator.name, inner.name) == ("add", "mod")
            ):
                return start, count
            case Apply(operator=operator, operands=(_, count)) if item.symbol == axis.row and operator.name == "mod":
                return build.integer(0), count
            case _:
                pass
    return None


def _both(state: State, whole: tuple[Expression, Expression]) -> tuple[str, str]:
    start, count = (emit_scalar(state, each) for each in whole)
    emit = state.writer.emit
    return start, emit(f"add i64 {start}, {emit(f'sub i64 {count}, 1')}")


def read_word(box: Box, place: str, along: int) -> str:
    """Return a word of a row, `along` words of terms from the first, which is where `place` says at the first stage."""
    writer = box.state.writer
    words = Words(writer)
    far = words.mul(writer.load("i32", box.moved), FLOAT32.size)
    base = shared(box.state, words.add(writer.load("i32", place), far))
    address = writer.emit(f"getelementptr i8, {SHARED} {base}, i32 {along * CELL_PITCH * FLOAT32.size}")
    return writer.load("i32", address, pointer=SHARED)
