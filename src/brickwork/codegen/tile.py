"""How a block of threads runs a tile of a contraction: threads, warps, stages, and where factors lie in shared memory.

Read by the emitter of the kernel and by that of its launch. A stage has both factors of so many terms as the depth is
staged at once; rows of 128 bytes, in which chunk c of 16 bytes of row r lies at c ^ (r & 7): neither stores of 16 bytes
nor matrix loads meet in a bank. Numbers that an instruction takes in parts, and reads itself, are staged in parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.contractions import TILED, Along, Contraction, Factor, find_contraction, reached
from brickwork.analysis.meeting import meeting
from brickwork.ir.dtypes import BFLOAT16, FLOAT32, FLOAT64, DType
from brickwork.ir.nodes import Apply, Block, Expression, For, Load, Read, Role, Symbol
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.records import dataclass
from brickwork.target.matrix import (
    CHUNK_BYTES,
    GROUP_ROWS,
    GROUP_SHARED_BYTES,
    KEPT_STAGES,
    PADDING,
    REGISTERS,
    ROW_BYTES,
    THREAD_REGISTERS,
)

COPIES_APART = ROW_BYTES // 2
"""Bytes between the numbers of two copies, which keep both in banks of their own."""
FEWEST_STAGES = 3
"""One that is multiplied, and two on their way."""


@dataclass(frozen=True, slots=True)
class Side:
    """A factor of a tile: the loop over its rows or columns, how many these are at most, and how it is laid out."""

    loop: For
    factor: Factor
    size: int
    along: Along
    offset: int
    """Bytes from the start of a stage."""
    reached: frozenset[Symbol]
    """The row or column, and what is computed from it."""
    copied: Load | None
    """The element whose chunks are copied as they are laid out in memory."""
    parts: int
    """In how many numbers of the tile's type a number is staged, the largest first."""
    turned: bool
    """Whether it is staged along the depth, though neighbours in memory go along its rows or columns."""
    meets: int = 0
    """Where rows and terms meet: how far what it goes with moves from row to row; its distinct numbers are staged."""

    @property
    def part_bytes(self) -> int:
        """Bytes of a part in a stage."""
        return 0 if self.meets else self.size * ROW_BYTES

    @property
    def index(self) -> Symbol:
        """The row or column."""
        return self.loop.index

    @property
    def chunked(self) -> bool:
        """Whether rows of what its factor reads along memory begin at chunks."""
        return self.loop.role is Role.CHUNKED_TILE

    def is_stepped(self, depth: Symbol) -> bool:
        """Whether an index goes along the depth in steps of several terms, as that of a scale of a group does."""
        nodes = (
            node for node in walk(self.factor.value) if isinstance(node, Apply) and node.operator.name == "floordiv"
        )
        return any(depth in read_symbols(node) for node in nodes)

    def is_even(self, depth: Symbol) -> bool:
        """Whether rows of a factor that is an element are laid out at one distance from another."""
        across, moving = (self.index, self.reached) if self.along is Along.DEPTH else (depth, frozenset({depth}))
        indices = () if self.copied is None else self.copied.indices
        others = [index for index in indices if index != Read(symbol=across)]
        return not any(
            read_symbols(index) & moving or any(isinstance(node, Load) for node in walk(index)) for index in others
        )


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of a contraction, and the warps that multiply it."""

    left: Side
    right: Side
    depth: For
    contraction: Contraction
    dtype: DType
    groups: bool
    """Whether groups of four warps multiply, and not each warp for itself."""
    crossed: bool
    """Whether instructions take columns as their rows, and rows as columns."""

    @property
    def rows(self) -> Side:
        """The factor that goes with rows."""
        return self.right if self.crossed else self.left

    @property
    def columns(self) -> Side:
        """The factor that goes with columns."""
        return self.left if self.crossed else self.right

    @property
    def in_registers(self) -> bool:
        """Whether groups take the left factor from registers: it is split there, or its distinct numbers are staged."""
        return self.dtype is FLOAT32 or bool(self.left.meets)

    @property
    def kind(self) -> str:
        """The type of LLVM of a sum: of integers words."""
        return "i32" if self.contraction.is_whole else "double" if self.dtype is FLOAT64 else "float"

    @property
    def sum_bytes(self) -> int:
        """Bytes of a sum."""
        return max(self.dtype.size, FLOAT32.size)

    @property
    def left_parts(self) -> int:
        """In how many parts instructions take a number of the left factor."""
        return 1 if self.dtype is not FLOAT32 or self.left.factor.exact else 2

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both factors."""
        return self.left, self.right

    @property
    def deep(self) -> frozenset[Symbol]:
        """The loops of the sum."""
        return frozenset(loop.index for loop in self.contraction.sums)

    @property
    def spread(self) -> bool:
        """Whether a chunk along the depth has terms that lie a chunk's worth of threads apart, not neighbours.

        Neighbouring threads read neighbouring terms then. Both factors have the terms of a stage in this order.
        """
        deep = [side for side in self.sides if side.along is Along.DEPTH]
        return bool(deep) and not any(side.meets or side.chunked or side.is_stepped(self.depth.index) for side in deep)

    @property
    def bytes_each(self) -> int:
        """Bytes of a staged number."""
        return self.dtype.size

    @property
    def chunk(self) -> int:
        """Numbers that are staged at once."""
        return CHUNK_BYTES // self.bytes_each

    @property
    def terms_each(self) -> int:
        """Terms that an instruction multiplies."""
        return 2 * self.chunk

    @property
    def staged(self) -> int:
        """Terms of a stage."""
        return ROW_BYTES // self.bytes_each

    @property
    def warp(self) -> tuple[int, int]:
        """Rows and columns for a warp: fewer where what is computed, or split in parts, takes registers, too."""
        if self.groups:
            return 16, self.right.size
        parted = any(side.parts > 1 for side in self.sides)
        if self.dtype is FLOAT64:
            copied = all(side.copied == side.factor.value for side in self.sides)
            return (64, 32) if copied and self.left.size > GROUP_ROWS else (32, 32)
        if self.left.size <= GROUP_ROWS or self.right.size < GROUP_ROWS * (1 + parted):
            computed = all(side.copied is None for side in self.sides) and self.right.size == GROUP_ROWS
            return (32, 16) if computed else (32, 32)
        light = not self.contraction.promotes and all(side.copied is not None for side in self.sides)
        return (64, 64) if light else (64, 32)

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
        return sum(side.parts * side.part_bytes for side in self.sides)

    @property
    def stages(self) -> int:
        """Stages that are in shared memory at once."""
        return self.depth.across

    @property
    def ahead(self) -> int:
        """Stages that are on their way while one is multiplied; groups may still multiply the one before."""
        return self.stages - (2 if self.lags else 1)

    @property
    def lags(self) -> bool:
        """Whether the products of a stage may go on while the next one begins: there is a stage for it."""
        return self.groups and self.stages > FEWEST_STAGES and not (self.contraction.promotes or self.in_registers)

    @property
    def blocks(self) -> int:
        """Blocks that a multiprocessor is to have room for at once: in registers, if in shared memory.

        Warps read what is computed while others wait for it, if the registers of two blocks have room for sums and what
        is read: a third is for addresses, and for what is multiplied.
        """
        many = self.right.size > GROUP_ROWS if self.left.meets else self.lags
        light = not (many or self.contraction.promotes)
        if not self.groups:
            light = 3 * (self.sums + self.read) <= 2 * REGISTERS // (2 * self.threads)
        return 2 if light and 2 * self.shared_bytes <= GROUP_SHARED_BYTES else 1

    @property
    def registers(self) -> int:
        """Registers that a thread may have."""
        return min(REGISTERS // self.threads, THREAD_REGISTERS)

    @property
    def sums(self) -> int:
        """Registers of a thread for sums, and for those of a stage where each is summed up by itself."""
        each = self.sum_bytes // FLOAT32.size * (1 + self.contraction.promotes)
        return self.left.size * self.right.size // self.threads * each

    @property
    def read(self) -> int:
        """Registers of a thread for what it reads for a stage of what is computed."""
        computed = (side for side in self.sides if side.copied is None and not side.meets)
        loads = ((side, node) for side in computed for node in walk(side.factor.value) if isinstance(node, Load))
        words = ((side, max(node.tensor.type.dtype.size // FLOAT32.size, 1)) for side, node in loads)
        return sum(side.size * self.staged // self.threads * count for side, count in words)

    @property
    def spare_registers(self) -> int:
        """Registers of a thread for what waits beside the sums: a quarter of the others."""
        return (self.registers - self.sums) // 4

    @property
    def pitch(self) -> int:
        """Bytes of a row of results in shared memory."""
        return (self.columns.size + PADDING) * self.sum_bytes

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return max(self.kept_offset + self.kept_bytes, self.rows.size * self.pitch)

    @property
    def kept_terms(self) -> int:
        """Terms whose distinct numbers are kept at once."""
        return KEPT_STAGES * self.staged

    @property
    def copy_bytes(self) -> int:
        """Bytes of a copy of the distinct numbers that are kept, with what parts it from the next."""
        return (self.left.size + self.kept_terms) * self.bytes_each + COPIES_APART

    @property
    def kept_bytes(self) -> int:
        """Bytes of the two copies."""
        return 2 * self.copy_bytes if self.left.meets else 0

    @property
    def kept_offset(self) -> int:
        """Where what is kept for several stages begins, behind these."""
        return self.stages * self.stage_bytes


def tile_in(block: Block, facts: Sequence[Expression]) -> Tile | None:
    """Return the tile that a block of threads runs, if it runs one; `facts` hold for the kernel."""
    rows = next((node for node in statements(block) if isinstance(node, For) and node.role.is_tile), None)
    return None if rows is None else tile_of(rows, facts)


def tile_of(rows: For, facts: Sequence[Expression]) -> Tile:
    """Return the tile of a nest of two TILE loops."""
    (columns,) = (item for item in rows.body if isinstance(item, For))
    body = (*(item for item in rows.body if item is not columns), *columns.body)
    sides = frozenset({rows.index}), frozenset({columns.index})
    found = find_contraction(body, *sides, (rows, columns), TILED, facts)
    if found is None:
        raise TypeError("the loops of a tile hold a contraction")
    depth = next(loop for loop in found.sums if loop.role in {Role.CONTRACT, Role.CONTRACT_GROUPS})
    groups = depth.role is Role.CONTRACT_GROUPS
    loops = (rows, columns)
    names = [reached(body, frozenset({loop.index})) for loop in loops]
    parts = [found.parts(side) for side in (0, 1)]
    meets = [
        meeting(factor, loop.index, each, depth.index) if count == 1 and found.dtype.size == BFLOAT16.size else 0
        for factor, loop, each, count in zip(found.factors, loops, names, parts, strict=True)
    ]
    crossed = not meets[0] and (bool(meets[1]) or (groups and rows.width % GROUP_ROWS > 0))
    first, second = (1, 0) if crossed else (0, 1)
    left = _side(found, loops[first], names[first], depth, first, meets=meets[first])
    right = _side(found, loops[second], names[second], depth, second, after=left, alone=groups)
    return Tile(left, right, depth, found, found.dtype, groups, crossed)


def _side(
    found: Contraction,
    loop: For,
    names: frozenset[Symbol],
    depth: For,
    number: int,
    *,
    meets: int = 0,
    after: Side | None = None,
    alone: bool = False,
) -> Side:
    """Return a factor of a tile, staged after another; instructions may take it from shared memory `alone`."""
    factor = found.factors[number]
    offset = 0 if after is None else after.offset + after.parts * after.part_bytes
    if meets:
        return Side(loop, factor, loop.width, Along.DEPTH, offset, names, None, 1, turned=False, meets=meets)
    own = frozenset({loop.index})
    along = factor.along(names, own, depth.index)
    deep = frozenset(each.index for each in found.sums)
    ended = along is Along.DEPTH and len(names) == 1 and factor.ends(depth.index, deep, loop.index) is not None
    element = factor.value if ended and isinstance(factor.value, Load) else factor.element
    copied = element if loop.role is Role.CHUNKED_TILE else None
    unit = depth.index if along is Along.DEPTH else loop.index
    if copied not in {*factor.laid_out(unit)} or (copied and copied.tensor.type.dtype is not found.dtype):
        copied = None
    # From there groups take numbers of 32 bits along the depth. Several loops as one have no neighbours in memory.
    prepared = alone and found.dtype is FLOAT32
    several = factor.along(own, own, depth.index) is Along.DEPTH
    turned = along is Along.SIDE and (prepared or several)
    parts = 2 if prepared and not factor.exact else found.parts(number)
    copied = None if turned or parts > 1 else copied
    along = Along.DEPTH if turned else along
    return Side(loop, factor, loop.width, along, offset, names, copied, parts, turned)
