"""A tile of a contraction, run by a block of threads: stages, products, and the statements after the sum.

While a stage is multiplied the next ones are on their way. The sums then go through shared memory, from which threads
take neighbouring columns: the statements after the sum run as lanes, in the order of memory. A sum that is not finite
is computed again in the order of the source: matrix instructions treat infinities in parts, and masked terms as zeros,
and what scales a sum once does not meet the zeros among its terms. So is one that differs otherwise, as
`analysis/late_scales.py` says.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.contractions import computed_from
from brickwork.analysis.late_scales import differs_late
from brickwork.codegen import lanes, vectors
from brickwork.codegen.builder import Known
from brickwork.codegen.emitter_state import EmitBlock, Frame, State
from brickwork.codegen.expressions import emit_expression
from brickwork.codegen.lane_values import Strided, Uniform, Value, Varying
from brickwork.codegen.teams import block_barrier
from brickwork.codegen.thread_iterations import register
from brickwork.codegen.tile import Tile, tile_of
from brickwork.codegen.tile_cluster import add_up, meet, part
from brickwork.codegen.tile_places import SHARED, ends_of, numbered, shared
from brickwork.codegen.tile_products import Warp, warp_of
from brickwork.codegen.tile_stages import sum_up
from brickwork.codegen.words import Words
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT64, DType
from brickwork.ir.nodes import Assign, Block, Constant, Expression, For, Reduction, Role, Symbol
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import read_symbols
from brickwork.legality import hazard
from brickwork.transform.schedule.grid import MOST_LANES

_LANES = MOST_LANES
"""Neighbouring columns of which a thread runs the statements after the sum."""


def emit_contraction(state: State, rows: For, emit_block: EmitBlock) -> None:
    """Emit a nest of two TILE loops."""
    tile = tile_of(rows, state.kernel.facts)
    thread = register(state, "tid.x")
    warp = warp_of(state, tile, thread)
    sum_up(state, tile, thread, warp)
    _keep(state, tile, warp)
    meet(state)
    _finish(state, tile, rows, thread, emit_block)
    meet(state)


# ---------------------------------------------------------------- after the sum


def _keep(state: State, tile: Tile, warp: Warp) -> None:
    """Put the sums into shared memory, row by row."""
    words, writer, kind = Words(state.writer), state.writer, tile.kind
    row = words.add(warp.row, words.right(warp.lane, 2))
    column = words.add(warp.column, words.left(words.both(warp.lane, 3), 1))
    size = tile.sum_bytes
    apart, along = (size, tile.pitch) if tile.crossed else (tile.pitch, size)
    start = words.add(words.mul(row, apart), words.mul(column, along))
    for line, each in enumerate(warp.sums):
        for number, places in enumerate(each):
            for half in range(2):
                at = words.add(start, (16 * line + 8 * half) * apart + 8 * number * along)
                both = [writer.load(kind, places[2 * half + item]) for item in range(2)]
                if tile.crossed:
                    for item, text in enumerate(both):
                        writer.store(kind, text, shared(state, words.add(at, item * along)), pointer=SHARED)
                    continue
                pair = "poison"
                for item, text in enumerate(both):
                    pair = writer.emit(f"insertelement <2 x {kind}> {pair}, {kind} {text}, i32 {item}")
                writer.store(f"<2 x {kind}>", pair, shared(state, at), f", align {2 * size}", pointer=SHARED)
    block_barrier(state)


def _finish(state: State, tile: Tile, rows: For, thread: str, emit_block: EmitBlock) -> None:
    """Run the statements after the sum, for neighbouring columns at once."""
    writer, words = state.writer, Words(state.writer)
    team = state.team
    if team is not None:
        state = replace(state, team=replace(team, alone=True))
    start, stop = ends_of(state, rows)
    columns = tile.columns.loop
    first, last = ends_of(state, columns)
    each = tile.columns.size // _LANES
    here, parts = part(state)
    turns = writer.emit(
        f"udiv i32 {writer.emit(f'add i32 {parts}, {tile.rows.size * each // tile.threads - 1}')}, {parts}"
    )
    with writer.count("0", str(words.wide(turns))) as turn:
        place = writer.emit(f"mul i32 {writer.emit(f'trunc i64 {turn} to i32')}, {parts}")
        number = words.add(thread, words.mul(words.add(place, here), tile.threads))
        line, place = words.div(number, each), words.left(words.rem(number, each), _LANES.bit_length() - 1)
        row, column = (
            numbered(state, side, begin, words.wide(word))
            for side, begin, word in ((tile.rows, start, line), (tile.columns, first, place))
        )
        writer.learn(column, Known(multiple=_LANES))
        there = writer.emit(f"icmp slt i64 {row}, {stop}")
        there = writer.emit(f"and i1 {there}, {writer.emit(f'icmp slt i64 {column}, {last}')}")
        there = writer.emit(f"and i1 {there}, {writer.emit(f'icmp ult i32 {line}, {tile.rows.size}')}")
        with writer.when(there):
            address = shared(state, words.add(words.mul(line, tile.pitch), words.mul(place, tile.sum_bytes)))
            add_up(state, tile, address, _LANES)
            inner = state.inner()
            inner.values[rows.index] = Uniform(row, INT64)
            _columns(inner, tile, (column, last), address, emit_block)


def _columns(state: State, tile: Tile, bounds: tuple[str, str], address: str, emit_block: EmitBlock) -> None:
    """Run the statements after the sum for up to eight columns: as lanes if all are there and finite."""
    writer, (first, last) = state.writer, bounds
    kind = f"<{_LANES} x {tile.kind}>"
    text = writer.load(kind, address, ", align 16", pointer=SHARED)
    beyond = writer.emit(f"add i64 {first}, {_LANES}")
    whole = writer.emit(f"icmp sle i64 {beyond}, {last}")
    if _may_differ(tile):
        whole = writer.emit(f"and i1 {whole}, {_are_finite(state, tile.contraction.symbol.dtype, text)}")
    together, alone, after = (writer.label(stem) for stem in ("together", "alone", "stored"))
    writer.branch_if(whole, together, alone)
    writer.place(together)
    loop = _after(tile)
    inner = vectors.lane_state(state, loop).inner()
    inner = replace(inner, frame=Frame(after, after, None))
    inner.values[loop.index] = Strided(first, 1)
    total = _sum_of(tile)
    wide = _widened(state, tile, text, f"<{_LANES} x ", ">")
    inner.values[total] = Varying(wide, total.dtype)
    if (scaled := _scaled(inner, tile)) is not None:
        kept = writer.label("scaled")
        writer.branch_if(_are_finite(state, total.dtype, lanes.vector(inner, scaled)), kept, alone)
        writer.place(kept)
    if (differs := _differs(inner, tile)) is not None:
        kept = writer.label("same")
        writer.branch_if(lanes.any_lane(inner, lanes.vector(inner, differs)), alone, kept)
        writer.place(kept)
    emit_block(inner, loop.body)
    writer.branch(after)
    writer.place(alone)
    left = writer.emit(f"call i64 @llvm.smin.i64(i64 {writer.emit(f'sub i64 {last}, {first}')}, i64 {_LANES})")
    with writer.count("0", left) as number:
        single = state.inner()
        place = writer.emit(f"getelementptr {tile.kind}, {SHARED} {address}, i64 {number}")
        single.values[loop.index] = Uniform(writer.emit(f"add i64 {first}, {number}"), INT64)
        text = writer.load(tile.kind, place, pointer=SHARED)
        wide = _widened(state, tile, text)
        single.values[total] = Uniform(wide, total.dtype)
        _one(single, tile, loop, emit_block)
    writer.place(after)


def _widened(state: State, tile: Tile, text: str, before: str = "", after: str = "") -> str:
    """Return sums, as lanes or one alone, in the type of the variable: words are longer integers, or floats."""
    if not tile.contraction.is_whole:
        return text
    how, wide = ("sitofp", "double") if tile.contraction.symbol.dtype is FLOAT64 else ("sext", "i64")
    return state.writer.emit(f"{how} {before}i32{after} {text} to {before}{wide}{after}")


def _one(state: State, tile: Tile, loop: For, emit_block: EmitBlock) -> None:
    """Run the statements after the sum for one column."""
    writer = state.writer
    value = state.values[_sum_of(tile)]
    if not isinstance(value, Uniform):
        raise TypeError("a sum of one column is a number")
    again, after = (writer.label(stem) for stem in ("again", "one"))
    asked: list[str] = []
    for each in (value if _may_differ(tile) else None, _scaled(state, tile)):
        if isinstance(each, Uniform):
            kind, real, infinite = _INFINITE[each.dtype]
            size = writer.emit(f"and {kind} {writer.emit(f'bitcast {real} {each.text} to {kind}')}, {infinite}")
            asked.append(writer.emit(f"icmp eq {kind} {size}, {infinite}"))
    if isinstance(differs := _differs(state, tile), Uniform):
        asked.append(differs.text)
    for each in asked:
        kept = writer.label("kept")
        writer.branch_if(each, again, kept)
        writer.place(kept)
    emit_block(state.inner(), loop.body)
    writer.branch(after)
    if asked:
        writer.place(again)
        emit_block(state.inner(), (*_heads(tile), *tile.columns.loop.body))
        writer.branch(after)
    writer.place(after)


def _scaled(state: State, tile: Tile) -> Value | None:
    """Return what scales the sum, times it, where an infinity is to meet each product, or the sum may be one alone."""
    found = tile.contraction
    if found.is_whole or (all(isinstance(each, Constant) for each in found.scale) and not _may_overflow(tile)):
        return None
    return _before(state, tile, _total(tile))


def _differs(state: State, tile: Tile) -> Value | None:
    """Return whether a finite sum is another number than the source's; None if it never is."""
    asked = differs_late(tile.contraction, _sum_of(tile))
    return None if asked is None else _before(state, tile, asked)


def _before(state: State, tile: Tile, expression: Expression) -> Value:
    """Return the value of an expression of the sum, and of what was computed before it."""
    inner = state.inner()
    for item in computed_from(tile.contraction.before, read_symbols(expression)):
        inner.values[item.symbol] = emit_expression(inner, item.value)
    return emit_expression(inner, expression)


def _are_finite(state: State, dtype: DType, text: str) -> str:
    """Return whether all lanes are finite."""
    kind, real, infinite = _INFINITE[dtype]
    bits = state.writer.emit(f"bitcast <{_LANES} x {real}> {text} to <{_LANES} x {kind}>")
    size = state.writer.emit(f"and <{_LANES} x {kind}> {bits}, splat ({kind} {infinite})")
    most = state.writer.emit(f"call {kind} @llvm.vector.reduce.umax.v{_LANES}{kind}(<{_LANES} x {kind}> {size})")
    return state.writer.emit(f"icmp ne {kind} {most}, {infinite}")


_INFINITE = {FLOAT32: ("i32", "float", 0x7F800000), FLOAT64: ("i64", "double", 0x7FF0000000000000)}
"""A type as a word and as LLVM names it, and the bits that are all set in infinities and NaN."""


def _sum_of(tile: Tile) -> Symbol:
    """Return the variable for what the products of an element are in sum."""
    return Symbol("sum", -1, tile.contraction.symbol.dtype)


@hazard
def _may_differ(tile: Tile) -> bool:
    """Whether what is not finite may be another number than the order of the source gives."""
    parted = any(side.factor.masks or side.meets or side.parts > 1 for side in tile.sides)
    return not tile.contraction.is_whole and (tile.dtype is FLOAT32 or parted)


@hazard
def _may_overflow(tile: Tile) -> bool:
    """Whether a sum may be infinite before a number makes it smaller, which is not seen otherwise."""
    scale = (factor.value for factor in tile.contraction.scale if isinstance(factor, Constant))
    return not _may_differ(tile) and any(abs(value) < 1 for value in scale)


def _heads(tile: Tile) -> Block:
    return tuple(item for item in tile.rows.loop.body if isinstance(item, Assign))


def _total(tile: Tile) -> Expression:
    return build.product([build.read(_sum_of(tile)), *tile.contraction.scale])


def _after(tile: Tile) -> For:
    """Return the loop over columns with the sum in place of the loops that sum up."""
    found = tile.contraction
    total = _total(tile)
    begun = build.read(found.symbol)
    total = build.apply("add", begun, total)
    for condition in found.where:
        total = build.select(condition, total, begun)
    body = (*found.before, Assign(symbol=found.symbol, value=total), *found.after)
    # The sum differs between lanes, as what a loop accumulates does.
    kept = (Reduction(_sum_of(tile), OPERATORS["add"]),)
    return replace(tile.columns.loop, body=body, role=Role.VECTOR, width=_LANES, reductions=kept)
