"""Which iterations a thread of a grid runs (a grid-stride loop): numbers of its steps, and the indices at them.

A nest of parallel loops is shared out as a table: its columns are the steps of the innermost loop, its rows those of
the loops around it. Threads and blocks lie along both, and what depends on the row alone is computed once a row.
Invariant: every step is run by one thread, however large the grid is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from brickwork.codegen.builder import Known
from brickwork.codegen.division import long_quotient
from brickwork.codegen.emitter_state import EmitBlock, Frame, State
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.grid import MOST_BLOCKS, MOST_ROWS, PARALLEL_THREADS, Grid
from brickwork.codegen.lane_values import Uniform
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Constant, Expression, For, Size
from brickwork.ir.signature import NARROW_EXTENT
from brickwork.legality import legality

_NARROW_EXTENT = Known(0, NARROW_EXTENT - 1)
_REGISTERS = "llvm.nvvm.read.ptx.sreg"


def register(state: State, name: str) -> str:
    """Return a special register as i32."""
    state.module.declare(f"{_REGISTERS}.{name}", "i32", ())
    return state.writer.once(f"call i32 @{_REGISTERS}.{name}()")


def block_number(state: State) -> str:
    """Return the number of this block, as i64."""
    emit, x, y = state.writer.emit, register(state, "ctaid.x"), register(state, "ctaid.y")
    row = emit(f"zext i32 {y} to i64")
    width = emit(f"zext i32 {register(state, 'nctaid.x')} to i64")
    return emit(f"add i64 {emit(f'mul i64 {row}, {width}')}, {emit(f'zext i32 {x} to i64')}")


def step_number(state: State, grid: Grid) -> str:
    """Return the number of this thread's step in a grid of one loop, as i64."""
    emit, thread = state.writer.emit, register(state, "tid.x")
    if not (_is_natural(grid.loops[0].start) and _counts_elements(state, grid.loops[0].stop)):
        size = emit(f"zext i32 {register(state, 'ntid.x')} to i64")
        first = emit(f"mul i64 {block_number(state)}, {size}")
        return emit(f"add i64 {first}, {emit(f'zext i32 {thread} to i64')}")
    # There are so few steps that all blocks lie along x and all threads have numbers of 32 bits.
    first = emit(f"mul nuw nsw i32 {register(state, 'ctaid.x')}, {register(state, 'ntid.x')}")
    step = emit(f"sext i32 {emit(f'add nuw nsw i32 {first}, {thread}')} to i64")
    state.writer.learn(step, Known(0, NARROW_EXTENT + grid.threads))
    return step


@legality
def _is_natural(expression: Expression) -> bool:
    return isinstance(expression, Constant) and int(expression.value) >= 0


def loop_stop(state: State, loop: For) -> str:
    """Return where a loop ends, as i64."""
    counted = _counts_elements(state, loop.stop)
    with state.writer.modular(narrow=counted):
        stop = emit_scalar(state, loop.stop)
    if counted:
        state.writer.learn(stop, _NARROW_EXTENT)
    return stop


def begin_step(state: State, grid: Grid, step: str) -> State:
    """Return the state of a step, whose number is an i64, with the loops' indices; leave if there is none."""
    writer = state.writer
    starts = [emit_scalar(state, loop.start) for loop in grid.loops]
    counts = _counts(state, grid, starts)
    total = _product(state, counts)
    inside, outside = writer.label("inside"), writer.label("outside")
    writer.branch_if(writer.emit(f"icmp slt i64 {step}, {total}"), inside, outside)
    writer.place(outside)
    writer.terminate("ret void")
    writer.place(inside)
    return _at(replace(state, order=step), grid, starts, _places(state, step, total, counts))


def one_by_one(state: State, loop: For, bounds: tuple[str, str], known: Known, emit_block: EmitBlock) -> None:
    """Emit the iterations of a loop within bounds that are i64, in order, without lanes; `known` is of all indices."""
    writer, (first, stop) = state.writer, bounds
    counter = writer.alloca("i64")
    writer.store("i64", first, counter)
    head, body, latch, done = (writer.label(stem) for stem in ("rest", "one", "next", "done"))
    writer.place(head)
    place = writer.load("i64", counter)
    writer.learn(place, known)
    writer.branch_if(writer.emit(f"icmp slt i64 {place}, {stop}"), body, done)
    writer.place(body)
    inner = replace(state.inner(), frame=Frame(latch, latch, None))
    inner.values[loop.index] = Uniform(place, INT64)
    emit_block(inner, loop.body)
    writer.place(latch)
    writer.store("i64", writer.emit(f"add i64 {place}, 1"), counter)
    writer.branch(head)
    writer.place(done)


@contextmanager
def table_steps(state: State, grid: Grid) -> Generator[State]:
    """Write the body for the steps of this thread in a nest of two loops or more; gives the state with the indices."""
    writer = state.writer
    starts = [emit_scalar(state, loop.start) for loop in grid.loops]
    counts = _counts(state, grid, starts)
    rows, columns = _product(state, counts[:-1]), counts[-1]
    with _shared(state, rows, "y", MOST_ROWS) as row:
        places = _places(state, row, rows, counts[:-1])
        with _shared(state, columns, "x", MOST_BLOCKS) as column:
            number = writer.emit(f"add i64 {writer.emit(f'mul i64 {row}, {columns}')}, {column}")
            yield _at(replace(state, order=number), grid, starts, [*places, column])


@contextmanager
def _shared(state: State, count: str, axis: str, most: int) -> Generator[str]:
    """Write the body for each of `count` that falls to this thread along an axis of the grid; gives its number."""
    writer, limit = state.writer, state.writer.known(count).high
    size, block, blocks, thread = (
        writer.emit(f"zext i32 {register(state, f'{name}.{axis}')} to i64")
        for name in ("ntid", "ctaid", "nctaid", "tid")
    )
    for text, high in ((size, PARALLEL_THREADS), (thread, PARALLEL_THREADS - 1), (blocks, most), (block, most - 1)):
        writer.learn(text, Known(0, high))
    first = writer.emit(f"add i64 {writer.emit(f'mul i64 {block}, {size}')}, {thread}")
    stride = writer.emit(f"mul i64 {blocks}, {size}")
    # Blocks and threads are enough for all of them and fewer than one block more.
    near = Known(0, limit + PARALLEL_THREADS)
    kind = "i32" if 2 * near.high < 2**31 else "i64"
    for text in (first, stride):
        writer.learn(text, near)
    counter = writer.alloca(kind)
    writer.store(kind, _as(state, kind, first), counter)
    head, body, after = (writer.label(stem) for stem in ("steps", "step", "done"))
    writer.place(head)
    number = writer.load(kind, counter)
    if kind == "i32":
        number = writer.emit(f"sext i32 {number} to i64")
    writer.learn(number, Known(0, 2 * near.high))
    writer.branch_if(writer.emit(f"icmp slt i64 {number}, {count}"), body, after)
    writer.place(body)
    yield _below(state, number, limit)
    writer.store(kind, _as(state, kind, writer.emit(f"add i64 {number}, {stride}")), counter)
    writer.branch(head)
    writer.place(after)


def _as(state: State, kind: str, text: str) -> str:
    return text if kind == "i64" else state.writer.emit(f"trunc i64 {text} to i32")


def _below(state: State, text: str, limit: int) -> str:
    """Return an i64 of which it has become known that it is below `limit`."""
    if limit < 2**31:
        word = state.writer.emit(f"trunc i64 {text} to i32")
        text = state.writer.emit(f"sext i32 {word} to i64")
        state.writer.learn(text, Known(0, max(limit - 1, 0)))
    return text


def _at(state: State, grid: Grid, starts: list[str], places: list[str]) -> State:
    """Return the state in which the loops' indices are at these places."""
    writer, inner = state.writer, state.inner()
    for number, (loop, start, place) in enumerate(zip(grid.loops, starts, places, strict=True)):
        if number + 1 == len(grid.loops) and grid.width > 1:
            offset = writer.emit(f"mul i64 {place}, {grid.width}")
        else:
            offset = place
        index = writer.emit(f"add i64 {start}, {offset}") if start != "0" else offset
        inner.values[loop.index] = Uniform(index, INT64)
    return inner


def _counts(state: State, grid: Grid, starts: list[str]) -> list[str]:
    """Return the steps along each loop."""
    counts = [_count(state, loop, start) for loop, start in zip(grid.loops, starts, strict=True)]
    if grid.width > 1:
        rounded = state.writer.emit(f"add i64 {counts[-1]}, {grid.width - 1}")
        counts[-1] = state.writer.emit(f"udiv i64 {rounded}, {grid.width}")
    return counts


def _product(state: State, counts: list[str]) -> str:
    total = counts[0]
    for count in counts[1:]:
        total = state.writer.emit(f"mul i64 {total}, {count}")
    return total


def _count(state: State, loop: For, start: str) -> str:
    writer = state.writer
    stop = loop_stop(state, loop)
    length = writer.emit(f"sub i64 {stop}, {start}")
    if writer.known(length).low >= 0:
        return length
    return writer.emit(f"call i64 @llvm.smax.i64(i64 {length}, i64 0)")


@legality
def _counts_elements(state: State, expression: Expression) -> bool:
    """Return whether an expression is the number of elements of a dense narrow tensor: the product of its sizes."""
    factors = _factors(expression)
    if not isinstance(factors[0], Size):
        return False
    tensor = factors[0].tensor
    sizes = Counter[Expression](build.size(tensor, axis) for axis in range(tensor.type.rank))
    return tensor.type.contiguous and tensor in state.kernel.narrow and Counter(factors) == sizes


def _factors(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "mul":
            return (*_factors(left), *_factors(right))
        case _:
            return (expression,)


def _places(state: State, step: str, total: str, counts: list[str]) -> list[str]:
    """Return the places in each loop of a step: by divisions of 32 bits where all steps have such numbers."""
    writer = state.writer
    if len(counts) == 1:
        return [_below(state, step, writer.known(counts[0]).high)]
    narrow, wide, found = writer.label("narrow"), writer.label("wide"), writer.label("found")
    slots = [writer.alloca("i64") for _ in counts]
    writer.branch_if(writer.emit(f"icmp ule i64 {total}, {2**31 - 1}"), narrow, wide)
    for label, kind in ((narrow, "i32"), (wide, "i64")):
        writer.place(label)
        for slot, place in zip(slots, _divisions(state, step, counts, kind), strict=True):
            writer.store("i64", place, slot)
        writer.branch(found)
    writer.place(found)
    places = [writer.load("i64", slot) for slot in slots]
    for number, (place, count) in enumerate(zip(places, counts, strict=True)):
        known = writer.known(count)
        if known.high < 2**31:
            word = writer.emit(f"trunc i64 {place} to i32")
            places[number] = writer.emit(f"sext i32 {word} to i64")
        writer.learn(places[number], Known(0, max(known.high - 1, 0)))
    return places


def _divisions(state: State, step: str, counts: list[str], kind: str) -> list[str]:
    """Divide a step's number by the loops' lengths, innermost first, in integers of `kind`."""
    emit, texts = state.writer.emit, [step, *counts]
    if kind == "i32":
        texts = [emit(f"trunc i64 {text} to i32") for text in texts]
    left, places = texts[0], list[str]()
    for count in reversed(texts[2:]):
        divided = emit(f"udiv i32 {left}, {count}") if kind == "i32" else long_quotient(state.writer, left, count)
        places.append(emit(f"sub {kind} {left}, {emit(f'mul {kind} {divided}, {count}')}"))
        left = divided
    places = [left, *reversed(places)]
    return [emit(f"zext i32 {place} to i64") for place in places] if kind == "i32" else places
