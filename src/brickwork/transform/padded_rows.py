"""Padded rows: loops that elements end go along all of an axis, with a condition, so that a grid has all iterations.

    for b in range(B):                                for b in range(B):
        n = length[b]                                     n = length[b]
        for t in range(n):                  ->            for t in range(max(T, 1)):
            y[b, t] = f(x[b, t])                              if t < n:
                                                                  check(n <= T)
                                                                  y[b, t] = f(x[b, t])

A block of threads for each `b` would be a few blocks, each with all of a sample. Worth it where memory is padded so,
too: an element is accessed at `t` along an axis of length T and at the indices that the end depends on along others.
Invariant: the same iterations run. Those beyond the axis would fail, as they all make that access.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Node,
    Read,
    Statement,
    Store,
    Symbol,
)
from brickwork.ir.walk import read_symbols, rewrite_statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.guard import index_check
from brickwork.transform.nests_apart import Changed, each_launch
from brickwork.transform.schedule.lengths import Lengths, lengths_in
from brickwork.transform.schedule.planner import varies_with
from brickwork.transform.scratch import Names, copied, with_variables


@dataclass(frozen=True, slots=True)
class _Row:
    """A loop that elements end, an access that each of its iterations makes at its index, and where that stands.

    `inside` are the loops of the row around the access.
    """

    loop: For
    node: Load | Store
    axis: int
    inside: tuple[For, ...]


@each_launch("grid")
def with_padded_rows(launch: Launch, names: Names, _: Target) -> Changed | None:
    """Return the launch of the kernel with rows as long as they may be."""
    kernel = launch.kernel
    lengths = lengths_in(kernel.body)
    rows = {row.loop.index: row for row in _rows(kernel.body, (), lengths, kernel)}
    if not rows:
        return None
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    rows = {index: row for index, row in rows.items() if _is_apart(row.loop, analysis)}

    def change(statement: Statement) -> Block:
        match statement:
            case For(index=index) if index in rows:
                return (_all_of_it(rows[index]),)
            case For(body=body) if any(isinstance(each, For) and each.index in rows for each in body):
                return _parted(statement, rows, names)
            case _:
                return (statement,)

    return (replace(launch, kernel=replace(kernel, body=rewrite_statements(kernel.body, change))),), {}


def _rows(block: Block, around: tuple[For, ...], lengths: Lengths, kernel: Kernel) -> Iterator[_Row]:
    """Yield the loops that may be made longer, and have nothing to do with what an iteration around them does else."""
    for statement in block:
        match statement:
            case For(body=body):
                row = _row(statement, around, lengths, kernel) if _stands_alone(statement, block) else None
                if row is not None:
                    yield row
                yield from _rows(body, (*around, statement), lengths, kernel)
            case If(then=then, otherwise=otherwise):
                yield from _rows(then, around, lengths, kernel)
                yield from _rows(otherwise, around, lengths, kernel)
            case _:
                pass


@legality
def _stands_alone(loop: For, block: Block) -> bool:
    """Whether a loop of a block can be cut off: others, behind what is assigned first, have nothing to do with it."""
    head = tuple(each for each in block if isinstance(each, Assign))
    others = tuple(each for each in block if each not in head and each is not loop)
    if not all(isinstance(each, For) for each in others) or block[: len(head)] != head:
        return False
    mine, theirs = effects(loop), effects(others)
    apart = mine.stores.isdisjoint(theirs.loads | theirs.stores) and theirs.stores.isdisjoint(mine.loads)
    # Rows come first, and leave no variable. What is assigned first is so again for what follows.
    return apart and theirs.assigns.isdisjoint(mine.reads) and effects(head).loads.isdisjoint(mine.stores)


@legality
def _row(loop: For, around: Sequence[For], lengths: Lengths, kernel: Kernel) -> _Row | None:
    """Return what is known of a row that elements end, or None if that is not enough."""
    stop = lengths.resolved(loop.stop)
    own = [each.index for each in around if each.index in read_symbols(stop)]
    if not effects(stop).loads or not _is_fixed(loop.start, kernel):
        return None
    found, end = effects(loop.body), effects(loop.stop)
    if found.jumps or found.whiles or found.draws or found.changes & end.loads or found.assigns & end.reads:
        return None
    if not any(_is_padded(node, loop.index, own) for node in walk(loop.body)):
        return None
    made = [each for each in _made(loop.body, (), loop.index) if all(_is_fixed(end, kernel) for end in _ends(each[2]))]
    made.sort(key=lambda each: not _is_padded(each[0], loop.index, own))
    return _Row(loop, *made[0]) if made else None


def _is_padded(node: Node, index: Symbol, others: Sequence[Symbol]) -> bool:
    """Whether an access is at an index and at others, along an axis each."""
    symbols = _symbols(node)
    return index in symbols and all(other in symbols for other in others)


def _symbols(node: Node) -> list[Symbol | None]:
    """Return the variables that are the indices of an access to memory."""
    if not isinstance(node, Load | Store) or node.tensor.is_local:
        return []
    return [item.symbol if isinstance(item, Read) else None for item in node.indices]


def _ends(loops: Sequence[For]) -> list[Expression]:
    return [end for loop in loops for end in (loop.start, loop.stop)]


@legality
def _is_fixed(end: Expression, kernel: Kernel) -> bool:
    """Whether an end of a loop is the same wherever it stands."""
    return not effects(end).loads and read_symbols(end) <= {*kernel.scalars}


@legality
def _made(block: Block, inside: tuple[For, ...], index: Symbol) -> Iterator[tuple[Load | Store, int, tuple[For, ...]]]:
    """Yield the accesses that are made at its index along an axis whatever an iteration does.

    A loop inside may have no iterations. Its accesses count where nothing else is done then.
    """
    for statement in block:
        if isinstance(statement, For):
            if all(_does_nothing_without(statement, each) for each in block):
                yield from _made(statement.body, (*inside, statement), index)
            continue
        for node in _accesses(statement):
            if (symbols := _symbols(node)).count(index) == 1:
                yield node, symbols.index(index), inside


@legality
def _does_nothing_without(loop: For, statement: Statement) -> bool:
    """Whether a statement beside a loop does nothing where the loop has no iterations."""
    match statement:
        case For(start=start, stop=stop):
            return start == loop.start and stop == loop.stop
        case Assign(value=value):
            return not effects(value).loads
        case If(condition=condition, otherwise=()):
            return condition == build.apply("lt", loop.start, loop.stop)
        case _:
            return False


def _accesses(statement: Statement) -> Iterator[Load | Store]:
    """Yield the accesses that a statement without blocks makes."""
    if isinstance(statement, Assign | Store):
        yield from (node for node in walk(statement) if isinstance(node, Load | Store))


def _is_apart(loop: For, analysis: Analysis) -> bool:
    """Whether a row's iterations are for threads of their own, and those of all loops around it.

    What they add to must be elements of their own, too: sums of rows had better be threads' own.
    """
    verdict, inside = analysis.loops[loop.index], analysis.inside(loop.index)
    nest = {each.node.index for access in inside for each in takewhile(lambda each: each.node != loop, access.loops)}
    around = [verdict, *(analysis.loops[index] for index in nest)]
    if not all(each.is_free for each in around):
        return False
    return all(varies_with(item, loop.index) for item in inside if item.store and item.tensor in verdict.updates)


def _all_of_it(row: _Row) -> For:
    """Return the loop over an axis, whose body asks which of its iterations are the source's."""
    loop, size = row.loop, build.size(row.node.tensor, row.axis)
    held = build.apply("le", loop.stop, size)
    for each in row.inside:
        held = build.apply("logical_or", held, build.apply("le", each.stop, each.start))
    check = index_check(row.node, row.axis, size, held)
    body = If(condition=build.apply("lt", build.read(loop.index), loop.stop), then=(check, *loop.body), loc=loop.loc)
    first = build.add(loop.start, build.integer(1))
    return replace(loop, stop=build.apply("maximum", size, first), body=(body,))


def _parted(loop: For, rows: Mapping[Symbol, _Row], names: Names) -> Block:
    """Return a loop as one for each of the rows in it, and one for what else it does."""
    head = tuple(each for each in loop.body if isinstance(each, Assign))
    apart = [(each,) for each in loop.body if isinstance(each, For) and each.index in rows]
    rest = tuple(each for each in loop.body if each not in head and (each,) not in apart)
    first, *others = (replace(loop, body=(*head, *part)) for part in (*apart, rest) if part)

    def own(loop: For) -> For:
        fresh = {item.symbol: names.symbol(item.symbol.name, item.symbol.dtype) for item in head}
        return with_variables(copied(loop, names), fresh)

    return (first, *map(own, others))
