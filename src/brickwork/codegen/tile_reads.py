"""Chunks of a factor that is computed: which elements they read, where these are, and the numbers of a chunk.

The place of an element is a sum of what rows (or columns) say, which is found once for a tile, and of what the terms
say. Elements are read under predicates, one for each lane of a chunk, so that nothing is read where there is no row, no
term, or a mask does not hold. Neighbours in memory that begin at a chunk are read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.analysis.contractions import Along
from brickwork.analysis.searches import MIRRORED
from brickwork.codegen import lanes
from brickwork.codegen.builder import FunctionWriter
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_expression
from brickwork.codegen.lane_values import Strided, Uniform, Value, Varying, memory_type
from brickwork.codegen.memory import element_offset, offset_address, sum_of
from brickwork.codegen.tile_places import Places, numbered
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Constant, Expression, Load, Node, Read, Size, Symbol, Tensor
from brickwork.ir.walk import read_symbols, walk
from brickwork.legality import legality
from brickwork.records import dataclass

_WORD = 4
_MOST_WORDS = 4
"""Words that are read at once."""


@dataclass(frozen=True, slots=True)
class _Element:
    """An element that a factor reads: what the rows say of its place, for each state around, and the rest of it.

    `adjacent` says that a chunk's elements are neighbours that begin at a chunk, `steady` that they are one element.
    """

    load: Load
    fixed: tuple[Value, ...]
    rest: tuple[Expression, ...]
    adjacent: bool
    steady: bool

    @property
    def is_looked_up(self) -> bool:
        """Whether its place depends on elements."""
        return any(isinstance(node, Load) for node in walk(self.rest))


class Early:
    """Elements in registers, from where a stage's are read to where its numbers are computed: as they are met."""

    __slots__ = ("_next", "_slots", "reading")

    def __init__(self) -> None:
        """Begin with none."""
        self._slots: list[list[tuple[str, str]]] = []
        self._next = 0
        self.reading = False

    def begin(self, *, reading: bool) -> None:
        """Go to the first elements, to read them or to take what was read."""
        self.reading, self._next = reading, 0

    def keep(self, writer: FunctionWriter, words: Sequence[tuple[str, str]]) -> None:
        """Put the next elements into registers."""
        if self._next == len(self._slots):
            self._slots.append([(kind, writer.alloca(kind)) for kind, _ in words])
        for (kind, text), (_, slot) in zip(words, self._slots[self._next], strict=True):
            writer.store(kind, text, slot)

    def take(self, writer: FunctionWriter) -> list[tuple[str, str]]:
        """Return the next elements."""
        self._next += 1
        return [(kind, writer.load(kind, slot)) for kind, slot in self._slots[self._next - 1]]


def _lane_by_lane(state: State, each: _Element, words: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return elements as they were read lane by lane, or one for all lanes."""
    (kind, text), wanted = words[0], memory_type(each.load.tensor.type.dtype)
    if not kind.startswith("<"):
        return tuple(_of_register(state.writer, each, word) for _, word in words)
    whole = f"<{state.width} x {wanted}>"
    text = state.writer.emit(f"bitcast {kind} {text} to {whole}")
    return tuple(state.writer.emit(f"extractelement {whole} {text}, i32 {lane}") for lane in range(state.width))


def _of_register(writer: FunctionWriter, each: _Element, word: str) -> str:
    """Return an element of the register that it was read into."""
    dtype = each.load.tensor.type.dtype
    kind, wanted, bare = _INSTRUCTIONS[dtype.size][3], memory_type(dtype), f"i{8 * dtype.size}"
    if bare != kind:
        word = writer.emit(f"trunc {kind} {word} to {bare}")
    return word if wanted == bare else writer.emit(f"bitcast {bare} {word} to {wanted}")


@dataclass(frozen=True, slots=True)
class Reads:
    """What the chunks of a thread are computed from.

    `around` are the states with the rows (or columns) of its chunks: one for all of them where lanes are rows, else one
    for each. `there` says which of these exist, as a bit for each lane of a chunk (i32).
    """

    places: Places
    around: tuple[State, ...]
    there: tuple[str, ...]
    elements: tuple[_Element, ...]
    early: Early | None = None
    """Where elements wait that are read for a stage before its numbers are computed."""

    def chunks(self, terms: State, first: str) -> list[str]:
        """Return the numbers of this thread's chunks at the terms from `first` on, as they wait."""
        places, writer = self.places, terms.writer
        lanes_are_rows = places.side.along is Along.SIDE
        along = writer.emit(f"add i64 {first}, {places.first_along}")
        found: list[tuple[str, str]] = []
        zeros = False
        for number in range(places.count):
            place = 0 if lanes_are_rows else number
            inner = self._state(terms, place)
            if lanes_are_rows:
                term = writer.emit(f"add i64 {first}, {places.across(number)}")
                inner.values[places.tile.depth.index] = Uniform(term, INT64)
                here = writer.emit(f"icmp slt i64 {term}, {places.end}")
                bits = writer.emit(f"select i1 {here}, i32 {self.there[place]}, i32 0")
            else:
                inner.values[places.tile.depth.index] = Strided(along, places.stride)
                held = _first_bits(terms, along, places.end, places.tile.chunk, places.stride)
                bits = writer.emit(f"and i32 {self.there[place]}, {held}")
            bits = self._held(inner, place, bits)
            inner = self._with(inner, (places.side.factor.value,), place, bits)
            text = lanes.vector(inner, emit_expression(inner, places.side.factor.value))
            found.append((places.waiting(text), bits))
            zeros = self._is_zero_where_not_there(inner)
        return [text for text, _ in found] if zeros else self._kept(terms, found)

    def _is_zero_where_not_there(self, state: State) -> bool:
        """Whether each number is read under a predicate of its own, which gives zero where it does not hold."""
        factor = self.places.side.factor.value
        alone = {each.load for each in self.elements if not each.adjacent}
        return isinstance(factor, Load) and factor in alone and len(state.read[factor]) == state.width

    def _kept(self, state: State, found: list[tuple[str, str]]) -> list[str]:
        """Return chunks with zeros where a bit is not set: mostly all are, which is asked once for all chunks."""
        writer, places = state.writer, self.places
        width, kind, whole = places.tile.chunk, places.waiting_kind, found[0][1]
        for _, bits in found[1:]:
            whole = writer.emit(f"and i32 {whole}, {bits}")
        slots = [writer.alloca(kind) for _ in found]
        for (text, _), slot in zip(found, slots, strict=True):
            writer.store(kind, text, slot)
        with writer.when(writer.emit(f"icmp ne i32 {whole}, {(1 << width) - 1}")):
            for (text, bits), slot in zip(found, slots, strict=True):
                narrow = writer.emit(f"trunc i32 {bits} to i{width}")
                mask = writer.emit(f"bitcast i{width} {narrow} to <{width} x i1>")
                kept = writer.emit(f"select <{width} x i1> {mask}, {kind} {text}, {kind} zeroinitializer")
                writer.store(kind, kept, slot)
        return [writer.load(kind, slot) for slot in slots]

    def _state(self, terms: State, place: int) -> State:
        """Return the state with the terms and the rows of a chunk."""
        around = self.around[place]
        return replace(around.inner(), values={**terms.values, **around.values}, slots=dict(terms.slots))

    def _held(self, state: State, place: int, bits: str) -> str:
        """Return the bits of the lanes for which the masks hold, too."""
        masks, writer = self.places.side.factor.masks, state.writer
        inner = self._with(state, masks, place, bits)
        for condition in masks:
            # Lanes that are rows are asked one by one: what ranges that lean on them take else spills in float32 timex.
            held = _side_by_side(inner, condition) if self.places.side.along is Along.DEPTH else None
            if held is None:
                value = emit_expression(inner, condition)
                if isinstance(value, Uniform):
                    bits = writer.emit(f"select i1 {value.text}, i32 {bits}, i32 0")
                    continue
                mask = lanes.mask_bits(inner, lanes.vector(inner, value))
                held = writer.emit(f"zext i{inner.width} {mask} to i32")
            bits = writer.emit(f"and i32 {bits}, {held}")
        return bits

    def _with(self, state: State, expressions: Sequence[Expression], place: int, bits: str) -> State:
        """Return the state with the elements that expressions read, in the lanes of some bits."""
        wanted = {node for node in walk(tuple(expressions)) if isinstance(node, Load)}
        used = (each for each in self.elements if each.load in wanted)
        return replace(state, read={each.load: self._items(state, each, place, bits) for each in used})

    # ------------------------------------------------------------ elements

    def _items(self, state: State, each: _Element, place: int, bits: str) -> tuple[str, ...]:
        """Return the elements of a chunk, lane by lane, or one for all lanes; maybe those that were read before."""
        if self.early is None:
            return _lane_by_lane(state, each, self._words_of(state, each, place, bits))
        if self.early.reading:
            self.early.keep(state.writer, self._words_of(state, each, place, bits))
        return _lane_by_lane(state, each, self.early.take(state.writer))

    def _words_of(self, state: State, each: _Element, place: int, bits: str) -> list[tuple[str, str]]:
        """Return the elements of a chunk as they are read: a vector of words, or each in a register, with its type."""
        writer, kind = state.writer, _INSTRUCTIONS[each.load.tensor.type.dtype.size][3]
        offset = self._looked_up(state, each, place, bits) if each.is_looked_up else self._offset(state, each, place)
        if isinstance(offset, Uniform):
            return [(kind, self._read(state, each, offset.text, bits))]
        if each.adjacent and isinstance(offset, Strided):
            return [self._neighbours(state, each, offset.base, bits)]
        if isinstance(offset, Strided):
            texts = [writer.emit(f"add i64 {offset.base}, {offset.stride * lane}") for lane in range(state.width)]
        else:
            vector, indices = lanes.vector(state, offset), f"<{state.width} x i64>"
            texts = [writer.emit(f"extractelement {indices} {vector}, i32 {lane}") for lane in range(state.width)]
        here = (writer.emit(f"and i32 {bits}, {1 << lane}") for lane in range(state.width))
        return [(kind, self._read(state, each, text, bit)) for text, bit in zip(texts, here, strict=True)]

    def _offset(self, state: State, each: _Element, place: int) -> Value:
        """Return how far the elements of a chunk are from the first of their tensor."""
        tensor, inner = each.load.tensor, self._steady(state) if each.steady else state
        indices = tuple(_index(inner, tensor, index) for index in each.rest)
        with state.writer.modular(narrow=tensor in state.kernel.narrow):
            return sum_of(state, each.fixed[place], element_offset(inner, tensor, indices))

    def _looked_up(self, state: State, each: _Element, place: int, bits: str) -> Value:
        """Return the same where indices are elements: these are read in lanes that are there alone."""
        writer, kind = state.writer, f"<{state.width} x i64>"
        found = writer.alloca(kind)
        writer.store(kind, "zeroinitializer", found)
        narrow = writer.emit(f"trunc i32 {bits} to i{state.width}")
        mask = writer.emit(f"bitcast i{state.width} {narrow} to <{state.width} x i1>")
        with writer.when(writer.emit(f"icmp ne i32 {bits}, 0")):
            inner = state.under(mask)
            writer.store(kind, lanes.vector(inner, self._offset(inner, each, place)), found)
        return Varying(writer.load(kind, found), INT64)

    def _steady(self, state: State) -> State:
        """Return the state with the first term of a chunk for all its lanes."""
        inner, depth = state.inner(), self.places.tile.depth.index
        value = inner.values[depth]
        inner.values[depth] = Uniform(value.base, INT64) if isinstance(value, Strided) else value
        return inner

    def _read(self, state: State, each: _Element, offset: str, bits: str) -> str:
        """Return an element in a register, or zero if no bit is set; what is made of it here would wait for it."""
        size, writer = each.load.tensor.type.dtype.size, state.writer
        address = offset_address(state, each.load.tensor, offset)
        move, load, register, kind = _INSTRUCTIONS[size]
        text = f"{{ .reg .pred p; setp.ne.b32 p, $2, 0; {move} $0, 0; @p {load} $0, [$1]; }}"
        called = f'call {kind} asm "{text}", "=&{register},l,r"({state.pointer} {address}, i32 {bits})'
        return writer.emit(f"{called} nounwind willreturn memory(read)")

    def _neighbours(self, state: State, each: _Element, offset: str, bits: str) -> tuple[str, str]:
        """Return neighbours in memory as a vector of words, read at once, with its type; zeros if no bit is set."""
        writer, count = state.writer, state.width * each.load.tensor.type.dtype.size // _WORD
        address = offset_address(state, each.load.tensor, offset)
        vector = "poison"
        for begin in range(0, count, _MOST_WORDS):
            words = self._words(state, address, min(count, _MOST_WORDS), _WORD * begin, bits)
            for number, word in enumerate(words):
                vector = writer.emit(f"insertelement <{count} x i32> {vector}, i32 {word}, i32 {begin + number}")
        return f"<{count} x i32>", vector

    def _words(self, state: State, address: str, count: int, begin: int, bits: str) -> list[str]:
        """Return words in memory from some byte on."""
        writer = state.writer
        registers = [f"${number}" for number in range(count)]
        clear = " ".join(f"mov.b32 {register}, 0;" for register in registers)
        many = f".v{count}" if count > 1 else ""
        named = f"{{{', '.join(registers)}}}" if count > 1 else registers[0]
        load = f"@p ld.global{many}.b32 {named}, [${count}+{begin}];"
        text = f"{{ .reg .pred p; setp.ne.b32 p, ${count + 1}, 0; {clear} {load} }}"
        result = f"{{{', '.join(['i32'] * count)}}}" if count > 1 else "i32"
        outputs = ",".join(["=&r"] * count)
        called = f'call {result} asm "{text}", "{outputs},l,r"({state.pointer} {address}, i32 {bits})'
        found = writer.emit(f"{called} nounwind willreturn memory(read)")
        if count == 1:
            return [found]
        return [writer.emit(f"extractvalue {result} {found}, {number}") for number in range(count)]


_INSTRUCTIONS = {
    1: ("mov.b32", "ld.global.u8", "r", "i32"),
    2: ("mov.b32", "ld.global.u16", "r", "i32"),
    4: ("mov.b32", "ld.global.b32", "r", "i32"),
    8: ("mov.b64", "ld.global.b64", "l", "i64"),
}
"""How an element of so many bytes is read: what clears a register, what reads, the kind of register, and its type."""


def reads_of(places: Places) -> Reads:
    """Write what is found once for a tile, of what a factor reads."""
    state, side = places.state, places.side
    if side.along is Along.SIDE:
        along = numbered(state, side, places.start, places.first_along)
        around = (_around(places, Strided(along, 1)),)
        there = (_first_bits(state, along, places.stop, places.tile.chunk),)
    else:
        rows = [numbered(state, side, places.start, places.across(number)) for number in range(places.count)]
        around = tuple(_around(places, Uniform(row, INT64)) for row in rows)
        full = (1 << places.tile.chunk) - 1
        tests = (state.writer.emit(f"icmp slt i64 {row}, {places.stop}") for row in rows)
        there = tuple(state.writer.emit(f"select i1 {test}, i32 {full}, i32 0") for test in tests)
    found = dict.fromkeys(
        node for node in walk(side.factor.value) if isinstance(node, Load) and not node.tensor.is_local
    )
    inner = {part for each in found for index in each.indices for part in walk(index) if isinstance(part, Load)}
    elements = (_element(places, each, around) for each in found if each not in inner)
    read = tuple(elements)
    return Reads(places, around, there, read, Early() if _may_be_early(places, read) else None)


def _may_be_early(places: Places, elements: Sequence[_Element]) -> bool:
    """Whether there are registers for what a stage's numbers are computed from while the one before is multiplied.

    Masks read elements, too.
    """
    if any(isinstance(node, Load) for node in walk(places.side.factor.masks)):
        return False
    if any(each.is_looked_up for each in elements):
        return False
    words = sum(_words_of_chunk(places, each) for each in elements)
    return places.count * words <= places.tile.spare_registers


def _words_of_chunk(places: Places, each: _Element) -> int:
    """Return how many registers the elements of a chunk wait in."""
    size = each.load.tensor.type.dtype.size
    if each.adjacent:
        return places.tile.chunk * size // _WORD
    return (1 if each.steady else places.tile.chunk) * max(size // _WORD, 1)


def _around(places: Places, row: Value) -> State:
    """Return the state of a chunk's lanes with the rows (or columns), and what is computed from them."""
    inner = replace(
        places.state.inner(),
        width=places.tile.chunk,
        mask=None,
        tail=None,
        divergent=False,
        varying=frozenset(),
        frame=None,
    )
    inner.values[places.side.index] = row
    for item in places.needed((places.side.factor.value, *places.side.factor.masks)):
        inner.values[item.symbol] = emit_expression(inner, item.value)
    return inner


def _element(places: Places, load: Load, around: Sequence[State]) -> _Element:
    side, depth = places.side, places.tile.depth
    pairs = [_parted(index, side.reached, places.tile.deep) for index in load.indices]
    rest = tuple(pair[1] for pair in pairs)
    unit = depth.index if side.along is Along.DEPTH else side.index
    adjacent = side.chunked and load.tensor in places.state.kernel.aligned
    adjacent = adjacent and load.tensor.type.contiguous and side.factor.lies_along(load, unit)
    adjacent = adjacent and places.tile.chunk * load.tensor.type.dtype.size % _WORD == 0
    steady = side.along is Along.DEPTH and all(_is_steady(index, depth.index, places.tile.chunk) for index in rest)
    steady = steady and (
        build.is_constant(depth.start, 0) or not any(depth.index in read_symbols(each) for each in rest)
    )
    fixed: list[Value] = []
    for state in around:
        indices = tuple(_index(state, load.tensor, pair[0]) for pair in pairs)
        fixed.append(_plain(state, element_offset(state, load.tensor, indices)))
    return _Element(load, tuple(fixed), rest, adjacent, steady)


def _index(state: State, tensor: Tensor, index: Expression) -> Value:
    """Return an index, modulo 2**32 where only sums and products lead to it: of all else the parts have to fit."""
    narrow = tensor in state.kernel.narrow and all(map(_is_modular, walk(index)))
    with state.writer.modular(narrow=narrow):
        return emit_expression(state, index)


@legality
def _is_modular(node: Node) -> bool:
    named = isinstance(node, Apply) and node.operator.name in {"add", "sub", "mul", "neg"}
    return named or isinstance(node, Constant | Read | Size)


def _plain(state: State, value: Value) -> Value:
    return value if isinstance(value, Uniform | Strided) else Varying(lanes.vector(state, value), INT64)


def _parted(index: Expression, rows: frozenset[Symbol], deep: frozenset[Symbol]) -> tuple[Expression, Expression]:
    """Return an index as a sum of what is found once for a tile, and of the rest."""
    match index:
        case Apply(operator=operator, operands=(left, right)) if (
            operator.name in {"add", "sub"} and index.dtype is INT64
        ):
            ours, theirs = _parted(left, rows, deep), _parted(right, rows, deep)
            one, other = (build.apply(operator.name, *pair) for pair in zip(ours, theirs, strict=True))
            return one, other
        case _:
            zero = build.integer(0)
            once = not read_symbols(index) & deep and not any(isinstance(node, Load) for node in walk(index))
            return (index, zero) if once else (zero, index)


def _is_steady(index: Expression, depth: Symbol, chunk: int) -> bool:
    """Whether an index is the same for all terms of a chunk."""
    match index:
        case Apply(operator=operator, operands=(Read(symbol=symbol), Constant(value=value))) if symbol == depth:
            return operator.name == "floordiv" and int(value) % chunk == 0
        case Read(symbol=symbol):
            return symbol != depth
        case Apply(operands=operands):
            return all(_is_steady(each, depth, chunk) for each in operands)
        case Load(indices=indices):
            return all(_is_steady(each, depth, chunk) for each in indices)
        case _:
            return depth not in read_symbols(index)


def _side_by_side(state: State, condition: Expression) -> str | None:
    """Return a bit for each lane that a condition holds for (i32), if these are the first ones, or the last ones."""
    match condition:
        case Apply(operator=operator, operands=(left, right)) if operator.name in MIRRORED and left.dtype is INT64:
            name, emit = operator.name, state.writer.emit
            values = [emit_expression(state, operand) for operand in (left, right)]
        case _:
            return None
    if isinstance(values[0], Uniform):
        name, values = MIRRORED[name], values[::-1]
    match values:
        case [Strided(base=base, stride=stride), Uniform(text=limit)] if stride > 0:
            pass
        case _:
            return None
    end = emit(f"add i64 {limit}, 1") if name in {"le", "gt"} else limit
    bits = _first_bits(state, base, end, state.width, stride)
    return bits if name in {"lt", "le"} else emit(f"xor i32 {bits}, {(1 << state.width) - 1}")


def _first_bits(state: State, begin: str, end: str, width: int, stride: int = 1) -> str:
    """Return a bit for each of the places from `begin` (i64) on, `stride` apart, that are before `end`, as i32."""
    writer = state.writer
    left = writer.emit(f"call i64 @llvm.smax.i64(i64 {writer.emit(f'sub i64 {end}, {begin}')}, i64 0)")
    if stride > 1:
        left = writer.emit(f"udiv i64 {writer.emit(f'add i64 {left}, {stride - 1}')}, {stride}")
    left = writer.emit(f"trunc i64 {writer.emit(f'call i64 @llvm.umin.i64(i64 {left}, i64 {width})')} to i32")
    return writer.emit(f"add i32 {writer.emit(f'shl i32 1, {left}')}, -1")
