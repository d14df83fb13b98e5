"""Contractions in tiles: a block of threads stages the factors of a tile and multiplies them by matrix instructions.

    for i in range(n): for j in range(m):      block for r in range(tiles of n): block for c in range(tiles of m):
        s = 0.0                                    tile for i in (128 of n): tile for j in (128 of m):
        for k in range(p): s += a[i, k] * b[k, j]      s = 0.0
        y[i, j] = s                                    contract for k in range(p): s += a[i, k] * b[k, j]
                                                       y[i, j] = s

Several loops of rows, or of columns, are run as one. Sums are taken in blocks of the depth, in an order that the tile
fixes. Such a nest is worth tiles where it has enough rows, columns and terms: sizes tell, in conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import Contraction, find_contraction, grouped
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Assign,
    Block,
    Break,
    Check,
    Continue,
    Expression,
    For,
    Load,
    Local,
    Node,
    Random,
    Rebind,
    Role,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.schedule.grid import GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.schedule import Contract, Schedule, Verb, planned

LEAST = 32
"""Rows, columns and terms of a sum for which tiles are worth it."""
FULL = 0.9
"""Tiles for each multiprocessor that are enough."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A tile: rows, columns, and the depth that is staged at once, in bytes of a row."""

    height: int
    width: int
    bytes: int = 128


SHAPES = {"mma": (Shape(64, 64), Shape(128, 128)), "wgmma": (Shape(64, 64), Shape(128, 128), Shape(128, 256))}
"""The tiles for each kind of matrix instruction, the smallest first."""


@dataclass(frozen=True, slots=True)
class Nest:
    """A contraction in a nest: its loops, and which of them are rows, columns and depth."""

    band: tuple[For, ...]
    rows: tuple[Symbol, ...]
    columns: tuple[Symbol, ...]
    depth: Symbol
    contraction: Contraction

    def total(self, loops: Sequence[Symbol]) -> Expression:
        """Return how many iterations some loops of the nest have together."""
        every = (*self.band, *self.contraction.sums)
        counts = (build.iterations(node.start, node.stop) for node in every if node.index in loops)
        return build.product([build.integer(1), *counts])


@dataclass(frozen=True, slots=True)
class ContractionPlanner(GridPlanner):
    """Runs contractions in tiles of a shape, and the rest as a `GridPlanner` does."""

    shape: Shape = Shape(64, 64)

    def independent(self, loop: For, *, inside: bool) -> Iterator[Verb]:
        """Schedule a band of loops: contractions in tiles."""
        found = self.contracted(loop)
        if found is None:
            yield from GridPlanner.independent(self, loop, inside=inside)
            return
        size = max(2, found.contraction.dtype.size)
        staged = self.shape.bytes // size
        yield Contract(loop.index, found.rows, found.columns, found.depth, self.shape.height, self.shape.width, staged)

    @legality
    def contracted(self, loop: For) -> Nest | None:
        """Return the contraction of a nest, if there is one."""
        band = (*self.rectangle(loop),)
        body = band[-1].body
        if self.keeps_order(band):
            return None
        groups = grouped(body, [node.index for node in band])
        if groups is None or not all(groups):
            return None
        columns = self.along(body, groups)
        rows = groups[1 - columns]
        found = find_contraction(body, rows, groups[columns])
        if found is None or not all(self.accumulates(each, {found.symbol}) for each in found.sums):
            return None
        ordered = [tuple(node.index for node in band if node.index in group) for group in (rows, groups[columns])]
        return Nest(band, *ordered, self.deepest_of(found), found)

    @hazard
    def keeps_order(self, band: Sequence[For]) -> bool:
        """Whether something in a nest must happen in the order of the source, or once for each iteration."""
        never = Check | Random | While | Break | Continue | Local | Rebind
        if any(isinstance(node, never) for node in walk(band[-1].body)):
            return True
        return any(self.analysis.loops[node.index].updates for node in statements(band[0]) if isinstance(node, For))

    def along(self, body: Block, groups: Sequence[frozenset[Symbol]]) -> int:
        """Return which group of loops runs along memory in what is stored."""
        for node in statements(body):
            if isinstance(node, Store) and node.tensor.type.unit_axis is not None:
                read = read_symbols(node.indices[node.tensor.type.unit_axis])
                return int(bool(read & groups[1])) if read & (groups[0] | groups[1]) else 1
        return 1

    def deepest_of(self, found: Contraction) -> Symbol:
        """Return the loop that is staged: one that runs along memory for some factor, else the longest."""
        def worth(loop: For) -> tuple[int, bool]:
            count = self.count(loop)
            return (LEAST if count is None else min(count, LEAST), self.is_contiguous(found, loop.index))

        return max(found.sums, key=worth).index

    def is_contiguous(self, found: Contraction, index: Symbol) -> bool:
        """Whether a factor reads neighbours along a loop."""
        for node in (part for factor in found.factors for part in walk(factor.value)):
            if isinstance(node, Load) and node.tensor.type.unit_axis is not None:
                if index in read_symbols(node.indices[node.tensor.type.unit_axis]):
                    return True
        return False


def contraction_versions(
    block: Block, analysis: Analysis, target: Target
) -> Iterator[tuple[str, Schedule, tuple[Expression, ...]]]:
    """Yield schedules of a kernel's body that run its contractions in tiles, with what must hold for each."""
    for number, shape in enumerate(SHAPES.get(target.matrix, ())):
        planner = ContractionPlanner(analysis, target, lengths_in(block), shape=shape)
        schedule = planned(planner.block(block))
        nests = [found for node in statements(block) if isinstance(node, For) and schedule.contraction(node.index) and (found := planner.contracted(node))]
        if not nests or any(map(_is_unknown(block), nests)):
            return
        conditions = [part for nest in nests for part in _worth(nest, shape, target, smallest=not number)]
        yield f"contraction {shape.height} x {shape.width}", schedule, tuple(dict.fromkeys(conditions))


def _is_unknown(block: Block):
    inner = assigned_symbols(block)

    def visit(nest: Nest) -> bool:
        every = (*nest.band, *nest.contraction.sums)
        return bool(read_symbols([bound for node in every for bound in (node.start, node.stop)]) & inner)

    return visit


def _worth(nest: Nest, shape: Shape, target: Target, *, smallest: bool) -> Iterator[Expression]:
    """Yield what must hold so that a nest is worth tiles of a shape."""
    rows, columns = nest.total(nest.rows), nest.total(nest.columns)
    if smallest:
        depth = nest.total([loop.index for loop in nest.contraction.sums])
        for total in (rows, columns, depth):
            yield build.apply("ge", total, build.integer(LEAST))
        return
    batch = nest.total([node.index for node in nest.band if node.index not in {*nest.rows, *nest.columns}])
    tiles = build.product([batch, _tiles(rows, shape.height), _tiles(columns, shape.width)])
    yield build.apply("ge", tiles, build.integer(int(FULL * target.threads / 2048)))


def _tiles(total: Expression, size: int) -> Expression:
    return build.apply("floordiv", build.add(total, build.integer(size - 1)), build.integer(size))


def contract(loop: For, directive: Contract, analysis: Analysis, numbers: Iterator[int]) -> Block:
    """Return a nest in tiles, each for a block of threads."""
    band = [loop]
    names = {*directive.rows, *directive.columns}
    while not names <= {node.index for node in band}:
        (inner,) = band[-1].body
        if not isinstance(inner, For):
            raise TypeError("the loops of a contraction stand directly in one another")
        band.append(inner)
    body = _marked(band[-1].body, directive, analysis)
    rows, columns = ([node for node in band if node.index in group] for group in (directive.rows, directive.columns))
    inner, block_of_columns = _tiled(columns, directive.width, body, numbers)
    outer, block_of_rows = _tiled(rows, directive.height, (inner,), numbers)
    result: For = outer
    for head in (block_of_columns, block_of_rows, *(node for node in reversed(band) if node.index not in names)):
        result = replace(head, role=Role.BLOCK, body=(result,))
    return (result,)


def _marked(body: Block, directive: Contract, analysis: Analysis) -> Block:
    def visit(statement: Node) -> Block:
        if isinstance(statement, For) and statement.index == directive.depth:
            reductions = analysis.loops[statement.index].reductions
            return (replace(statement, role=Role.CONTRACT, width=directive.staged, reductions=reductions),)
        return (statement,)

    return rewrite_statements(body, visit)


def _tiled(loops: Sequence[For], size: int, body: Block, numbers: Iterator[int]) -> tuple[For, For]:
    """Return the loop over a tile of some loops, run as one, and the loop over all tiles; its body is to be replaced."""
    zero = build.integer(0)
    names = "_".join(node.index.name for node in loops)
    if len(loops) == 1 and build.is_constant(loops[0].start, 0):
        index, total, heads = loops[0].index, loops[0].stop, ()
    else:
        index = Symbol(names, next(numbers), INT64)
        total, heads = _unravelled(loops, build.read(index))
    tile = Symbol(f"{names}_tile", next(numbers), INT64)
    start = build.mul(build.read(tile), build.integer(size))
    stop = build.apply("minimum", build.add(start, build.integer(size)), total)
    inner = For(index=index, start=start, stop=stop, body=(*heads, *body), role=Role.TILE, width=size, loc=loops[0].loc)
    return inner, For(index=tile, start=zero, stop=_tiles(total, size), body=(), loc=loops[0].loc)


def _unravelled(loops: Sequence[For], place: Expression) -> tuple[Expression, Block]:
    """Return how many iterations loops have together, and what gives their indices at one of these."""
    counts = [build.iterations(node.start, node.stop) for node in loops]
    heads: list[Assign] = []
    for number, node in enumerate(loops):
        rest = build.product([build.integer(1), *counts[number + 1 :]])
        here = build.apply("floordiv", place, rest) if number + 1 < len(loops) else place
        if number:
            here = build.apply("mod", here, counts[number])
        heads.append(Assign(symbol=node.index, value=build.add(node.start, here), loc=node.loc))
    return build.product(counts), tuple(heads)
