"""Sequential loops: of one iteration at a time, or of all lanes together for as long as each of them needs.

Where lanes run different numbers of iterations, the loop runs without a mask up to the smallest of them and under a
mask from there to the largest. Statements in a body are emitted by the function that the caller hands in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brickwork.codegen import lanes, staged_rows, wide_loads
from brickwork.codegen.arrays import keeps_items_apart, turns_of
from brickwork.codegen.builder import Known
from brickwork.codegen.early_reads import early_reads
from brickwork.codegen.emitter_state import EmitBlock, Frame, State, full_unroll, no_unroll
from brickwork.codegen.expressions import emit_expression
from brickwork.codegen.lane_values import Strided, Uniform, Value, Varying, vector_type
from brickwork.codegen.operators import apply
from brickwork.codegen.variables import diverges, leaves_divergently, statement_count
from brickwork.codegen.windows import windows as found_windows
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Block, Constant, For, Load, Role, While
from brickwork.ir.walk import walk
from brickwork.transform.schedule.planner import LARGE_BODY
from brickwork.transform.schedule.register_tile import UNROLLED

MOST_STAGGERED = UNROLLED
"""Most iterations that are written out for lanes of a thread that end one after the other."""
FEW_STAGGERED = MOST_STAGGERED // 4
"""The same where rows may not be whole chunks: each element is read by itself then."""

_MOST, _LEAST = str(2**63 - 1), str(-(2**63))


def emit_for(state: State, loop: For, emit_block: EmitBlock) -> None:
    """Emit a loop whose iterations run in order."""
    if state.target.grid and keeps_items_apart(loop, state.target):
        _emit_apart(state, loop, emit_block)
        return
    start, stop = emit_expression(state, loop.start), emit_expression(state, loop.stop)
    writer = state.writer
    leave = writer.label("leave")
    counter = writer.alloca("i64")
    frame = _frame(state, loop.body, leave)
    if isinstance(start, Uniform) and isinstance(stop, Uniform):
        if state.target.grid and _is_limited(loop):
            start, stop = _opaque(state, start), _opaque(state, stop)
        inner, zero = _with_frame(state, frame), Uniform("0", INT64)
        note = _unroll_note(state, loop)

        def run(state: State, first: str, end: str) -> None:
            writer.store("i64", first, counter)
            if loop.unrolled > 1:
                _emit_turns(state, loop, emit_block, counter=counter, bounds=(first, end), start=zero)
            _emit_iterations(state, loop, emit_block, counter=counter, stop=end, start=zero, note=note)

        bounds = start.text, stop.text
        if state.target.grid and (stages := staged_rows.staged_steps(state, loop)) is not None:
            alone = writer.label("alone")
            staged_rows.emit_stages(inner, loop, stages, bounds, run, alone)
            writer.branch(leave)
            writer.place(alone)
        run(inner, *bounds)
        writer.place(leave)
        return
    trips = _difference(state, stop, start)
    writer.store("i64", "0", counter)
    if frame.broken is None and statement_count(loop.body) < LARGE_BODY:
        least = _extreme(state, trips, "min")
        if loop.unrolled > 1:
            inner = _with_frame(state, frame)
            _emit_turns(inner, loop, emit_block, counter=counter, bounds=("0", least), start=start)
        if _ends_staggered(state, loop, trips, least):
            _emit_staggered(_with_frame(state, frame), loop, emit_block, counter=counter, start=start)
            writer.place(leave)
            return
        note, inner = _unroll_note(state, loop), _with_frame(state, frame)
        _emit_iterations(inner, loop, emit_block, counter=counter, stop=least, start=start, note=note)
    most = _extreme(state, trips, "max")
    inner = _with_frame(state, frame)
    note = no_unroll(state.module) if loop.unrolled > 1 else ""
    _emit_iterations(inner, loop, emit_block, counter=counter, stop=most, start=start, trips=trips, note=note)
    writer.place(leave)


def _emit_apart(state: State, loop: For, emit_block: EmitBlock) -> None:
    """Emit a loop over a few items as so many copies, which read chunks where sizes say at run time that they can."""
    writer, rows = state.writer, wide_loads.rows(state, loop)
    leave = writer.label("leave")
    if rows:
        whole, other = writer.label("whole"), writer.label("other")
        writer.branch_if(wide_loads.are_whole(state, rows), whole, other)
        writer.place(whole)
        with wide_loads.read_whole(state, rows):
            _emit_copies(state, loop, leave, emit_block)
        writer.branch(leave)
        writer.place(other)
    _emit_copies(state, loop, leave, emit_block)
    writer.place(leave)


def _emit_copies(state: State, loop: For, leave: str, emit_block: EmitBlock) -> None:
    frame = _frame(state, loop.body, leave)
    first = int(loop.start.value) if isinstance(loop.start, Constant) else 0
    for number in range(first, first + turns_of(loop, state.target)):
        following = state.writer.label("step")
        inner = _begin_iteration(_with_frame(state, replace(frame, continue_label=following)), None)
        inner.values[loop.index] = Uniform(str(number), INT64)
        emit_block(inner, loop.body)
        state.writer.place(following)


def _unroll_note(state: State, loop: For) -> str:
    """Return what LLVM is told: a loop with one lane is the short version of another, and not worth more code."""
    if keeps_items_apart(loop, state.target):
        return full_unroll(state.module)
    short = loop.role is Role.VECTOR and loop.width == 1
    return no_unroll(state.module) if short or loop.unrolled > 1 else ""


def _is_limited(loop: For) -> bool:
    """Return whether a bound of a loop is the smaller or greater of others."""
    nodes = walk((loop.start, loop.stop))
    return any(isinstance(node, Apply) and node.operator.name in {"minimum", "maximum"} for node in nodes)


def _opaque(state: State, value: Uniform) -> Uniform:
    """Return a bound as LLVM cannot look into it: it unrolls loops only if their length is cheap to compute."""
    frozen = state.writer.emit(f"freeze i64 {value.text}")
    state.writer.learn(frozen, state.writer.known(value.text))
    return Uniform(frozen, value.dtype)


def emit_while(state: State, loop: While, emit_block: EmitBlock) -> None:
    """Emit a `while` loop."""
    writer = state.writer
    head, leave = writer.label("while"), writer.label("leave")
    divergent = state.width > 1 and diverges(loop, state.varying)
    frame = _frame(state, (*loop.prelude, *loop.body), leave, divergent=divergent)
    writer.place(head)
    inner = _begin_iteration(_with_frame(state, replace(frame, continue_label=head)), None)
    emit_block(inner, loop.prelude)
    condition = emit_expression(inner, loop.condition)
    body = writer.label("body")
    if isinstance(condition, Uniform):
        writer.branch_if(condition.text, body, leave)
        writer.place(body)
    elif frame.broken is None:
        msg = "lanes disagree on a condition that was taken to be uniform"
        raise TypeError(msg)
    else:
        flags = f"<{state.width} x i1>"
        failing = writer.emit(f"xor {flags} {lanes.vector(state, condition)}, splat (i1 true)")
        _join_mask(state, frame.broken, lanes.both(state, inner.mask, failing))
        live = lanes.both(state, inner.mask, lanes.vector(state, condition))
        writer.branch_if(lanes.any_lane(state, live), body, leave)
        writer.place(body)
        inner = replace(inner, mask=live)
    emit_block(inner, loop.body)
    if not writer.terminated and frame.broken is not None:
        live = lanes.both(state, state.mask, _absent(state, frame.broken))
        writer.branch_if(lanes.any_lane(state, live), head, leave)
    writer.branch(head)
    writer.place(leave)


def emit_leave(state: State, *, stop: bool) -> None:
    """Emit `break` (`stop`) or `continue` for the active lanes."""
    frame = state.frame
    if frame is None:
        msg = "break or continue outside of a loop"
        raise TypeError(msg)
    if state.mask == frame.outside:
        state.writer.branch(frame.break_label if stop else frame.continue_label)
        return
    if frame.broken is None or frame.skipped is None or state.mask is None:
        msg = "lanes leave a loop that was taken to be uniform"
        raise TypeError(msg)
    _join_mask(state, frame.broken if stop else frame.skipped, state.mask)


def still_active(state: State, end: str) -> State:
    """Return the state without the lanes that have left the iteration; jump to `end` where none is left."""
    frame, writer = state.frame, state.writer
    if frame is None or frame.broken is None or frame.skipped is None:
        return state
    mask = lanes.both(state, state.mask, _absent(state, frame.broken))
    mask = lanes.both(state, mask, _absent(state, frame.skipped))
    rest = writer.label("rest")
    writer.branch_if(lanes.any_lane(state, mask), rest, end)
    writer.place(rest)
    return replace(state, mask=mask, tail=None, divergent=True)


def frame_of(state: State, body: Block, leave: str, next_label: str) -> Frame:
    """Return the frame of a vector loop, whose iterations may end early but which none leaves."""
    return replace(_frame(state, body, leave), continue_label=next_label, outside=state.mask)


def _frame(state: State, body: Block, leave: str, *, divergent: bool = False) -> Frame:
    if state.width == 1 or not (divergent or leaves_divergently(body, state.varying)):
        return Frame(leave, "", None)
    kind = f"<{state.width} x i1>"
    broken, skipped = state.writer.alloca(kind), state.writer.alloca(kind)
    for address in (broken, skipped):
        state.writer.store(kind, "zeroinitializer", address)
    return Frame(leave, "", None, broken, skipped)


def _with_frame(state: State, frame: Frame) -> State:
    inner = state.inner()
    return replace(inner, frame=frame, divergent=state.divergent or frame.broken is not None)


def _emit_iterations(
    state: State,
    loop: For,
    emit_block: EmitBlock,
    *,
    counter: str,
    stop: str,
    start: Value,
    trips: Value | None = None,
    note: str = "",
) -> None:
    """Run the body from the counter's value up to `stop`; lanes for which it reaches `trips` are masked out."""
    writer, frame = state.writer, state.frame
    if frame is None:
        return
    head, body, latch, after = (writer.label(stem) for stem in ("for", "body", "next", "done"))
    writer.place(head)
    count = writer.load("i64", counter)
    writer.branch_if(writer.emit(f"icmp slt i64 {count}, {stop}"), body, after)
    writer.place(body)
    step = Uniform(count, INT64)
    inside = None if trips is None else beyond(state, trips, count)
    inner = _begin_iteration(replace(state, frame=replace(frame, continue_label=latch)), inside)
    if inside is not None and frame.broken is not None and inner.mask is not None:
        busy = writer.label("busy")
        writer.branch_if(lanes.any_lane(state, inner.mask), busy, frame.break_label)
        writer.place(busy)
    inner.values[loop.index] = step if start == Uniform("0", INT64) else _sum(state, start, step)
    emit_block(inner, loop.body)
    writer.place(latch)
    writer.store("i64", writer.emit(f"add nsw i64 {count}, 1"), counter)
    if frame.broken is not None:
        live = lanes.both(state, state.mask, _absent(state, frame.broken))
        writer.branch_if(lanes.any_lane(state, live), head, frame.break_label)
    writer.terminate(f"br label %{head}{note}")
    writer.place(after)


def _emit_turns(
    state: State, loop: For, emit_block: EmitBlock, *, counter: str, bounds: tuple[str, str], start: Value
) -> None:
    """Run the body from the counter's value, the first bound, on, several iterations a turn, as often as they fit.

    Where sizes tell at run time whether turns can read chunks, there are turns that do, and others.
    """
    rows = wide_loads.rows(state, loop)
    if rows:
        _emit_unrolled(state, loop, emit_block, counter=counter, bounds=bounds, start=start, rows=rows)
        bounds = (state.writer.load("i64", counter), bounds[1])
    _emit_unrolled(state, loop, emit_block, counter=counter, bounds=bounds, start=start, rows={})


def _emit_unrolled(
    state: State,
    loop: For,
    emit_block: EmitBlock,
    *,
    counter: str,
    bounds: tuple[str, str],
    start: Value,
    rows: Mapping[str, int],
) -> None:
    """Write the loop over turns of several iterations; they run if the sizes in `rows` are such multiples."""
    writer, frame, factor, (first, stop) = state.writer, state.frame, loop.unrolled, bounds
    if frame is None:
        return
    some = writer.emit(f"icmp slt i64 {first}, {stop}")
    trips = writer.emit(f"select i1 {some}, i64 {writer.emit(f'sub i64 {stop}, {first}')}, i64 0")
    end = writer.emit(f"add i64 {first}, {writer.emit(f'and i64 {trips}, {-factor}')}")
    if rows:
        end = writer.emit(f"select i1 {wide_loads.are_whole(state, rows)}, i64 {end}, i64 {first}")
    with wide_loads.read_whole(state, rows):
        opening = _at(_begin_iteration(state, None), loop, start, first)
        windows = found_windows(opening, loop)
        early = None if windows or rows else early_reads(state, loop)
        if windows or early is not None:
            with writer.when(writer.emit(f"icmp slt i64 {first}, {end}")):
                for window in windows:
                    window.begin(opening)
                if early is not None:
                    early.begin(lambda number: _step(state, loop, start, first, number))
    head, body, latch, after = (writer.label(stem) for stem in ("turn", "body", "next", "done"))
    writer.place(head)
    count = writer.load("i64", counter)
    least, most = writer.known(first), writer.known(stop)
    writer.learn(count, Known(least.low, max(least.high, most.high), min(least.multiple, factor)))
    writer.branch_if(writer.emit(f"icmp slt i64 {count}, {end}"), body, after)
    writer.place(body)
    with wide_loads.read_whole(state, rows):
        chunks = [window.turn(_at(_begin_iteration(state, None), loop, start, count)) for window in windows]
        asked: list[dict[Load, tuple[str, ...]]] = []
        if early is not None:
            later = writer.emit(f"add i64 {count}, {factor}")
            more = writer.emit(f"icmp slt i64 {later}, {end}")
            turn = writer.emit(f"select i1 {more}, i64 {later}, i64 {count}")
            asked = early.turn(state, lambda number: _step(state, loop, start, turn, number))
        for number in range(factor):
            following = writer.label("step") if number + 1 < factor else latch
            inner = _begin_iteration(replace(state, frame=replace(frame, continue_label=following)), None)
            step = writer.emit(f"add i64 {count}, {number}") if number else count
            items = {
                window.load: window.items(state, texts, number) for window, texts in zip(windows, chunks, strict=True)
            }
            items.update(asked[number] if asked else {})
            emit_block(replace(_at(inner, loop, start, step), read=items), loop.body)
            writer.place(following)
    writer.store("i64", writer.emit(f"add i64 {count}, {factor}"), counter)
    writer.terminate(f"br label %{head}{no_unroll(state.module)}")
    writer.place(after)


def _step(state: State, loop: For, start: Value, count: str, number: int) -> State:
    """Return the state of a step of the turn that begins after so many iterations."""
    inner = _begin_iteration(state, None)
    return _at(inner, loop, start, state.writer.emit(f"add i64 {count}, {number}") if number else count)


def _at(state: State, loop: For, start: Value, count: str) -> State:
    """Return the state of an iteration after so many others, with the loop's index there."""
    step = Uniform(count, INT64)
    state.values[loop.index] = step if start == Uniform("0", INT64) else _sum(state, start, step)
    return state


def _ends_staggered(state: State, loop: For, trips: Value, least: str) -> bool:
    """Whether lanes of a thread end an unrolled loop one after the other, few iterations apart."""
    if not (state.target.grid and loop.unrolled > 1 and state.mask is None and isinstance(trips, Strided)):
        return False
    most = FEW_STAGGERED if wide_loads.rows(state, loop) else MOST_STAGGERED
    return state.writer.known(least).low >= 0 and abs(trips.stride) * (state.width - 1) <= most


def _emit_staggered(state: State, loop: For, emit_block: EmitBlock, *, counter: str, start: Value) -> None:
    """Run what is left of an unrolled loop: what all lanes run, then what only some do, under constant masks."""
    writer, frame, width = state.writer, state.frame, state.width
    with wide_loads.read_whole(state, {}):
        trips = _difference(state, emit_expression(state, loop.stop), start)
        if frame is None or not isinstance(trips, Strided):
            return
        least = _extreme(state, trips, "min")
        root, constant = writer.parts(least)
        left = constant % loop.unrolled if writer.known(root).multiple % loop.unrolled == 0 else None
        if left is None:
            _emit_iterations(
                state, loop, emit_block, counter=counter, stop=least, start=start, note=no_unroll(state.module)
            )
        further = [abs(trips.stride) * (lane if trips.stride > 0 else width - 1 - lane) for lane in range(width)]
        for number in range(-(left or 0), max(further)):
            following = writer.label("step")
            mask = lanes.constant_mask([count > number for count in further]) if number >= 0 else None
            inner = _begin_iteration(replace(state, frame=replace(frame, continue_label=following)), mask)
            step = Uniform(writer.emit(f"add i64 {least}, {number}") if number else least, INT64)
            inner.values[loop.index] = step if start == Uniform("0", INT64) else _sum(state, start, step)
            emit_block(inner, loop.body)
            writer.place(following)


def _begin_iteration(state: State, inside: str | None) -> State:
    """Return the state of an iteration: without the lanes that have left, and within `inside`."""
    frame, mask = state.frame, state.mask
    inner = state.inner()
    if frame is None:
        return inner
    if frame.broken is not None and frame.skipped is not None:
        mask = lanes.both(state, mask, _absent(state, frame.broken))
        state.writer.store(f"<{state.width} x i1>", "zeroinitializer", frame.skipped)
    if inside is not None:
        mask = lanes.both(state, mask, inside)
    same = mask == state.mask
    return replace(
        inner,
        mask=mask,
        tail=state.tail if same else None,
        divergent=state.divergent or not same,
        frame=replace(frame, outside=mask),
    )


def beyond(state: State, value: Value, limit: str) -> str:
    """Return the mask of lanes in which an int64 is greater than the scalar `limit`."""
    near = lanes.compare(state, "gt", value, Uniform(limit, INT64))
    if near is not None:
        return near
    whole = f"<{state.width} x i64>"
    return state.writer.emit(f"icmp sgt {whole} {lanes.vector(state, value)}, {lanes.splat(state, 'i64', limit)}")


def _extreme(state: State, value: Value, name: str) -> str:
    """Return the least (`min`) or greatest (`max`) of an int64 over the active lanes."""
    emit = state.writer.emit
    if isinstance(value, Uniform):
        return value.text
    if isinstance(value, Strided) and (state.mask is None or state.tail is not None):
        if (value.stride > 0) == (name == "min"):
            return value.base
        steps = str((state.width - 1) * value.stride)
        if state.tail is not None:
            steps = emit(f"mul i64 {emit(f'sub i64 {state.tail}, 1')}, {value.stride}")
        return emit(f"add i64 {value.base}, {steps}")
    text, kind = lanes.vector(state, value), f"<{state.width} x i64>"
    if state.mask is not None:
        idle = f"splat (i64 {_MOST if name == 'min' else _LEAST})"
        text = emit(f"select <{state.width} x i1> {state.mask}, {kind} {text}, {kind} {idle}")
    return emit(f"call i64 @llvm.vector.reduce.s{name}.v{state.width}i64({kind} {text})")


def _difference(state: State, left: Value, right: Value) -> Value:
    return lanes.subtract(state, left, right) or _in_vectors(state, "sub", left, right)


def _sum(state: State, left: Value, right: Value) -> Value:
    return lanes.add(state, left, right) or _in_vectors(state, "add", left, right)


def _in_vectors(state: State, operator: str, left: Value, right: Value) -> Value:
    texts = (lanes.vector(state, left), lanes.vector(state, right))
    return Varying(apply(state, operator, INT64, texts, state.width), INT64)


def _absent(state: State, address: str) -> str:
    """Return the complement of the mask at `address`."""
    kind = vector_type("i1", state.width)
    return state.writer.emit(f"xor {kind} {state.writer.load(kind, address)}, splat (i1 true)")


def _join_mask(state: State, address: str, mask: str) -> None:
    kind = vector_type("i1", state.width)
    old = state.writer.load(kind, address)
    state.writer.store(kind, state.writer.emit(f"or {kind} {old}, {mask}"), address)
