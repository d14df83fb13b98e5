"""Launch dimensions: the grid and block of a device kernel, computed at its launch; `grid.py` has the forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from brickwork.codegen.builder import FunctionWriter
from brickwork.codegen.grid import (
    CLUSTER_STEPS,
    LONE_THREADS,
    MOST_BLOCKS,
    MOST_ROWS,
    MOST_THREADS,
    PARALLEL_THREADS,
    TEAM_THREADS,
    Form,
    Grid,
    grid_of,
    nest_of,
)
from brickwork.codegen.tile import Tile
from brickwork.codegen.tile_cluster import blocks_of
from brickwork.ir import build
from brickwork.ir.nodes import Block, Expression, For, If, Kernel, Role, While
from brickwork.records import dataclass
from brickwork.target.target import BUSY_THREADS, LEAST_TEAM, PROCESSORS, WARP
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.schedule.grid import UNROLLED
from brickwork.transform.schedule.lengths import Lengths, lengths_in, shortest_axis

STEPS_EACH = UNROLLED
"""Steps of a loop that a thread takes one after the other where there are enough threads for all of the grid."""
UNKNOWN_STEPS = STEPS_EACH * WARP
"""Steps taken for a loop whose length is known on the device only: a warp each, where there are many such loops."""
COLUMNS_EACH = 2 * STEPS_EACH
"""Most steps of a row that a thread takes."""
FEW_COLUMNS = COLUMNS_EACH // 4
"""Rows of so few steps are for one thread each."""
MANY_STEPS = 2 * BUSY_THREADS
"""Steps of a grid for each that a thread takes: there are threads for the whole machine all the same."""

Scalar: TypeAlias = Callable[[Expression], str]


@dataclass(frozen=True, slots=True)
class LaunchDimensions:
    """Blocks along x and y and threads along x and y in a block, each an i32; `x` is 0 where there is nothing to do."""

    x: str
    y: str
    block: str
    teams: str = "1"
    shared: int = 0
    """Bytes of shared memory for each block, beside what the kernel declares."""
    together: str = "1"
    """Blocks of a cluster along x."""


def emit_launch_dimensions(scalar: Scalar, writer: FunctionWriter, kernel: Kernel) -> LaunchDimensions:
    """Write the grid and block of a kernel; `scalar` emits an expression over sizes and kernel scalars as i64."""
    grid = grid_of(kernel)
    if grid.form is Form.SERIAL:
        return LaunchDimensions("1", "1", "1")
    if grid.table:
        return _table(scalar, writer, grid)
    total = ""
    for loop in grid.loops:
        count = _steps(scalar, writer, loop, grid.width if loop is grid.loops[-1] else 1)
        total = writer.emit(f"mul i64 {total}, {count}") if total else count
    if grid.form is Form.PARALLEL:
        block, teams = _block(writer, total, grid.threads), "1"
        beyond = writer.emit(f"add i64 {total}, {writer.emit(f'sub i64 {block}, 1')}")
        blocks, block = writer.emit(f"udiv i64 {beyond}, {block}"), writer.emit(f"trunc i64 {block} to i32")
    elif grid.tile is not None:
        return _of_tiles(scalar, writer, grid, grid.tile, total)
    else:
        blocks, block, teams = _teams(scalar, writer, kernel, total)
        if grid.cluster > 1:
            together = _cluster(writer, _longest(scalar, writer, kernel), grid.cluster)
            x = writer.emit(f"trunc i64 {writer.emit(f'mul i64 {blocks}, {together}')} to i32")
            return LaunchDimensions(x, "1", block, teams, together=writer.emit(f"trunc i64 {together} to i32"))
    x = writer.emit(f"call i64 @llvm.umin.i64(i64 {blocks}, i64 {MOST_BLOCKS})")
    y = _divided(writer, blocks, MOST_BLOCKS)
    return LaunchDimensions(writer.emit(f"trunc i64 {x} to i32"), writer.emit(f"trunc i64 {y} to i32"), block, teams)


def _cluster(writer: FunctionWriter, steps: str, most: int) -> str:
    """Return the blocks of a cluster that shares loops of so many steps out, as i64: a power of two."""
    each = writer.emit(f"call i64 @llvm.umin.i64(i64 {writer.emit(f'udiv i64 {steps}, {LONE_THREADS}')}, i64 {most})")
    each = writer.emit(f"select i1 {writer.emit(f'icmp ult i64 {steps}, {CLUSTER_STEPS}')}, i64 1, i64 {each}")
    return writer.emit(f"shl i64 1, {_power_below(writer, each)}")


def _block(writer: FunctionWriter, total: str, most: int) -> str:
    """Return the threads of a block for so many steps, as i64: fewer than `most` where blocks are few otherwise."""
    emit = writer.emit
    each = emit(f"call i64 @llvm.umax.i64(i64 {emit(f'udiv i64 {total}, {PROCESSORS}')}, i64 {WARP})")
    each = emit(f"call i64 @llvm.umin.i64(i64 {each}, i64 {most})")
    return emit(f"shl i64 1, {_power_below(writer, each)}")


def _of_tiles(scalar: Scalar, writer: FunctionWriter, grid: Grid, tile: Tile, total: str) -> LaunchDimensions:
    """Return a block for each part of a tile; a cluster has all parts of one."""
    emit = writer.emit
    parts = scalar(blocks_of(grid.loops, tile))
    blocks = emit(f"mul i64 {total}, {parts}")
    x = emit(f"call i64 @llvm.umin.i64(i64 {blocks}, i64 {MOST_BLOCKS})")
    sizes = (emit(f"trunc i64 {text} to i32") for text in (x, _divided(writer, blocks, MOST_BLOCKS), parts))
    across, down, together = sizes
    return LaunchDimensions(across, down, str(tile.threads), "1", tile.shared_bytes, together)


def _table(scalar: Scalar, writer: FunctionWriter, grid: Grid) -> LaunchDimensions:
    """Return blocks of threads along the columns and rows of a nest; a thread takes several columns of large ones."""
    emit = writer.emit
    columns = _steps(scalar, writer, grid.loops[-1], grid.width)
    rows = "1"
    for loop in grid.loops[:-1]:
        rows = emit(f"mul i64 {rows}, {_steps(scalar, writer, loop, 1)}")
    total = emit(f"mul i64 {rows}, {columns}")
    wide, high, each = _shape(writer, columns, rows, total, grid)
    x = _rounded(writer, columns, emit(f"mul i64 {wide}, {each}"), MOST_BLOCKS)
    y = _rounded(writer, rows, high, MOST_ROWS)
    x = emit(f"select i1 {emit(f'icmp eq i64 {rows}, 0')}, i64 0, i64 {x}")
    across, down, broad, tall = (emit(f"trunc i64 {text} to i32") for text in (x, y, wide, high))
    return LaunchDimensions(across, down, broad, tall)


def _shape(writer: FunctionWriter, columns: str, rows: str, total: str, grid: Grid) -> tuple[str, str, str]:
    """Return the threads of a block along columns and rows, and the columns that each takes, as i64."""
    emit, across = writer.emit, grid.loops[-1].across
    if across:
        bits = _power(writer, rows, grid.threads // across)
        return emit(f"lshr i64 {grid.threads}, {bits}"), emit(f"shl i64 1, {bits}"), "1"
    each = emit(f"call i64 @llvm.umax.i64(i64 {emit(f'udiv i64 {total}, {MANY_STEPS}')}, i64 1)")
    each = emit(f"call i64 @llvm.umin.i64(i64 {each}, i64 {COLUMNS_EACH})")
    # At least a warp lies along a row, so that its threads write neighbouring elements.
    warp = emit(f"call i64 @llvm.umin.i64(i64 {columns}, i64 {WARP})")
    least = emit(f"call i64 @llvm.umax.i64(i64 {emit(f'udiv i64 {columns}, {each}')}, i64 {warp})")
    bits = _power(writer, least, PARALLEL_THREADS)
    few = emit(f"icmp ule i64 {columns}, {FEW_COLUMNS}")
    bits = emit(f"select i1 {few}, i64 0, i64 {bits}")
    wide, high = emit(f"shl i64 1, {bits}"), emit(f"lshr i64 {PARALLEL_THREADS}, {bits}")
    return wide, high, emit(f"select i1 {few}, i64 {FEW_COLUMNS}, i64 {each}")


def _power_below(writer: FunctionWriter, text: str) -> str:
    """Return the exponent of the greatest power of two that a positive i64 is not less than."""
    return writer.emit(f"sub i64 63, {writer.emit(f'call i64 @llvm.ctlz.i64(i64 {text}, i1 true)')}")


def _power(writer: FunctionWriter, text: str, most: int) -> str:
    """Return the exponent of the least power of two that an i64 is not greater than, at most that of `most`."""
    emit = writer.emit
    least = emit(f"call i64 @llvm.umax.i64(i64 {text}, i64 1)")
    zeros = emit(f"call i64 @llvm.ctlz.i64(i64 {emit(f'sub i64 {least}, 1')}, i1 false)")
    return emit(f"call i64 @llvm.umin.i64(i64 {emit(f'sub i64 64, {zeros}')}, i64 {most.bit_length() - 1})")


def _rounded(writer: FunctionWriter, text: str, divisor: str, most: int) -> str:
    """Return the least number of pieces of `divisor` that cover an i64, or `most`."""
    beyond = writer.emit(f"add i64 {text}, {writer.emit(f'sub i64 {divisor}, 1')}")
    return writer.emit(f"call i64 @llvm.umin.i64(i64 {writer.emit(f'udiv i64 {beyond}, {divisor}')}, i64 {most})")


def _steps(scalar: Scalar, writer: FunctionWriter, loop: For, width: int) -> str:
    """Return the number of steps of `width` iterations that cover a loop."""
    length = writer.emit(f"sub i64 {scalar(loop.stop)}, {scalar(loop.start)}")
    length = writer.emit(f"call i64 @llvm.smax.i64(i64 {length}, i64 0)")
    return _divided(writer, length, width)


def _divided(writer: FunctionWriter, text: str, divisor: int) -> str:
    """Return an i64 that is not negative, divided and rounded up."""
    if divisor == 1:
        return text
    return writer.emit(f"udiv i64 {writer.emit(f'add i64 {text}, {divisor - 1}')}, {divisor}")


def _teams(scalar: Scalar, writer: FunctionWriter, kernel: Kernel, total: str) -> tuple[str, str, str]:
    """Return the blocks for `total` iterations, as i64, and the threads and teams of a block, as i32.

    Each thread takes several steps of the longest shared loop, unless there are too few iterations for that.
    """
    emit = writer.emit
    steps = _longest(scalar, writer, kernel)
    few = _divided(writer, steps, STEPS_EACH)
    share = emit(f"udiv i64 {BUSY_THREADS}, {emit(f'call i64 @llvm.smax.i64(i64 {total}, i64 1)')}")
    most = _most_threads(writer, kernel, share)
    share = emit(f"call i64 @llvm.smin.i64(i64 {share}, i64 {steps})")
    wanted = emit(f"call i64 @llvm.smax.i64(i64 {few}, i64 {share})")
    wanted = emit(f"call i64 @llvm.smax.i64(i64 {wanted}, i64 1)")
    wanted = emit(f"call i64 @llvm.smin.i64(i64 {wanted}, i64 {most})")
    threads = emit(f"mul i64 {_divided(writer, wanted, WARP)}, {WARP}")
    # Where half of a warp would have nothing to do, a part of it is enough: a power of two.
    part = emit(f"shl i64 1, {_power(writer, emit(f'call i64 @llvm.umax.i64(i64 {wanted}, i64 {LEAST_TEAM})'), WARP)}")
    threads = emit(f"select i1 {emit(f'icmp ule i64 {steps}, {WARP // 2}')}, i64 {part}, i64 {threads}")
    # No more teams than leave a block for each multiprocessor, but a warp of them.
    each = emit(f"call i64 @llvm.umax.i64(i64 {emit(f'udiv i64 {total}, {PROCESSORS}')}, i64 1)")
    several = emit(f"mul i64 {threads}, {emit(f'shl i64 1, {_power_below(writer, each)}')}")
    several = emit(f"call i64 @llvm.umax.i64(i64 {several}, i64 {WARP})")
    several = emit(f"call i64 @llvm.umin.i64(i64 {several}, i64 {TEAM_THREADS})")
    inside = emit(f"icmp ule i64 {threads}, {WARP}")
    teams = emit(f"select i1 {inside}, i64 {emit(f'udiv i64 {several}, {threads}')}, i64 1")
    rounded = emit(f"add i64 {total}, {emit(f'sub i64 {teams}, 1')}")
    blocks = emit(f"udiv i64 {rounded}, {teams}")
    return blocks, emit(f"trunc i64 {threads} to i32"), emit(f"trunc i64 {teams} to i32")


def _most_threads(writer: FunctionWriter, kernel: Kernel, share: str) -> str:
    """Return the most threads of a block, as i64, for each of which a busy GPU has a `share` of threads."""
    most = grid_of(kernel).threads
    if most == MOST_THREADS:
        return str(most)
    half = writer.emit(f"call i64 @llvm.smin.i64(i64 {writer.emit(f'lshr i64 {share}, 1')}, i64 {most})")
    return writer.emit(f"call i64 @llvm.smax.i64(i64 {half}, i64 {MOST_THREADS})")


def _longest(scalar: Scalar, writer: FunctionWriter, kernel: Kernel) -> str:
    """Return the steps of the longest shared loop of a kernel, as i64."""
    longest = "1"
    for loop in shared_loops(kernel):
        steps = str(UNKNOWN_STEPS) if loop.length is None else _divided(writer, scalar(loop.length), loop.step)
        longest = writer.emit(f"call i64 @llvm.smax.i64(i64 {longest}, i64 {steps})")
    return longest


@dataclass(frozen=True, slots=True)
class SharedLoop:
    """How many iterations a THREAD loop has at most, if the host can tell, and how many of them are a step."""

    length: Expression | None
    step: int


def shared_loops(kernel: Kernel) -> Iterator[SharedLoop]:
    """Yield the THREAD loops of a kernel.

    A block that runs alone, and joins results again and again, has fewer threads: joining them takes longer than a
    few more iterations. Where its warps take iterations, its threads are enough for what these share out, too.
    """
    grid = grid_of(kernel)
    lengths = lengths_in(kernel.body)
    known = around = Ranges(frozenset(kernel.scalars))
    for loop in grid.loops:
        around = around.inside(loop)
    yield from _shared_loops(grid.body, lengths, (known, around), STEPS_EACH if grid.alone else 1)


def _shared_loops(
    block: Block, lengths: Lengths, ranges: tuple[Ranges, Ranges], each: int, *, again: bool = False
) -> Iterator[SharedLoop]:
    """Yield the shared loops of a block, which runs `again` and again or not; `each` are joined in one step then.

    `ranges` are what is known of variables for all blocks, and with those of the blocks' own indices. What these tell,
    as of a triangle's rows, is the length of the longest block alone: it is for blocks with fewer threads than others.
    """
    known, around = ranges
    for statement in block:
        match statement:
            case If(then=then, otherwise=otherwise):
                yield from _shared_loops((*then, *otherwise), lengths, ranges, each, again=again)
            case While(prelude=prelude, body=body):
                yield from _shared_loops((*prelude, *body), lengths, ranges, each, again=True)
            case For(role=Role.WARP):
                # Least threads of each iteration.
                nest = nest_of(statement)
                length = _product(lengths.most(loop) or known.iterations(loop) for loop in nest)
                least = build.integer(LEAST_TEAM)
                for loop in _shared_loops(nest[-1].body, lengths, ranges, 1) if each > 1 else ():
                    least = build.apply("maximum", least, build.integer(WARP) if loop.length is None else loop.length)
                yield SharedLoop(None if length is None else build.mul(length, least), 1)
            case For(role=Role.THREAD):
                several = each if again and statement.reductions else 1
                nest = nest_of(statement)
                step = nest[-1].width * several
                length = _product(lengths.most(loop) or known.iterations(loop) for loop in nest)
                ways = (map(around.iterations, nest), map(shortest_axis, nest))
                most = next((found for way in ways if (found := _product(way)) is not None), None)
                if length is None and most is not None:
                    length = build.apply("minimum", most, build.integer(UNKNOWN_STEPS * step))
                yield SharedLoop(length, step)
            case For(body=body):
                inside = known.inside(statement), around.inside(statement)
                yield from _shared_loops(body, lengths, inside, each, again=True)
            case _:
                pass


def _product(lengths: Iterable[Expression | None]) -> Expression | None:
    """Return the iterations of a nest; None where those of a loop are not known."""
    found = [*lengths]
    known = [length for length in found if length is not None]
    return build.product(known) if len(known) == len(found) else None
