"""The grid and block of a device kernel, computed where it is launched; the forms are those of `grid.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from brickwork.codegen.builder import FunctionWriter
from brickwork.codegen.grid import MOST_BLOCKS, MOST_THREADS, PARALLEL_THREADS, TEAMS, WARP, Form, grid_of
from brickwork.ir.nodes import Expression, For, Kernel, Load, Random, Role
from brickwork.ir.walk import read_symbols, walk

UNKNOWN_STEPS = 512
"""Steps taken for a loop whose length is known on the device only."""
STEPS_EACH = 8
"""Steps of a loop that a thread takes one after the other where there are enough threads for all of the grid."""
ENOUGH_THREADS = 1 << 18
"""Threads that keep a GPU busy."""

Scalar: TypeAlias = Callable[[Expression], str]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Blocks along x and y and threads along x and y in a block, each an i32; `x` is 0 where there is nothing to do."""

    x: str
    y: str
    block: str
    teams: str = "1"


def emit_geometry(scalar: Scalar, writer: FunctionWriter, kernel: Kernel) -> Geometry:
    """Write the grid and block of a kernel; `scalar` emits an expression over sizes and kernel scalars as i64."""
    grid = grid_of(kernel)
    if grid.form is Form.SERIAL:
        return Geometry("1", "1", "1")
    total = ""
    for loop in grid.loops:
        count = _steps(scalar, writer, loop, grid.width if loop is grid.loops[-1] else 1)
        total = writer.emit(f"mul i64 {total}, {count}") if total else count
    if grid.form is Form.PARALLEL:
        blocks, block, teams = _divided(writer, total, PARALLEL_THREADS), str(PARALLEL_THREADS), "1"
    else:
        blocks, block, teams = _teams(scalar, writer, kernel, total)
    x = writer.emit(f"call i64 @llvm.umin.i64(i64 {blocks}, i64 {MOST_BLOCKS})")
    y = _divided(writer, blocks, MOST_BLOCKS)
    return Geometry(writer.emit(f"trunc i64 {x} to i32"), writer.emit(f"trunc i64 {y} to i32"), block, teams)


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
    share = emit(f"udiv i64 {ENOUGH_THREADS}, {emit(f'call i64 @llvm.smax.i64(i64 {total}, i64 1)')}")
    share = emit(f"call i64 @llvm.smin.i64(i64 {share}, i64 {steps})")
    wanted = emit(f"call i64 @llvm.smax.i64(i64 {few}, i64 {share})")
    wanted = emit(f"call i64 @llvm.smax.i64(i64 {wanted}, i64 1)")
    wanted = emit(f"call i64 @llvm.smin.i64(i64 {wanted}, i64 {MOST_THREADS})")
    warps = _divided(writer, wanted, WARP)
    teams = emit(f"select i1 {emit(f'icmp eq i64 {warps}, 1')}, i64 {TEAMS}, i64 1")
    rounded = emit(f"add i64 {total}, {emit(f'sub i64 {teams}, 1')}")
    blocks = emit(f"udiv i64 {rounded}, {teams}")
    return blocks, emit(f"trunc i64 {emit(f'mul i64 {warps}, {WARP}')} to i32"), emit(f"trunc i64 {teams} to i32")


def _longest(scalar: Scalar, writer: FunctionWriter, kernel: Kernel) -> str:
    """Return the steps of the longest shared loop of a kernel, as i64."""
    longest = "1"
    for loop in (node for node in walk(kernel.body) if isinstance(node, For) and node.role is Role.THREAD):
        steps = _steps(scalar, writer, loop, loop.width) if _known(kernel, loop) else str(UNKNOWN_STEPS)
        longest = writer.emit(f"call i64 @llvm.smax.i64(i64 {longest}, i64 {steps})")
    return longest


def _known(kernel: Kernel, loop: For) -> bool:
    """Return whether the host can tell a loop's length."""
    bounds = (loop.start, loop.stop)
    inside = read_symbols(bounds) <= set(kernel.scalars)
    return inside and not any(isinstance(node, Load | Random) for node in walk(bounds))
