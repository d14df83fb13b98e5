"""Vector loops: full vectors of iterations without a mask, then one incomplete vector under a mask.

Where a vector takes long, a loop of few iterations runs them one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.codegen import lanes, loops
from brickwork.codegen.emitter_state import Frame, Slot, State
from brickwork.codegen.joins import Group, accumulated, identity, joined
from brickwork.codegen.lane_values import Strided, Uniform, Value, scalar_type, vector_type
from brickwork.codegen.variables import private_symbols, statement_count, varying_symbols
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Block, Constant, For, Reduction, Role, Statement, While, joined_together
from brickwork.ir.walk import rewrite_statements, statements
from brickwork.transform.schedule.planner import FEW, LARGE_BODY


def emit_vector(state: State, loop: For, bounds: tuple[Value, ...], emit_block: loops.EmitBlock) -> None:
    """Emit a loop of which each lane runs an iteration; `bounds` are its start and stop."""
    start, stop = (value.text for value in bounds if isinstance(value, Uniform))
    writer, width = state.writer, loop.width
    after = _emit_few(state, loop, start, stop, emit_block) if _is_dear(state, loop) else ""
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
    twice = statement_count(loop.body) < LARGE_BODY
    writer.place(head)
    first = writer.load("i64", counter)
    left = writer.emit(f"sub i64 {stop}, {first}")
    enough = writer.emit(f"icmp sge i64 {left}, {width if twice else 1}")
    writer.branch_if(enough, body, rest)
    writer.place(body)
    emit_lanes(masked(inner, None if twice else left), loop, first, latch, emit_block)
    writer.place(latch)
    writer.store("i64", writer.emit(f"add i64 {first}, {width}"), counter)
    writer.branch(head)
    writer.place(rest)
    if twice:
        writer.branch_if(writer.emit(f"icmp sgt i64 {left}, 0"), tail, done)
        writer.place(tail)
        emit_lanes(masked(inner, left), loop, first, done, emit_block)
    writer.place(done)
    for group in joined_together(loop.reductions):
        _combine(state, inner, group)
    if after:
        writer.place(after)


def _is_dear(state: State, loop: For) -> bool:
    """Whether a vector takes long however few iterations it has, and a processor runs it.

    There are loops inside, or it updates elements: what a vector stores under a mask is not at hand when the loop runs
    again, until it is in the cache.
    """
    inside = any(isinstance(node, For | While) for node in statements(loop.body))
    done = effects(loop.body)
    updates = not isinstance(loop.stop, Constant) and bool(done.stores & done.loads)
    return (inside or updates) and not loop.reductions and state.width == 1 and not state.target.grid


def _emit_few(state: State, loop: For, start: str, stop: str, emit_block: loops.EmitBlock) -> str:
    """Emit a short loop, whose iterations run one after the other; return the label after it.

    With a fourth of the lanes at work that is as fast where they read neighbours, and faster where they read apart.
    """
    writer = state.writer
    alone, together, done = (writer.label(stem) for stem in ("alone", "together", "done"))
    length = writer.emit(f"sub i64 {stop}, {start}")
    writer.branch_if(writer.emit(f"icmp sle i64 {length}, {min(FEW, loop.width // 4)}"), alone, together)
    writer.place(alone)
    inner = replace(state.inner(), varying=frozenset())
    declare_private(inner, loop)
    with writer.count(start, stop) as number:
        after = writer.label("next")
        inner.values[loop.index] = Uniform(number, INT64)
        emit_block(replace(inner.inner(), frame=Frame(after, after, None)), rewrite_statements(loop.body, _short))
        writer.place(after)
    writer.branch(done)
    writer.place(together)
    return done


def _short(statement: Statement) -> Block:
    """Return a loop of a short version of another, which LLVM does not unroll by more than a known length."""
    if not isinstance(statement, For) or statement.role is not Role.SEQUENTIAL or isinstance(statement.stop, Constant):
        return (statement,)
    return (replace(statement, role=Role.VECTOR, width=1),)


def declare_private(state: State, loop: For) -> None:
    """Give the variables of one iteration of a loop memory of their own."""
    symbols = private_symbols(loop) - state.bound | {reduction.symbol for reduction in loop.reductions}
    for symbol in symbols:
        state.slots[symbol] = Slot(state.writer.alloca(scalar_type(symbol.dtype)), symbol.dtype, varying=False)
        state.values.pop(symbol, None)


def lane_state(state: State, loop: For) -> State:
    """Return the state in which each lane runs an iteration of `loop`, with its private variables."""
    varying = varying_symbols(loop)
    inner = replace(state.inner(), width=loop.width, mask=None, tail=None, divergent=False, varying=varying, frame=None)
    for symbol in private_symbols(loop) - state.bound:
        kind = vector_type(scalar_type(symbol.dtype), loop.width if symbol in varying else 1)
        inner.slots[symbol] = Slot(state.writer.alloca(kind), symbol.dtype, symbol in varying)
        inner.values.pop(symbol, None)
    return inner


def masked(state: State, left: str | None) -> State:
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


def _combine(state: State, inner: State, group: Group) -> None:
    """Fold the lanes of reductions that go together into the variables outside."""
    accumulate(state, group, fold_lanes(state, inner, group))


def accumulate(state: State, group: Group, texts: Sequence[str]) -> None:
    """Join a partial result of later iterations with the variables of reductions that go together."""
    writer, kinds = state.writer, [scalar_type(item.symbol.dtype) for item in group]
    addresses = [state.slots[item.symbol].address for item in group]
    old = [writer.load(kind, address) for kind, address in zip(kinds, addresses, strict=True)]
    for kind, text, address in zip(kinds, accumulated(state, group, old, texts), addresses, strict=True):
        writer.store(kind, text, address)


def fold_lanes(state: State, inner: State, group: Group) -> list[str]:
    """Return the result of reductions that go together over the lanes of `inner`, which are folded in halves."""
    writer, width = state.writer, inner.width
    kinds = [scalar_type(item.symbol.dtype) for item in group]
    slots = [inner.slots[item.symbol].address for item in group]
    texts = [writer.load(vector_type(kind, width), slot) for kind, slot in zip(kinds, slots, strict=True)]
    while width > 1 and width % 2 == 0:
        width //= 2
        pairs = [*zip(texts, kinds, strict=True)]
        one, other = ([_half(state, *pair, width, start) for pair in pairs] for start in (0, width))
        texts = joined(state, group, one, other, width)
    if width > 1:
        pairs = [*zip(texts, kinds, strict=True)]
        lanes = [
            [writer.emit(f"extractelement <{width} x {kind}> {text}, i64 {lane}") for text, kind in pairs]
            for lane in range(width)
        ]
        texts = lanes[0]
        for other in lanes[1:]:
            texts = joined(state, group, texts, other)
    return texts


def _half(state: State, text: str, kind: str, width: int, start: int) -> str:
    whole = f"<{2 * width} x {kind}>"
    if width == 1:
        return state.writer.emit(f"extractelement {whole} {text}, i64 {start}")
    picks = ", ".join(f"i32 {start + lane}" for lane in range(width))
    return state.writer.emit(f"shufflevector {whole} {text}, {whole} poison, <{width} x i32> <{picks}>")
