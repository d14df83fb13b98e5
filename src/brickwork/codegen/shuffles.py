"""What the threads of a warp give one another, and additions to an element that all of them make at once."""

from __future__ import annotations

from brickwork.codegen.emitter_state import State
from brickwork.codegen.grid import WARP

_MATCH = "llvm.nvvm.match.all.sync.i64p"


def shuffled(state: State, kind: str, text: str, mode: str, lane: int) -> str:
    """Return another thread's value: of the one `lane` further in the warp (`down`), or of number `lane` (`idx`)."""
    emit, name = state.writer.emit, f"llvm.nvvm.shfl.sync.{mode}.i32"
    state.module.declare(name, "i32", ("i32", "i32", "i32", "i32"))

    def word(text: str) -> str:
        return emit(f"call i32 @{name}(i32 -1, i32 {text}, i32 {lane}, i32 31)")

    match kind:
        case "float":
            return emit(f"bitcast i32 {word(emit(f'bitcast float {text} to i32'))} to float")
        case "i1":
            return emit(f"trunc i32 {word(emit(f'zext i1 {text} to i32'))} to i1")
        case _:
            pass
    bits = text if kind == "i64" else emit(f"bitcast {kind} {text} to i64")
    low, high = emit(f"trunc i64 {bits} to i32"), emit(f"trunc i64 {emit(f'lshr i64 {bits}, 32')} to i32")
    low, high = emit(f"zext i32 {word(low)} to i64"), emit(f"zext i32 {word(high)} to i64")
    bits = emit(f"or i64 {emit(f'shl i64 {high}, 32')}, {low}")
    return bits if kind == "i64" else emit(f"bitcast i64 {bits} to {kind}")


def add_together(state: State, kind: str, address: str, value: str, order: str) -> None:
    """Add a float of each thread to its element: once for a warp, if all its threads are here for the same one."""
    writer, emit = state.writer, state.writer.emit
    place = emit(f"ptrtoint {state.pointer} {address} to i64")
    state.module.declare(_MATCH, "{ i32, i1 }", ("i32", "i64"), "convergent nocallback nounwind")
    here = emit('call i32 asm sideeffect "activemask.b32 $0;", "=r"() convergent')
    warp, same, alone, added = (writer.label(stem) for stem in ("warp", "same", "alone", "added"))
    writer.branch_if(emit(f"icmp eq i32 {here}, -1"), warp, alone)
    writer.place(warp)
    pair = emit(f"call {{ i32, i1 }} @{_MATCH}(i32 -1, i64 {place})")
    writer.branch_if(emit(f"extractvalue {{ i32, i1 }} {pair}, 1"), same, alone)
    writer.place(same)
    total, distance = value, WARP // 2
    while distance:
        total = emit(f"fadd {kind} {total}, {shuffled(state, kind, total, 'down', distance)}")
        distance //= 2
    lane = emit("call i32 @llvm.nvvm.read.ptx.sreg.laneid()")
    state.module.declare("llvm.nvvm.read.ptx.sreg.laneid", "i32", ())
    with writer.when(emit(f"icmp eq i32 {lane}, 0")):
        emit(f"atomicrmw fadd {state.pointer} {address}, {kind} {total}{order}")
    writer.branch(added)
    writer.place(alone)
    emit(f"atomicrmw fadd {state.pointer} {address}, {kind} {value}{order}")
    writer.branch(added)
    writer.place(added)
