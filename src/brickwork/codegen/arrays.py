"""Memory of locals: where the array that a `Local` declares lies, and its elements while lanes run side by side.

Arrays lie in the function's stack, reserved once however often their block runs; tables are constants of the module.
One that lanes declare has an element of all lanes after the other, so that an index on which lanes agree is one vector.
Invariant: a lane touches its own elements only, and constant indices leave LLVM free to keep elements in registers.
"""

from __future__ import annotations

from math import prod

from brickwork.codegen import lanes
from brickwork.codegen.emitter_state import Array, State
from brickwork.codegen.lane_access import Place, load_lanes, store_lanes
from brickwork.codegen.lane_values import Uniform, Value, memory_type, type_suffix, vector_type
from brickwork.codegen.operators import constant
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.ir.dtypes import BOOL
from brickwork.ir.nodes import Block, Constant, For, If, Load, Local, Store, Tensor, While
from brickwork.ir.walk import walk
from brickwork.target.target import Target


def keeps_items_apart(loop: For, target: Target) -> bool:
    """Return whether a loop over the items of locals is short enough to be written out.

    Then LLVM sees constant indices, and the items stay in registers.
    """
    touched = (node.tensor for node in walk(loop.body) if isinstance(node, Load | Store))
    if not any(tensor.is_local for tensor in touched):
        return False
    return turns_of(loop, target) > 0 and _written_out((loop,), target) <= target.written_nodes


def turns_of(loop: For, target: Target) -> int:
    """Return the number of iterations, or 0 where it is not known or large."""
    if not (isinstance(loop.start, Constant) and isinstance(loop.stop, Constant)):
        return 0
    turns = max(int(loop.stop.value) - int(loop.start.value), 0)
    return turns if turns <= target.written_turns else 0


def _written_out(block: Block, target: Target) -> int:
    """Return the nodes of a block with its short loops written out; large where a loop is not short."""
    total = 0
    for statement in block:
        match statement:
            case For(body=body):
                total += turns_of(statement, target) * _written_out(body, target) or target.written_nodes + 1
            case If(condition=condition, then=then, otherwise=otherwise):
                total += sum(1 for _ in walk(condition)) + _written_out(then, target) + _written_out(otherwise, target)
            case While():
                return target.written_nodes + 1
            case _:
                total += sum(1 for _ in walk(statement))
    return total


def declare(state: State, statement: Local) -> None:
    """Give a local its memory in this region."""
    tensor, kind = statement.tensor, memory_type(statement.tensor.type.dtype)
    if statement.values:
        state.arrays[tensor] = Array(_table(state, statement, kind), 1, state.pointer)
        return
    width, count = state.width, prod(tensor.sizes)
    place = state.reserved.get((tensor, width))
    if place is None:
        place = state.writer.alloca(f"[{count} x {vector_type(kind, width)}]")
        state.reserved[tensor, width] = place
        stack = state.target.stack_bytes
        taken = sum(prod(each.sizes) * each.type.dtype.size * lanes for each, lanes in state.reserved)
        if taken > stack and not state.target.grid:
            message = f"lists of one iteration take more than {stack >> 20} MiB of a thread's stack"
            advice = "make long lists before the loops, or use tensors with a row for each iteration"
            raise CompileError(Diagnostic(code="BW901", message=message, loc=statement.loc, help=advice))
    state.arrays[tensor] = Array(place, width, "ptr")
    if state.mask is not None:
        # Lanes that are masked out go through the same arithmetic, where what they load must not be anything.
        size = count * width * tensor.type.dtype.size
        state.writer.effect(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {size}, i1 false)")


def _table(state: State, statement: Local, kind: str) -> str:
    dtype = statement.tensor.type.dtype
    items = ", ".join(f"{kind} {int(value) if dtype is BOOL else constant(value, dtype)}" for value in statement.values)
    space = "addrspace(1) " if state.target.grid else ""
    body = f"internal unnamed_addr {space}constant [{len(statement.values)} x {kind}] [{items}], align {dtype.size}"
    globals_ = state.module.globals
    found = next((name for name, line in globals_.items() if line.endswith(f" = {body}")), None)
    if found is None:
        found = state.module.fresh("table")
        globals_[found] = f"@{found} = {body}"
    return f"@{found}"


def lane_array(state: State, tensor: Tensor) -> Array | None:
    """Return the array of a local that the lanes of this region have declared, each its own; None for all others."""
    array = state.arrays.get(tensor)
    return array if array is not None and array.width > 1 else None


def load_item(state: State, array: Array, tensor: Tensor, offset: Value) -> str:
    """Return the elements at `offset` of the lanes' arrays as a vector."""
    kind, width = memory_type(tensor.type.dtype), state.width
    whole = vector_type(kind, width)
    if isinstance(offset, Uniform):
        text = state.writer.load(whole, _row(state, array, whole, offset), f", align {_alignment(tensor, width)}")
        return text if state.mask is None else state.writer.emit(f"freeze {whole} {text}")
    places = _items(state, array, kind, offset)
    if state.target.grid:
        return load_lanes(state, kind, _split(state, tensor, places), state.mask, "", "ptr")
    mask = f"<{width} x i1> {state.mask or 'splat (i1 true)'}"
    name = f"@llvm.masked.gather.{type_suffix(kind, width)}.v{width}p0"
    pointers = f"<{width} x ptr> align {tensor.type.dtype.size} {places}"
    return state.writer.emit(f"call {whole} {name}({pointers}, {mask}, {whole} zeroinitializer)")


def store_item(state: State, array: Array, tensor: Tensor, offset: Value, text: str) -> None:
    """Store a vector, whose elements are as in memory, at `offset` of the lanes' arrays."""
    kind, width, writer = memory_type(tensor.type.dtype), state.width, state.writer
    whole = vector_type(kind, width)
    if isinstance(offset, Uniform):
        row, note = _row(state, array, whole, offset), f", align {_alignment(tensor, width)}"
        if state.mask is not None:
            old = writer.load(whole, row, note)
            text = writer.emit(f"select <{width} x i1> {state.mask}, {whole} {text}, {whole} {old}")
        writer.store(whole, text, row, note)
        return
    places = _items(state, array, kind, offset)
    if state.target.grid:
        store_lanes(state, kind, text, _split(state, tensor, places), state.mask, "", "ptr")
        return
    mask = f"<{width} x i1> {state.mask or 'splat (i1 true)'}"
    name = f"@llvm.masked.scatter.{type_suffix(kind, width)}.v{width}p0"
    pointers = f"<{width} x ptr> align {tensor.type.dtype.size} {places}"
    writer.effect(f"call void {name}({whole} {text}, {pointers}, {mask})")


def _alignment(tensor: Tensor, width: int) -> int:
    """Return the alignment of a vector, which stack memory has by its type."""
    size = tensor.type.dtype.size * width
    return size & -size


def _row(state: State, array: Array, whole: str, offset: Uniform) -> str:
    return state.writer.emit(f"getelementptr inbounds {whole}, ptr {array.address}, i64 {offset.text}")


def _items(state: State, array: Array, kind: str, offset: Value) -> str:
    """Return the addresses of the lanes' elements."""
    emit, width = state.writer.emit, state.width
    numbers = f"<{width} x i64>"
    scaled = emit(f"mul {numbers} {lanes.vector(state, offset)}, splat (i64 {width})")
    places = emit(f"add {numbers} {scaled}, {lanes.lane_numbers(width)}")
    return emit(f"getelementptr {kind}, ptr {array.address}, {numbers} {places}")


def _split(state: State, tensor: Tensor, places: str) -> list[Place]:
    whole = f"<{state.width} x ptr>"
    return [
        Place(state.writer.emit(f"extractelement {whole} {places}, i64 {lane}"), tensor.type.dtype.size)
        for lane in range(state.width)
    ]
