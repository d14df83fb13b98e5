"""Products of staged factors by the matrix instructions of a warp (`mma.sync`), with sums in registers.

float32 is multiplied as three products of TF32: a number is the sum of its upper bits and the rest, and of the four
products the one of both rests is left out. The instructions cut what they add, so each stage begins from zero and is
added to the sum by an ordinary addition. A factor that 16 bits have exactly has no rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from brickwork.analysis.contractions import Along
from brickwork.codegen.builder import FunctionWriter
from brickwork.codegen.emitter_state import State
from brickwork.codegen.tile import Side, Tile
from brickwork.codegen.tile_meetings import Strip, first_word, further_word
from brickwork.codegen.tile_parts import parts_of_word
from brickwork.codegen.tile_places import SHARED, shared, swizzle
from brickwork.codegen.words import Word, Words
from brickwork.ir.dtypes import BFLOAT16, FLOAT32, FLOAT64
from brickwork.records import dataclass
from brickwork.target.matrix import CHUNK_BYTES, ROW_BYTES

Fragment = tuple[str, ...]
"""What a thread has of a small matrix: registers, as i32."""
WordsRead: TypeAlias = dict[int, str]
"""Words of a stage that were read, by how many places they lie from the first."""

_FOUR_FLOATS = "{float, float, float, float}"
_FOUR_WORDS = "{i32, i32, i32, i32}"


@dataclass(frozen=True, slots=True)
class Warp:
    """A warp's part of a tile: where its threads find their fragments, and what they sum up.

    `sums` are the addresses of four floats for each of its small matrices of 16 x 8.
    """

    state: State
    tile: Tile
    lane: Word
    row: Word
    column: Word
    sums: tuple[tuple[tuple[str, ...], ...], ...]
    kept: Strip | None = None

    @property
    def steps(self) -> int:
        """Instructions along a stage."""
        return ROW_BYTES // (4 * CHUNK_BYTES if self.tile.dtype is FLOAT64 else 2 * CHUNK_BYTES)

    def multiply(self, slot: Word) -> None:
        """Add the products of a stage to the sums."""
        writer = self.state.writer
        kind = self.tile.kind
        sums = [[[writer.load(kind, place) for place in each] for each in row] for row in self.sums]
        fresh = self.tile.contraction.promotes
        part = [[["0.0"] * 4 for _ in row] for row in sums] if fresh else sums
        read: WordsRead = {}
        for step in range(self.steps):
            lefts, rights = self.lefts(slot, step, read), self._rights(slot, step)
            for row, left in enumerate(lefts):
                for column, right in enumerate(rights):
                    part[row][column] = self._product(left, right, part[row][column])
        for row, places in enumerate(self.sums):
            for column, each in enumerate(places):
                for number, place in enumerate(each):
                    text = part[row][column][number]
                    if fresh:
                        text = added(writer, kind, sums[row][column][number], text)
                    writer.store(kind, text, place)

    # ------------------------------------------------------------ products

    def _product(self, left: Sequence[Fragment], right: Sequence[Fragment], to: list[str]) -> list[str]:
        """Return four sums with the product of two small matrices; of numbers in two parts, the small ones first."""
        for one, other in pairs(len(left), len(right)):
            to = self._instruction(left[one], right[other], to)
        return to

    def _instruction(self, left: Fragment, right: Fragment, to: Sequence[str]) -> list[str]:
        writer, dtype = self.state.writer, self.tile.dtype
        words = [*left, *right]
        if dtype is FLOAT64:
            return doubles(self.state, left, right, to)
        if dtype is FLOAT32:
            name, kind = "llvm.nvvm.mma.m16n8k8.row.col.tf32", "i32"
        elif dtype is BFLOAT16:
            name, kind = "llvm.nvvm.mma.m16n8k16.row.col.bf16", "i32"
        else:
            name, kind = "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "<2 x half>"
            words = [writer.emit(f"bitcast i32 {word} to {kind}") for word in words]
        kinds = (*(kind for _ in words), *("float" for _ in to))
        called = self.state.module.declare(name, _FOUR_FLOATS, kinds, "convergent nocallback nounwind memory(none)")
        arguments = [f"{one} {text}" for one, text in zip(kinds, (*words, *to), strict=True)]
        result = writer.call(_FOUR_FLOATS, called, arguments)
        return [writer.emit(f"extractvalue {_FOUR_FLOATS} {result}, {number}") for number in range(4)]

    # ------------------------------------------------------------ fragments

    def lefts(self, slot: Word, step: int, read: WordsRead) -> list[list[Fragment]]:
        """Return the parts of the fragments of 16 rows each, in a step; some were `read` before."""
        tile, side, words = self.tile, self.tile.left, Words(self.state.writer)
        if self.kept is not None:
            return [self._met(self.kept, 16 * line, step, read) for line in range(tile.warp[0] // 16)]
        found: list[list[Fragment]] = []
        for number in range(tile.warp[0] // 16):
            first = words.add(self.row, 16 * number)
            staged = [self._left(words.add(slot, part * side.part_bytes), first, step) for part in range(side.parts)]
            found.append(self._parts(side, staged))
        return found

    def _met(self, strip: Strip, row: int, step: int, read: WordsRead) -> list[Fragment]:
        """Return a fragment, of one part, of a factor whose distinct numbers are kept; diagonals share them."""
        side, words = self.tile.left, Words(self.state.writer)
        own = words.add(self.row, words.right(self.lane, 2))
        first = first_word(strip, own, words.both(self.lane, 3))
        found: list[str] = []
        for item in range(4):
            rows, along = row + 8 * (item & 1), 8 * step + 4 * (item >> 1)
            place = 2 * along + side.meets * rows
            if place not in read:
                read[place] = further_word(strip, first, rows, along)
            found.append(read[place])
        return [tuple(found)]

    def _left(self, slot: Word, first: Word, step: int) -> Fragment:
        tile, side, words, lane = self.tile, self.tile.left, Words(self.state.writer), self.lane
        if tile.dtype is FLOAT64:
            lines = [self._line(side, slot, words.add(first, 8 * line), step) for line in (0, 1)]
            return tuple(number for both in zip(*lines, strict=True) for number in both)
        if side.along is Along.DEPTH:
            row = words.add(first, words.both(lane, 15))
            chunk = words.add(words.right(lane, 4), 2 * step)
            return self._matrices(self._row(side, slot, row, chunk))
        if tile.bytes_each == 2:
            row = words.add(words.both(lane, 7), words.left(words.right(lane, 4), 3), 16 * step)
            chunk = words.add(words.right(first, 3), words.both(words.right(lane, 3), 1))
            return self._matrices(self._across(side, slot, row, chunk), across=True)
        place, deep = words.add(first, words.right(lane, 2)), words.add(words.both(lane, 3), 8 * step)
        return tuple(
            self._number(side, slot, words.add(place, 8 * (item & 1)), words.add(deep, 4 * (item >> 1)))
            for item in range(4)
        )

    def _rights(self, slot: Word, step: int) -> list[list[Fragment]]:
        """Return the parts of the fragments of 8 columns each, in a step."""
        tile, side, words = self.tile, self.tile.right, Words(self.state.writer)
        found: list[list[Fragment]] = []
        for number in range(tile.warp[1] // 16):
            first = words.add(self.column, 16 * number)
            staged = [self._right(words.add(slot, part * side.part_bytes), first, step) for part in range(side.parts)]
            size = len(staged[0]) // 2
            found += [self._parts(side, [each[half : half + size] for each in staged]) for half in (0, size)]
        return found

    def _right(self, slot: Word, first: Word, step: int) -> Fragment:
        """Return the fragments of two times 8 columns."""
        tile, side, words, lane = self.tile, self.tile.right, Words(self.state.writer), self.lane
        if tile.dtype is FLOAT64:
            lines = [self._line(side, slot, words.add(first, 8 * line), step) for line in (0, 1)]
            return (*lines[0], *lines[1])
        if side.along is Along.DEPTH:
            row = words.add(first, words.both(lane, 7), words.left(words.right(lane, 4), 3))
            chunk = words.add(words.both(words.right(lane, 3), 1), 2 * step)
            return self._matrices(self._row(side, slot, row, chunk))
        if tile.bytes_each == 2:
            row = words.add(words.both(lane, 15), 16 * step)
            chunk = words.add(words.right(first, 3), words.right(lane, 4))
            return self._matrices(self._across(side, slot, row, chunk), across=True)
        place, deep = words.add(first, words.right(lane, 2)), words.add(words.both(lane, 3), 8 * step)
        return tuple(
            self._number(side, slot, words.add(place, 8 * (item >> 1)), words.add(deep, 4 * (item & 1)))
            for item in range(4)
        )

    def _parts(self, side: Side, staged: list[Fragment]) -> list[Fragment]:
        """Return the parts of a fragment: those that are staged, or those of TF32 of a float32."""
        if self.tile.dtype is not FLOAT32 or side.factor.exact:
            return staged
        upper, rest = zip(*(parts_of_word(self.state.writer, word) for word in staged[0]), strict=True)
        return [upper, rest]

    def _row(self, side: Side, slot: Word, row: Word, chunk: Word) -> str:
        """Return the address of a chunk that lies along the depth."""
        words = Words(self.state.writer)
        place = words.xor(chunk, swizzle(words, self.tile, side, row))
        at = words.add(slot, side.offset, words.mul(row, ROW_BYTES), words.left(place, 4))
        return shared(self.state, at)

    def _across(self, side: Side, slot: Word, row: Word, chunk: Word) -> str:
        """Return the address of a chunk that lies along rows or columns, of 16 bits each."""
        words = Words(self.state.writer)
        panel = words.mul(words.right(chunk, 3), self.tile.staged * ROW_BYTES)
        place = words.left(words.xor(words.both(chunk, 7), swizzle(words, self.tile, side, row)), 4)
        return shared(self.state, words.add(slot, side.offset, panel, words.mul(row, ROW_BYTES), place))

    def _number(self, side: Side, slot: Word, place: Word, row: Word) -> str:
        """Return a number of 32 or 64 bits of a factor that lies along rows or columns."""
        words, writer, tile = Words(self.state.writer), self.state.writer, self.tile
        panel = words.mul(words.div(place, tile.staged), tile.staged * ROW_BYTES)
        chunk = words.div(words.rem(place, tile.staged), tile.chunk)
        chunk = words.left(words.xor(chunk, swizzle(words, tile, side, row)), 4)
        inside = words.add(chunk, words.mul(words.rem(place, tile.chunk), tile.bytes_each))
        at = words.add(slot, side.offset, panel, words.mul(row, ROW_BYTES), inside)
        return writer.load("double" if tile.dtype is FLOAT64 else "i32", shared(self.state, at), pointer=SHARED)

    def _line(self, side: Side, slot: Word, first: Word, step: int) -> Fragment:
        """Return the float64 of this thread in eight rows (or columns), in a step: two neighbouring terms."""
        words, writer, lane = Words(self.state.writer), self.state.writer, self.lane
        place, chunk = words.add(first, words.right(lane, 2)), words.add(words.both(lane, 3), 4 * step)
        if side.along is Along.SIDE:
            terms = (words.add(words.left(chunk, 1), item) for item in (0, 1))
            return tuple(self._number(side, slot, place, term) for term in terms)
        kind, address = "<2 x double>", self._row(side, slot, place, chunk)
        both = writer.load(kind, address, f", align {CHUNK_BYTES}", pointer=SHARED)
        return tuple(writer.emit(f"extractelement {kind} {both}, i32 {item}") for item in (0, 1))

    def _matrices(self, address: str, *, across: bool = False) -> Fragment:
        """Return four matrices of 8 x 8 numbers of 16 bits, whose rows threads give the addresses of."""
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{'.trans' * across}.b16.p3"
        note = "convergent nocallback nounwind memory(argmem: read)"
        called = self.state.module.declare(name, _FOUR_WORDS, (SHARED,), note)
        writer = self.state.writer
        result = writer.call(_FOUR_WORDS, called, (f"{SHARED} {address}",))
        return tuple(writer.emit(f"extractvalue {_FOUR_WORDS} {result}, {number}") for number in range(4))


def doubles(state: State, left: Fragment, right: Fragment, to: Sequence[str]) -> list[str]:
    """Return four sums with products of 16 x 8 by 8 x 8 float64: by one instruction from capability 9.0 on."""
    writer, found = state.writer, [*to]
    if state.target.cluster > 1:
        return _doubles(writer, "m16n8k8", left, right, found)
    for term, other in enumerate(right):
        for line in (0, 2):
            own = left[2 * term + line // 2]
            found[line : line + 2] = _doubles(writer, "m8n8k4", (own,), (other,), found[line : line + 2])
    return found


def _doubles(writer: FunctionWriter, shape: str, left: Fragment, right: Fragment, to: Sequence[str]) -> list[str]:
    """Return sums with the products of one instruction."""
    count, middle, end = len(to), len(to) + len(left), len(to) + len(left) + len(right)
    parts = (range(count), range(count, middle), range(middle, end), range(count))
    operands = ", ".join(f"{{{', '.join(f'${number}' for number in part)}}}" for part in parts)
    ties = ",".join(["=d"] * count + ["d"] * (end - count) + [str(number) for number in range(count)])
    result = f"{{{', '.join(['double'] * count)}}}"
    text = f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64 {operands};"
    arguments = ", ".join(f"double {value}" for value in (*left, *right, *to))
    called = writer.emit(f'call {result} asm "{text}", "{ties}"({arguments}) convergent nounwind memory(none)')
    return [writer.emit(f"extractvalue {result} {called}, {number}") for number in range(count)]


def pairs(lefts: int, rights: int) -> list[tuple[int, int]]:
    """Return which parts of factors are multiplied, small products first; those of two rests are left out."""
    found = [(one, other) for one in range(lefts) for other in range(rights) if one + other < max(lefts, rights)]
    return sorted(found, key=sum, reverse=True)


def added(writer: FunctionWriter, kind: str, total: str, products: str) -> str:
    """Return a sum and the products of a stage (float); those of integers are a whole number."""
    if kind == "float":
        return writer.emit(f"fadd float {total}, {products}")
    return writer.emit(f"add i32 {total}, {writer.emit(f'fptosi float {products} to i32')}")


def warp_of(state: State, tile: Tile, thread: str) -> Warp:
    """Return the part of this thread's warp, with sums of zero."""
    words, writer = Words(state.writer), state.writer
    lane, warp = words.both(thread, 31), words.right(thread, 5)
    row, column = words.div(warp, tile.warps[1]), words.rem(warp, tile.warps[1])
    height, width = tile.warp
    sums = tuple(
        tuple(tuple(writer.alloca(tile.kind) for _ in range(4)) for _ in range(width // 8)) for _ in range(height // 16)
    )
    for place in (place for line in sums for each in line for place in each):
        writer.store(tile.kind, "0" if tile.contraction.is_whole else "0.0", place)
    return Warp(state, tile, lane, words.mul(row, height), words.mul(column, width), sums)
