"""LLVM for random numbers: Philox4x32-10 in 32-bit lanes, word for word as `ir/philox.py` has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.codegen import lanes
from brickwork.codegen.attributes import attributes
from brickwork.codegen.box_muller import polar
from brickwork.codegen.builder import FunctionWriter, float_lanes, integer_lanes
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import Strided, Uniform, Value, Varying, type_suffix, vector_type
from brickwork.codegen.sleef import call_function, join_pieces
from brickwork.codegen.trigonometry import sine_and_cosine
from brickwork.ir.nodes import Draw, Random
from brickwork.ir.philox import MULTIPLIERS, ROUNDS, SECOND_SITE, TWO_PI, WEYL
from brickwork.legality import legality

Words = tuple[str, str, str, str]


def draw(state: State, node: Random, operands: tuple[Value, ...]) -> Value:
    """Emit a random number; `operands` are key, counter, extra and the bounds."""
    uniform = all(isinstance(value, Uniform) for value in operands)
    width = 1 if uniform else state.width
    texts = [value.text if isinstance(value, Uniform) and uniform else lanes.vector(state, value) for value in operands]
    key, counter, extra, *bounds = texts
    if _shareable(state, node, operands):
        if isinstance(operands[1], Strided) and state.writer.known(operands[1].base).multiple % 4 == 0:
            return Varying(_by_blocks(state, node, operands), node.dtype)
        return Varying(_shared(state, node, operands), node.dtype)
    match node.draw:
        case Draw.UNIFORM:
            text = _unit(state, _word(state, _block(state, texts, node.site, width), counter, width), 0, width)
        case Draw.NORMAL:
            text = _normal(state, _block(state, (key, counter, extra), node.site, width), counter, width)
        case Draw.INTEGER:
            text = _integer(state, node, (key, counter, extra), (bounds[0], bounds[1]), width)
    return Uniform(text, node.dtype) if uniform else Varying(text, node.dtype)


def _block(state: State, operands: tuple[str, ...] | list[str], site: int, width: int) -> Words:
    """Return the four words of the block that holds the draw, as lanes of i32; by a function, to keep code small."""
    wide, word = vector_type("i64", width), vector_type("i32", width)
    name, kind = f"bw_philox.{width}", f"{{ {', '.join([word] * 4)} }}"
    if not any(f" @{name}(" in text.partition("nounwind")[0] for text in state.module.functions):
        parameters = ((wide, "key"), (wide, "counter"), (wide, "extra"), ("i32", "site"))
        header = f"{'alwaysinline' if state.target.grid else 'noinline'} memory(none) {attributes(state.target)}"
        writer = FunctionWriter(state.module, name, f"internal {kind}", parameters, header)
        inner = replace(state, writer=writer, width=width)
        result = "poison"
        for place, text in enumerate(_rounds(inner, width)):
            result = writer.emit(f"insertvalue {kind} {result}, {word} {text}, {place}")
        writer.terminate(f"ret {kind} {result}")
        writer.close()
    arguments = (*(f"{wide} {text}" for text in operands[:3]), f"i32 {site}")
    result = state.writer.call(kind, f"@{name}", arguments)
    first, second, third, last = (state.writer.emit(f"extractvalue {kind} {result}, {place}") for place in range(4))
    return first, second, third, last


def _rounds(state: State, width: int) -> Words:
    """Return the words of the block for the parameters of the function that is being written."""
    emit, wide, word = state.writer.emit, vector_type("i64", width), vector_type("i32", width)
    key, counter, extra = "%key", "%counter", "%extra"
    number = emit(f"lshr {wide} {counter}, {integer_lanes(2, width, 'i64')}")

    def halves(text: str) -> tuple[str, str]:
        high = emit(f"lshr {wide} {text}, {integer_lanes(32, width, 'i64')}")
        return emit(f"trunc {wide} {text} to {word}"), emit(f"trunc {wide} {high} to {word}")

    c0, c1 = halves(number)
    c2, _ = halves(extra)
    c3 = lanes.splat(state, "i32", "%site")
    k0, k1 = halves(key)
    for _ in range(ROUNDS):
        low0, high0 = _product(state, c0, MULTIPLIERS[0], width)
        low1, high1 = _product(state, c2, MULTIPLIERS[1], width)
        c0 = emit(f"xor {word} {emit(f'xor {word} {high1}, {c1}')}, {k0}")
        c2 = emit(f"xor {word} {emit(f'xor {word} {high0}, {c3}')}, {k1}")
        c1, c3 = low1, low0
        k0 = emit(f"add {word} {k0}, {integer_lanes(WEYL[0], width, 'i32')}")
        k1 = emit(f"add {word} {k1}, {integer_lanes(WEYL[1], width, 'i32')}")
    return c0, c1, c2, c3


def _product(state: State, text: str, factor: int, width: int) -> tuple[str, str]:
    """Return the low and the high half of the 64-bit product of i32 lanes and a constant."""
    if state.target.grid and width == 1:
        # As one product of 64 bits, LLVM would do all that follows in 64 bits.
        high = state.module.declare("llvm.nvvm.mulhi.ui", "i32", ("i32", "i32"))
        arguments = (f"i32 {text}", f"i32 {factor - 2**32}")
        return state.writer.emit(f"mul i32 {text}, {factor - 2**32}"), state.writer.call("i32", high, arguments)
    emit, wide, word = state.writer.emit, vector_type("i64", width), vector_type("i32", width)
    product = emit(f"mul {wide} {emit(f'zext {word} {text} to {wide}')}, {integer_lanes(factor, width, 'i64')}")
    high = emit(f"lshr {wide} {product}, {integer_lanes(32, width, 'i64')}")
    return emit(f"trunc {wide} {product} to {word}"), emit(f"trunc {wide} {high} to {word}")


def _word(state: State, words: Words, counter: str, width: int) -> str:
    """Return the word of the block that the counter names."""
    first = _bit(state, counter, 1, width)
    return _pick(
        state,
        _bit(state, counter, 2, width),
        _pick(state, first, words[3], words[2], width),
        _pick(state, first, words[1], words[0], width),
        width,
    )


def _bit(state: State, counter: str, bit: int, width: int) -> str:
    wide = vector_type("i64", width)
    masked = state.writer.emit(f"and {wide} {counter}, {integer_lanes(bit, width, 'i64')}")
    return state.writer.emit(f"icmp ne {wide} {masked}, {integer_lanes(0, width, 'i64')}")


def _pick(state: State, condition: str, then: str, otherwise: str, width: int, *, kind: str = "i32") -> str:
    whole = vector_type(kind, width)
    return state.writer.emit(f"select {vector_type('i1', width)} {condition}, {whole} {then}, {whole} {otherwise}")


def _unit(state: State, word: str, offset: int, width: int) -> str:
    """Return ((word >> 8) + offset) * 2**-24 as float32, exactly."""
    emit, whole, single = state.writer.emit, vector_type("i32", width), vector_type("float", width)
    bits = emit(f"lshr {whole} {word}, {integer_lanes(8, width, 'i32')}")
    if offset:
        bits = emit(f"add {whole} {bits}, {integer_lanes(offset, width, 'i32')}")
    return emit(f"fmul {single} {emit(f'uitofp {whole} {bits} to {single}')}, {float_lanes(2.0**-24, width)}")


def _normal(state: State, words: Words, counter: str, width: int) -> str:
    pair = _bit(state, counter, 2, width)
    first = _pick(state, pair, words[2], words[0], width)
    second = _pick(state, pair, words[3], words[1], width)
    sine, cosine = _box_muller(state, first, second, width)
    return _pick(state, _bit(state, counter, 1, width), sine, cosine, width, kind="float")


def _box_muller(state: State, first: str, second: str, width: int) -> tuple[str, str]:
    """Return the odd and the even number of a pair of words."""
    if state.target.grid:
        return _by_lanes(state, first, second, width)
    emit, single = state.writer.emit, vector_type("float", width)
    logarithm = call_function(state, "log", "float", (_unit(state, first, 1, width),), width)
    square = emit(f"fmul {single} {logarithm}, {float_lanes(-2.0, width)}")
    radius = emit(f"call {single} @llvm.sqrt.{type_suffix('float', width)}({single} {square})")
    angle = emit(f"fmul {single} {_unit(state, second, 0, width)}, {float_lanes(TWO_PI, width)}")
    if state.target.fused:
        sine, cosine = sine_and_cosine(state, angle, width)
    else:
        sine, cosine = (call_function(state, name, "float", (angle,), width) for name in ("sin", "cos"))
    return emit(f"fmul {single} {radius}, {sine}"), emit(f"fmul {single} {radius}, {cosine}")


def _by_lanes(state: State, first: str, second: str, width: int) -> tuple[str, str]:
    """Return the numbers of pairs of words on a GPU, where lanes are one thread's in any case."""
    if width == 1:
        return polar(state, first, second)
    emit, words, results = state.writer.emit, f"<{width} x i32>", ["poison", "poison"]
    for lane in range(width):
        pair = polar(state, *(emit(f"extractelement {words} {text}, i64 {lane}") for text in (first, second)))
        for number, text in enumerate(pair):
            results[number] = emit(f"insertelement <{width} x float> {results[number]}, float {text}, i64 {lane}")
    return results[0], results[1]


@legality
def _shareable(state: State, node: Random, operands: tuple[Value, ...]) -> bool:
    """Return whether four neighbouring lanes draw from one block, when the first counter is a multiple of four."""
    key, counter, extra = operands[:3]
    return (
        node.draw is not Draw.INTEGER
        and state.width % 4 == 0
        and isinstance(counter, Strided)
        and counter.stride == 1
        and isinstance(key, Uniform)
        and isinstance(extra, Uniform)
    )


def _shared(state: State, node: Random, operands: tuple[Value, ...]) -> str:
    """Emit lanes with counters in a row: each block once where they start at a block's first word, else by lanes."""
    writer, width = state.writer, state.width
    key, counter, extra = (lanes.vector(state, value) for value in operands[:3])
    first = operands[1].base if isinstance(operands[1], Strided) else "0"
    aligned, askew, after = writer.label("aligned"), writer.label("askew"), writer.label("drawn")
    rest = writer.emit(f"and i64 {first}, 3")
    writer.branch_if(writer.emit(f"icmp eq i64 {rest}, 0"), aligned, askew)
    writer.place(aligned)
    near = _by_blocks(state, node, operands)
    from_aligned = writer.block
    writer.branch(after)
    writer.place(askew)
    words = _block(state, (key, counter, extra), node.site, width)
    if node.draw is Draw.NORMAL:
        far = _normal(state, words, counter, width)
    else:
        far = _unit(state, _word(state, words, counter, width), 0, width)
    from_askew = writer.block
    writer.place(after)
    return writer.emit(f"phi <{width} x float> [{near}, %{from_aligned}], [{far}, %{from_askew}]")


def _by_blocks(state: State, node: Random, operands: tuple[Value, ...]) -> str:
    """Emit lanes with counters in a row that start at a block's first word, each block once."""
    width, first = state.width, operands[1].base if isinstance(operands[1], Strided) else "0"
    quarter = replace(state, width=width // 4)
    number = lanes.vector(quarter, Strided(first, 4)) if width > 4 else first
    alike = [lanes.vector(quarter, value) for value in (operands[0], operands[2])]
    words = _block(quarter, (alike[0], number, alike[1]), node.site, width // 4)
    if node.draw is Draw.NORMAL:
        starts, turns = (_interleave(state, (words[at], words[at + 2]), width // 2, "i32") for at in (0, 1))
        sine, cosine = _box_muller(state, starts, turns, width // 2)
        return _interleave(state, (cosine, sine), width, "float")
    return _unit(state, _interleave(state, words, width, "i32"), 0, width)


def _interleave(state: State, parts: Sequence[str], width: int, kind: str) -> str:
    """Return `width` lanes that take one of each part in turn."""
    size = width // len(parts)
    if size == 1:
        whole = "poison"
        for lane, part in enumerate(parts):
            whole = state.writer.emit(f"insertelement <{width} x {kind}> {whole}, {kind} {part}, i64 {lane}")
        return whole
    joined = join_pieces(state, parts, kind, width, size)
    picks = ", ".join(f"i32 {lane % len(parts) * size + lane // len(parts)}" for lane in range(width))
    whole = f"<{width} x {kind}>"
    return state.writer.emit(f"shufflevector {whole} {joined}, {whole} poison, <{width} x i32> <{picks}>")


def _integer(state: State, node: Random, operands: tuple[str, str, str], bounds: tuple[str, str], width: int) -> str:
    emit, wide, flags = state.writer.emit, vector_type("i64", width), vector_type("i1", width)
    low, high = bounds
    word = vector_type("i32", width)
    span = emit(f"sub {wide} {high}, {low}")
    picked = _word(state, _block(state, operands, node.site, width), operands[1], width)
    whole = emit(f"zext {word} {picked} to {wide}")
    near = emit(f"lshr {wide} {emit(f'mul {wide} {whole}, {span}')}, {integer_lanes(32, width, 'i64')}")
    picked = _word(state, _block(state, operands, node.site + SECOND_SITE, width), operands[1], width)
    second = emit(f"zext {word} {picked} to {wide}")
    first = emit(f"shl {wide} {whole}, {integer_lanes(32, width, 'i64')}")
    bits = emit(f"or {wide} {first}, {second}")
    far = _high_product(state, bits, span, width)
    small = emit(f"icmp ult {wide} {span}, {integer_lanes(1 << 32, width, 'i64')}")
    return emit(f"add {wide} {low}, {emit(f'select {flags} {small}, {wide} {near}, {wide} {far}')}")


def _high_product(state: State, left: str, right: str, width: int) -> str:
    """Return the high half of the 128-bit product of lanes of i64."""
    emit, wide, huge = state.writer.emit, vector_type("i64", width), vector_type("i128", width)
    first, second = (emit(f"zext {wide} {text} to {huge}") for text in (left, right))
    product = emit(f"lshr {huge} {emit(f'mul {huge} {first}, {second}')}, {integer_lanes(64, width, 'i128')}")
    return emit(f"trunc {huge} {product} to {wide}")
