"""How a block of threads runs a tile of a contraction: threads, warps, stages, and where factors lie in shared memory.

Read by the emitter of the kernel and by that of its launch. A stage has both factors of so many terms as the depth is
staged at once; rows of 128 bytes, in which chunk c of 16 bytes of row r lies at c ^ (r & 7): neither stores of 16 bytes
nor matrix loads meet in a bank.
"""

from __future__ import annotations

from enum import Enum

from brickwork.analysis.contractions import Contraction, Factor, find_contraction
from brickwork.ir.dtypes import FLOAT32, DType
from brickwork.ir.nodes import Assign, Block, For, Load, Read, Role, Symbol
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.records import dataclass

ROW_BYTES = 128
CHUNK_BYTES = 16
PADDING = 8
"""Elements between rows of results in shared memory."""
_MOST_STAGES = 3


class Along(Enum):
    """What a row of a staged factor goes along: the depth of the sum, or rows (or columns) of the tile."""

    DEPTH = "depth"
    SIDE = "side"


@dataclass(frozen=True, slots=True)
class Side:
    """A factor of a tile: the loop over its rows or columns, how many these are at most, and how it is laid out."""

    loop: For
    factor: Factor
    size: int
    along: Along
    offset: int
    """Bytes from the start of a stage."""

    @property
    def index(self) -> Symbol:
        """The row or column."""
        return self.loop.index


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of a contraction, and the warps that multiply it."""

    left: Side
    right: Side
    depth: For
    contraction: Contraction
    dtype: DType

    @property
    def bytes_each(self) -> int:
        """Bytes of a staged number."""
        return self.dtype.size

    @property
    def chunk(self) -> int:
        """Numbers that are staged at once."""
        return CHUNK_BYTES // self.bytes_each

    @property
    def staged(self) -> int:
        """Terms of a stage."""
        return ROW_BYTES // self.bytes_each

    @property
    def warp(self) -> tuple[int, int]:
        """Rows and columns for a warp."""
        if self.left.size == 64:
            return 32, 32
        return (64, 32) if self.dtype is FLOAT32 else (64, 64)

    @property
    def warps(self) -> tuple[int, int]:
        """Warps along rows and columns."""
        return self.left.size // self.warp[0], self.right.size // self.warp[1]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage."""
        return (self.left.size + self.right.size) * ROW_BYTES

    @property
    def stages(self) -> int:
        """Stages that are in shared memory at once."""
        return _MOST_STAGES

    @property
    def pitch(self) -> int:
        """Bytes of a row of results in shared memory."""
        return (self.right.size + PADDING) * FLOAT32.size

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return max(self.stages * self.stage_bytes, self.left.size * self.pitch)


def tile_in(block: Block) -> Tile | None:
    """Return the tile that a block of threads runs, if it runs one."""
    rows = next((node for node in statements(block) if isinstance(node, For) and node.role is Role.TILE), None)
    return None if rows is None else tile_of(rows)


def tile_of(rows: For) -> Tile:
    """Return the tile of a nest of two TILE loops."""
    (columns,) = (item for item in rows.body if isinstance(item, For))
    body = (*(item for item in rows.body if item is not columns), *columns.body)
    found = find_contraction(body, frozenset({rows.index}), frozenset({columns.index}))
    if found is None:
        raise TypeError("the loops of a tile hold a contraction")
    depth = next(loop for loop in found.sums if loop.role is Role.CONTRACT)
    sides: list[Side] = []
    offset = 0
    for loop, factor in zip((rows, columns), found.factors, strict=True):
        sides.append(Side(loop, factor, loop.width, _along(factor, _reached(body, loop.index)), offset))
        offset += loop.width * ROW_BYTES
    return Tile(*sides, depth, found, found.dtype)


def _reached(body: Block, index: Symbol) -> frozenset[Symbol]:
    """Return the variables that are computed from the place in the rows, or columns, of a tile."""
    found = {index}
    for item in body:
        if isinstance(item, Assign) and read_symbols(item.value) & found:
            found.add(item.symbol)
    return frozenset(found)


def _along(factor: Factor, sides: frozenset[Symbol]) -> Along:
    """Return what neighbours in memory go along, for most of what a factor reads."""
    for node in walk(factor.value):
        if isinstance(node, Load) and node.tensor.type.unit_axis is not None:
            read = read_symbols(node.indices[node.tensor.type.unit_axis])
            return Along.SIDE if read & sides else Along.DEPTH
    return Along.DEPTH


def is_plain(side: Side, depth: Symbol) -> bool:
    """Whether chunks of a factor lie in memory as they are staged, if rows begin at multiples of a chunk."""
    element, along = side.factor.element, depth if side.along is Along.DEPTH else side.index
    if element is None or element.tensor.type.unit_axis is None:
        return False
    unit = element.tensor.type.unit_axis
    if element.indices[unit] != Read(symbol=along):
        return False
    return not any(along in read_symbols(index) for place, index in enumerate(element.indices) if place != unit)
