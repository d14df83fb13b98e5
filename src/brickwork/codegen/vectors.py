"""Vector loops: full vectors of iterations without a mask, then one incomplete vector under a mask."""

from __future__ import annotations

from dataclasses import replace

from brickwork.codegen import lanes, loops
from brickwork.codegen.emitter_state import Slot, State
from brickwork.codegen.lane_values import Strided, Uniform, Value, scalar_type, vector_type
from brickwork.codegen.operators import apply, constant
from brickwork.codegen.variables import private_symbols, statement_count, varying_symbols
from brickwork.ir.dtypes import INT64, DType
from brickwork.ir.nodes import For, Reduction


def emit_vector(state: State, loop: For, bounds: tuple[Value, ...], emit_block: loops.EmitBlock) -> None:
    """Emit a loop of which each lane runs an iteration; `bounds` are its start and stop."""
    start, stop = (value.text for value in bounds if isinstance(value, Uniform))
    writer, width = state.writer, loop.width
    inner = lane_state(state, loop)
    slots = {item.symbol: reduction_slot(inner, item) for item in loop.reductions}
    inner.slots.update(slots)
    for symbol in slots:
        inner.values.pop(symbol, None)
    counter = writer.alloca("i64")
    writer.store("i64", start, counter)
    head, body, latch, rest, tail, done = (
        writer.label(stem) for stem in ("vector", "lanes", "next", "rest", "tail", "done")
    )
    twice = statement_count(loop.body) < loops.LARGE_BODY
    writer.place(head)
    first = writer.load("i64", counter)
    left = writer.emit(f"sub i64 {stop}, {first}")
    enough = writer.emit(f"icmp sge i64 {left}, {width if twice else 1}")
    writer.branch_if(enough, body, rest)
    writer.place(body)
    emit_lanes(_masked(inner, None if twice else left), loop, first, latch, emit_block)
    writer.place(latch)
    writer.store("i64", writer.emit(f"add i64 {first}, {width}"), counter)
    writer.branch(head)
    writer.place(rest)
    if twice:
        writer.branch_if(writer.emit(f"icmp sgt i64 {left}, 0"), tail, done)
        writer.place(tail)
        emit_lanes(_masked(inner, left), loop, first, done, emit_block)
    writer.place(done)
    for reduction in loop.reductions:
        _combine(state, inner, reduction)


def identity(reduction: Reduction) -> str:
    """Return the literal that a reduction starts from in a lane or a chunk."""
    dtype, name = reduction.symbol.dtype, reduction.operator.name
    if name in {"minimum", "maximum"}:
        return _limit(dtype, largest=name == "minimum")
    if name in {"bit_and", "logical_and"}:
        return constant(-1, INT64) if dtype.is_integer else "true"
    return constant(int(name == "mul"), dtype)


def _limit(dtype: DType, *, largest: bool) -> str:
    if dtype.is_float:
        return constant(float("inf") if largest else float("-inf"), dtype)
    if dtype is INT64:
        return constant(2**63 - 1 if largest else -(2**63), dtype)
    return constant(2**64 - 1 if largest else 0, dtype)


def lane_state(state: State, loop: For) -> State:
    """Return the state in which each lane runs an iteration of `loop`, with its private variables."""
    varying = varying_symbols(loop)
    inner = replace(state.inner(), width=loop.width, mask=None, tail=None, divergent=False, varying=varying, frame=None)
    for symbol in private_symbols(loop) - state.bound:
        kind = vector_type(scalar_type(symbol.dtype), loop.width if symbol in varying else 1)
        inner.slots[symbol] = Slot(state.writer.alloca(kind), symbol.dtype, symbol in varying)
        inner.values.pop(symbol, None)
    return inner


def _masked(state: State, left: str | None) -> State:
    """Return the state in which the first `left` lanes are active; all if it is None."""
    if left is None:
        return state
    count = state.writer.emit(f"call i64 @llvm.smin.i64(i64 {left}, i64 {state.width})")
    # Lane numbers -1, -2, ... are greater than -left - 1 in the first lanes.
    limit = state.writer.emit(f"sub i64 0, {count}")
    return replace(state, mask=loops.beyond(state, Strided("0", -1), limit), tail=count)


def emit_lanes(state: State, loop: For, first: str, latch: str, emit_block: loops.EmitBlock) -> None:
    """Emit the body once for all lanes, the first of which runs iteration `first`; it ends at the label `latch`."""
    inner = state.inner()
    inner = replace(inner, frame=loops.frame_of(inner, loop.body, latch, latch))
    if inner.frame is not None and inner.frame.broken is not None:
        inner = replace(inner, divergent=True)
    inner.values[loop.index] = Strided(first, 1)
    emit_block(inner, loop.body)


def reduction_slot(state: State, reduction: Reduction) -> Slot:
    """Return memory for the partial results of a reduction in lanes, set to the operator's identity."""
    kind = scalar_type(reduction.symbol.dtype)
    address = state.writer.alloca(vector_type(kind, state.width))
    start = lanes.splat(state, kind, identity(reduction))
    state.writer.store(vector_type(kind, state.width), start, address)
    return Slot(address, reduction.symbol.dtype, varying=state.width > 1, reduction=True)


def _combine(state: State, inner: State, reduction: Reduction) -> None:
    """Fold the lanes of a reduction into the variable outside."""
    writer, dtype, kind = state.writer, reduction.symbol.dtype, scalar_type(reduction.symbol.dtype)
    text = fold_lanes(state, inner, reduction)
    slot = state.slots[reduction.symbol]
    old = writer.load(kind, slot.address)
    writer.store(kind, apply(state, reduction.operator.name, dtype, (old, text), 1), slot.address)


def fold_lanes(state: State, inner: State, reduction: Reduction) -> str:
    """Return the result of a reduction over the lanes of `inner`, which are folded in halves."""
    writer, dtype, width = state.writer, reduction.symbol.dtype, inner.width
    kind, name = scalar_type(dtype), reduction.operator.name
    text = writer.load(vector_type(kind, width), inner.slots[reduction.symbol].address)
    while width > 1 and width % 2 == 0:
        width //= 2
        parts = [_half(state, text, kind, width, start) for start in (0, width)]
        text = apply(state, name, dtype, parts, width)
    if width > 1:
        items = [writer.emit(f"extractelement <{width} x {kind}> {text}, i64 {lane}") for lane in range(width)]
        text = items[0]
        for item in items[1:]:
            text = apply(state, name, dtype, (text, item), 1)
    return text


def _half(state: State, text: str, kind: str, width: int, start: int) -> str:
    whole = f"<{2 * width} x {kind}>"
    if width == 1:
        return state.writer.emit(f"extractelement {whole} {text}, i64 {start}")
    picks = ", ".join(f"i32 {start + lane}" for lane in range(width))
    return state.writer.emit(f"shufflevector {whole} {text}, {whole} poison, <{width} x i32> <{picks}>")
