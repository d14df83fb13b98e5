"""Splits long reductions in nests of few iterations (split-K), so that a grid has threads enough.

    for j: s = 0                           for c in pieces: for j: p = 0; for i in piece c: p += x[i, j]; part[c, j] = p
           for i: s += x[i, j]     ->      for j: s = 0; for c in pieces: s += part[c, j]
                                                  out[j] = s
           out[j] = s

Invariant: pieces depend on sizes alone, and are joined in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Check,
    Expression,
    For,
    If,
    Role,
    Size,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.signature import ALIGNMENT
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import BUSY_THREADS, PROCESSORS, WARP
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.schedule.contract_loops import longest
from brickwork.transform.schedule.lengths import by_axes
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.schedule.register_tile import DEEPEST, UNROLLED
from brickwork.transform.scratch import ONCE, Names, joins
from brickwork.transform.verbs.rfactor import MOST_PIECES, PIECE_UNIT
from brickwork.transform.verbs.split import count_of, cut


@dataclass(frozen=True, slots=True)
class Limits:
    """What is cut: nests of at most `few` steps, into pieces of at least `least` iterations, a multiple of `unit`.

    A step is an iteration, or the lanes of a thread. There are about `enough` pieces in all, and at most `most` of a
    step. Results are joined by blocks of threads (`BLOCK`), or by a thread each.
    """

    few: int
    least: int
    enough: int
    most: int
    unit: int = 1
    joined: Role = Role.BLOCK


THREADS = Limits(few=BUSY_THREADS // 2, least=2 * WARP, enough=4 * BUSY_THREADS, most=4 * MOST_PIECES)
"""Of nests whose iterations are for a thread each."""
DEEP = replace(THREADS, few=BUSY_THREADS // 8, least=DEEPEST)
"""Of such nests whose iterations accumulate in loops of loops."""
TILES = replace(DEEP, few=BUSY_THREADS, enough=2 * BUSY_THREADS, most=2 * WARP, joined=Role.PARALLEL)
"""Of nests with register tiles that do: they are many, but of unequal length, and each is as long as several others."""
TOGETHER = replace(TILES, few=DEEP.few, least=THREADS.least)
"""Of nests whose threads have iterations of an outer loop together, and accumulate in one loop."""
BLOCKS = Limits(few=2 * PROCESSORS, least=8 * PIECE_UNIT, unit=PIECE_UNIT, enough=16 * PROCESSORS, most=MOST_PIECES)
"""Of nests whose iterations are for a block each, which accumulates in its threads."""
WARPS = replace(BLOCKS, least=BLOCKS.least // WARP, unit=BLOCKS.unit // WARP)
"""Of such nests that accumulate in warps, whose threads share out what is inside."""
JOINED_LANES = ALIGNMENT // FLOAT32.size
"""Most lanes of a thread that joins pieces: what neighbours read lies together."""


@dataclass(frozen=True, slots=True)
class Split:
    """Nests that do as one where `condition` holds, with the tensors between them, and facts about these."""

    condition: Expression
    made: tuple[Allocate, ...]
    nests: tuple[For, ...]
    facts: tuple[Expression, ...]
    version: str


def split_version(index: Symbol) -> str:
    """Return the name of the version in which the accumulating loop over an index is in pieces."""
    return f"pieces {index.name} {index.number}"


def split_reductions(levels: Sequence[For], places: Partition, names: Names, *, careful: bool = False) -> Split | None:
    """Return nests that do as one launch of these levels; None if it is of another kind.

    Loops of a `careful` body, which checks everything and hardly runs, stay whole.
    """
    inside = {level.index for level in levels} | assigned_symbols(levels[-1].body)
    levels, branch = _without_branch(levels)
    whole, last = branch.whole, levels[-1]
    loop = _accumulating(levels)
    if loop is None or _goes_together(loop) or (careful and effects(levels).fails):
        return None
    place = next(place for place, item in enumerate(last.body) if isinstance(item, For | If))
    before, around, after = last.body[:place], last.body[place], last.body[place + 1 :]
    if not _may_store(loop, nested(levels, whole((*before, _in_place_of(loop, _emptied, around))))):
        return None
    beside = [*_beside(loop, after, places, levels)]
    others, after = after[: len(beside)], after[len(beside) :]
    if effects(after).loops:
        return None
    wide = last.role is Role.PARALLEL
    chains = [tuple((_together if wide else _as_one_range)(each, places, levels)) for each in (loop, *beside)]
    limits = _limits(last, chains[0][-1])
    counts = [count_of(level) for level in levels]
    total = build.product(counts)
    counted = [*counts[:-1], _steps(counts[-1], last.width)] if limits in {DEEP, TILES, TOGETHER} else counts
    steps = build.product(counted)
    if Partition(places.device | inside).is_known(loop.start, loop.stop):
        lengths = [build.product([longest(each, levels) for each in chain]) for chain in chains]
        length = most = reduce(lambda one, two: build.apply("maximum", one, two), lengths)
    elif wide and (found := by_axes(loop, levels)) is not None:
        length, most = found
    else:
        return None
    pieces = pieces_of(steps, most, limits)
    cutter = _Cutter(tuple(levels), whole, tuple(chains), names, tuple(counts), limits)
    made = cutter.tensors(pieces, total)
    tensors = tuple(item.tensor for item in made)
    join = cutter.joined(tensors)
    # Where several loops accumulate, each may have a condition of its own.
    joined = branch.joined((*before, join if beside else _in_place_of(loop, lambda _: join, around), *after))
    if not _may_join(joined, limits.joined):
        return None
    enough = build.apply("ge", length, build.integer(2 * limits.least))
    some = build.apply("ge", steps, build.integer(1))
    few = build.apply("le", steps, build.integer(limits.few))
    condition = build.apply("logical_and", build.apply("logical_and", some, few), enough)
    lanes = 1 if limits.joined is Role.BLOCK else JOINED_LANES
    outer = [replace(level, role=limits.joined, width=min(level.width, lanes), across=0) for level in levels]
    parts, facts = cutter.parts(before, (around, *others), tensors), (*cutter.facts(tensors),)
    nests: tuple[For, ...] = parts, nested(outer, joined)
    if effects(parts).fails:
        flag, allocate = names.tensor("failed", INT64, 1)
        made = (*made, allocate)
        nests = lowered(flag, names), raising(parts, flag, names), nested(outer, unless(flag, joined, names))
    return Split(condition, made, nests, facts, split_version(loop.index))


def lowered(flag: Tensor, names: Names) -> For:
    """Return what says that no check has failed."""
    zero, once = build.integer(0), names.symbol(ONCE, INT64)
    return For(index=once, start=zero, stop=build.integer(1), body=(names.store(flag, zero, zero),), role=Role.PARALLEL)


@legality
def raising(nest: For, flag: Tensor, names: Names) -> For:
    """Return a nest that says so before a check fails: what reads its results is not to store them then."""

    def change(statement: Statement) -> Block:
        if not isinstance(statement, Check):
            return (statement,)
        raised = names.store(flag, build.integer(0), build.integer(1))
        failed = build.logical_not(statement.condition)
        indivisible = replace(raised, combine=OPERATORS["maximum"])
        return If(condition=failed, then=(indivisible,), loc=statement.loc), statement

    return replace(nest, body=rewrite_statements(nest.body, change))


def unless(flag: Tensor, block: Block, names: Names) -> Block:
    """Return what runs a block if no check has failed."""
    zero = build.integer(0)
    return (If(condition=build.apply("eq", names.load(flag, zero), zero), then=block),)


def _limits(last: For, loop: For) -> Limits:
    """Return what is cut of a nest whose `last` loop has iterations that accumulate in a loop."""
    if last.role is not Role.PARALLEL:
        return WARPS if loop.role is Role.WARP else BLOCKS
    inside = [node for node in statements(loop.body) if isinstance(node, For)]
    if any(node.unrolled >= UNROLLED for node in inside):
        return TILES
    if inside:
        return DEEP
    return TOGETHER if _has_copies(loop) else THREADS


def _steps(count: Expression, width: int) -> Expression:
    """Return how many steps of `width` iterations there are."""
    if width == 1:
        return count
    return build.apply("floordiv", build.add(count, build.integer(width - 1)), build.integer(width))


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts accumulating loops in one nest into pieces, with partial results that are joined afterwards.

    Each loop of a chain is all that is in the one before, and pieces are of the iterations of all, or of the first two
    where threads of a block share all out as one range. There are as many pieces of each of the `chains`, which follow
    one another, and a partial result is of a piece of each. What an iteration does is `whole` in the branch that it
    stands in.
    """

    levels: tuple[For, ...]
    whole: Callable[[Block], Block]
    chains: tuple[tuple[For, ...], ...]
    names: Names
    counts: tuple[Expression, ...]
    limits: Limits

    @property
    def loop(self) -> For:
        """The outermost loop of the first chain."""
        return self.chains[0][0]

    @property
    def wide(self) -> bool:
        """Whether iterations are for a thread each: then neighbours are beside one another in memory."""
        return self.levels[-1].role is Role.PARALLEL

    def tensors(self, pieces: Expression, total: Expression) -> tuple[Allocate, ...]:
        """Return what allocates the partial results."""
        sizes = (pieces, *self.counts) if self.wide else (total, pieces)
        return tuple(
            self.names.tensor(f"{item.symbol.name}_partial", item.symbol.dtype, *sizes)[1]
            for item in self.loop.reductions
        )

    def parts(self, before: Block, around: Block, tensors: Sequence[Tensor]) -> For:
        """Return the nest that makes the partial results; `around` are the loops, or have them in branches."""
        loop, piece = self.loop, self.names.symbol("piece", INT64)
        count = self.pieces(tensors)
        unit = self.limits.unit

        def part(each: For) -> For:
            chain = next((found for found in self.chains if found[0] == each), (each,))
            cut_loops = in_pieces if self.wide or len(chain) == 1 else in_rectangles
            return cut_loops(chain, build.read(piece), count, unit)

        cut_up = [_in_place_of(chain[0], part, item) for chain, item in zip(self.chains, around, strict=True)]
        starts = [Assign(symbol=item.symbol, value=build.identity(item), loc=loop.loc) for item in loop.reductions]
        stores: list[Statement] = [
            self.names.store(tensor, *self.places(piece), build.read(item.symbol))
            for tensor, item in zip(tensors, loop.reductions, strict=True)
        ]
        body = (*before, *starts, *cut_up, *stores)
        role = self.levels[-1].role
        over = For(index=piece, start=build.integer(0), stop=count, body=(), role=role, loc=loop.loc)
        levels = (over, *self.levels) if self.wide else (*self.levels, over)
        return nested(levels, self.whole(body))

    def joined(self, tensors: Sequence[Tensor]) -> For:
        """Return the loop that joins the partial results of an iteration."""
        loop, piece = self.loop, self.names.symbol("piece", INT64)
        parts = [self.names.load(tensor, *self.places(piece)) for tensor in tensors]
        role, reductions = Role.THREAD, loop.reductions
        if self.limits.joined is not Role.BLOCK:
            role, reductions = Role.SEQUENTIAL, ()
        start, stop, body = build.integer(0), self.pieces(tensors), joins(loop, parts)
        return For(index=piece, start=start, stop=stop, body=body, role=role, reductions=reductions, loc=loop.loc)

    def pieces(self, tensors: Sequence[Tensor]) -> Expression:
        """Return the number of pieces."""
        return Size(tensor=tensors[0], axis=0 if self.wide else 1)

    def places(self, piece: Symbol) -> tuple[Expression, ...]:
        """Return the indices of a piece's result."""
        if not self.wide:
            return flat_place(self.levels, self.counts), build.read(piece)
        return build.read(piece), *(build.sub(build.read(level.index), level.start) for level in self.levels)

    def facts(self, tensors: Sequence[Tensor]) -> Iterator[Expression]:
        """Yield what the sizes of the results are equal to: what divides those, divides these."""
        for axis, count in enumerate(self.counts, 1):
            if self.wide and isinstance(count, Size):
                yield from (build.apply("eq", Size(tensor=tensor, axis=axis), count) for tensor in tensors)


@dataclass(frozen=True, slots=True)
class _Branch:
    """The branch that a nest's loops stand in: what puts a block in there, alone (`whole`) or before what follows."""

    whole: Callable[[Block], Block] = lambda block: block
    joined: Callable[[Block], Block] = lambda block: block


@legality
def _without_branch(levels: Sequence[For]) -> tuple[Sequence[For], _Branch]:
    """Return a nest without the branch that all of its loops stand in, and that branch."""
    body = levels[-1].body
    place = next((place for place, item in enumerate(body) if not isinstance(item, Assign)), len(body))
    before, rest = body[:place], body[place:]
    match rest:
        case (If(otherwise=()) as branch, *after) if not effects((*before, branch.condition)).fails and (
            len(branch.then) > 1 and not effects(after).loops and not effects(after).fails
        ):
            inner, found = _without_branch((*levels[:-1], replace(levels[-1], body=branch.then)))

            def within(block: Block) -> Block:
                return (*before, replace(branch, then=block))

            return inner, _Branch(
                lambda block: within(found.whole(block)), lambda block: (*within(found.joined(block)), *after)
            )
        case _:
            return levels, _Branch()


@legality
def _accumulating(levels: Sequence[For]) -> For | None:
    """Return the first loop in a nest, if it accumulates.

    It may stand in a branch. What stands before it is run again where the pieces are joined: assignments alone. What is
    checked stands beside loops, in branches of theirs.
    """
    body = levels[-1].body
    loop = _only_loop(body, frozenset())
    if loop is None or not loop.reductions:
        return None
    others = [node for node in body if not effects(node).loops]
    return None if effects(others).fails else loop


@legality
def _may_store(loop: For, around: For) -> bool:
    """Whether what a loop stores is the same if pieces of it run at once, in the nest that it stands in without it.

    Its iterations are independent but for what they accumulate. What stands around is run again for each piece, and
    where pieces are joined: it reads nothing that the loop stores.
    """
    found = effects(loop)
    own = all(not tensor.is_local or tensor in found.declares for tensor in found.stores)
    return not found.stores or (own and not found.fails and not found.stores & effects(around).loads)


def _emptied(loop: For) -> For:
    """Return a loop that does nothing."""
    return replace(loop, body=())


@legality
def _beside(loop: For, after: Block, places: Partition, levels: Sequence[For]) -> Iterator[For]:
    """Yield the loops right after an accumulating one, or in branches after it, that accumulate the same.

    None stores what a piece might read, and what is searched for has its place in one loop alone.
    """
    if effects(loop).stores or any(item.along is not None for item in loop.reductions):
        return
    for item in after:
        found = _only_loop((item,), frozenset())
        if found is None or found.reductions != loop.reductions or effects(item).stores:
            return
        if not has_known_length(found, places, levels):
            return
        yield found


def _together(loop: For, places: Partition, levels: Sequence[For]) -> Iterator[For]:
    """Yield an accumulating loop, and those in it whose iterations are cut with its own.

    A third one whose turns are written out stays whole: it reads neighbours at once.
    """
    found, deep = loop, False
    while found is not None and not (deep and found.unrolled > 1):
        yield found
        deep, inner = found is not loop, _continued(found, places, levels)
        found = inner if inner is not None and inner.reductions else None


def _as_one_range(loop: For, places: Partition, levels: Sequence[For]) -> Iterator[For]:
    """Yield an accumulating loop of a block, and those in it that its threads share out as one range with it."""
    yield loop
    inner = _continued(loop, places, levels) if loop.role is Role.THREAD else None
    if inner is not None and inner.role is Role.THREAD and inner.reductions == loop.reductions:
        yield from _as_one_range(inner, places, levels)


@legality
def _continued(loop: For, places: Partition, levels: Sequence[For]) -> For | None:
    """Return the loop that is all there is in an accumulating one, if it can be cut, too."""
    match loop.body:
        case (For() as inner,) if has_known_length(inner, places, levels):
            return inner
        case _:
            return None


@legality
def has_known_length(loop: For, places: Partition, levels: Sequence[For]) -> bool:
    """Whether the host knows how long a loop is at most: that changes with the levels, not with what moves inside."""
    fixed = read_symbols((loop.start, loop.stop)) - {level.index for level in levels}
    return not fixed & assigned_symbols(levels[-1].body) and places.is_known(longest(loop, levels))


@legality
def _only_loop(block: Block, tested: frozenset[Symbol]) -> For | None:
    """Return the first of a block's statements that is no assignment, or what is alone in its branch, if it is a loop.

    The loop accumulates into nothing that was `tested`.
    """
    match [item for item in block if not isinstance(item, Assign)]:
        case [For() as loop, *_]:
            return None if {item.symbol for item in loop.reductions} & tested else loop
        case [If(condition=condition, then=(inner,), otherwise=()), *_]:
            return _only_loop((inner,), tested | read_symbols(condition))
        case [If(condition=condition, then=(For() as inner,), otherwise=(other,)), *_] if _is_again(inner, other):
            return _only_loop((inner,), tested | read_symbols(condition))
        case _:
            return None


@legality
def _is_again(loop: For, other: Statement) -> bool:
    """Whether a loop is another one once more, with the checks that it may do without."""
    return isinstance(other, For) and replace(other, body=loop.body) == loop


def _in_place_of(loop: For, other: Callable[[For], For], around: Statement) -> Statement:
    """Return a statement with another loop in place of one in it, and of the same loop with checks."""

    def change(node: Statement) -> Block:
        return (other(node),) if isinstance(node, For) and node.index == loop.index else (node,)

    return rewrite_statements((around,), change)[0]


@legality
def _may_join(joined: Block, role: Role) -> bool:
    """Whether what joins the pieces of an iteration may run in a loop of a role."""
    return role is Role.PARALLEL or runs_in_lockstep(joined)


def _goes_together(loop: For) -> bool:
    """Whether a block shares out several iterations of a loop around it at once: there is enough to do then."""
    return loop.role is Role.THREAD and _has_copies(loop)


def _has_copies(loop: For) -> bool:
    """Whether a loop accumulates the same for several iterations of a loop around it."""
    return len({(item.symbol.name, item.operator) for item in loop.reductions}) < len(loop.reductions)


def in_pieces(chain: Sequence[For], piece: Expression, count: Expression, unit: int) -> For:
    """Return the loops of a chain for one of so many pieces of their iterations, each a multiple of some."""
    total, whole = count_of(*chain), build.mul(count, build.integer(unit))
    length = build.add(total, build.sub(whole, build.integer(1)))
    step = build.apply("floordiv", length, whole)
    if unit > 1:
        step = build.mul(step, build.integer(unit))
    first = build.mul(piece, step)
    return cut(chain, first, build.apply("minimum", build.add(first, step), total))


def in_rectangles(nest: Sequence[For], piece: Expression, count: Expression, unit: int) -> For:
    """Return loops that are one range for one of so many pieces: of a part of the first, and of one of the second.

    Each piece is a range of the same kind so. The innermost loop is cut at multiples of some.
    """
    first, second, *others = nest
    one = build.integer(1)
    rows = build.apply("minimum", count, build.apply("maximum", count_of(first), one))
    columns = build.apply("floordiv", count, rows)
    body = second if not others else replace(second, body=(others[0],))
    inner = in_pieces((body,), build.apply("mod", piece, columns), columns, 1 if others else unit)
    outer = in_pieces((first,), build.apply("floordiv", piece, columns), rows, 1)
    return replace(outer, body=(inner,))


def pieces_of(steps: Expression, length: Expression, limits: Limits) -> Expression:
    """Return the number of pieces of each step, at least 1."""
    each = build.apply("maximum", steps, build.integer(1))
    wanted = build.apply("floordiv", build.integer(limits.enough), each)
    most = build.apply("floordiv", length, build.integer(limits.least))
    found = build.apply("minimum", build.apply("minimum", wanted, most), build.integer(limits.most))
    return build.apply("maximum", found, build.integer(1))


def flat_place(levels: Sequence[For], counts: Sequence[Expression]) -> Expression:
    """Return the number of an iteration among all of the levels."""
    flat: Expression = build.integer(0)
    for level, count in zip(levels, counts, strict=True):
        flat = build.add(build.mul(flat, count), build.sub(build.read(level.index), level.start))
    return flat


def nested(levels: Sequence[For], body: Block) -> For:
    """Return these loops around a body."""
    result = replace(levels[-1], body=body)
    for level in reversed(levels[:-1]):
        result = replace(level, body=(result,))
    return result
