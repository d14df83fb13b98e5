"""Splits few long rows, which blocks of threads go along several times, so that several blocks share a row out.

    for i: m = max of x[i, j]                    for i, c: p = max of x[i, j] for j in piece c; part[i, c] = p
           s = sum of exp(x[i, j] - m)           for i: m = max of part[i, c]; cell[i] = m
           for j: y[i, j] = f(x[i, j], m, s)  -> for i, c: m = cell[i]; p = sum of exp(x[i, j] - m); part2[i, c] = p
                                                 ...
                                                 for i, c: m, s = cells; y[i, j] = f(x[i, j], m, s) for j in piece c

Each loop that a block shares out is a nest of pieces, and what stands between two of them is one for rows, which joins
the partial results. What is assigned before the first loop is computed again in each nest, and all later variables pass
from nest to nest in tensors. Elements may say where rows begin and end: there are more pieces then, as rows may be of
any length. Invariant: pieces depend on sizes alone, and are joined in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import reduce
from itertools import pairwise

from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Expression,
    For,
    If,
    Role,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.persistent import few_iterations
from brickwork.transform.schedule.contract_loops import longest
from brickwork.transform.schedule.lengths import by_axes
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.scratch import Names, joins
from brickwork.transform.split_reductions import (
    BLOCKS,
    Split,
    flat_place,
    has_known_length,
    in_pieces,
    lowered,
    nested,
    pieces_of,
    raising,
    unless,
)
from brickwork.transform.verbs.split import count_of

EVEN = replace(BLOCKS, few=BLOCKS.few // 2)
"""Of rows whose length the host knows. On an H200 a softmax of 16 rows of a million elements takes 0.09 ms in pieces
and 0.47 with a block for each row, 64 rows 0.29 and 0.53, 128 rows of 128,256 0.089 and 0.095; 256 are no faster."""
RAGGED = replace(BLOCKS, few=16 * BLOCKS.few, enough=64 * BLOCKS.enough)
"""Of rows that elements begin or end: one may be as long as all others together, and pieces are for a warp each."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """A loop that a block shares out, and what stands behind it.

    It has about `length` iterations, with those of loops in it that are shared out with it, at most as many as the
    `longest`; if it is `ragged`, elements end it. It has no more than `most` pieces, if that is known.
    """

    loop: For
    behind: Block
    length: Expression
    longest: Expression
    ragged: bool
    most: Expression | None = None


@dataclass(slots=True)
class _Nest:
    """What one nest does for each row; or for each `piece` of one, of which another nest `joins` some variables."""

    body: Block
    piece: For | None = None
    joins: frozenset[Symbol] = NONE


def rows_version(index: Symbol) -> str:
    """Return the name of the version in which several blocks go along each row of a loop over rows."""
    return f"pieces of rows {index.name} {index.number}"


def split_rows(
    levels: Sequence[For], places: Partition, names: Names, target: Target, *, careful: bool = False
) -> Split | None:
    """Return nests that do as one launch of these levels; None if it is of another kind.

    Loops of a `careful` body, which checks everything and hardly runs, stay whole.
    """
    if levels[-1].role is not Role.BLOCK:
        return None
    condition, body = _condition(levels[-1].body)
    first, phases = _phases(body, levels, places)
    if not phases or (careful and effects(body).fails) or not _may_be_cut(first, phases):
        return None
    ragged = any(phase.ragged for phase in phases)
    limits = RAGGED if ragged else EVEN
    counts = [count_of(level) for level in levels]
    rows = build.product(counts)
    length = _greatest([phase.length for phase in phases])
    pieces = pieces_of(rows, _greatest([phase.longest for phase in phases]), limits)
    count = _least([pieces, *(phase.most for phase in phases if phase.most is not None)])
    cutter = _Cutter(tuple(levels), first, condition, names, limits.unit, rows, count)
    nests = [*cutter.nests(phases)]
    if not cutter.joined(nests):
        return None
    # Each nest but one is a launch that a block for each row would do without: it is to take as long.
    enough = build.integer(max(len(nests) - 1, 1) * few_iterations(target))
    needed = build.apply("ge", length, enough)
    one, few, two = build.integer(1), build.integer(limits.few), build.integer(2)
    for asked in (build.apply("ge", rows, one), build.apply("le", rows, few), build.apply("ge", count, two)):
        needed = build.apply("logical_and", asked, needed)
    made = cutter.finished(nests)
    return Split(needed, tuple(cutter.made), made, (), rows_version(levels[0].index))


def _condition(body: Block) -> tuple[Expression | None, Block]:
    """Return where a body does anything, and what it does."""
    match body:
        case (If(condition=condition, then=then, otherwise=()),) if not effects(condition).loads:
            return condition, then
        case _:
            return None, body


def _phases(body: Block, levels: Sequence[For], places: Partition) -> tuple[Block, list[_Phase]]:
    """Return what stands before the first of a body's shared loops, and these with what follows each."""
    at = [place for place, item in enumerate(body) if isinstance(item, For) and item.role is Role.THREAD]
    found: list[_Phase] = []
    for place, following in pairwise((*at, len(body))):
        loop = body[place]
        phase = _phase(loop, body[place + 1 : following], levels, places) if isinstance(loop, For) else None
        if phase is None:
            return (), []
        found.append(phase)
    return body[: at[0]] if at else (), found


def _phase(loop: For, behind: Block, levels: Sequence[For], places: Partition) -> _Phase | None:
    """Return what is known of a loop that a block shares out, or None if nothing says how long it may be."""
    nest = [loop, *_inside(loop)]
    if all(has_known_length(each, places, levels) for each in nest):
        length = build.product([longest(each, levels) for each in nest])
        return _Phase(loop, behind, length, length, False, longest(loop, levels) if len(nest) > 1 else None)
    found = by_axes(loop, levels)
    if found is None:
        return None
    inside = _steps(loop.body, levels, places)
    length, most = (build.mul(each, inside) for each in found)
    return _Phase(loop, behind, length, most, True, found[1] if effects(loop.body).loops else None)


def _steps(block: Block, levels: Sequence[For], places: Partition) -> Expression:
    """Return how many steps of its longest loops a block takes, as far as that is known."""
    loops = (item for item in block if isinstance(item, For) and has_known_length(item, places, levels))
    found = [build.mul(longest(item, levels), _steps(item.body, levels, places)) for item in loops]
    return _greatest([build.integer(1), *found])


def _inside(loop: For) -> Iterator[For]:
    """Yield the loops in a shared one that are one range with it."""
    match loop.body:
        case (For(role=Role.THREAD) as inner,):
            yield inner
            yield from _inside(inner)
        case _:
            pass


def _greatest(values: Sequence[Expression]) -> Expression:
    return reduce(lambda one, two: build.apply("maximum", one, two), values)


def _least(values: Sequence[Expression]) -> Expression:
    return reduce(lambda one, two: build.apply("minimum", one, two), values)


@legality
def _may_be_cut(first: Block, phases: Sequence[_Phase]) -> bool:
    """Whether what stands between loops may run by itself, and what is first may run again and again.

    What it computes is the same then: no loop and no statement behind one stores into what it reads.
    """
    glue = [item for phase in phases for item in phase.behind]
    whole = effects([*first, *glue, *(phase.loop for phase in phases)])
    if whole.draws or whole.rebinds:
        return False
    between, again = effects([*first, *glue]), effects(first)
    if between.fails or between.loops or between.declares:
        return False
    return not again.stores and again.loads.isdisjoint(whole.stores)


@dataclass(slots=True)
class _Cutter:
    """Writes the nests, with the tensors that hold partial results and variables.

    All that they do is done where the `condition` holds; `first` is computed in each nest.
    """

    levels: tuple[For, ...]
    first: Block
    condition: Expression | None
    names: Names
    unit: int
    rows: Expression
    count: Expression
    made: list[Allocate] = field(default_factory=list[Allocate])
    cells: dict[Symbol, Tensor] = field(default_factory=dict[Symbol, Tensor])

    @property
    def place(self) -> Expression:
        """The number of a row."""
        return flat_place(self.levels, [count_of(level) for level in self.levels])

    def tensor(self, symbol: Symbol, name: str, *sizes: Expression) -> Tensor:
        """Return a new tensor for the values of a variable."""
        tensor, allocate = self.names.tensor(f"{symbol.name}_{name}", symbol.dtype, *sizes)
        self.made.append(allocate)
        return tensor

    def nests(self, phases: Sequence[_Phase]) -> Iterator[_Nest]:
        """Yield the nests of all phases, in order, without the variables that pass between them."""
        for phase in phases:
            loop = phase.loop
            partials = [self.tensor(item.symbol, "partial", self.rows, self.count) for item in loop.reductions]
            over, again = self.pieces(loop), self.pieces(loop)
            index = build.read(over.index)
            starts = [Assign(symbol=item.symbol, value=build.identity(item), loc=loop.loc) for item in loop.reductions]
            unit = self.unit if phase.most is None else 1
            part = in_pieces((loop,), index, self.count, unit)
            stores = (
                self.names.store(partial, self.place, index, build.read(item.symbol))
                for partial, item in zip(partials, loop.reductions, strict=True)
            )
            joined = frozenset(item.symbol for item in loop.reductions)
            yield _Nest((*starts, part, *stores), replace(over, role=Role.BLOCK), joined)
            parts = [self.names.load(partial, self.place, build.read(again.index)) for partial in partials]
            join = replace(again, body=joins(loop, parts), role=Role.THREAD, reductions=loop.reductions)
            behind = (*((join,) if partials else ()), *phase.behind)
            if behind:
                yield _Nest(behind)

    def pieces(self, loop: For) -> For:
        """Return a loop over all pieces of another."""
        index = self.names.symbol("piece", INT64)
        return For(index=index, start=build.integer(0), stop=self.count, body=(), loc=loop.loc)

    @legality
    def joined(self, nests: Sequence[_Nest]) -> bool:
        """Let nests leave variables for later ones, and return whether all that those read is left, or computed again.

        Nests of rows leave them, not those of pieces: what one of these computes last is no value of the row.
        """
        known = assigned_symbols(self.first)
        assigned = known.union(*(assigned_symbols(nest.body) for nest in nests))
        left, lost = NONE, NONE
        wanted: list[frozenset[Symbol]] = []
        for nest in nests:
            own = assigned_symbols(nest.body)
            needed = live_before(nest.body, NONE) & assigned
            if needed & lost or not needed <= left | known:
                return False
            wanted.append(needed & left)
            left, lost = (left | own, lost - own) if nest.piece is None else (left, lost | own - nest.joins)
        for symbol in sorted(NONE.union(*wanted), key=lambda symbol: symbol.number):
            self.cells[symbol] = self.tensor(symbol, "kept", self.rows)
        for nest, needed in zip(nests, wanted, strict=True):
            nest.body = self.passing(nest, needed)
        return all(runs_in_lockstep(nest.body) for nest in nests)

    def passing(self, nest: _Nest, needed: frozenset[Symbol]) -> Block:
        """Return what a nest does, with what it computes again and reads before, and leaves behind if it is of rows."""
        cells = [(symbol, cell) for symbol, cell in self.cells.items() if symbol in needed]
        reads = (Assign(symbol=symbol, value=self.names.load(cell, self.place)) for symbol, cell in cells)
        own = assigned_symbols(nest.body) if nest.piece is None else NONE
        left = [(symbol, cell) for symbol, cell in self.cells.items() if symbol in own]
        stores = (self.names.store(cell, self.place, build.read(symbol)) for symbol, cell in left)
        return (*self.first, *reads, *nest.body, *stores)

    def finished(self, nests: Sequence[_Nest]) -> tuple[For, ...]:
        """Return the loops of all nests. None runs after one in which a check has failed."""
        flags: list[Tensor] = []
        result: list[For] = []
        for nest in nests:
            body = nest.body if self.condition is None else (If(condition=self.condition, then=nest.body),)
            for flag in flags:
                body = unless(flag, body, self.names)
            whole = nested((*self.levels, *(() if nest.piece is None else (nest.piece,))), body)
            if effects(body).fails:
                flag, allocate = self.names.tensor("failed", INT64, 1)
                self.made.append(allocate)
                flags.append(flag)
                whole = raising(whole, flag, self.names)
            result.append(whole)
        return (*(lowered(flag, self.names) for flag in flags), *result)
