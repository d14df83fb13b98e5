"""What the threads of a warp give one another, and additions to an element that all of them make at once."""

from __future__ import annotations

from brickwork.codegen.emitter_state import State
from brickwork.target.target import WARP

_MATCH = "llvm.nvvm.match.all.sync.i64p"


def shuffled(state: State, kind: str, text: str, mode: str, lane: int | str, mask: str = "-1") -> str:
    """Return another thread's value: of the one `lane` further in the warp (`down`), or of number `lane` (`idx`).

    With `bfly` it is the one whose number differs in the bits of `lane`. The threads of `mask` are here.
    """
    emit, name = state.writer.emit, f"llvm.nvvm.shfl.sync.{mode}.i32"
    state.module.declare(name, "i32", ("i32", "i32", "i32", "i32"))

    def word(text: str) -> str:
        return emit(f"call i32 @{name}(i32 {mask}, i32 {text}, i32 {lane}, i32 31)")

    match kind:
        case "float":
            return emit(f"bitcast i32 {word(emit(f'bitcast float {text} to i32'))} to float")
        case "i32":
            return word(text)
        case "i1":
            return emit(f"trunc i32 {word(emit(f'zext i1 {text} to i32'))} to i1")
        case _:
            pass
    bits = text if kind == "i64" else emit(f"bitcast {kind} {text} to i64")
    low, high = emit(f"trunc i64 {bits} to i32"), emit(f"trunc i64 {emit(f'lshr i64 {bits}, 32')} to i32")
    low, high = emit(f"zext i32 {word(low)} to i64"), emit(f"zext i32 {word(high)} to i64")
    bits = emit(f"or i64 {emit(f'shl i64 {high}, 32')}, {low}")
    return bits if kind == "i64" else emit(f"bitcast i64 {bits} to {kind}")


def branch_if_together(state: State, address: str, same: str, alone: str) -> None:
    """Branch to `same` if all threads of a warp are here with the same address, and else to `alone`."""
    writer, emit = state.writer, state.writer.emit
    place = emit(f"ptrtoint {state.pointer} {address} to i64")
    warp = writer.label("warp")
    writer.branch_if(emit(f"icmp eq i32 {active_lanes(state)}, -1"), warp, alone)
    writer.place(warp)
    writer.branch_if(all_same(state, place), same, alone)


def all_same(state: State, text: str) -> str:
    """Return whether all threads of a warp, which are here, have the same i64, as i1."""
    state.module.declare(_MATCH, "{ i32, i1 }", ("i32", "i64"), "convergent nocallback nounwind")
    pair = state.writer.emit(f"call {{ i32, i1 }} @{_MATCH}(i32 -1, i64 {text})")
    return state.writer.emit(f"extractvalue {{ i32, i1 }} {pair}, 1")


def active_lanes(state: State) -> str:
    """Return a mask of the threads of the warp that are here with this one, as i32."""
    return state.writer.emit('call i32 asm sideeffect "activemask.b32 $0;", "=r"() convergent')


def lane_number(state: State) -> str:
    """Return the number of a thread in its warp, as i32."""
    state.module.declare("llvm.nvvm.read.ptx.sreg.laneid", "i32", ())
    return state.writer.emit("call i32 @llvm.nvvm.read.ptx.sreg.laneid()")


def add_together(state: State, kind: str, address: str, value: str, order: str) -> None:
    """Add a float of each thread to its element: once for a warp, if all its threads are here for the same one."""
    writer, emit = state.writer, state.writer.emit
    same, alone, added = (writer.label(stem) for stem in ("same", "alone", "added"))
    branch_if_together(state, address, same, alone)
    writer.place(same)
    total, distance = value, WARP // 2
    while distance:
        total = emit(f"fadd {kind} {total}, {shuffled(state, kind, total, 'down', distance)}")
        distance //= 2
    with writer.when(emit(f"icmp eq i32 {lane_number(state)}, 0")):
        emit(f"atomicrmw fadd {state.pointer} {address}, {kind} {total}{order}")
    writer.branch(added)
    writer.place(alone)
    emit(f"atomicrmw fadd {state.pointer} {address}, {kind} {value}{order}")
    writer.branch(added)
    writer.place(added)


def scattered_sum(state: State, kind: str, values: list[str], lane: str) -> str:
    """Return the sum over a warp of one of some values: of number `lane % len(values)`, a power of two.

    Each thread gives half of them away and adds what it is given to the others, then half of those, and so on.
    """
    emit, distance = state.writer.emit, WARP // 2
    while distance:
        if distance >= len(values):
            values = [emit(f"fadd {kind} {each}, {shuffled(state, kind, each, 'bfly', distance)}") for each in values]
        else:
            high = emit(f"icmp ne i32 {emit(f'and i32 {lane}, {distance}')}, 0")
            halves = list(zip(values[:distance], values[distance:], strict=True))
            given = [emit(f"select i1 {high}, {kind} {one}, {kind} {other}") for one, other in halves]
            kept = [emit(f"select i1 {high}, {kind} {other}, {kind} {one}") for one, other in halves]
            taken = [shuffled(state, kind, each, "bfly", distance) for each in given]
            values = [emit(f"fadd {kind} {one}, {other}") for one, other in zip(kept, taken, strict=True)]
        distance //= 2
    return values[0]
