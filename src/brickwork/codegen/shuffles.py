"""What the threads of a warp give one another, and additions to an element that all of them make at once."""

from __future__ import annotations

from brickwork.codegen.emitter_state import State
from brickwork.target.target import WARP

_MATCH = "llvm.nvvm.match.all.sync.i64p"
_BALLOT = "llvm.nvvm.vote.ballot.sync"


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
    """Add a number of each thread to its element: once for neighbours with the same one, if a warp has few such runs.

    All threads of the warp have to be here. A run is as long as threads have the address of the one before; where
    they are two long on average the sums take fewer steps than the elements would wait for.
    """
    writer, emit = state.writer, state.writer.emit
    add = "fadd" if kind in {"float", "double"} else "add"
    warp, runs, alone, added = (writer.label(stem) for stem in ("warp", "runs", "alone", "added"))
    place = emit(f"ptrtoint {state.pointer} {address} to i64")
    writer.branch_if(emit(f"icmp eq i32 {active_lanes(state)}, -1"), warp, alone)
    writer.place(warp)
    lane = lane_number(state)
    before = shuffled(state, "i64", place, "idx", emit(f"add i32 {lane}, -1"))
    first = emit(f"icmp eq i32 {lane}, 0")
    begins = emit(f"or i1 {first}, {emit(f'icmp ne i64 {place}, {before}')}")
    starts = _ballot(state, begins)
    state.module.declare("llvm.ctpop.i32", "i32", ("i32",))
    count = emit(f"call i32 @llvm.ctpop.i32(i32 {starts})")
    writer.branch_if(emit(f"icmp ule i32 {count}, {WARP // 2}"), runs, alone)
    writer.place(runs)
    later = emit(f"and i32 {starts}, {emit(f'shl i32 -2, {lane}')}")
    state.module.declare("llvm.cttz.i32", "i32", ("i32", "i1"))
    end = emit(f"call i32 @llvm.cttz.i32(i32 {later}, i1 false)")  # 32 behind the last run
    total, distance = value, 1
    while distance < WARP:
        inside = emit(f"icmp ult i32 {emit(f'add i32 {lane}, {distance}')}, {end}")
        more = emit(f"{add} {kind} {total}, {shuffled(state, kind, total, 'down', distance)}")
        total = emit(f"select i1 {inside}, {kind} {more}, {kind} {total}")
        distance *= 2
    with writer.when(begins):
        emit(f"atomicrmw {add} {state.pointer} {address}, {kind} {total}{order}")
    writer.branch(added)
    writer.place(alone)
    emit(f"atomicrmw {add} {state.pointer} {address}, {kind} {value}{order}")
    writer.branch(added)
    writer.place(added)


def _ballot(state: State, text: str) -> str:
    """Return a mask of the threads of a warp, which are here, for which an i1 holds, as i32."""
    state.module.declare(_BALLOT, "i32", ("i32", "i1"), "convergent nocallback nounwind")
    return state.writer.emit(f"call i32 @{_BALLOT}(i32 -1, i1 {text})")


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
