"""Parallel loops on processors: the body becomes a function over a range, which torch's thread pool runs.

Loops nested directly in one another are one range. Work too small for a second thread stays on the first, without
asking the pool. Results do not depend on how the range is cut: reductions are summed in chunks of a size of their own,
combined in order.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.codegen.attributes import attributes
from brickwork.codegen.builder import FunctionWriter
from brickwork.codegen.cost import emit_cost
from brickwork.codegen.emitter_state import EmitBlock, Frame, State
from brickwork.codegen.expressions import emit_scalar, read
from brickwork.codegen.failures import emit_leave_if_failed
from brickwork.codegen.joins import identity
from brickwork.codegen.lane_values import Uniform, scalar_type
from brickwork.codegen.variables import private_symbols
from brickwork.codegen.vectors import accumulate, declare_private, emit_vector
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Check, For, Load, Reduction, Role, Store, Symbol, Tensor, joined_together
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.records import dataclass
from brickwork.transform.schedule.planner import SHARE

CHUNKS = 64
"""Largest number of partial results of a reduction."""
BLOCK_VECTORS = 64
"""Vectors in a block, where iterations of one loop are both shared out and put in lanes."""


@dataclass(frozen=True, slots=True)
class _Nest:
    """Loops that run as one range, outermost first, with the words of their bounds; and what the body needs."""

    loops: tuple[For, ...]
    captures: tuple[Symbol, ...]
    arrays: tuple[Tensor, ...]

    @property
    def last(self) -> For:
        """The innermost loop of the range."""
        return self.loops[-1]

    @property
    def reductions(self) -> tuple[Reduction, ...]:
        """What the range reduces into."""
        return self.last.reductions

    @property
    def block(self) -> int:
        """Iterations of the innermost loop in one step of the range."""
        return self.last.width * BLOCK_VECTORS if self.last.width > 1 else 1


def emit_parallel(state: State, loop: For, emit_block: EmitBlock) -> None:
    """Emit a parallel loop: a closure, the function that runs a part of it, and the call that shares it out."""
    nest = _nest(state, loop)
    writer = state.writer
    starts = [emit_scalar(state, item.start) for item in nest.loops]
    stops = [emit_scalar(state, item.stop) for item in nest.loops]
    counts = [_count(state, start, stop) for start, stop in zip(starts, stops, strict=True)]
    indices = {item.index: (start, stop) for item, start, stop in zip(nest.loops, starts, stops, strict=True)}
    work = emit_cost(state, nest.last.body, indices)
    if nest.block > 1:
        work = writer.emit(f"fmul double {work}, {nest.block}.0")
        rounded = writer.emit(f"add i64 {counts[-1]}, {nest.block - 1}")
        counts[-1] = writer.emit(f"udiv i64 {rounded}, {nest.block}")
    total = counts[0]
    for count in counts[1:]:
        total = writer.emit(f"mul i64 {total}, {count}")
    share = writer.emit(f"fdiv double {float(SHARE):.1f}, {work}")
    grain = writer.emit(f"call i64 @llvm.fptosi.sat.i64.f64(double {share})")
    grain = writer.emit(f"call i64 @llvm.smax.i64(i64 {grain}, i64 1)")
    words = [*starts, *stops, *counts, total]
    chunks, partials = total, ""
    if nest.reductions:
        chunks = writer.emit(f"call i64 @llvm.umin.i64(i64 {total}, i64 {CHUNKS})")
        partials = writer.alloca("i64", CHUNKS * len(nest.reductions))
        size = writer.emit(f"udiv i64 {total}, {writer.emit(f'call i64 @llvm.umax.i64(i64 {chunks}, i64 1)')}")
        size = writer.emit(f"call i64 @llvm.umax.i64(i64 {size}, i64 1)")
        grain = writer.emit(f"call i64 @llvm.smax.i64(i64 {writer.emit(f'sdiv i64 {grain}, {size}')}, i64 1)")
        words.append(chunks)
    closure = _fill_closure(state, nest, words, partials)
    name = state.module.fresh(f"{state.kernel.name}.parallel")
    _emit_function(state, nest, name, emit_block)
    _run(state, name, closure, (chunks, grain))
    if any(isinstance(node, Check) for node in statements(nest.last.body)):
        emit_leave_if_failed(state)
    if nest.reductions:
        _combine(state, nest, chunks, partials)


def _run(state: State, name: str, closure: str, range_and_grain: tuple[str, str]) -> None:
    """Write the call of the pool, or of the function itself where one thread is to do it all."""
    writer, (total, grain) = state.writer, range_and_grain
    alone, shared, after = (writer.label(stem) for stem in ("alone", "shared", "after"))
    writer.branch_if(writer.emit(f"icmp sle i64 {total}, {grain}"), alone, shared)
    writer.place(alone)
    writer.call("void", f"@{name}", ("i64 0", f"i64 {total}", f"ptr {closure}"))
    writer.branch(after)
    writer.place(shared)
    state.module.declare("torch_parallel_for", "i32", ("i64", "i64", "i64", "ptr", "ptr"))
    arguments = ("i64 0", f"i64 {total}", f"i64 {grain}", f"ptr @{name}", f"ptr {closure}")
    writer.call("i32", "@torch_parallel_for", arguments)
    writer.place(after)


def _nest(state: State, loop: For) -> _Nest:
    loops = [loop]
    while not loops[-1].reductions and loops[-1].width == 1 and len(loops[-1].body) == 1:
        inner = loops[-1].body[0]
        if not (isinstance(inner, For) and inner.role is Role.PARALLEL):
            break
        bounds = (inner.start, inner.stop)
        if read_symbols(bounds) & {item.index for item in loops}:
            break
        if inner.reductions:
            break
        loops.append(inner)
    needed = read_symbols(loops[-1].body) - {item.index for item in loops}
    needed -= {reduction.symbol for reduction in loops[-1].reductions}
    known = {symbol for symbol in needed if symbol in state.values or symbol in state.slots}
    private = private_symbols(loops[-1]) - state.values.keys()
    touched = (node.tensor for node in walk(loops[-1].body) if isinstance(node, Load | Store))
    arrays = tuple(dict.fromkeys(tensor for tensor in touched if tensor in state.arrays))
    return _Nest(tuple(loops), tuple(sorted(known - private, key=lambda symbol: symbol.number)), arrays)


def _count(state: State, start: str, stop: str) -> str:
    size = state.writer.emit(f"sub i64 {stop}, {start}")
    return state.writer.emit(f"call i64 @llvm.smax.i64(i64 {size}, i64 0)")


def _fill_closure(state: State, nest: _Nest, words: list[str], partials: str) -> str:
    """Write the context, the words of the bounds, the captured variables and the partial results' address."""
    writer = state.writer
    items = [("ptr", state.context), *(("i64", word) for word in words)]
    for symbol in nest.captures:
        value = read(state, symbol)
        if isinstance(value, Uniform):
            items.append((scalar_type(symbol.dtype), value.text))
    items.extend(("ptr", state.arrays[tensor].address) for tensor in nest.arrays)
    if partials:
        items.append(("ptr", partials))
    closure = writer.alloca("i64", len(items))
    for number, (kind, text) in enumerate(items):
        writer.store(kind, text, writer.slot(closure, number))
    return closure


def _emit_function(state: State, nest: _Nest, name: str, emit_block: EmitBlock) -> None:
    """Write the function that runs steps (or chunks of steps) from `begin` to `end`."""
    parameters = (("i64", "begin"), ("i64", "end"), ("ptr", "closure"))
    writer = FunctionWriter(state.module, name, "void", parameters, f"noinline {attributes(state.target)}")

    def word(number: int, kind: str = "i64") -> str:
        address = f"getelementptr inbounds i64, ptr %closure, i64 {number}"
        return writer.once(f"load {kind}, ptr {writer.once(address)}")

    depth = len(nest.loops)
    starts, stops, counts = ([word(1 + part * depth + at) for at in range(depth)] for part in range(3))
    place = 2 + 3 * depth + bool(nest.reductions)
    values = {
        symbol: Uniform(word(place + at, scalar_type(symbol.dtype)), symbol.dtype)
        for at, symbol in enumerate(nest.captures)
    }
    arrays = {
        tensor: replace(state.arrays[tensor], address=word(place + len(nest.captures) + at, "ptr"))
        for at, tensor in enumerate(nest.arrays)
    }
    inner = replace(
        state,
        writer=writer,
        context=word(0, "ptr"),
        values=dict(values),
        slots={},
        arrays=arrays,
        reserved={},
        parallel=True,
        frame=None,
        moving={},
    )
    declare_private(inner, nest.last)
    bounds = (starts, stops, counts)
    if nest.reductions:
        total, chunks = word(1 + 3 * depth), word(2 + 3 * depth)
        partials = word(place + len(nest.captures) + len(nest.arrays), "ptr")
        with writer.count("%begin", "%end") as chunk:
            low, high = (_edge(inner, text, total, chunks) for text in (chunk, writer.emit(f"add i64 {chunk}, 1")))
            _begin_partials(inner, nest)
            with writer.count(low, high) as step:
                _emit_step(inner, nest, step, bounds, emit_block)
            _store_partials(inner, nest, chunk, partials)
    else:
        with writer.count("%begin", "%end") as step:
            _emit_step(inner, nest, step, bounds, emit_block)
    writer.terminate("ret void")
    writer.close()


def _begin_partials(state: State, nest: _Nest) -> None:
    """Set the accumulators of a chunk to what they begin with."""
    for reduction in nest.reductions:
        kind = scalar_type(reduction.symbol.dtype)
        state.writer.store(kind, identity(reduction), state.slots[reduction.symbol].address)


def _store_partials(state: State, nest: _Nest, chunk: str, partials: str) -> None:
    """Store what a chunk has accumulated in its row of the partial results, a word for each reduction."""
    writer = state.writer
    for number, reduction in enumerate(nest.reductions):
        kind = scalar_type(reduction.symbol.dtype)
        place = writer.emit(f"mul i64 {chunk}, {len(nest.reductions)}")
        place = writer.emit(f"add i64 {place}, {number}")
        address = writer.emit(f"getelementptr i64, ptr {partials}, i64 {place}")
        writer.store(kind, writer.load(kind, state.slots[reduction.symbol].address), address)


def _edge(state: State, chunk: str, total: str, chunks: str) -> str:
    """Return where a chunk of the range begins."""
    emit = state.writer.emit
    return emit(f"udiv i64 {emit(f'mul i64 {chunk}, {total}')}, {chunks}")


def _emit_step(
    state: State, nest: _Nest, step: str, bounds: tuple[list[str], list[str], list[str]], emit_block: EmitBlock
) -> None:
    """Write one step: the indices from its number, then the body, or a block of vectors."""
    emit = state.writer.emit
    starts, stops, counts = bounds
    inner = replace(state.inner(), order=step)
    left = step
    places: dict[int, str] = {}
    for depth in range(len(nest.loops) - 1, 0, -1):
        quotient = emit(f"udiv i64 {left}, {counts[depth]}")
        places[depth] = emit(f"sub i64 {left}, {emit(f'mul i64 {quotient}, {counts[depth]}')}")
        left = quotient
    places[0] = left
    for depth, loop in enumerate(nest.loops):
        place = places[depth]
        if loop is nest.last and nest.block > 1:
            first = emit(f"add i64 {starts[depth]}, {emit(f'mul i64 {place}, {nest.block}')}")
            beyond = emit(f"call i64 @llvm.smin.i64(i64 {emit(f'add i64 {first}, {nest.block}')}, i64 {stops[depth]})")
            emit_vector(inner, loop, (Uniform(first, INT64), Uniform(beyond, INT64)), emit_block)
            return
        inner.values[loop.index] = Uniform(emit(f"add i64 {starts[depth]}, {place}"), INT64)
    after = state.writer.label("next")
    inner = replace(inner, frame=Frame(after, after, None))
    emit_block(inner, nest.last.body)
    state.writer.place(after)


def _combine(state: State, nest: _Nest, chunks: str, partials: str) -> None:
    """Fold the chunks' partial results into the variables, in order."""
    writer, count = state.writer, len(nest.reductions)
    with state.writer.count("0", chunks) as chunk:
        row = writer.emit(f"mul i64 {chunk}, {count}")
        parts: list[str] = []
        for number, reduction in enumerate(nest.reductions):
            place = writer.emit(f"add i64 {row}, {number}")
            address = writer.emit(f"getelementptr i64, ptr {partials}, i64 {place}")
            parts.append(writer.load(scalar_type(reduction.symbol.dtype), address))
        rest = iter(parts)
        for group in joined_together(nest.reductions):
            accumulate(state, group, [next(rest) for _ in group])
