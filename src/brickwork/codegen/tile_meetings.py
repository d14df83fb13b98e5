"""The distinct numbers of a factor in which rows and terms meet: kept for some stages, and read at any place.

A tile of `size` rows has `size + terms - 1` of them for so many terms, which lie in shared memory behind the stages, in
the order of terms. A fragment's words lie anywhere among them: there is a second copy, one number further, for words
that begin at an odd place. Rows and terms that are not there have zeros, or what others have: products with
the other factor's zeros, or in rows that are not kept.
"""

from __future__ import annotations

from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_expression, emit_scalar
from brickwork.codegen.lane_values import Uniform
from brickwork.codegen.tile import Side
from brickwork.codegen.tile_parts import packed_number
from brickwork.codegen.tile_places import SHARED, Places, shared
from brickwork.codegen.words import Word, Words
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Expression
from brickwork.records import dataclass

_KIND = "i16"
"""What a number is while it waits in a register."""


def _first(side: Side) -> int:
    """Return the place of the number of the first row and the first term."""
    return side.size - 1 if side.meets < 0 else 0


@dataclass(frozen=True, slots=True)
class Strip:
    """The distinct numbers of a factor, which are read at once: they wait in `numbers` (addresses of registers).

    `begun` is the address of the stage along the depth from which they are kept, and `moved` that of how many bytes the
    stage that is multiplied lies further.
    """

    places: Places
    numbers: tuple[str, ...]
    begun: str
    moved: str

    def fill(self, terms: State, first: str, stage: str) -> None:
        """Write what keeps the numbers of the terms from `first` (i64) on, which `stage` (i32) begins with."""
        self._begin(terms, first)
        self._end()
        self.places.state.writer.store("i32", stage, self.begun)

    def move(self, stage: str) -> None:
        """Go to a stage along the depth."""
        writer, tile = self.places.state.writer, self.places.tile
        far = writer.emit(f"sub i32 {stage}, {writer.load('i32', self.begun)}")
        writer.store("i32", writer.emit(f"mul i32 {far}, {tile.staged * tile.bytes_each}"), self.moved)

    def _begin(self, terms: State, first: str) -> None:
        places, writer = self.places, self.places.state.writer
        rows = writer.emit(f"sub i64 {places.stop}, {places.start}")
        left = writer.emit(f"sub i64 {places.end}, {first}")
        for number, kept in enumerate(self.numbers):
            row, term = self._pair(number, left)
            writer.store(_KIND, "0", kept)
            there = writer.emit(f"and i1 {_less(places, row, rows)}, {_less(places, term, left)}")
            there = writer.emit(f"and i1 {there}, {_less(places, term, str(places.tile.kept_terms))}")
            with writer.when(there):
                inner = terms.inner()
                inner.values[places.side.index] = Uniform(writer.emit(f"add i64 {places.start}, {row}"), INT64)
                inner.values[places.tile.depth.index] = Uniform(writer.emit(f"add i64 {first}, {term}"), INT64)
                self._read(inner, kept)

    def _end(self) -> None:
        places, writer = self.places, self.places.state.writer
        words, tile = Words(writer), places.tile
        total = places.side.size + tile.kept_terms - 1
        for number, kept in enumerate(self.numbers):
            place = words.add(places.thread, number * tile.threads)
            with writer.when(writer.emit(f"icmp ult i32 {place}, {total}")):
                text = writer.load(_KIND, kept)
                at = words.add(words.mul(place, tile.bytes_each), tile.kept_offset)
                _store(places, text, at)
            before = writer.emit(f"sub i32 {place}, 1")
            with writer.when(writer.emit(f"icmp ult i32 {before}, {total - 1}")):
                text = writer.load(_KIND, kept)
                begin = tile.kept_offset + tile.copy_bytes
                _store(places, text, words.add(words.mul(before, tile.bytes_each), begin))

    def _pair(self, number: int, left: str) -> tuple[str, str]:
        """Return a row and a term that have a number, both from the first on, as i64: there is none if they are not."""
        places, emit = self.places, self.places.state.writer.emit
        words = Words(places.state.writer)
        place = words.wide(words.add(places.thread, number * places.tile.threads))
        if places.side.meets < 0:
            apart = emit(f"sub i64 {place}, {_first(places.side)}")
            term = emit(f"call i64 @llvm.smax.i64(i64 {apart}, i64 0)")
            return emit(f"sub i64 {term}, {apart}"), term
        most = emit(f"call i64 @llvm.smin.i64(i64 {left}, i64 {places.tile.kept_terms})")
        term = emit(f"call i64 @llvm.smin.i64(i64 {place}, i64 {emit(f'sub i64 {most}, 1')})")
        return emit(f"sub i64 {place}, {term}"), term

    def _read(self, state: State, kept: str) -> None:
        """Read a number where the masks hold."""
        places, factor = self.places, self.places.side.factor
        for item in places.needed((factor.value, *factor.masks)):
            state.values[item.symbol] = emit_expression(state, item.value)
        self._under(state, factor.masks, kept)

    def _under(self, state: State, masks: tuple[Expression, ...], kept: str) -> None:
        places, writer = self.places, state.writer
        if not masks:
            text = emit_scalar(state, places.side.factor.value)
            writer.store(_KIND, packed_number(writer, text, places.tile.dtype), kept)
            return
        with writer.when(emit_scalar(state, masks[0])):
            self._under(state.inner(), masks[1:], kept)


def strip_of(places: Places) -> Strip:
    """Return what keeps the numbers of a factor in which rows and terms meet."""
    tile, writer = places.tile, places.state.writer
    count = -(-(places.side.size + tile.kept_terms - 1) // tile.threads)
    numbers = tuple(writer.alloca(_KIND) for _ in range(count))
    return Strip(places, numbers, writer.alloca("i32"), writer.alloca("i32"))


def first_word(strip: Strip, row: Word, lane: Word) -> str:
    """Return the address of a lane's word of a stage's first terms: `row` is its row, `lane` its place along terms."""
    state, tile, side = strip.places.state, strip.places.tile, strip.places.side
    words = Words(state.writer)
    term = words.add(words.mul(lane, 2), _first(side))
    place = words.add(term, row) if side.meets > 0 else state.writer.emit(f"sub i32 {term}, {row}")
    at = words.add(state.writer.load("i32", strip.moved), tile.kept_offset)
    odd = words.mul(words.both(place, 1), tile.copy_bytes)
    return shared(state, words.add(at, words.left(words.right(place, 1), 2), odd))


def further_word(strip: Strip, first: str, rows: int, words: int) -> str:
    """Return the word that lies so many rows (an even number) and words along terms from the first one."""
    state, tile, side = strip.places.state, strip.places.tile, strip.places.side
    far = 4 * words + side.meets * rows * tile.bytes_each
    address = state.writer.emit(f"getelementptr i8, {SHARED} {first}, i32 {far}")
    return state.writer.load("i32", address, pointer=SHARED)


def _less(places: Places, text: str, than: str) -> str:
    return places.state.writer.emit(f"icmp slt i64 {text}, {than}")


def _store(places: Places, text: str, at: Word) -> None:
    places.state.writer.store(_KIND, text, shared(places.state, at), pointer=SHARED)
