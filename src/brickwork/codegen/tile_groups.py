"""Products of staged factors by groups of four warps (`wgmma`), which read shared memory themselves and run on alone.

A factor is told by a descriptor: where it begins, how far its parts lie apart, and that its rows are swizzled as
`tile_staging.py` stores them. Registers of sums are tied to the instructions, which are written as assembly.
"""

from __future__ import annotations

from brickwork.analysis.contractions import Along
from brickwork.codegen.emitter_state import State
from brickwork.codegen.tile import Side, Tile
from brickwork.codegen.tile_places import MEMORY, SHARED
from brickwork.codegen.tile_products import Warp
from brickwork.codegen.words import Word, Words
from brickwork.ir.dtypes import BFLOAT16
from brickwork.target.matrix import GROUP_ROWS, GROUP_TERMS, ROW_BYTES

_SWIZZLED, _ROWS_APART = 1 << 62, (8 * ROW_BYTES >> 4) << 32
"""Of a descriptor: rows of 128 bytes are swizzled, and groups of eight rows follow one another."""
_FENCE = "llvm.nvvm.wgmma.fence.sync.aligned"
_COMMIT = "llvm.nvvm.wgmma.commit_group.sync.aligned"
_WAIT = "llvm.nvvm.wgmma.wait_group.sync.aligned"
_PROXY = "llvm.nvvm.fence.proxy.async.shared_cta"
_NOTE = "convergent nounwind"


def multiply_together(state: State, tile: Tile, warp: Warp, slot: Word) -> None:
    """Begin to add the products of a stage to the sums of this group of warps."""
    writer, words = state.writer, Words(state.writer)
    start = writer.emit(f"add i32 {writer.once(f'ptrtoint {SHARED} {MEMORY} to i32')}, {slot}")
    group = words.mul(words.right(warp.row, 6), GROUP_ROWS * ROW_BYTES)
    left = _descriptor(state, tile, tile.left, words.add(start, tile.left.offset, group))
    right = _descriptor(state, tile, tile.right, words.add(start, tile.right.offset))
    places = [place for each in warp.sums[0] for place in each]
    sums = [writer.load("float", place) for place in places]
    _call(state, _FENCE)
    for step in range(tile.staged // GROUP_TERMS):
        one, other = (
            writer.emit(f"add i64 {text}, {step * _step(side)}") if step else text
            for text, side in ((left, tile.left), (right, tile.right))
        )
        sums = _instruction(state, tile, sums, one, other)
    _call(state, _COMMIT)
    for place, text in zip(places, sums, strict=True):
        writer.store("float", text, place)


def wait_for_products(state: State, left: int) -> None:
    """Wait until no more than so many stages are being multiplied."""
    state.module.declare(_WAIT, "void", ("i64 immarg",), _NOTE)
    state.writer.effect(f"call void @{_WAIT}(i64 {left})")


def show_to_groups(state: State) -> None:
    """Let instructions of groups see what this thread has stored in shared memory, after the next barrier."""
    _call(state, _PROXY)


def _step(side: Side) -> int:
    """Return how far a descriptor goes from one instruction to the next: chunks."""
    return GROUP_TERMS * ROW_BYTES >> 4 if side.along is Along.SIDE else GROUP_TERMS * 2 >> 4


def _descriptor(state: State, tile: Tile, side: Side, address: Word) -> str:
    words = Words(state.writer)
    apart = tile.staged * ROW_BYTES if side.along is Along.SIDE else 16
    low = words.wide(words.both(words.right(address, 4), 0x3FFF))
    return state.writer.emit(f"or i64 {low}, {_SWIZZLED | _ROWS_APART | (apart >> 4) << 16}")


def _instruction(state: State, tile: Tile, sums: list[str], left: str, right: str) -> list[str]:
    count, writer = len(sums), state.writer
    kind = "bf16" if tile.dtype is BFLOAT16 else "f16"
    registers = ", ".join(f"${number}" for number in range(count))
    turned = (int(side.along is Along.SIDE) for side in (tile.left, tile.right))
    name = f"wgmma.mma_async.sync.aligned.m64n{tile.right.size}k{GROUP_TERMS}.f32.{kind}.{kind}"
    text = f"{name} {{{registers}}}, ${2 * count}, ${2 * count + 1}, 1, 1, 1, {', '.join(map(str, turned))};"
    ties = ",".join(["=f"] * count + [str(number) for number in range(count)] + ["l", "l"])
    result = "{" + ", ".join(["float"] * count) + "}"
    values = ", ".join(f"float {item}" for item in sums)
    found = writer.emit(
        f'call {result} asm sideeffect "{text}", "{ties}"({values}, i64 {left}, i64 {right}) convergent nounwind'
    )
    return [writer.emit(f"extractvalue {result} {found}, {number}") for number in range(count)]


def _call(state: State, name: str) -> None:
    state.module.declare(name, "void", (), _NOTE)
    state.writer.effect(f"call void @{name}()")
