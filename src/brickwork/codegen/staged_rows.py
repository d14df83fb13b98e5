"""Rows that threads own, kept in shared memory while a warp reads and stores them along memory.

    for r in parallel:                     for t0 in range(0, T, 16): the warp reads x[r : r + 32, t0 : t0 + 16] to x'
        for t in range(T):            ->       for t in range(t0, t0 + 16): y'[r, t] = f(x'[r, t])
            y[r, t] = f(x[r, t])               the warp stores y' to y[r : r + 32, t0 : t0 + 16]

Each thread of a warp would else access a sector of memory of its own with each instruction: a running sum along rows of
256 takes 1.2 ms so on an H200, and 0.24 in stages. An odd number of elements from one row to the next keeps the threads
of a warp on different banks of shared memory. Which accesses these are is known from `row_accesses.py`.
Invariant: stages are run by warps of which all threads are at the same place, and run as many iterations; others
access elements where they lie. So a thread's elements are accessed by its warp alone, between barriers of the warp.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from brickwork.codegen import memory
from brickwork.codegen.builder import Known
from brickwork.codegen.emitter_state import StagedRow, State, no_unroll
from brickwork.codegen.expressions import emit_all, emit_expression
from brickwork.codegen.grid import grid_of
from brickwork.codegen.lane_values import Uniform, Value, memory_type
from brickwork.codegen.memory import SHARED
from brickwork.codegen.row_accesses import WHOLE, Record, Steps, most_iterations, records, steps
from brickwork.codegen.shuffles import active_lanes, all_same, lane_number, shuffled
from brickwork.codegen.teams import whole_warp_barrier
from brickwork.codegen.thread_iterations import register
from brickwork.codegen.variables import statement_count
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Block, For, Role, Tensor
from brickwork.ir.signature import ALIGNMENT
from brickwork.records import dataclass
from brickwork.target.target import WARP

Found = TypeVar("Found", Record, Steps)


# ---------------------------------------------------------------- records


def staged_records(state: State, body: Block) -> list[Record]:
    """Return the records of an iteration that are worth staging: of more bytes than a thread accesses at once."""
    if state.neighbours is None or state.kernel.may_alias or statement_count(body) > state.target.written_nodes:
        return []
    found = records(body, state.neighbours, state.bound, state.kernel.facts)
    found.sort(key=lambda record: not record.stored)
    found = _fitting(state, found, [_row_bytes(record.tensor, record.most) for record in found])
    wide = (record.most * record.tensor.type.dtype.size > state.target.access_bytes for record in found)
    return found if any(wide) else []


def branch_if_together(state: State, found: Sequence[Record], together: str, alone: str) -> None:
    """Branch to `together` where the threads of a warp are, and records lie as they should, and else to `alone`.

    Records of a whole axis, whose length is not known, are to lie one behind the other.
    """
    writer, emit = state.writer, state.writer.emit
    whole = emit(f"icmp eq i32 {active_lanes(state)}, -1")
    for record in found:
        for axis, size in enumerate(record.sizes[1:], len(record.row) + 1):
            same = emit(f"icmp eq i64 {memory.size(state, record.tensor, axis)}, {size}")
            whole = emit(f"and i1 {whole}, {same}")
    for record in (each for each in found if WHOLE in each.sizes):
        here = writer.label("here")
        writer.branch_if(whole, here, alone)
        writer.place(here)
        place = _Place.of_record(state, record)
        whole = all_same(state, emit(f"sub i64 {place.offset}, {emit(f'mul i64 {_lane(state)}, {place.count}')}"))
    writer.branch_if(whole, together, alone)


@contextmanager
def records_staged(state: State, found: Sequence[Record]) -> Generator[State]:
    """Read records into shared memory, write the body for the state that has them there, and store them."""
    places = [_Place.of_record(state, record) for record in found]
    rows, taken = dict(state.rows), state.row_bytes
    memories: list[str] = []
    for record, place in zip(found, places, strict=True):
        memories.append(_memory(state, taken, _row_bytes(record.tensor, record.most)))
        own = _own(state, record.tensor, memories[-1], place.pitch(state))
        rows[record.tensor] = StagedRow(own, len(record.row), place.first)
        taken += _row_bytes(record.tensor, record.most)
    parts = [*zip(found, places, memories, strict=True)]
    loaded = [part for part in parts if part[0].loaded]
    for record, place, shared in loaded:
        _move_record(state, record, place, shared, into=True)
    if loaded:
        whole_warp_barrier(state)
    yield replace(state.inner(), rows=rows, row_bytes=taken)
    whole_warp_barrier(state)
    for record, place, shared in parts:
        if record.stored:
            _move_record(state, record, place, shared, into=False)
    whole_warp_barrier(state)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a thread's record begins in its tensor, its first place in the row, and its elements, as i64."""

    offset: str
    first: str
    count: str

    def pitch(self, state: State) -> str:
        """Return how many elements lie from one thread's record to the next in shared memory: an odd number."""
        if self.count.isdigit():
            return str(int(self.count) | 1)
        odd = state.writer.emit(f"or i64 {self.count}, 1")
        state.writer.learn(odd, Known(1, state.writer.known(self.count).high + 1))
        return odd

    @staticmethod
    def of_record(state: State, record: Record) -> _Place:
        """Return it for this thread."""
        emit, tensor = state.writer.emit, record.tensor
        indices = (*emit_all(state, record.row), *(Uniform(str(place), INT64) for place in record.low))
        offset = memory.element_offset(state, tensor, indices)
        count, first = "1", str(record.low[0])
        for axis, size in enumerate(record.sizes, len(record.row)):
            count = emit(f"mul i64 {count}, {memory.size(state, tensor, axis) if size == WHOLE else size}")
            if axis > len(record.row):
                first = emit(f"mul i64 {first}, {size}")
        state.writer.learn(count, Known(0, record.most))
        return _Place(_scalar(offset), first, str(record.most) if WHOLE not in record.sizes else count)


def _move_record(state: State, record: Record, place: _Place, shared: str, *, into: bool) -> None:
    """Copy the records of a warp between their tensor and shared memory, neighbours by neighbouring threads."""
    writer, emit, tensor = state.writer, state.writer.emit, record.tensor
    lane, pitch, together = _lane(state), place.pitch(state), _together(state, tensor)
    inverse, dense = _inverse(state, place.count), WHOLE in record.sizes
    start = _of_lane(state, tensor, place.offset, "0") if dense else ""

    def moved(numbers: Sequence[str]) -> None:
        ends: list[tuple[str, str]] = []
        for number in numbers:
            writer.learn(number, Known(0, WARP * record.most))
            row = emit(f"lshr i64 {emit(f'mul i64 {number}, {inverse}')}, {_INVERSE_BITS}")
            writer.learn(row, Known(0, WARP - 1))
            column = emit(f"sub i64 {number}, {emit(f'mul i64 {row}, {place.count}')}")
            near = emit(f"add i64 {emit(f'mul i64 {row}, {pitch}')}, {column}")
            far = emit(f"add i64 {start}, {number}") if dense else ""
            far = far or emit(f"add i64 {_of_lane(state, tensor, place.offset, row)}, {column}")
            ends.append((memory.offset_address(state, tensor, far), _near(state, tensor, shared, near)))
        _copy(state, tensor, ends, into=into)

    if not dense:
        numbers = [emit(f"add i64 {lane}, {WARP * number}") for number in range(record.most)]
        for begin in range(0, len(numbers), together):
            moved(numbers[begin : begin + together])
        return
    rounds = emit(f"lshr i64 {place.count}, 2")
    with writer.count("0", rounds) as number:
        first = emit(f"add i64 {lane}, {emit(f'mul i64 {number}, {4 * WARP}')}")
        moved([first, *(emit(f"add i64 {first}, {WARP * each}") for each in range(1, 4))])
    with writer.count(emit(f"mul i64 {rounds}, 4"), place.count) as number:
        moved([emit(f"add i64 {lane}, {emit(f'mul i64 {number}, {WARP}')}")])


_INVERSE_BITS = 20
"""Numbers of elements times what a record has are less than two to the power of this: quotients are exact then."""


def _inverse(state: State, count: str) -> str:
    """Return what numbers of elements are multiplied by to divide them by a count."""
    emit = state.writer.emit
    if count.isdigit():
        return str(-(-(1 << _INVERSE_BITS) // int(count)))
    most = emit(f"call i64 @llvm.umax.i64(i64 {count}, i64 1)")
    inverse = emit(f"udiv i64 {emit(f'add i64 {most}, {(1 << _INVERSE_BITS) - 1}')}, {most}")
    state.writer.learn(inverse, Known(1, 1 << _INVERSE_BITS))
    return inverse


# ---------------------------------------------------------------- steps


@dataclass(frozen=True, slots=True)
class Stages:
    """The steps of a loop, `length` iterations of which are a stage."""

    steps: tuple[Steps, ...]
    length: int


def staged_steps(state: State, loop: For) -> Stages | None:
    """Return what of a loop that runs in order is staged, if anything is."""
    if state.neighbours is None or state.width > 1 or state.kernel.may_alias or loop.role is not Role.SEQUENTIAL:
        return None
    around = [each.index for each in grid_of(state.kernel).loops]
    found = [item for item in steps(loop, state.neighbours, state.bound, around) if item.tensor not in state.rows]
    found.sort(key=lambda item: not item.stored)
    if not found:
        return None
    length = min(_together(state, item.tensor) for item in found)
    found = [item for item in found if 2 * item.beyond <= length]
    if not found or most_iterations(loop, state.kernel.facts) < length:
        return None
    for each in (length, length // 2):
        fitting = _fitting(state, found, [_row_bytes(item.tensor, each + item.beyond) for item in found])
        if len(fitting) == len(found) or each < length:
            return Stages(tuple(fitting), each) if fitting else None
    return None


@dataclass(frozen=True, slots=True)
class _Stage:
    """Steps in shared memory: `shared` is the warp's, `own` where this thread's row lies in it.

    `offset` is where in its tensor the element lies that the first stage has in the first of `length` newest places, as
    i64. `whole` is whether later stages begin at chunks in all threads, as i1.
    """

    steps: Steps
    length: int
    shared: str
    own: str
    offset: str
    whole: str = "false"

    @property
    def chunk(self) -> int:
        """Elements that are accessed at once, or 0 where a stage has fewer."""
        whole = ALIGNMENT // self.steps.tensor.type.dtype.size
        return whole if 1 < whole <= self.length else 0

    @property
    def pitch(self) -> int:
        """Elements from one thread's row to the next."""
        return (self.length + self.steps.beyond) | 1

    @property
    def newest(self) -> int:
        """The place of the first element that no iteration before the stage comes to."""
        return self.steps.beyond if self.steps.step > 0 else 0

    @property
    def older(self) -> int:
        """The place of the first of the others."""
        return 0 if self.steps.step > 0 else self.length


def emit_stages(
    state: State, loop: For, stages: Stages, bounds: tuple[str, str], run: Callable[[State, str, str], None], alone: str
) -> None:
    """Emit a loop in stages, where the threads of a warp are together and have as many iterations; else go `alone`.

    So do loops with fewer iterations than a stage: of points with three places that are compared with one another, the
    copies of a row took six times as long as what was computed of it.
    `run` writes the iterations between two numbers for a state.
    """
    writer, emit, length = state.writer, state.writer.emit, stages.length
    start, stop = bounds
    labels = (writer.label(stem) for stem in ("long", "ask", "stages", "stage", "rows", "staged"))
    long, ask, begin, head, body, after = labels
    trips = emit(f"sub i64 {stop}, {start}")
    writer.branch_if(emit(f"icmp sge i64 {trips}, {length}"), long, alone)
    writer.place(long)
    writer.branch_if(emit(f"icmp eq i32 {active_lanes(state)}, -1"), ask, alone)
    writer.place(ask)
    writer.branch_if(all_same(state, trips), begin, alone)
    writer.place(begin)
    found, taken = list[_Stage](), state.row_bytes
    for item in stages.steps:
        found.append(_begun(state, item, loop, start, length, taken))
        taken += _row_bytes(item.tensor, length + item.beyond)
    done, before = writer.alloca("i64"), writer.alloca("i64")
    writer.store("i64", "0", done)
    writer.store("i64", str(length), before)
    first = _first_length(state, found[0])
    found = [replace(item, whole=_begins_at_chunks(state, item, first)) for item in found]
    writer.place(head)
    count = writer.load("i64", done)
    writer.learn(count, Known(0))
    writer.branch_if(emit(f"icmp slt i64 {count}, {trips}"), body, after)
    writer.place(body)
    is_first = emit(f"icmp eq i64 {count}, 0")
    left = emit(f"sub i64 {trips}, {count}")
    most = emit(f"select i1 {is_first}, i64 {first}, i64 {length}")
    here = emit(f"call i64 @llvm.smin.i64(i64 {left}, i64 {most})")
    writer.learn(here, Known(1, length))
    _begin_stage(state, found, (count, here, is_first, writer.load("i64", before)))
    begun = emit(f"add i64 {start}, {count}")
    rows, at = dict(state.rows), state.at(loop, begun)
    for item in found:
        least = _scalar(emit_expression(at, item.steps.last))
        place = least if item.steps.step > 0 else emit(f"sub i64 {least}, {length - 1}")
        rows[item.steps.tensor] = StagedRow(item.own, len(item.steps.row), place)
    run(replace(state.inner(), rows=rows, row_bytes=taken), begun, emit(f"add i64 {begun}, {here}"))
    if stored := [item for item in found if item.steps.stored]:
        whole_warp_barrier(state)
        for item in stored:
            _move_stage(state, item, count, here, into=False)
    writer.store("i64", here, before)
    writer.store("i64", emit(f"add i64 {count}, {here}"), done)
    writer.terminate(f"br label %{head}{no_unroll(state.module)}")
    writer.place(after)
    whole_warp_barrier(state)


def _begin_stage(state: State, found: Sequence[_Stage], at: tuple[str, str, str, str]) -> None:
    """Read what a stage needs; it begins after `count` iterations, has `here`, and the one before had `last`."""
    count, here, is_first, last = at
    state.writer.learn(last, Known(1, found[0].length))
    whole_warp_barrier(state)
    if any(item.steps.beyond for item in found):
        for item in found:
            _begin_older(state, item, is_first, last)
        whole_warp_barrier(state)
    if loaded := [item for item in found if item.steps.loaded]:
        for item in loaded:
            _move_stage(state, item, count, here, into=True)
        whole_warp_barrier(state)


def _begun(state: State, item: Steps, loop: For, start: str, length: int, taken: int) -> _Stage:
    """Return the stage that a loop begins with."""
    emit, tensor = state.writer.emit, item.tensor
    at = state.at(loop, start)
    offset = _scalar(memory.element_offset(state, tensor, emit_all(at, (*item.row, item.last))))
    offset = emit(f"add i64 {offset}, {item.beyond if item.step > 0 else 1 - length}")
    pitch = (length + item.beyond) | 1
    shared = _memory(state, taken, _row_bytes(tensor, length + item.beyond))
    return _Stage(item, length, shared, _own(state, tensor, shared, str(pitch)), offset)


def _rest(state: State, item: _Stage) -> str:
    """Return how many elements behind a chunk the first place of this thread lies, as i64."""
    emit, tensor = state.writer.emit, item.steps.tensor
    size = tensor.type.dtype.size
    address = emit(f"ptrtoint {state.pointer} {memory.offset_address(state, tensor, item.offset)} to i64")
    rest = emit(f"lshr i64 {emit(f'and i64 {address}, {ALIGNMENT - 1}')}, {size.bit_length() - 1}")
    state.writer.learn(rest, Known(0, ALIGNMENT // size - 1))
    return rest


def _first_length(state: State, item: _Stage) -> str:
    """Return how many iterations the first stage has, so that the others begin at chunks."""
    if not item.chunk:
        return str(item.length)
    emit, rest = state.writer.emit, _rest(state, item)
    less = rest if item.steps.step > 0 else emit(f"and i64 {emit(f'sub i64 0, {rest}')}, {item.chunk - 1}")
    first = emit(f"sub i64 {item.length}, {less}")
    return emit(f"select i1 {all_same(state, rest)}, i64 {first}, i64 {item.length}")


def _begins_at_chunks(state: State, item: _Stage, first: str) -> str:
    """Return whether stages after the first, which has so many iterations, begin at chunks in all threads."""
    if not item.chunk:
        return "false"
    emit, rest = state.writer.emit, _rest(state, item)
    moved = emit(f"{'add' if item.steps.step > 0 else 'sub'} i64 {rest}, {first}")
    whole = emit(f"icmp eq i64 {emit(f'and i64 {moved}, {item.chunk - 1}')}, 0")
    return emit(f"and i1 {whole}, {all_same(state, rest)}")


def _begin_older(state: State, item: _Stage, is_first: str, last: str) -> None:
    """Give a stage what iterations before it have come to: from the stage before, of `last` iterations, or read."""
    writer, emit, tensor, beyond = state.writer, state.writer.emit, item.steps.tensor, item.steps.beyond
    if not beyond:
        return
    places = range(item.older, item.older + beyond)
    read, kept, after = (writer.label(stem) for stem in ("read", "kept", "older"))
    writer.branch_if(is_first, read, kept)
    writer.place(read)
    distances = [place - item.newest for place in places]
    ends = [
        (
            memory.offset_address(state, tensor, emit(f"add i64 {item.offset}, {distance}")),
            _near(state, tensor, item.own, str(place)),
        )
        for distance, place in zip(distances, places, strict=True)
    ]
    _copy(state, tensor, ends, into=True)
    writer.branch(after)
    writer.place(kept)
    ascending = item.steps.step > 0
    first = last if ascending else emit(f"sub i64 {item.length}, {last}")
    for number in range(beyond) if ascending else reversed(range(beyond)):
        source = _near(state, tensor, item.own, emit(f"add i64 {first}, {number}"))
        kind = memory_type(tensor.type.dtype)
        text = writer.load(kind, source, pointer=SHARED)
        writer.store(kind, text, _near(state, tensor, item.own, str(places[number])), pointer=SHARED)
    writer.branch(after)
    writer.place(after)


def _move_stage(state: State, item: _Stage, count: str, here: str, *, into: bool) -> None:
    """Copy the newest elements of a stage between their tensor and shared memory: of `here` iterations after others."""
    writer, emit = state.writer, state.writer.emit
    one_by_one, after = writer.label("elements"), writer.label("moved")
    if item.chunk:
        chunks = writer.label("chunks")
        full = emit(f"icmp eq i64 {here}, {item.length}")
        writer.branch_if(emit(f"and i1 {full}, {item.whole}"), chunks, one_by_one)
        writer.place(chunks)
        _move(state, item, count, item.chunk, "true", into=into)
        writer.branch(after)
    writer.place(one_by_one)
    column = emit(f"and i64 {_lane(state)}, {item.length - 1}")
    behind = emit(f"sub i64 {item.length}, {here}")
    test = f"icmp slt i64 {column}, {here}" if item.steps.step > 0 else f"icmp sge i64 {column}, {behind}"
    _move(state, item, count, 1, emit(test), into=into)
    writer.place(after)


def _move(state: State, item: _Stage, count: str, width: int, active: str, *, into: bool) -> None:
    """Copy `width` elements at once by each thread that is `active`."""
    writer, emit, tensor = state.writer, state.writer.emit, item.steps.tensor
    across = item.length // width
    lane = _lane(state)
    column = emit(f"mul i64 {emit(f'and i64 {lane}, {across - 1}')}, {width}")
    first = emit(f"lshr i64 {lane}, {across.bit_length() - 1}")
    moved = emit(f"{'add' if item.steps.step > 0 else 'sub'} i64 {column}, {count}")
    rows = [emit(f"add i64 {first}, {number * (WARP // across)}") for number in range(across)]
    ends: list[tuple[str, str]] = []
    for row in rows:
        far = emit(f"add i64 {_of_lane(state, tensor, item.offset, row)}, {moved}")
        near = emit(f"add i64 {emit(f'mul i64 {row}, {item.pitch}')}, {column}")
        near = emit(f"add i64 {near}, {item.newest}")
        ends.append((memory.offset_address(state, tensor, far), _near(state, tensor, item.shared, near)))
    with writer.when(active):
        _copy(state, tensor, ends, width, into=into)


# ---------------------------------------------------------------- memory


def _copy(state: State, tensor: Tensor, ends: Sequence[tuple[str, str]], width: int = 1, *, into: bool) -> None:
    """Copy `width` neighbours for each of some addresses in the tensor and in shared memory; all are read first."""
    writer, emit, kind = state.writer, state.writer.emit, memory_type(tensor.type.dtype)
    whole, size = (kind if width == 1 else f"<{width} x {kind}>"), tensor.type.dtype.size
    note, texts = f", align {size * width}", list[str]()
    for far, near in ends:
        if into:
            texts.append(writer.load(whole, far, note, pointer=state.pointer))
            continue
        items = [writer.load(kind, _near(state, tensor, near, str(place)), pointer=SHARED) for place in range(width)]
        text = items[0] if width == 1 else "poison"
        for place, item in enumerate(items if width > 1 else ()):
            text = emit(f"insertelement {whole} {text}, {kind} {item}, i64 {place}")
        texts.append(text)
    for (far, near), text in zip(ends, texts, strict=True):
        if not into:
            writer.store(whole, text, far, note, pointer=state.pointer)
            continue
        for place in range(width):
            item = text if width == 1 else emit(f"extractelement {whole} {text}, i64 {place}")
            writer.store(kind, item, _near(state, tensor, near, str(place)), pointer=SHARED)


def _together(state: State, tensor: Tensor) -> int:
    """Return how many elements of a row are read at once: two sectors of memory.

    Twice as many, one by each thread of a warp, took 1.5 x the time for a running sum.
    """
    return min(2 * state.target.sector_bytes // tensor.type.dtype.size, WARP)


def _row_bytes(tensor: Tensor, columns: int) -> int:
    """Return the bytes that rows of so many elements take for a warp."""
    return WARP * (columns | 1) * tensor.type.dtype.size


def _warps(state: State) -> int:
    return grid_of(state.kernel).threads // WARP


def _fitting(state: State, found: Sequence[Found], sizes: Sequence[int]) -> list[Found]:
    """Return what there is shared memory for, of what takes so many bytes for a warp."""
    room, result = state.target.static_shared_bytes // _warps(state) - state.row_bytes, list[Found]()
    for item, size in zip(found, sizes, strict=True):
        if size <= room:
            result.append(item)
            room -= size
    return result


def _memory(state: State, taken: int, size: int) -> str:
    """Return the address of so many bytes for this warp, behind what rows around take."""
    emit, name, warps = state.writer.emit, f"bw_rows_{state.writer.name}", _warps(state)
    state.shared[name] = max(state.shared.get(name, 0), (taken + size) * warps)
    thread, row, width = (emit(f"zext i32 {register(state, each)} to i64") for each in ("tid.x", "tid.y", "ntid.x"))
    number = emit(f"add i64 {emit(f'mul i64 {row}, {width}')}, {thread}")
    place = emit(f"mul i64 {emit(f'lshr i64 {number}, {WARP.bit_length() - 1}')}, {size}")
    return emit(f"getelementptr i8, {SHARED} @{name}, i64 {emit(f'add i64 {place}, {taken * warps}')}")


def _own(state: State, tensor: Tensor, shared: str, pitch: str) -> str:
    """Return the address of this thread's row in its warp's memory."""
    return _near(state, tensor, shared, state.writer.emit(f"mul i64 {_lane(state)}, {pitch}"))


def _near(state: State, tensor: Tensor, start: str, place: str) -> str:
    if place == "0":
        return start
    return state.writer.emit(f"getelementptr {memory_type(tensor.type.dtype)}, {SHARED} {start}, i64 {place}")


def _lane(state: State) -> str:
    """Return the number of a thread in its warp, as i64."""
    lane = state.writer.emit(f"zext i32 {lane_number(state)} to i64")
    state.writer.learn(lane, Known(0, WARP - 1))
    return lane


def _of_lane(state: State, tensor: Tensor, offset: str, lane: str) -> str:
    """Return the offset that another thread of the warp has, as i64."""
    emit = state.writer.emit
    number = emit(f"trunc i64 {lane} to i32")
    if tensor not in state.kernel.narrow:
        return shuffled(state, "i64", offset, "idx", number)
    found = shuffled(state, "i32", emit(f"trunc i64 {offset} to i32"), "idx", number)
    return emit(f"sext i32 {found} to i64")


def _scalar(value: Value) -> str:
    if not isinstance(value, Uniform):
        raise TypeError("a thread that has rows runs one iteration")
    return value.text
