"""Staging: the factors of a tile's next terms, on their way into shared memory.

A thread brings chunks of 16 bytes. Where a factor is an element as it lies in memory, and rows begin at multiples of a
chunk, copies run on while the threads multiply (`cp.async`); else a thread computes the numbers of a chunk by the
emitter of expressions, as lanes. Beyond the rows, the columns or the terms that there are, and where masks do not hold,
zeros are staged, and nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brickwork.codegen import lanes, vectors
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_expression, emit_scalar
from brickwork.codegen.lane_values import Strided, Uniform
from brickwork.codegen.memory import element_addresses, size
from brickwork.codegen.tile import CHUNK_BYTES, ROW_BYTES, Along, Side, Tile, is_plain
from brickwork.codegen.variables import varying_symbols
from brickwork.codegen.words import Word, Words
from brickwork.ir.dtypes import BFLOAT16, FLOAT16, INT64
from brickwork.ir.nodes import Assign, Tensor
from brickwork.ir.walk import read_symbols
from brickwork.records import dataclass

SHARED = "ptr addrspace(3)"
MEMORY = "@bw_tile"
_COPY = "llvm.nvvm.cp.async.cg.shared.global.16.s"


@dataclass(frozen=True, slots=True)
class Stager:
    """Stages one factor of a tile; `thread` is the number of this thread, as i32."""

    state: State
    tile: Tile
    side: Side
    thread: str
    plain: str | None
    """Whether chunks are copied as they lie in memory, as i1; None where they never are."""

    def stage(self, slot: Word, terms: State, first: str) -> None:
        """Write what stages the terms from `first` (i64) on; `terms` is the state with the indices of outer sums."""
        writer = terms.writer
        if self.plain is None:
            self._compute(terms, slot, first)
            return
        copied, computed, after = (writer.label(stem) for stem in ("copied", "computed", "staged"))
        writer.branch_if(self.plain, copied, computed)
        writer.place(copied)
        for number in range(self.count):
            self._copy(terms, slot, first, number)
        writer.branch(after)
        writer.place(computed)
        self._compute(terms, slot, first)
        writer.place(after)

    @property
    def count(self) -> int:
        """Chunks of a stage for each thread."""
        return self.side.size * ROW_BYTES // CHUNK_BYTES // self.tile.threads

    def _compute(self, state: State, slot: Word, first: str) -> None:
        """Compute the chunks: without tests where rows and terms are there and no mask stands in the way."""
        writer, side = state.writer, self.side
        whole, parts, after = (writer.label(stem) for stem in ("whole", "parts", "computed"))
        if side.factor.masks:
            self._one_by_one(state, slot, first)
            return
        last = writer.emit(f"add i64 {first}, {self.tile.staged}")
        deep = writer.emit(f"icmp sle i64 {last}, {emit_scalar(state, self.tile.depth.stop)}")
        start, stop = (emit_scalar(state, bound) for bound in (side.loop.start, side.loop.stop))
        broad = writer.emit(f"icmp sle i64 {writer.emit(f'add i64 {start}, {side.size}')}, {stop}")
        writer.branch_if(writer.emit(f"and i1 {deep}, {broad}"), whole, parts)
        writer.place(whole)
        for number in range(self.count):
            place = self._place(number)
            self._store(state, slot, place, self._values(state.inner(), first, place, None))
        writer.branch(after)
        writer.place(parts)
        self._one_by_one(state, slot, first)
        writer.place(after)

    def _one_by_one(self, state: State, slot: Word, first: str) -> None:
        """Compute chunks of which some numbers are not there, one after the other."""
        writer = state.writer
        with writer.count("0", str(self.count)) as number:
            place = self._place(writer.emit(f"trunc i64 {number} to i32"))
            along, across = self._bounds(state, first, place)
            kind = f"<{self.tile.chunk} x float>"
            found = writer.alloca(kind)
            writer.store(kind, "zeroinitializer", found)
            with writer.when(writer.emit(f"and i1 {self._is_before(state, *along)}, {self._is_before(state, *across)}")):
                left = writer.emit(f"sub i64 {along[1]}, {along[0]}")
                writer.store(kind, self._values(state.inner(), first, place, left), found)
            self._store(state, slot, place, writer.load(kind, found))

    def _copy(self, state: State, slot: Word, first: str, number: int) -> None:
        writer, place = state.writer, self._place(number)
        along, across = self._bounds(state, first, place)
        inner = self._inside(state.inner(), first, place, lanes_wide=False)
        element = self.side.factor.element
        if element is None:
            raise TypeError("what is copied is an element")
        indices = tuple(emit_expression(inner, index) for index in element.indices)
        address = element_addresses(inner, element.tensor, indices)
        # Fewer bytes than a chunk are read at the end of a row; the rest of it becomes zeros.
        left = writer.emit(f"call i64 @llvm.smax.i64(i64 {writer.emit(f'sub i64 {along[1]}, {along[0]}')}, i64 0)")
        left = writer.emit(f"call i64 @llvm.umin.i64(i64 {left}, i64 {self.tile.chunk})")
        held = writer.emit(f"mul i64 {left}, {self.tile.bytes_each}")
        held = writer.emit(f"select i1 {self._is_before(state, *across)}, i64 {held}, i64 0")
        count = writer.emit(f"trunc i64 {held} to i32")
        name = state.module.declare(_COPY, "void", (SHARED, "ptr addrspace(1)", "i32"), "convergent nocallback nounwind")
        target = self._target(slot, place)
        writer.effect(f"call void {name}({SHARED} {target}, ptr addrspace(1) {address}, i32 {count})")

    # ------------------------------------------------------------ places

    def _place(self, number: Word) -> tuple[Word, Word]:
        """Return the row of shared memory of a thread's chunk, and the chunk in it."""
        words, across = Words(self.state.writer), self._chunks_across
        row, chunk = words.div(self.thread, across), words.rem(self.thread, across)
        step = self.tile.threads // across
        more = number * step if isinstance(number, int) else words.mul(number, step)
        return words.add(row, more), chunk

    @property
    def _chunks_across(self) -> int:
        """Chunks of all that lies along rows of shared memory for one term, or for one row of the tile."""
        return ROW_BYTES // CHUNK_BYTES if self.side.along is Along.DEPTH else self.side.size // self.tile.chunk

    def _target(self, slot: Word, place: tuple[Word, Word]) -> str:
        """Return the address of a chunk in shared memory."""
        words, (row, chunk) = Words(self.state.writer), place
        at = words.add(slot, self.side.offset, words.mul(row, ROW_BYTES))
        if self.side.along is Along.SIDE:
            at = words.add(at, words.mul(words.right(chunk, 3), self.tile.staged * ROW_BYTES))
            chunk = words.both(chunk, 7)
        at = words.add(at, words.left(words.xor(chunk, self._swizzle(row)), 4))
        return shared(self.state, at)

    def _swizzle(self, row: Word) -> Word:
        words = Words(self.state.writer)
        if self.side.along is Along.SIDE and self.tile.bytes_each == 4:
            return words.left(words.both(row, 3), 1)
        return words.both(row, 7)

    def _bounds(self, state: State, first: str, place: tuple[Word, Word]) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return where a chunk begins along memory and the end there, then the same across."""
        words, writer, (row, chunk) = Words(state.writer), state.writer, place
        along = words.wide(words.mul(chunk, self.tile.chunk))
        across = words.wide(row)
        start, stop = (emit_scalar(state, bound) for bound in (self.side.loop.start, self.side.loop.stop))
        end = emit_scalar(state, self.tile.depth.stop)
        if self.side.along is Along.DEPTH:
            return (
                (writer.emit(f"add i64 {first}, {along}"), end),
                (writer.emit(f"add i64 {start}, {across}"), stop),
            )
        return (writer.emit(f"add i64 {start}, {along}"), stop), (writer.emit(f"add i64 {first}, {across}"), end)

    def _is_before(self, state: State, place: str, stop: str) -> str:
        return state.writer.emit(f"icmp slt i64 {place}, {stop}")

    # ------------------------------------------------------------ numbers

    def _inside(self, state: State, first: str, place: tuple[Word, Word], *, lanes_wide: bool) -> State:
        """Return the state with the indices of a chunk's numbers, or of the first."""
        along, across = self._bounds(state, first, place)
        names = [self.tile.depth.index, self.side.index]
        if self.side.along is Along.SIDE:
            names.reverse()
        inner = state
        if lanes_wide:
            loop = replace(self.side.loop, index=names[0], body=self.needed, width=self.tile.chunk)
            inner = replace(vectors.lane_state(state, loop), varying=varying_symbols(loop))
        inner.values[names[0]] = Strided(along[0], 1) if lanes_wide else Uniform(along[0], INT64)
        inner.values[names[1]] = Uniform(across[0], INT64)
        for item in self.needed:
            inner.values[item.symbol] = emit_expression(inner, item.value)
        return inner

    @property
    def needed(self) -> tuple[Assign, ...]:
        """The assignments before the sum that the factor is computed from."""
        wanted = set(read_symbols((self.side.factor.value, *self.side.factor.masks)))
        found: list[Assign] = []
        for item in reversed(self.tile.contraction.before):
            if isinstance(item, Assign) and item.symbol in wanted:
                found.append(item)
                wanted |= read_symbols(item.value)
        return tuple(reversed(found))

    def _values(self, state: State, first: str, place: tuple[Word, Word], left: str | None) -> str:
        """Return a chunk's numbers as a vector of floats; only the first `left` of them are there, if that is given."""
        writer, width = state.writer, self.tile.chunk
        inner = self._inside(state, first, place, lanes_wide=True)
        if left is not None:
            inner = vectors.masked(inner, left)
        mask = inner.mask
        for condition in self.side.factor.masks:
            mask = lanes.both(inner, mask, lanes.vector(inner, emit_expression(inner, condition)))
        kind = f"<{width} x float>"
        if mask is None:
            return lanes.vector(inner, emit_expression(inner, self.side.factor.value))
        found = writer.alloca(kind)
        writer.store(kind, "zeroinitializer", found)
        with writer.when(lanes.any_lane(inner, mask)):
            under = inner.under(mask)
            text = lanes.vector(under, emit_expression(under, self.side.factor.value))
            writer.store(kind, writer.emit(f"select <{width} x i1> {mask}, {kind} {text}, {kind} zeroinitializer"), found)
        return writer.load(kind, found)

    def _store(self, state: State, slot: Word, place: tuple[Word, Word], values: str) -> None:
        """Put a chunk of floats into shared memory as numbers of the tile's type."""
        writer, width = state.writer, self.tile.chunk
        kind, text = f"<{width} x float>", values
        if self.tile.dtype is FLOAT16:
            kind, text = f"<{width} x half>", writer.emit(f"fptrunc {kind} {values} to <{width} x half>")
        elif self.tile.dtype is BFLOAT16:
            bits = writer.emit(f"bitcast {kind} {values} to <{width} x i32>")
            high = writer.emit(f"lshr <{width} x i32> {bits}, splat (i32 16)")
            kind, text = f"<{width} x i16>", writer.emit(f"trunc <{width} x i32> {high} to <{width} x i16>")
        writer.store(kind, text, self._target(slot, place), f", align {CHUNK_BYTES}", pointer=SHARED)


def stager(state: State, tile: Tile, side: Side, thread: str) -> Stager:
    """Return what stages a factor; whether it can be copied is found out here, once for the kernel."""
    plain = _rows_are_whole(state, tile, side) if is_plain(side, tile.depth.index) else None
    return Stager(state, tile, side, thread, plain)


def _rows_are_whole(state: State, tile: Tile, side: Side) -> str | None:
    """Return whether all chunks of an element's tensor begin at multiples of a chunk, as i1."""
    element = side.factor.element
    if element is None or element.tensor not in state.kernel.aligned:
        return None
    tensor, unit = element.tensor, element.tensor.type.unit_axis
    numbers = [*_steps(state, tensor, unit)]
    if side.along is Along.DEPTH:
        numbers.append(emit_scalar(state, tile.depth.start))
    result = "true"
    for text in numbers:
        rest = state.writer.emit(f"and i64 {text}, {tile.chunk - 1}")
        whole = state.writer.emit(f"icmp eq i64 {rest}, 0")
        result = whole if result == "true" else state.writer.emit(f"and i1 {result}, {whole}")
    return result


def _steps(state: State, tensor: Tensor, unit: int | None) -> Iterator[str]:
    """Yield numbers of elements of which all rows of a tensor are multiples."""
    if tensor.type.contiguous:
        if tensor.type.rank > 1:
            yield size(state, tensor, tensor.type.rank - 1)
        return
    for axis in range(tensor.type.rank):
        if axis != unit:
            yield state.slot_value(state.layout.tensors[tensor].strides[axis])


def shared(state: State, at: Word) -> str:
    """Return an address in the block's shared memory."""
    state.module.globals[MEMORY] = f"{MEMORY} = external addrspace(3) global [0 x i8], align 1024"
    return state.writer.emit(f"getelementptr i8, {SHARED} {MEMORY}, i32 {at}")
