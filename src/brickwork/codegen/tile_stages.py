"""The sum of a tile of a contraction: its stages one after the other, each multiplied while later ones are staged.

A stage has the terms of one step of each loop of the sum. Invariant: a place in shared memory is written again only
after all threads have multiplied what was there.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.codegen.builder import Known
from brickwork.codegen.division import word_quotient
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.lane_values import Uniform
from brickwork.codegen.teams import block_barrier
from brickwork.codegen.tile import Tile
from brickwork.codegen.tile_cluster import own_stages
from brickwork.codegen.tile_groups import keep_products, multiply_together, show_to_groups, wait_for_products
from brickwork.codegen.tile_meetings import Strip, strip_of
from brickwork.codegen.tile_places import Places
from brickwork.codegen.tile_products import Warp
from brickwork.codegen.tile_staging import Computer, Copier, stager
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Expression, For
from brickwork.ir.walk import read_symbols
from brickwork.records import dataclass
from brickwork.target.matrix import GROUP_ROWS, KEPT_STAGES

_COMMIT = "llvm.nvvm.cp.async.commit.group"
_WAIT = "llvm.nvvm.cp.async.wait.group"


@dataclass(frozen=True, slots=True)
class _Span:
    """The range of a loop of the sum for a tile and how many steps cover it, as i64; these as i32, and a reciprocal."""

    loop: For
    start: str
    stop: str
    steps: str
    divisor: str
    reciprocal: str


@dataclass(frozen=True, slots=True)
class _Stages:
    """The stages of a tile that a block takes, from `first` to before `total` (i32); `spans` are those of the sum."""

    state: State
    tile: Tile
    stagers: tuple[Copier | Computer, ...]
    kept: Strip | None
    spans: tuple[_Span, ...]
    first: str
    total: str

    def begin(self, number: str, slot: str) -> None:
        """Begin to stage a stage, if there is one of this number."""
        state = self.state
        with state.writer.when(state.writer.emit(f"icmp slt i32 {number}, {self.total}")):
            terms, first = _terms(state, self.tile, self.spans, number)
            for each in self.stagers:
                each.begin(slot, terms, first)
        state.module.declare(_COMMIT, "void", ())
        state.writer.effect(f"call void @{_COMMIT}()")

    def fetch(self, number: str) -> None:
        """Read early what a stage is computed from, if there is one of this number."""
        early = self._early()
        if early:
            with self.state.writer.when(self.state.writer.emit(f"icmp slt i32 {number}, {self.total}")):
                terms, first = _terms(self.state, self.tile, self.spans, number)
                for each in early:
                    each.fetch(terms, first)

    def end(self, number: str, slot: str) -> None:
        """Put what was computed of a stage into shared memory, if there is one of this number."""
        writer = self.state.writer
        if all(isinstance(each, Copier) for each in self.stagers):
            return
        with writer.when(writer.emit(f"icmp slt i32 {number}, {self.total}")):
            early = self._early()
            if early:
                terms, first = _terms(self.state, self.tile, self.spans, number)
                for each in early:
                    each.resume(terms, first)
            for each in self.stagers:
                each.end(slot)

    def _early(self) -> list[Computer]:
        return [each for each in self.stagers if isinstance(each, Computer) and each.reads.early is not None]

    def _keep(self, strip: Strip, number: str) -> None:
        """Keep distinct numbers from a stage on, where those before do not reach it."""
        emit, writer = self.state.writer.emit, self.state.writer
        (deep,) = (span for span in self.spans if span.loop is self.tile.depth)
        stage = number if len(self.spans) == 1 else emit(f"urem i32 {number}, {emit(f'trunc i64 {deep.steps} to i32')}")
        other = emit(f"icmp eq i32 {emit(f'urem i32 {stage}, {KEPT_STAGES}')}, 0")
        other = emit(f"or i1 {other}, {emit(f'icmp eq i32 {number}, {self.first}')}")
        with writer.when(other):
            block_barrier(self.state)
            strip.fill(*_terms(self.state, self.tile, self.spans, number), stage)
        strip.move(stage)

    def multiply(self, warp: Warp, number: str, slot: str, free: str) -> None:
        """Multiply a stage while a later one is staged."""
        later = self.state.writer.emit(f"add i32 {number}, {self.tile.ahead}")
        if self.kept is not None:
            self._keep(self.kept, number)
        if self.tile.groups:
            show_to_groups(self.state)
        block_barrier(self.state)
        if self.tile.groups and self.tile.in_registers:
            self._multiply_in_turns(warp, later, slot, free)
        elif self.tile.groups:
            sums = multiply_together(self.state, self.tile, warp, slot)
            self.begin(later, free)
            self._go_on(later, free)
            keep_products(self.state, self.tile, warp, sums)
        else:
            self.begin(later, free)
            warp.multiply(slot)
            self._go_on(later, free)

    def _go_on(self, number: str, slot: str) -> None:
        """End a stage, and read early for the one after it."""
        self.end(number, slot)
        self.fetch(self.state.writer.emit(f"add i32 {number}, 1"))

    def _multiply_in_turns(self, warp: Warp, later: str, slot: str, free: str) -> None:
        """Let half of the groups multiply while the others stage: who gives registers to products waits for these."""
        writer = self.state.writer
        first = writer.emit(f"icmp ult i32 {warp.row}, {max(self.tile.left.size // 2, GROUP_ROWS)}")
        second = writer.emit(f"xor i1 {first}, true")
        self.begin(later, free)
        with writer.when(second):
            self._go_on(later, free)
        sums = multiply_together(self.state, self.tile, warp, slot)
        with writer.when(first):
            self._go_on(later, free)
        keep_products(self.state, self.tile, warp, sums)


def sum_up(state: State, tile: Tile, thread: str, warp: Warp) -> None:
    """Multiply all stages; afterwards nothing is on its way, and all threads are done."""
    writer = state.writer
    spans = tuple(_span(state, tile, loop) for loop in tile.contraction.sums)
    total = spans[0].steps
    for span in spans[1:]:
        total = writer.emit(f"mul i64 {total}, {span.steps}")
    total = writer.emit(f"trunc i64 {total} to i32")
    (end,) = (span.stop for span in spans if span.loop is tile.depth)
    stagers = tuple(stager(state, tile, side, thread, end) for side in tile.sides if not side.meets)
    kept = strip_of(Places(state, tile, tile.left, thread, end)) if tile.left.meets else None
    warp = replace(warp, kept=kept)
    # Around no stage at all: what defines the sums there must not stand between products and the wait for them.
    first, total = own_stages(state, total)
    with writer.when(writer.emit(f"icmp sgt i32 {total}, {first}")):
        _run(_Stages(state, tile, stagers, kept, spans, first, total), warp)
    block_barrier(state)


def _run(stages: _Stages, warp: Warp) -> None:
    state, tile, writer = stages.state, stages.tile, stages.state.writer
    with writer.count("0", str(tile.ahead)) as turn:
        place = writer.emit(f"trunc i64 {turn} to i32")
        slot = writer.emit(f"mul i32 {place}, {tile.stage_bytes}")
        number = writer.emit(f"add i32 {stages.first}, {place}")
        stages.fetch(number)
        stages.begin(number, slot)
        stages.end(number, slot)
    stages.fetch(writer.emit(f"add i32 {stages.first}, {tile.ahead}"))
    counter, here, there = (writer.alloca("i32") for _ in range(3))
    for place, start in ((counter, stages.first), (here, 0), (there, tile.ahead * tile.stage_bytes)):
        writer.store("i32", str(start), place)
    body, done = (writer.label(stem) for stem in ("stage", "summed"))
    writer.place(body)
    number = writer.load("i32", counter)
    _wait(state, tile.ahead - 1)
    slot, free = (writer.load("i32", place) for place in (here, there))
    stages.multiply(warp, number, slot, free)
    for place, text in ((here, slot), (there, free)):
        _move_on(state, tile, place, text)
    number = writer.emit(f"add i32 {number}, 1")
    writer.store("i32", number, counter)
    writer.branch_if(writer.emit(f"icmp slt i32 {number}, {stages.total}"), body, done)
    writer.place(done)
    if tile.groups:
        wait_for_products(state, 0)
    _wait(state, 0)


def _span(state: State, tile: Tile, loop: For) -> _Span:
    """Return the range over which a tile sums: from the least start of its rows and columns to the greatest stop."""
    emit = state.writer.emit
    start, stop = _extreme(state, tile, loop.start, "smin"), _extreme(state, tile, loop.stop, "smax")
    steps = emit(f"call i64 @llvm.smax.i64(i64 {emit(f'sub i64 {stop}, {start}')}, i64 0)")
    if loop is tile.depth:
        steps = emit(f"udiv i64 {emit(f'add i64 {steps}, {tile.staged - 1}')}, {tile.staged}")
    divisor = emit(f"call i32 @llvm.umax.i32(i32 {emit(f'trunc i64 {steps} to i32')}, i32 1)")
    return _Span(loop, start, stop, steps, divisor, emit(f"udiv i32 -1, {divisor}"))


def _extreme(state: State, tile: Tile, bound: Expression, choice: str) -> str:
    """Return the least (`smin`) or greatest (`smax`) value of a bound in a tile; it is at the first or last row."""
    side = next((side for side in tile.sides if side.index in read_symbols(bound)), None)
    if side is None:
        return emit_scalar(state, bound)
    emit, found = state.writer.emit, list[str]()
    first, stop = emit_scalar(state, side.loop.start), emit_scalar(state, side.loop.stop)
    for place in (first, emit(f"sub i64 {stop}, 1")):
        inner = state.inner()
        inner.values[side.index] = Uniform(place, INT64)
        found.append(emit_scalar(inner, bound))
    return emit(f"call i64 @llvm.{choice}.i64(i64 {found[0]}, i64 {found[1]})")


def _terms(state: State, tile: Tile, spans: tuple[_Span, ...], number: str) -> tuple[State, str]:
    """Return the state with the indices of the loops around the depth at a stage, and where its terms begin."""
    emit, inner = state.writer.emit, state.inner()
    left, first = number, ""
    ordered = sorted(spans, key=lambda span: span.loop is not tile.depth)
    for span in ordered:
        word = left
        if span is not ordered[-1]:
            left = word_quotient(state.writer, word, span.divisor, span.reciprocal)
            word = emit(f"sub i32 {word}, {emit(f'mul i32 {left}, {span.divisor}')}")
        place = emit(f"zext i32 {word} to i64")
        step = emit(f"mul i64 {place}, {tile.staged}") if span.loop is tile.depth else place
        text = emit(f"add i64 {span.start}, {step}")
        least, most = (state.writer.known(bound) for bound in (span.start, span.stop))
        state.writer.learn(text, Known(least.low, most.high))
        if span.loop is tile.depth:
            first = text
        else:
            inner.values[span.loop.index] = Uniform(text, INT64)
    return inner, first


def _move_on(state: State, tile: Tile, place: str, slot: str) -> None:
    """Go to the next stage in shared memory, after the last to the first."""
    emit = state.writer.emit
    after = emit(f"add i32 {slot}, {tile.stage_bytes}")
    over = emit(f"icmp eq i32 {after}, {tile.stages * tile.stage_bytes}")
    state.writer.store("i32", emit(f"select i1 {over}, i32 0, i32 {after}"), place)


def _wait(state: State, left: int) -> None:
    """Wait until no more than so many stages are on their way."""
    state.module.declare(_WAIT, "void", ("i32 immarg",))
    state.writer.effect(f"call void @{_WAIT}(i32 {left})")
