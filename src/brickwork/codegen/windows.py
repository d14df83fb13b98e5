"""Windows: chunks that an unrolled loop of a device kernel reads in one turn and has in registers in the next.

    16 lanes along t, turns of 16 of u:   w[c, T - 1 - t + u] is 31 neighbours in 8 chunks, 4 of them read before

Where lanes read neighbours and each iteration moves these on by one, a turn moves them on by whole chunks. Those that
two turns have in common are read once. The chunks for the first turn are read before the loop, if it has one. Only a
loop that accumulates one sum has windows: where several rows share what they read, reads are few beside the arithmetic,
and keeping chunks costs more than reading them (3 % on an H200).
Invariant: each chunk holds an element that the turn reads, so nothing beyond the rows is touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.slope import slope
from brickwork.codegen import memory
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_all
from brickwork.codegen.lane_values import memory_type
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, For, Load
from brickwork.ir.signature import ALIGNMENT
from brickwork.ir.walk import assigned_symbols, read_symbols, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.schedule.register_tile import UNROLLED


@dataclass(frozen=True, slots=True)
class Window:
    """What a turn reads of a tensor: `count` chunks, of which each iteration moves on by one element, up or down.

    `low` is the place of the lowest element that is read, in the first chunk, and `lanes` how lanes go on from there.
    `slots` keep what the next turn has of the chunks.
    """

    load: Load
    turns: int
    step: int
    lanes: int
    low: int
    count: int
    slots: tuple[str, ...]

    @property
    def whole(self) -> int:
        """Elements of a chunk."""
        return ALIGNMENT // self.load.tensor.type.dtype.size

    @property
    def fresh(self) -> int:
        """Chunks that each turn reads."""
        return self.turns // self.whole

    @property
    def kept(self) -> range:
        """The chunks that a turn has of the one before."""
        return range(self.count - self.fresh) if self.step > 0 else range(self.fresh, self.count)

    def begin(self, state: State) -> None:
        """Read what the first turn has of none before; `state` is that of its first iteration."""
        for slot, text in zip(self.slots, self.read(state, self.kept), strict=True):
            state.writer.store(self.kind, text, slot)

    def turn(self, state: State) -> list[str]:
        """Return the chunks of a turn, and keep those of the next; `state` is that of its first iteration."""
        kept = [state.writer.load(self.kind, slot) for slot in self.slots]
        if self.step > 0:
            chunks = [*kept, *self.read(state, range(len(kept), self.count))]
            passed_on = chunks[self.fresh :]
        else:
            chunks = [*self.read(state, range(self.fresh)), *kept]
            passed_on = chunks[: len(kept)]
        for slot, text in zip(self.slots, passed_on, strict=True):
            state.writer.store(self.kind, text, slot)
        return chunks

    def items(self, state: State, chunks: Sequence[str], number: int) -> tuple[str, ...]:
        """Return what the lanes read in an iteration of a turn, out of its chunks."""
        first = self.low + (number if self.step > 0 else self.turns - 1 - number)
        first += 0 if self.lanes > 0 else state.width - 1
        places = [first + self.lanes * lane for lane in range(state.width)]
        return tuple(
            state.writer.emit(f"extractelement {self.kind} {chunks[place // self.whole]}, i64 {place % self.whole}")
            for place in places
        )

    def read(self, state: State, numbers: Sequence[int]) -> list[str]:
        """Return chunks by their numbers."""
        root, lowest, _ = _place(state, self.load) or ("0", 0, 0)
        lowest -= self.reach(state.width)
        tensor, first = self.load.tensor, lowest - lowest % self.whole
        start = memory.offset_address(state, tensor, root)
        return [memory.load_chunk(state, tensor, start, first + number * self.whole) for number in numbers]

    def reach(self, width: int) -> int:
        """Return how far below what the first lane reads in the first iteration a turn reads."""
        return _reach(self.turns, self.step, self.lanes, width)

    @property
    def kind(self) -> str:
        """The type of a chunk."""
        return f"<{self.whole} x {memory_type(self.load.tensor.type.dtype)}>"


def windows(state: State, loop: For) -> list[Window]:
    """Return the windows of a loop that is unrolled; `state` is that of its first iteration."""
    if loop.unrolled < UNROLLED or state.mask is not None:
        return []
    if len(loop.body) > 1 or not all(isinstance(statement, Assign) for statement in loop.body):
        return []
    loads = dict.fromkeys(node for node in walk(loop.body) if isinstance(node, Load))
    return [window for load in loads if (window := _window(state, loop, load)) is not None and window.slots]


@legality
def _window(state: State, loop: For, load: Load) -> Window | None:
    """Return the window of a load, if it has one."""
    if (step := _step(loop, load)) is None:
        return None
    place = _place(state, load)
    if place is None or abs(place[2]) != 1:
        return None
    whole, turns, lanes = ALIGNMENT // load.tensor.type.dtype.size, loop.unrolled, place[2]
    low = (place[1] - _reach(turns, step, lanes, state.width)) % whole
    count = -(-(low + turns + state.width - 1) // whole)
    kept = count - turns // whole
    if turns % whole:
        return None
    kind = f"<{whole} x {memory_type(load.tensor.type.dtype)}>"
    slots = tuple(state.writer.alloca(kind) for _ in range(kept))
    return Window(load, turns, step, lanes, low, count, slots)


@legality
def _step(loop: For, load: Load) -> int | None:
    """Return how far a load moves on along its last axis in each iteration of a loop, 1 or -1; None if otherwise."""
    *rows, last = load.indices
    step, changing = slope(last, loop.index), assigned_symbols(loop.body)
    if step is None or abs(step) != 1:
        return None
    if read_symbols(rows) & {loop.index} or read_symbols(load.indices) & changing:
        return None
    return None if effects(load.indices).loads else step


def _reach(turns: int, step: int, lanes: int, width: int) -> int:
    return (turns - 1 if step < 0 else 0) + (width - 1 if lanes < 0 else 0)


def _place(state: State, load: Load) -> tuple[str, int, int] | None:
    """Return where the first lane reads, as a multiple of a chunk and a constant, and how far apart lanes are."""
    return memory.place_in_chunks(state, load.tensor, emit_all(state, load.indices))
