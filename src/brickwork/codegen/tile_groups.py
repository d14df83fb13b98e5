"""Products of staged factors by groups of four warps (`wgmma`), which read shared memory themselves and run on alone.

A factor is told by a descriptor: where it begins, how far its parts lie apart, and that its rows are swizzled as
`tile_staging.py` stores them. Registers of sums are tied to the instructions, which are written as assembly. Of float32
the left factor is split in registers, which instructions take, and the right one is staged in parts.
"""

from __future__ import annotations

from brickwork.analysis.contractions import Along
from brickwork.codegen.emitter_state import State
from brickwork.codegen.tile import Side, Tile
from brickwork.codegen.tile_places import MEMORY, SHARED
from brickwork.codegen.tile_products import Fragment, Warp, WordsRead, added, pairs
from brickwork.codegen.words import Word, Words
from brickwork.ir.dtypes import BFLOAT16, FLOAT16
from brickwork.target.matrix import GROUP_ROWS, GROUP_TERMS, ROW_BYTES

_SWIZZLED, _ROWS_APART = 1 << 62, (8 * ROW_BYTES >> 4) << 32
"""Of a descriptor: rows of 128 bytes are swizzled, and groups of eight rows follow one another."""
_FENCE = "llvm.nvvm.wgmma.fence.sync.aligned"
_COMMIT = "llvm.nvvm.wgmma.commit_group.sync.aligned"
_WAIT = "llvm.nvvm.wgmma.wait_group.sync.aligned"
_PROXY = "llvm.nvvm.fence.proxy.async.shared_cta"
_NOTE = "convergent nounwind"


def multiply_together(state: State, tile: Tile, warp: Warp, slot: Word) -> list[str]:
    """Begin to add the products of a stage, to the sums of this group of warps or to zeros; return what they become."""
    writer, words = state.writer, Words(state.writer)
    start = writer.emit(f"add i32 {writer.once(f'ptrtoint {SHARED} {MEMORY} to i32')}, {slot}")
    group = words.mul(words.right(warp.row, 6), GROUP_ROWS * ROW_BYTES)
    lefts = None if tile.in_registers else _descriptors(state, tile, tile.left, words.add(start, group))
    rights = _descriptors(state, tile, tile.right, start)
    sums = [] if tile.contraction.promotes else [writer.load("float", place) for place in _places(warp)]
    split: dict[int, list[Fragment]] = {}
    read: WordsRead = {}
    if lefts is not None:
        _call(state, _FENCE)
    for one, other in pairs(len(lefts) if lefts else tile.left_parts, len(rights)):
        for step in range(tile.staged // tile.terms_each):
            if lefts is not None:
                left: Fragment = (_moved(state, lefts[one], step * _step(tile.left)),)
            else:
                if step not in split:
                    (split[step],) = warp.lefts(slot, step, read)
                    _call(state, _FENCE)
                left = split[step][one]
            sums = _instruction(state, tile, sums, left, _moved(state, rights[other], step * _step(tile.right)))
    _call(state, _COMMIT)
    return sums


def keep_products(state: State, tile: Tile, warp: Warp, sums: list[str]) -> None:
    """Put what the products of a stage become into the sums, or add it: then it is waited for."""
    writer = state.writer
    if tile.contraction.promotes:
        kept = [writer.load(tile.kind, place) for place in _places(warp)]
        sums = [added(writer, tile.kind, *each) for each in zip(kept, _waited(state, sums), strict=True)]
    else:
        wait_for_products(state, 1 if tile.lags else 0)
    for place, text in zip(_places(warp), sums, strict=True):
        writer.store(tile.kind, text, place)


def _places(warp: Warp) -> list[str]:
    return [place for each in warp.sums[0] for place in each]


def _waited(state: State, sums: list[str]) -> list[str]:
    """Wait until nothing is being multiplied; return sums as values that there are only then."""
    count = len(sums)
    ties = ",".join(["=f"] * count + [str(number) for number in range(count)])
    return _assembly(state, "wgmma.wait_group.sync.aligned 0;", ties, count, [f"float {text}" for text in sums])


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


def _moved(state: State, descriptor: str, chunks: int) -> str:
    return state.writer.emit(f"add i64 {descriptor}, {chunks}") if chunks else descriptor


def _descriptors(state: State, tile: Tile, side: Side, start: Word) -> list[str]:
    """Return the descriptors of the parts of a factor."""
    words = Words(state.writer)
    apart = tile.staged * ROW_BYTES if side.along is Along.SIDE else 16
    found: list[str] = []
    for part in range(side.parts):
        address = words.add(start, side.offset + part * side.part_bytes)
        low = words.wide(words.both(words.right(address, 4), 0x3FFF))
        found.append(state.writer.emit(f"or i64 {low}, {_SWIZZLED | _ROWS_APART | (apart >> 4) << 16}"))
    return found


def _instruction(state: State, tile: Tile, sums: list[str], left: Fragment, right: str) -> list[str]:
    """Add a product to sums, or to zeros; the left factor is a descriptor, or four registers."""
    count = tile.right.size // 2
    kind = {BFLOAT16: "bf16", FLOAT16: "f16"}.get(tile.dtype, "tf32")
    first, last = count + len(sums), count + len(sums) + len(left)
    words = [f"${number}" for number in range(first, last)]
    factor = f"{{{', '.join(words)}}}" if len(words) > 1 else words[0]
    turned = [] if kind == "tf32" else [int(side.along is Along.SIDE) for side in tile.sides[len(left) // 4 :]]
    flags = ", ".join(map(str, (int(bool(sums)), 1, 1, *turned)))
    name = f"wgmma.mma_async.sync.aligned.m64n{tile.right.size}k{tile.terms_each}.f32.{kind}.{kind}"
    registers = ", ".join(f"${number}" for number in range(count))
    many = len(left) > 1
    inputs = [str(number) for number in range(len(sums))] + ["r" if many else "l"] * len(left) + ["l"]
    values = [f"float {item}" for item in sums] + [f"{'i32' if many else 'i64'} {item}" for item in left]
    text = f"{name} {{{registers}}}, {factor}, ${last}, {flags};"
    return _assembly(state, text, ",".join(["=f"] * count + inputs), count, [*values, f"i64 {right}"])


def _assembly(state: State, text: str, constraints: str, count: int, values: list[str]) -> list[str]:
    """Write assembly that gives so many floats."""
    writer = state.writer
    result = "{" + ", ".join(["float"] * count) + "}"
    call = f'call {result} asm sideeffect "{text}", "{constraints}"({", ".join(values)}) convergent nounwind'
    found = writer.emit(call)
    return [writer.emit(f"extractvalue {result} {found}, {number}") for number in range(count)]


def _call(state: State, name: str) -> None:
    state.module.declare(name, "void", (), _NOTE)
    state.writer.effect(f"call void @{name}()")
