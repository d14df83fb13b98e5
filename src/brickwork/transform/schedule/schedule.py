"""A schedule: how the loops of a kernel are run, as data that can be compared, printed and stored.

Loops are named by their indices. How a schedule is chosen is in `defaults.py`, how it is carried out in `apply.py`.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from brickwork.ir.nodes import Symbol, Tensor
from brickwork.records import dataclass

LANES_LIMIT = 64
"""Most lanes of a loop: a mask is an integer of as many bits."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """Share a loop's iterations out among threads."""

    loop: Symbol


@dataclass(frozen=True, slots=True)
class Vectorise:
    """Run `width` iterations of a loop at once, one in each lane."""

    loop: Symbol
    width: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Cut a loop into pieces of `size` iterations, which are shared out among threads."""

    loop: Symbol
    size: int


@dataclass(frozen=True, slots=True)
class Flatten:
    """Run a nest (`loop` and, in it, the `inner` ones) as one loop, which is then called by the index of `loop`."""

    loop: Symbol
    inner: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Jam:
    """Run `factor` iterations of a loop together, so that they share what they read; of the rest `then`, if not 0."""

    loop: Symbol
    factor: int
    then: int = 0


@dataclass(frozen=True, slots=True)
class Unroll:
    """Write `factor` iterations of a loop in order out one after the other, a power of two."""

    loop: Symbol
    factor: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """Give each iteration of a loop to a block of threads."""

    loop: Symbol


@dataclass(frozen=True, slots=True)
class Threads:
    """Share a loop's iterations out among the threads of a block."""

    loop: Symbol


@dataclass(frozen=True, slots=True)
class Partials:
    """Cut a loop that accumulates into pieces of at least `least` iterations, each for a block of threads."""

    loop: Symbol
    least: int


@dataclass(frozen=True, slots=True)
class Split:
    """Share pieces of a loop that accumulates out, too, where there are few of the iterations around it."""

    loop: Symbol


@dataclass(frozen=True, slots=True)
class Permute:
    """Run a nest of loops, of which `loop` is the outermost, in the given order."""

    loop: Symbol
    order: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """Lay the threads of a block over the innermost loop of a nest, of which `loop` is the outermost, and `across`.

    Each thread takes `factor` neighbouring iterations of `across`; `threads` of them lie along the innermost loop.
    """

    loop: Symbol
    across: Symbol
    factor: int
    threads: int = 8


@dataclass(frozen=True, slots=True)
class CacheTile:
    """Run a nest, of which `loop` is the outermost, tile by tile: caches keep what neighbouring iterations share.

    A tile has `length` iterations of `across` and, innermost, `breadth` iterations of `along`. Tiles run in parallel.
    """

    loop: Symbol
    across: Symbol
    length: int
    along: Symbol
    breadth: int


@dataclass(frozen=True, slots=True)
class Update:
    """Make the updates of a tensor's elements in a loop indivisible, so that iterations may meet on an element."""

    loop: Symbol
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Copy:
    """Run pieces of a loop at once, each with a copy of its own of a tensor that the loop updates."""

    loop: Symbol
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Contract:
    """Run a nest, of which `loop` is the outermost, tile by tile, each by a block of threads that stages its factors.

    A tile has `height` iterations of the `rows`, taken as one loop, and `width` of the `columns`; of the loop `depth`
    so many iterations as `staged` are staged at once.
    """

    loop: Symbol
    rows: tuple[Symbol, ...]
    columns: tuple[Symbol, ...]
    depth: Symbol
    height: int
    width: int
    staged: int


Directive: TypeAlias = (
    Parallel
    | Vectorise
    | Chunk
    | Flatten
    | Jam
    | Unroll
    | Blocks
    | Threads
    | Partials
    | Split
    | Permute
    | Tile
    | CacheTile
    | Update
    | Copy
    | Contract
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The directives, at most one of each kind for a loop; loops that are not named run in order."""

    directives: tuple[Directive, ...] = ()

    def __str__(self) -> str:
        """Return one directive a line."""
        return "\n".join(_spell(directive) for directive in self.directives)

    def serialise(self) -> str:
        """Return the schedule as JSON; loops and tensors are named by name and number."""
        return json.dumps([_fields(directive) for directive in self.directives])

    def parallel(self, loop: Symbol) -> bool:
        """Whether a loop's iterations are shared out one by one."""
        return Parallel(loop) in self.directives

    def width(self, loop: Symbol) -> int:
        """Return the number of lanes of a loop, or 0."""
        return next((item.width for item in self.directives if isinstance(item, Vectorise) and item.loop == loop), 0)

    def flat(self, loop: Symbol) -> tuple[Symbol, ...]:
        """Return the loops that are run as one with a loop, itself first; empty if it stays as it is."""
        found = (item for item in self.directives if isinstance(item, Flatten) and item.loop == loop)
        return next(((item.loop, *item.inner) for item in found), ())

    def blocks(self, loop: Symbol) -> bool:
        """Whether each iteration of a loop is for a block of threads."""
        return Blocks(loop) in self.directives

    def threads(self, loop: Symbol) -> bool:
        """Whether a loop is shared out among the threads of a block."""
        return Threads(loop) in self.directives

    def partials(self, loop: Symbol) -> int:
        """Return the least number of iterations for a block of threads, or 0."""
        return next((item.least for item in self.directives if isinstance(item, Partials) and item.loop == loop), 0)

    def split(self, loop: Symbol) -> bool:
        """Whether pieces of an accumulating loop may be shared out, too."""
        return Split(loop) in self.directives

    def order(self, loop: Symbol) -> tuple[Symbol, ...]:
        """Return the order in which the nest that begins with a loop is run; empty if it stays as it is."""
        return next((item.order for item in self.directives if isinstance(item, Permute) and item.loop == loop), ())

    def tile(self, loop: Symbol) -> Tile | None:
        """Return how the nest that begins with a loop is laid over a block of threads, if it is."""
        return next((item for item in self.directives if isinstance(item, Tile) and item.loop == loop), None)

    def cache_tile(self, loop: Symbol) -> CacheTile | None:
        """Return how the nest that begins with a loop is cut into tiles for caches, if it is."""
        return next((item for item in self.directives if isinstance(item, CacheTile) and item.loop == loop), None)

    def contraction(self, loop: Symbol) -> Contract | None:
        """Return how the nest that begins with a loop is run as tiles of a contraction, if it is."""
        return next((item for item in self.directives if isinstance(item, Contract) and item.loop == loop), None)

    def updates(self, loop: Symbol) -> frozenset[Tensor]:
        """Return the tensors that a loop updates indivisibly."""
        return frozenset(item.tensor for item in self.directives if isinstance(item, Update) and item.loop == loop)

    def copies(self, loop: Symbol) -> frozenset[Tensor]:
        """Return the tensors of which pieces of a loop have copies."""
        return frozenset(item.tensor for item in self.directives if isinstance(item, Copy) and item.loop == loop)

    def jam(self, loop: Symbol) -> tuple[int, ...]:
        """Return the numbers of iterations that run together: of all, and of the rest; empty if none do."""
        found = (item for item in self.directives if isinstance(item, Jam) and item.loop == loop)
        return next(((item.factor, item.then) if item.then else (item.factor,) for item in found), ())

    def unrolled(self, loop: Symbol) -> int:
        """Return the number of iterations that are written out one after the other; 1 if the loop stays as it is."""
        return next((item.factor for item in self.directives if isinstance(item, Unroll) and item.loop == loop), 1)

    def chunk(self, loop: Symbol) -> int:
        """Return the number of iterations in a piece, or 0."""
        return next((item.size for item in self.directives if isinstance(item, Chunk) and item.loop == loop), 0)


def deserialise(text: str, loops: tuple[Symbol, ...], tensors: tuple[Tensor, ...] = ()) -> Schedule:
    """Return the schedule that `serialise` wrote, for a kernel with these loop indices and tensors."""
    named, told = {_name(loop): loop for loop in loops}, {_name(tensor): tensor for tensor in tensors}
    directives: list[Directive] = []
    for kind, name, *values in json.loads(text):
        loop = named[name]
        match kind:
            case "parallel":
                directives.append(Parallel(loop))
            case "vectorise":
                directives.append(Vectorise(loop, int(values[0])))
            case "chunk":
                directives.append(Chunk(loop, int(values[0])))
            case "jam":
                directives.append(Jam(loop, *map(int, values)))
            case "unroll":
                directives.append(Unroll(loop, int(values[0])))
            case "blocks":
                directives.append(Blocks(loop))
            case "threads":
                directives.append(Threads(loop))
            case "partials":
                directives.append(Partials(loop, int(values[0])))
            case "split":
                directives.append(Split(loop))
            case "permute":
                directives.append(Permute(loop, tuple(named[value] for value in values)))
            case "tile":
                directives.append(Tile(loop, named[values[0]], *map(int, values[1:])))
            case "cache_tile":
                across, length, along, breadth = values
                directives.append(CacheTile(loop, named[across], int(length), named[along], int(breadth)))
            case "contract":
                rows, columns = ([named[value] for value in group] for group in values[:2])
                directives.append(Contract(loop, tuple(rows), tuple(columns), named[values[2]], *map(int, values[3:])))
            case "update":
                directives.append(Update(loop, told[values[0]]))
            case "copy":
                directives.append(Copy(loop, told[values[0]]))
            case "flatten":
                directives.append(Flatten(loop, tuple(named[value] for value in values)))
            case _:
                raise ValueError(f"there is no directive {kind!r}")
    return Schedule(tuple(directives))


def _name(item: Symbol | Tensor) -> str:
    return f"{item.name}#{item.number}"


def _fields(directive: Directive) -> tuple[str | int | list[str], ...]:
    match directive:
        case Parallel(loop):
            return ("parallel", _name(loop))
        case Vectorise(loop, width):
            return ("vectorise", _name(loop), width)
        case Chunk(loop, size):
            return ("chunk", _name(loop), size)
        case Jam(loop, factor, then):
            return ("jam", _name(loop), factor, then) if then else ("jam", _name(loop), factor)
        case Unroll(loop, factor):
            return ("unroll", _name(loop), factor)
        case Flatten(loop, inner):
            return ("flatten", _name(loop), *map(_name, inner))
        case Blocks(loop):
            return ("blocks", _name(loop))
        case Threads(loop):
            return ("threads", _name(loop))
        case Partials(loop, least):
            return ("partials", _name(loop), least)
        case Split(loop):
            return ("split", _name(loop))
        case Permute(loop, order):
            return ("permute", _name(loop), *map(_name, order))
        case Tile(loop, across, factor, threads):
            return ("tile", _name(loop), _name(across), factor, threads)
        case CacheTile(loop, across, length, along, breadth):
            return ("cache_tile", _name(loop), _name(across), length, _name(along), breadth)
        case Contract(loop, rows, columns, depth):
            groups = ([*map(_name, group)] for group in (rows, columns))
            shape = directive.height, directive.width, directive.staged
            return ("contract", _name(loop), *groups, _name(depth), *shape)
        case Update(loop, tensor):
            return ("update", _name(loop), _name(tensor))
        case Copy(loop, tensor):
            return ("copy", _name(loop), _name(tensor))


def _spell(directive: Directive) -> str:
    match directive:
        case Parallel(loop):
            return f"parallel({loop.name})"
        case Vectorise(loop, width):
            return f"vectorise({loop.name}, {width})"
        case Chunk(loop, size):
            return f"chunk({loop.name}, {size})"
        case Jam(loop, factor, then):
            return f"jam({loop.name}, {factor}{f', {then}' if then else ''})"
        case Unroll(loop, factor):
            return f"unroll({loop.name}, {factor})"
        case Flatten(loop, inner):
            return f"flatten({', '.join(symbol.name for symbol in (loop, *inner))})"
        case Blocks(loop):
            return f"blocks({loop.name})"
        case Threads(loop):
            return f"threads({loop.name})"
        case Partials(loop, least):
            return f"partials({loop.name}, {least})"
        case Split(loop):
            return f"split({loop.name})"
        case Permute(_, order):
            return f"permute({', '.join(symbol.name for symbol in order)})"
        case Tile(_, across, factor):
            return f"tile({across.name}, {factor})"
        case CacheTile(_, across, length, along, breadth):
            return f"cache_tile({across.name}, {length}, {along.name}, {breadth})"
        case Contract(_, rows, columns, depth, height, width, staged):
            groups = (" x ".join(symbol.name for symbol in group) for group in (rows, columns))
            return f"contract({', '.join(groups)}, {depth.name}, {height} x {width} x {staged})"
        case Update(loop, tensor):
            return f"update({loop.name}, {tensor.name})"
        case Copy(loop, tensor):
            return f"copy({loop.name}, {tensor.name})"
