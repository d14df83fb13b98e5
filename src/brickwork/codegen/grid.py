"""Which of the three forms a device kernel has: iterations of a nest for threads, for blocks of threads, or one thread.

Read by the emitter of the kernel and by that of its launch, which therefore agree on the grid. Blocks are counted
through x first, then y. Threads are numbered through x alone; where a warp or a part of one is enough for an iteration,
a block has several along y, each of which takes an iteration as a block of its own would. Invariant: a kernel is
launched with enough threads for all iterations, so that each thread or team of threads takes at most one step; threads
of a table may take several.
"""

from __future__ import annotations

from enum import Enum

from brickwork.codegen.tile import Tile, tile_in
from brickwork.ir import build
from brickwork.ir.nodes import Block, Check, For, Kernel, Node, Role, Store, While
from brickwork.ir.walk import statements
from brickwork.records import dataclass
from brickwork.target.matrix import REGISTERS, ROOMY_REGISTERS
from brickwork.target.target import BLOCK_THREADS, SCHEDULERS, WARP
from brickwork.transform.schedule.planner import has_fixed_bounds
from brickwork.transform.schedule.register_tile import UNROLLED

TEAM_THREADS = SCHEDULERS * WARP
"""Threads of a block whose warps, or parts of them, take an iteration of their own each: a warp for each scheduler."""
UNROLLED_THREADS = TEAM_THREADS
"""The same where loops of an iteration are unrolled: it needs many registers, and may take longer than others."""
PARALLEL_THREADS = 2 * UNROLLED_THREADS
"""Threads in a block of a kernel whose threads take an iteration (or `width` of them) each."""
MOST_THREADS = REGISTERS // ROOMY_REGISTERS
"""Most threads in a block that shares an iteration: 128 registers are left for each."""
TILE_BLOCKS = MOST_THREADS // UNROLLED_THREADS
"""Blocks with register tiles that a multiprocessor has room for: 128 registers for each thread."""
LONE_THREADS = BLOCK_THREADS
"""The same of one that shares one loop out after the other, where there are few blocks: all that a block may have."""
CLUSTER_STEPS = 6 * LONE_THREADS
"""Steps of a shared loop from which on a cluster has blocks for all: fewer take one block less time than they meet.

On an H200 200 turns of 4,096 steps took .20 ms in one block and .30 in eight, those of 8,192 .40 and .31.
"""
MOST_BLOCKS = 2**31 - 1
"""Most blocks along x."""
MOST_ROWS = 2**16 - 1
"""Most blocks along y."""


class Form(Enum):
    """What the threads of a grid take: iterations of a nest each, an iteration for each block, or all in one thread."""

    PARALLEL = "an iteration each"
    BLOCK = "an iteration for each block"
    SERIAL = "all by one thread"


@dataclass(frozen=True, slots=True)
class Grid:
    """The form of a kernel; the loops that run as one range, outermost first; and what an iteration runs."""

    form: Form
    loops: tuple[For, ...]
    body: Block
    tile: Tile | None = None
    """The tile of a contraction that a block runs."""

    @property
    def threads(self) -> int:
        """Threads in a block; where a block shares an iteration out, as many at most."""
        match self.form:
            case Form.PARALLEL:
                unrolled = any(isinstance(node, For) and node.unrolled > 1 for node in statements(self.body))
                return UNROLLED_THREADS if unrolled else PARALLEL_THREADS
            case Form.BLOCK if self.tile is not None:
                return self.tile.threads
            case Form.BLOCK:
                return LONE_THREADS if self.turns else MOST_THREADS
            case Form.SERIAL:
                return 1

    @property
    def turns(self) -> bool:
        """Whether a block runs loops in order, in which its threads store: of such blocks there are few."""
        nodes = (*statements(self.body),)
        around = (node for node in nodes if isinstance(node, While) or (isinstance(node, For) and not _shares(node)))
        shared = (node for loop in around for node in statements(loop) if isinstance(node, For) and _shares(node))
        return self.form is Form.BLOCK and any(self.alone or any(map(_stores, statements(loop))) for loop in shared)

    @property
    def alone(self) -> bool:
        """Whether there is one block, whatever the sizes are."""
        return all(build.is_constant(loop.start, 0) and build.is_constant(loop.stop, 1) for loop in self.loops)

    @property
    def cluster(self) -> int:
        """Blocks that share the loops of an iteration out at most: a cluster, where they are several."""
        return self.loops[-1].across if self.form is Form.BLOCK and self.tile is None and self.loops[-1].across else 1

    @property
    def least_blocks(self) -> int:
        """Blocks that a multiprocessor is to have room for at once, which limits the registers of a thread; 1: any."""
        if self.tile is not None:
            return self.tile.blocks
        tiled = any(isinstance(node, For) and node.unrolled >= UNROLLED for node in statements(self.body))
        return TILE_BLOCKS if tiled and self.form is Form.PARALLEL else 1

    @property
    def width(self) -> int:
        """Iterations of the innermost loop that one step takes."""
        return self.loops[-1].width if self.form is Form.PARALLEL else 1

    @property
    def table(self) -> bool:
        """Whether threads lie along both the innermost loop and those around it, and may take several steps each.

        Long bodies, which are those with loops and checks, need the registers that this takes, if not in tiles.
        """
        light = not any(isinstance(node, Check | For | While) for node in statements(self.body))
        tiled = bool(self.loops) and self.loops[-1].across > 0
        return self.form is Form.PARALLEL and len(self.loops) > 1 and (light or tiled)


def grid_of(kernel: Kernel) -> Grid:
    """Return the form of a device kernel."""
    if len(kernel.body) == 1 and isinstance(loop := kernel.body[0], For):
        if loop.role is Role.PARALLEL:
            loops = nest_of(loop)
            return Grid(Form.PARALLEL, loops, loops[-1].body)
        if loop.role is Role.BLOCK:
            loops = nest_of(loop)
            return Grid(Form.BLOCK, loops, loops[-1].body, tile_in(loops[-1].body, kernel.facts))
    return Grid(Form.SERIAL, (), kernel.body)


def _shares(loop: For) -> bool:
    return loop.role in {Role.THREAD, Role.WARP}


def _stores(node: Node) -> bool:
    return isinstance(node, Store) and not node.tensor.is_local and node.combine is None


def nest_of(loop: For) -> tuple[For, ...]:
    """Return the loops that run as one range with a loop, outermost first: those of its role right inside of it."""
    loops = [loop]
    while loops[-1].width == 1 and len(loops[-1].body) == 1:
        inner = loops[-1].body[0]
        if not (isinstance(inner, For) and inner.role is loop.role):
            break
        if not has_fixed_bounds(inner, loops):
            break
        loops.append(inner)
    return tuple(loops)
