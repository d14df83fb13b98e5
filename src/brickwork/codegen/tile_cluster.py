"""Sums of a tile in parts: the blocks of a cluster take some stages each, and add up what all of them have (split-K).

Each block leaves its sums in its shared memory. Blocks then share out the tile's elements: the one that runs the
statements after the sum for some elements reads their sums of all blocks, in the order of the parts. So results depend
on sizes alone, and nothing goes through memory. Invariant: the blocks of a cluster have the same tile, and none ends
before all have read what it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.codegen.emitter_state import State
from brickwork.codegen.thread_iterations import block_number, register
from brickwork.codegen.tile import Tile
from brickwork.codegen.tile_places import SHARED
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64
from brickwork.ir.nodes import Expression, For
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.legality import legality
from brickwork.target.matrix import CHUNK_BYTES, FEWEST_DIVIDED, LEAST_STAGES, MOST_PARTS
from brickwork.transform.schedule.contract_loops import tiles

_ARRIVE, _WAIT = "llvm.nvvm.barrier.cluster.arrive", "llvm.nvvm.barrier.cluster.wait"


def blocks_of(loops: Sequence[For], tile: Tile) -> Expression:
    """Return how many blocks add up each tile of a nest, from sizes: a power of two.

    Where tiles are fewer than the blocks that are wanted, each is for several blocks, if these have enough stages.
    """
    one, wanted = build.integer(1), loops[-1].across
    counts: list[Expression] = []
    for loop in tile.contraction.sums:
        count = build.iterations(loop.start, loop.stop)
        counts.append(tiles(count, tile.staged) if loop is tile.depth else count)
    if not wanted or not _is_known_before(counts, loops):
        return one
    whole = build.product([one, *(build.iterations(loop.start, loop.stop) for loop in loops)])
    each = build.apply("floordiv", build.integer(wanted), build.apply("maximum", whole, one))
    stages = build.product(counts)
    deep = build.apply("floordiv", stages, build.integer(LEAST_STAGES))
    # Stages of 16 bits take half as long as those of 32, and a cluster as long for both.
    deep = build.select(build.apply("ge", stages, build.integer(FEWEST_DIVIDED // tile.bytes_each)), deep, one)
    most, found = build.apply("minimum", each, deep), one
    for bits in range(1, MOST_PARTS.bit_length()):
        parts = build.integer(1 << bits)
        found = build.select(build.apply("ge", most, parts), parts, found)
    return found


@legality
def _is_known_before(counts: Sequence[Expression], loops: Sequence[For]) -> bool:
    """Whether numbers of stages are the same for all tiles of a nest: the host asks before it is launched."""
    return not read_symbols(counts) & assigned_symbols(loops)


def nest_number(state: State) -> str:
    """Return the number of the iteration that this block runs, alone or with the others of its cluster, as i64."""
    if state.target.cluster == 1:
        return block_number(state)
    emit = state.writer.emit
    x, y, wide = (
        emit(f"zext i32 {register(state, f'{name}')} to i64") for name in ("clusterid.x", "clusterid.y", "nclusterid.x")
    )
    return emit(f"add i64 {emit(f'mul i64 {y}, {wide}')}, {x}")


def own_stages(state: State, total: str) -> tuple[str, str]:
    """Return the first of the stages, of which there are `total`, that this block takes, and where they end, as i32."""
    if state.target.cluster == 1:
        return "0", total
    emit = state.writer.emit
    number, count = part(state)
    more = emit(f"add i32 {total}, {emit(f'sub i32 {count}, 1')}")
    each = emit(f"udiv i32 {more}, {count}")
    first = emit(f"mul i32 {each}, {number}")
    return first, emit(f"call i32 @llvm.smin.i32(i32 {emit(f'add i32 {first}, {each}')}, i32 {total})")


def part(state: State) -> tuple[str, str]:
    """Return which part of a tile this block has, and how many parts there are, as i32."""
    if state.target.cluster == 1:
        return "0", "1"
    # Read again wherever they are needed, so that they take no register while a tile is multiplied.
    number, count = (
        state.writer.emit(f'call i32 asm sideeffect "mov.u32 $0, %cluster_{name};", "=r"()')
        for name in ("ctarank", "nctarank")
    )
    return number, count


def meet(state: State) -> None:
    """Let the blocks of a cluster wait for each other."""
    if state.target.cluster == 1:
        return
    with state.writer.when(state.writer.emit(f"icmp ugt i32 {part(state)[1]}, 1")):
        cluster_barrier(state)


def cluster_barrier(state: State) -> None:
    """Wait for all threads of the cluster, and see what these stored."""
    for name in (_ARRIVE, _WAIT):
        state.module.declare(name, "void", (), "convergent nocallback nounwind")
        state.writer.effect(f"call void @{name}()")


def add_up(state: State, tile: Tile, address: str, count: int) -> None:
    """Put what all blocks have in sum at an address of shared memory, so many sums, in its place in this block."""
    if state.target.cluster == 1:
        return
    writer, (_, parts), kind = state.writer, part(state), tile.kind
    with writer.when(writer.emit(f"icmp ugt i32 {parts}, 1")):
        place = writer.emit(f"ptrtoint {SHARED} {address} to i32")
        chunks = [writer.emit(f"add i32 {place}, {far}") for far in range(0, count * tile.sum_bytes, CHUNK_BYTES)]
        sums: list[str] = []
        for number in range(MOST_PARTS):
            found = [text for chunk in chunks for text in _read(state, kind, chunk, number, parts)]
            both = zip(sums, found, strict=True) if sums else ()
            sums = [writer.emit(f"{_ADD[kind]} {kind} {one}, {other}") for one, other in both] or found
        for number, text in enumerate(sums):
            at = writer.emit(f"getelementptr {kind}, {SHARED} {address}, i64 {number}")
            writer.store(kind, text, at, pointer=SHARED)


_ADD = {"float": "fadd", "double": "fadd", "i32": "add"}
_REGISTER = {"float": "f", "double": "d", "i32": "r"}


def _read(state: State, kind: str, place: str, number: int, parts: str) -> list[str]:
    """Return a chunk of sums of the block with a number in this cluster; zeros if it has no such block."""
    emit = state.writer.emit
    size = FLOAT64.size if kind == "double" else FLOAT32.size
    count, bits = CHUNK_BYTES // size, f"b{8 * size}"
    registers = [f"${each}" for each in range(count)]
    clear = " ".join(f"mov.{bits} {each}, 0;" for each in registers)
    text = (
        f"{{ .reg .pred p; .reg .b32 a; setp.gt.u32 p, ${count + 1}, {number}; {clear}"
        f" @p mapa.shared::cluster.u32 a, ${count}, {number};"
        f" @p ld.shared::cluster.v{count}.{bits} {{{', '.join(registers)}}}, [a]; }}"
    )
    result = f"{{{', '.join([kind] * count)}}}"
    outputs = ",".join([f"=&{_REGISTER[kind]}"] * count)
    found = emit(f'call {result} asm sideeffect "{text}", "{outputs},r,r,~{{memory}}"(i32 {place}, i32 {parts})')
    return [emit(f"extractvalue {result} {found}, {each}") for each in range(count)]
