"""Updates of an element in one indivisible step, which other threads may update at the same time.

Where the machine has the operation it is one instruction, else a loop that tries until no other thread was in between.
The result is `combine(element, value)` as the operator has it, narrowed to the element. Order between threads is free.
"""

from __future__ import annotations

from brickwork.codegen import lanes
from brickwork.codegen.elements import narrowed, widened
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import Value, memory_type, scalar_type
from brickwork.codegen.memory import element_addresses
from brickwork.codegen.operators import BITWISE, apply
from brickwork.codegen.shuffles import add_together
from brickwork.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, DType, Kind, value_dtype
from brickwork.ir.nodes import Tensor
from brickwork.ir.operators import Operator


def emit_update(
    state: State, tensor: Tensor, indices: tuple[Value, ...], value: Value, operator: Operator, *, together: bool
) -> None:
    """Emit the update of an element by each active lane; `together` if neighbouring threads may update the same one."""
    writer, dtype = state.writer, tensor.type.dtype
    places, text = element_addresses(state, tensor, indices), lanes.vector(state, value)
    if state.width == 1 and together and operator.name == "add" and dtype in {FLOAT32, FLOAT64, INT32, INT64}:
        text = narrowed(state, text, dtype, 1)
        add_together(state, memory_type(dtype), places, text, f"{_order(state)}, align {dtype.size}")
        return
    if state.width == 1:
        _update(state, dtype, places, text, operator.name)
        return
    kind = scalar_type(value.dtype)
    for lane in range(state.width):
        address = writer.emit(f"extractelement <{state.width} x {state.pointer}> {places}, i64 {lane}")
        item = writer.emit(f"extractelement <{state.width} x {kind}> {text}, i64 {lane}")
        if state.mask is None:
            _update(state, dtype, address, item, operator.name)
            continue
        with writer.when(writer.emit(f"extractelement <{state.width} x i1> {state.mask}, i64 {lane}")):
            _update(state, dtype, address, item, operator.name)


def add_float(state: State, dtype: DType, address: str, value: str) -> None:
    """Emit the addition of a float to an element."""
    kind, order = memory_type(dtype), _order(state)
    state.writer.emit(f"atomicrmw fadd {state.pointer} {address}, {kind} {value}{order}, align {dtype.size}")


def _update(state: State, dtype: DType, address: str, value: str, name: str) -> None:
    native = _native(dtype, name)
    if native is None:
        _retry(state, dtype, address, value, name)
        return
    writer, kind = state.writer, memory_type(dtype)
    item = narrowed(state, value, dtype, 1)
    if name == "add" or name in BITWISE or dtype.bits == 64:
        writer.emit(f"atomicrmw {native} {state.pointer} {address}, {kind} {item}{_order(state)}, align {dtype.size}")
        return
    whole = widened(state, item, dtype, 1)
    fits, loop, after = writer.label("fits"), writer.label("loop"), writer.label("updated")
    writer.branch_if(writer.emit(f"icmp eq i64 {whole}, {value}"), fits, loop)
    writer.place(fits)
    writer.emit(f"atomicrmw {native} {state.pointer} {address}, {kind} {item}{_order(state)}, align {dtype.size}")
    writer.branch(after)
    writer.place(loop)
    _retry(state, dtype, address, value, name)
    writer.place(after)


def _native(dtype: DType, name: str) -> str | None:
    """Return LLVM's name of an update that is one instruction; None if there is none."""
    if dtype in {FLOAT32, FLOAT64}:
        return "fadd" if name == "add" else None
    if name in BITWISE:
        return BITWISE[name]  # of elements below 32 bits LLVM makes one of the word around them
    if dtype in {BOOL, FLOAT16, BFLOAT16} or dtype.bits < INT32.bits:
        return None
    sign = "" if dtype.kind is Kind.INT else "u"
    return {"add": "add", "minimum": f"{sign}min", "maximum": f"{sign}max"}.get(name)


def _order(state: State) -> str:
    return ' syncscope("device") monotonic' if state.target.grid else " monotonic"


def _retry(state: State, dtype: DType, address: str, value: str, name: str) -> None:
    """Load, combine, and store if nothing has changed; again if something has."""
    writer, kind, word = state.writer, memory_type(dtype), f"i{dtype.size * 8}"
    seen = writer.alloca(word)
    writer.store(word, writer.load(word, address, f", align {dtype.size}", pointer=state.pointer), seen)
    again, done = writer.label("again"), writer.label("done")
    writer.place(again)
    bits = writer.load(word, seen)
    old = bits if kind == word else writer.emit(f"bitcast {word} {bits} to {kind}")
    new = apply(state, name, value_dtype(dtype), (widened(state, old, dtype, 1), value), 1)
    new = narrowed(state, new, dtype, 1)
    new = new if kind == word else writer.emit(f"bitcast {kind} {new} to {word}")
    scope = _order(state)
    exchange = f"cmpxchg {state.pointer} {address}, {word} {bits}, {word} {new}"
    pair = writer.emit(f"{exchange}{scope} monotonic, align {dtype.size}")
    writer.store(word, writer.emit(f"extractvalue {{ {word}, i1 }} {pair}, 0"), seen)
    writer.branch_if(writer.emit(f"extractvalue {{ {word}, i1 }} {pair}, 1"), done, again)
    writer.place(done)
