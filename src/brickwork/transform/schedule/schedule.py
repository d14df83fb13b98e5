"""A schedule: how the loops of a kernel are run, as a list of verbs that can be compared, printed and stored.

Each verb changes the loops that those before it have made. Loops are named by their indices. A split leaves two loops:
the one over its chunks (`chunk_of`) and the one in a chunk, which keeps the index. What a verb does, and where it is
legal, is in its file in `transform/verbs/`; which are chosen by default in `defaults.py` and `grid.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Symbol, Tensor
from brickwork.records import dataclass

LANES_LIMIT = 64
"""Most lanes of a loop: a mask is an integer of as many bits."""
CHUNK_NUMBERS = 1_000_000
"""Added to the number of a loop's index to number the index of its chunks."""


ATOMIC = "atomic"
"""In place of a level: updates of the tensor itself, each in one indivisible step."""


class Level(Enum):
    """Who runs the iterations of a loop. A processor has a pool of threads and lanes; a GPU has the others, and lanes.

    Iterations bound to a grid are a thread's each, to a block those of all its threads in lockstep, to a warp those of
    its threads, or of an equal part of them.
    """

    POOL = "pool"
    GRID = "grid"
    BLOCK = "block"
    WARP = "warp"
    THREAD = "thread"
    LANE = "lane"


@dataclass(frozen=True, slots=True)
class Split:
    """Cut a loop into chunks of `size` iterations.

    Where the loop `scaled`, which is split as well, has fewer iterations than one of its chunks, chunks have more.
    """

    loop: Symbol
    size: int
    scaled: Symbol | None = None


@dataclass(frozen=True, slots=True)
class Fuse:
    """Run a nest (`loop` and, in it, the `inner` ones) as one loop, which is then called by the index of `loop`."""

    loop: Symbol
    inner: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Reorder:
    """Run a perfect nest of loops in this order, outermost first."""

    order: tuple[Symbol, ...]

    @property
    def loop(self) -> Symbol:
        """The loop that is outermost then."""
        return self.order[0]


@dataclass(frozen=True, slots=True)
class Bind:
    """Run the iterations of a loop at a level: `width` at once in lanes.

    On a grid, `beside` threads of a block are laid over this loop and the others over the loop around it; 0 leaves
    that to its length.
    """

    loop: Symbol
    level: Level
    width: int = 0
    beside: int = 0


@dataclass(frozen=True, slots=True)
class Unroll:
    """Write `factor` iterations of a loop out, one after the other; if `jam`, loops inside of them become one.

    Of the iterations that are left over, `then` run together, if that is not 0.
    """

    loop: Symbol
    factor: int
    jam: bool = False
    then: int = 0


@dataclass(frozen=True, slots=True)
class Rfactor:
    """Make partial results of what a loop accumulates at a level, and join them: in a fixed order, or atomically.

    Without a `tensor`, of its reductions: `size` is the number of lanes, of iterations in a chunk for the pool, or of
    the fewest in a piece for a block. With one, of its elements: by copies for the pool, or, without a level, by atomic
    updates of the tensor itself.
    """

    loop: Symbol
    level: Level | None
    size: int = 0
    tensor: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """Run a nest, of which `loop` is the outermost, tile by tile, each by a block of threads that stages its factors.

    A tile has `height` iterations of the `rows`, taken as one loop, and `width` of the `columns`; of the loop `depth`
    so many iterations as `staged` are staged at once. On a processor a thread runs a tile, and `down` rows and `across`
    columns are summed up in registers. On a grid rows of the factors in `chunked` begin at chunks of 16 bytes,
    groups of warps multiply, or each warp for itself, and so many `stages` are in shared memory at once. Where
    tiles are at most half of the `blocks` that are wanted, several blocks add up parts of a tile's sums.
    """

    loop: Symbol
    rows: tuple[Symbol, ...]
    columns: tuple[Symbol, ...]
    depth: Symbol
    height: int
    width: int
    staged: int
    down: int = 0
    across: int = 0
    chunked: tuple[bool, bool] = (False, False)
    groups: bool = False
    stages: int = 0
    blocks: int = 0

    @property
    def notes(self) -> list[str]:
        """How factors are staged and multiplied on a grid, in words."""
        flags = (*self.chunked, self.groups)
        return [note for note, flag in zip(CONTRACT_NOTES, flags, strict=True) if flag]

    @property
    def counts(self) -> list[str]:
        """Stages, and the blocks that are wanted, in words."""
        found = zip((self.stages, self.blocks), CONTRACT_COUNTS, strict=True)
        return [f"{count} {name}" for count, name in found if count]


CONTRACT_COUNTS = ("stages", "blocks")
CONTRACT_NOTES = ("left in chunks", "right in chunks", "groups")


Verb: TypeAlias = Split | Fuse | Reorder | Bind | Unroll | Rfactor | Contract


def named(verb: Verb) -> tuple[Symbol, ...]:
    """Return the indices that a verb names."""
    match verb:
        case Reorder(order):
            return order
        case Fuse(loop, inner):
            return (loop, *inner)
        case Contract(loop, rows, columns, depth):
            return (loop, *rows, *columns, depth)
        case _:
            return (verb.loop,)


def chunk_of(loop: Symbol) -> Symbol:
    """Return the index of the loop over the chunks of a loop."""
    return Symbol(f"{loop.name}_chunk", loop.number + CHUNK_NUMBERS, INT64)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The verbs, in the order in which they are carried out; loops that none names run in order.

    `by_loop` has them by the loop that they are about: it is asked for each loop, and each verb of it.
    """

    verbs: tuple[Verb, ...] = ()
    by_loop: Mapping[Symbol, Sequence[Verb]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the verbs by their loops."""
        found: dict[Symbol, list[Verb]] = {}
        for verb in self.verbs:
            found.setdefault(verb.loop, []).append(verb)
        object.__setattr__(self, "by_loop", found)

    def of(self, loop: Symbol) -> Sequence[Verb]:
        """Return the verbs that are about a loop, in their order."""
        return self.by_loop.get(loop, ())

    def __str__(self) -> str:
        """Return one verb a line, with loops by name."""
        return "\n".join(spell(verb, lambda item: item.name) for verb in self.verbs)

    def bound(self, loop: Symbol, level: Level) -> Bind | Rfactor | None:
        """Return the verb that runs a loop at a level, or makes partial results of it there."""
        return next(
            (
                verb
                for verb in self.of(loop)
                if isinstance(verb, Bind | Rfactor) and verb.level is level
                if isinstance(verb, Bind) or verb.tensor is None
            ),
            None,
        )

    def parallel(self, loop: Symbol) -> bool:
        """Whether a loop's iterations are shared out one by one."""
        return any(isinstance(self.bound(loop, level), Bind) for level in (Level.POOL, Level.GRID))

    def width(self, loop: Symbol) -> int:
        """Return the number of lanes of a loop, or 0."""
        verb = self.bound(loop, Level.LANE)
        return 0 if verb is None else verb.width if isinstance(verb, Bind) else verb.size

    def blocks(self, loop: Symbol) -> bool:
        """Whether each iteration of a loop is for a block of threads."""
        return isinstance(self.bound(loop, Level.BLOCK), Bind)

    def in_blocks(self, loop: Symbol) -> bool:
        """Whether a block of threads has an iteration of a loop at a time, alone or one of several."""
        return self.bound(loop, Level.BLOCK) is not None and not self.threads(loop)

    def threads(self, loop: Symbol) -> bool:
        """Whether a loop is shared out among the threads of a block."""
        return self.bound(loop, Level.THREAD) is not None

    def warps(self, loop: Symbol) -> bool:
        """Whether a loop is shared out among the warps of a block, or equal parts of them."""
        return self.bound(loop, Level.WARP) is not None

    def partials(self, loop: Symbol) -> int:
        """Return the least number of iterations of a piece for a block of threads, or 0."""
        verb = self.bound(loop, Level.BLOCK)
        return verb.size if isinstance(verb, Rfactor) else 0

    def pieces(self, loop: Symbol) -> bool:
        """Whether pieces of an accumulating loop may be shared out on a grid, too."""
        return isinstance(self.bound(loop, Level.GRID), Rfactor)

    def split(self, loop: Symbol) -> Split | None:
        """Return how a loop is cut into chunks, if it is."""
        return next((verb for verb in self.of(loop) if isinstance(verb, Split)), None)

    def tiled(self, loop: Symbol) -> int:
        """Return the iterations of a loop in a tile: of one whose chunks stand further out; 0 if there are none."""
        split, chunk = self.split(loop), chunk_of(loop)
        moved = any(isinstance(verb, Reorder) and chunk in verb.order for verb in self.verbs)
        return split.size if split is not None and moved else 0

    def chunk(self, loop: Symbol) -> int:
        """Return the number of iterations in a chunk that a thread of the pool takes at a time, or 0."""
        verb, split = self.bound(loop, Level.POOL), self.split(loop)
        if isinstance(verb, Rfactor):
            return verb.size
        return split.size if split is not None and self.parallel(chunk_of(loop)) and not self.tiled(loop) else 0

    def flat(self, loop: Symbol) -> tuple[Symbol, ...]:
        """Return the loops that are run as one with a loop, itself first; empty if it stays as it is."""
        found = (item for item in self.of(loop) if isinstance(item, Fuse))
        return next(((item.loop, *item.inner) for item in found), ())

    def beside(self, loop: Symbol) -> int:
        """Return how many threads of a block are laid over a loop, and others over the loop around it; or 0."""
        verb = self.bound(loop, Level.GRID)
        return verb.beside if isinstance(verb, Bind) else 0

    def contraction(self, loop: Symbol) -> Contract | None:
        """Return how the nest that begins with a loop is run as tiles of a contraction, if it is."""
        return next((item for item in self.of(loop) if isinstance(item, Contract)), None)

    def updates(self, loop: Symbol) -> frozenset[Tensor]:
        """Return the tensors that a loop updates indivisibly."""
        return self._factored(loop, None)

    def copies(self, loop: Symbol) -> frozenset[Tensor]:
        """Return the tensors of which pieces of a loop have copies."""
        return self._factored(loop, Level.POOL)

    def _factored(self, loop: Symbol, level: Level | None) -> frozenset[Tensor]:
        found = (verb for verb in self.of(loop) if isinstance(verb, Rfactor) and verb.level is level)
        return frozenset(verb.tensor for verb in found if verb.tensor is not None)

    def jam(self, loop: Symbol) -> tuple[int, ...]:
        """Return the numbers of iterations that run together: of all, and of the rest; empty if none do."""
        found = (item for item in self.of(loop) if isinstance(item, Unroll) and item.jam)
        return next(((item.factor, item.then) if item.then else (item.factor,) for item in found), ())

    def unrolled(self, loop: Symbol) -> int:
        """Return the number of iterations in order that are written out; 1 if the loop stays as it is."""
        found = (item for item in self.of(loop) if isinstance(item, Unroll) and not item.jam)
        return next((item.factor for item in found), 1)


def planned(verbs: Iterable[Verb]) -> Schedule:
    """Return a schedule of verbs that planners name nest by nest, in an order in which they can be carried out.

    First what makes and moves loops, then where they run; what writes iterations out is last, as that renames loops.
    Updates are left as they are where one thread runs the iterations that meet.
    """
    found = [*verbs]
    apart = {loop for verb in found if _moves_iterations(verb) for loop in named(verb)}
    kept = (verb for verb in found if not _is_atomic(verb) or verb.loop in apart)
    return Schedule(tuple(sorted(kept, key=_turn)))


def _is_atomic(verb: Verb) -> bool:
    """Whether a verb says that the updates in a loop are indivisible."""
    return isinstance(verb, Rfactor) and verb.level is None


def _moves_iterations(verb: Verb) -> bool:
    """Whether iterations of the loops that a verb names run at once, or as others than before."""
    return verb.jam if isinstance(verb, Unroll) else not _is_atomic(verb)


def _turn(verb: Verb) -> int:
    match verb:
        case Unroll(jam=jam):
            return 3 if jam else 2
        case Bind() | Rfactor() if not (isinstance(verb, Rfactor) and verb.level is None):
            return 1
        case _:
            return 0


def level_name(level: Level | None) -> str:
    """Return what a level is called, or what stands in its place."""
    return ATOMIC if level is None else level.value


def spell(verb: Verb, name: Callable[[Symbol | Tensor], str]) -> str:
    """Return a verb as users write it (`text.py` reads it); `name` says what loops and tensors are called."""
    match verb:
        case Split(loop, size, scaled):
            parts = [name(loop), size, *(() if scaled is None else (name(scaled),))]
        case Fuse(loop, inner):
            parts = [*map(name, (loop, *inner))]
        case Reorder(order):
            parts = [*map(name, order)]
        case Bind(loop, level, width, beside):
            parts = [name(loop), level.value, *((width or beside,) if width or beside else ())]
        case Unroll(loop, factor, jam, then):
            parts = [name(loop), factor, *(("jam",) if jam else ()), *((then,) if then else ())]
        case Rfactor(loop, level, size, tensor):
            last = (name(tensor),) if tensor is not None else (size,) if size else ()
            parts = [name(loop), level_name(level), *last]
        case Contract(_, rows, columns, depth, height, width, staged, down, across) as verb:
            parts = [" x ".join(map(name, group)) for group in (rows, columns)]
            parts += [name(depth), f"{height} x {width} x {staged}" + (f" x {down} x {across}" if down else "")]
            parts += [*verb.notes, *verb.counts]
    return f"{type(verb).__name__.lower()}({', '.join(map(str, parts))})"
