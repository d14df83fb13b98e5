"""Layouts of scratch tensors for grids: neighbouring threads access neighbouring elements of them.

    for b, c (threads along c):                      tape[b, c, t] is tape[b, t, c]: a warp writes 32 neighbours,
        for t: tape[b, c, t] = s; s = f(s)           where each of its threads wrote a line of its own

    for d: for i (threads): R[i, d - i] = ...        R[i, j] is R[i + j, i]: so do those of an antidiagonal

Nothing but the kernel sees how such a tensor lies, so each way that gives every element a place of its own is right:
axes in another order, and one that is replaced by its sum with a multiple of another. Which one pays is told from a
schedule of the kernel, which is then made again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.slope import slope
from brickwork.analysis.symbolic import as_written
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Node,
    Program,
    Role,
    Size,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import read_symbols, rewrite, statements, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.schedule.short_rows import SHORT_LANES, SHORT_ROWS

FAR = 2
"""How bad it is where no neighbours are accessed: 0 where threads access neighbours, 1 where one does turn by turn."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A tensor with `axis` last. Where `slope` is not 0, `along` is replaced by its sum with so many times `axis`."""

    axis: int
    along: int = 0
    slope: int = 0

    def order(self, parts: Sequence[Expression]) -> tuple[Expression, ...]:
        """Return the indices, or the sizes, of the tensor in this layout."""
        moved = [*parts]
        if self.slope:
            moved[self.along] = build.add(build.mul(build.integer(self.slope), parts[self.axis]), parts[self.along])
        return (*moved[: self.axis], *moved[self.axis + 1 :], parts[self.axis])

    def size(self, tensor: Tensor, axis: int) -> Expression:
        """Return the size of an axis of the tensor from what lies in this layout."""
        last = build.size(tensor, tensor.type.rank - 1)
        if axis == self.axis:
            return last
        found = build.size(tensor, axis - (axis > self.axis))
        skewed = self.slope and axis == self.along
        return build.sub(found, build.mul(build.integer(self.slope), last)) if skewed else found


def layouts(scheduled: Iterable[tuple[Kernel, Kernel, Analysis]], scratch: frozenset[Tensor]) -> dict[Tensor, Layout]:
    """Return the layouts of tensors in which most accesses are of neighbours, where those are other layouts.

    Each kernel is given as it was scheduled, as it is in its program, and with its analysis.
    """
    chosen: dict[Tensor, Layout] = {}
    unnatural: set[Tensor] = set()
    for kernel, written, analysis in scheduled:
        if scratch.isdisjoint(kernel.tensors):
            continue
        for tensor, ways in _ways_of(kernel, scratch).items():
            layout = _best(ways, tensor)
            if layout is not None:
                chosen[tensor] = layout
        unnatural |= {item for item in scratch.intersection(kernel.tensors) if not _is_natural(item, written, analysis)}
    return {tensor: layout for tensor, layout in chosen.items() if not layout.slope or tensor not in unnatural}


@legality
def _is_natural(tensor: Tensor, kernel: Kernel, analysis: Analysis) -> bool:
    """Whether a tensor's indices, which are added up, are in range and not counted from the end for all arguments."""
    if analysis.assumptions:
        return False
    accesses = [node for node in walk(kernel.body) if isinstance(node, Load | Store) and node.tensor == tensor]
    verdicts = [analysis.bounds.get((node.access, axis)) for node in accesses for axis in range(tensor.type.rank)]
    return all(each is not None and each.bound is Bound.PROVED and each.plain for each in verdicts)


def far_apart(kernel: Kernel, scratch: frozenset[Tensor]) -> frozenset[Tensor]:
    """Return the tensors of which some threads access elements that are apart, each of them turn by turn, too."""
    found = _ways_of(kernel, scratch).items()
    return frozenset(tensor for tensor, ways in found if any(way.cost(tensor.type.rank - 1) == FAR for way in ways))


def _ways_of(kernel: Kernel, scratch: frozenset[Tensor]) -> dict[Tensor, list[_Way]]:
    """Return how threads of a kernel, as it was scheduled, access each of these tensors.

    An access stands in several versions of a kernel, of which the first one found is for most arguments: where it is
    not seen how threads move there, the others say nothing.
    """
    known, assigned = _definitions(kernel.body)
    result: dict[Tensor, list[_Way]] = {}
    unseen: set[int] = set()
    for item in _accesses(kernel.body, None):
        way = item.ways(known, assigned) if item.access.tensor in scratch else None
        if way is None:
            unseen.add(item.access.access)
        elif way.number not in unseen:
            result.setdefault(item.access.tensor, []).append(way)
    return result


@dataclass(frozen=True, slots=True)
class _Way:
    """How far an access, of a number, moves along each axis, from thread to thread, and from turn to turn of one."""

    number: int
    threads: tuple[int, ...]
    turns: tuple[int, ...]

    def wanted(self) -> Layout | None:
        """Return the layout in which neighbouring threads access neighbours, if that is not the tensor's own."""
        moving = [axis for axis, move in enumerate(self.threads) if move]
        axis = next(axis for axis in moving if abs(self.threads[axis]) == 1)
        if len(moving) == 1:
            return None if axis == len(self.threads) - 1 else Layout(axis)
        along = next(each for each in moving if each != axis)
        return Layout(axis, along, -self.threads[along] * self.threads[axis])

    def cost(self, last: int) -> int:
        """Return how bad it is if an axis is the last one: 0 to `FAR`."""
        for cost, moves in enumerate((self.threads, self.turns)):
            if [axis for axis, move in enumerate(moves) if move] == [last] and abs(moves[last]) == 1:
                return cost
        return FAR


@dataclass(frozen=True, slots=True)
class _Access:
    """An access of threads along a loop, and the innermost loop that each of them runs around it."""

    access: Load | Store
    threads: For
    turns: For | None

    def ways(self, known: Mapping[Symbol, Expression], unknown: frozenset[Symbol]) -> _Way | None:
        """Return how it moves; None where threads access the same element, or where this is not seen."""
        values = [substitute(index, known) for index in self.access.indices]
        moves = [slope(value, self.threads.index) for value in values]
        if any(move is None for move in moves) or read_symbols(values) & unknown:
            return None
        moving = [move for move in moves if move]
        if not any(abs(move) == 1 for move in moving) or len(moving) > 2:
            return None
        if len(moving) == 2 and moving[0] * moving[1] > 0:
            return None
        turns = [None if self.turns is None else slope(value, self.turns.index) for value in values]
        return _Way(self.access.access, tuple(move or 0 for move in moves), tuple(move or 0 for move in turns))


def _best(ways: Sequence[_Way], tensor: Tensor) -> Layout | None:
    """Return the layout for some accesses, if that is not the tensor's own; antidiagonals before all others."""
    votes = Counter(way.wanted() for way in ways)
    skewed = [layout for layout in votes if layout is not None and layout.slope]
    if skewed:
        return max(skewed, key=lambda layout: votes[layout])
    once = {way.number: way for way in reversed(ways)}.values()
    own = tensor.type.rank - 1
    axes = (own, *(layout.axis for layout in votes if layout is not None))
    last = min(axes, key=lambda axis: sum(way.cost(axis) for way in once))
    return None if last == own else Layout(last)


def _accesses(block: Block, around: For | None, turns: For | None = None) -> Iterator[_Access]:
    """Yield the accesses of a block that threads of a grid make, with the loop along which neighbouring ones lie.

    A block alone runs loops in order for few iterations, and joins what it accumulates; it counts for nothing here.
    """
    for statement in block:
        match statement:
            case For(role=Role.BLOCK, stop=Constant(value=1)):
                pass
            case For(role=Role.THREAD, body=body):
                blocks = around is not None and around.role is not Role.PARALLEL
                yield from _accesses(body, statement if blocks else None)
            case For(role=Role.SEQUENTIAL, body=body):
                yield from _accesses(body, around, statement)
            case For(role=Role.WARP, body=body):
                yield from _accesses(body, around)
            case For(body=body):
                yield from _accesses(body, statement)
            case If(condition=condition, then=then, otherwise=otherwise, version=version):
                yield from _found((condition,), around, turns)
                ways = (otherwise, then) if version in {SHORT_ROWS, SHORT_LANES} else (then, otherwise)
                yield from (item for way in ways for item in _accesses(way, around, turns))
            case While(prelude=prelude, condition=condition, body=body):
                yield from _found((condition,), around, turns)
                yield from _accesses((*prelude, *body), around, turns)
            case _:
                yield from _found((statement,), around, turns)


def _found(roots: Sequence[Node], around: For | None, turns: For | None) -> Iterator[_Access]:
    if around is not None and around.role is not Role.BLOCK:
        yield from (_Access(node, around, turns) for node in walk(roots) if isinstance(node, Load | Store))


def _definitions(block: Block) -> tuple[dict[Symbol, Expression], frozenset[Symbol]]:
    """Return what variables are worth that are always assigned the same, in terms of none of these, and the others."""
    values: dict[Symbol, set[Expression]] = {}
    for node in statements(block):
        if isinstance(node, Assign) and node.symbol.dtype.is_integer:
            values.setdefault(node.symbol, set()).add(node.value)
    known: dict[Symbol, Expression] = {}
    for symbol, found in values.items():
        if len(found) == 1:
            known[symbol] = substitute(next(iter(found)), known)
    return known, frozenset(values.keys() - known.keys())


def with_layouts(program: Program, chosen: Mapping[Tensor, Layout]) -> Program:
    """Return the program with tensors, which it allocates for one kernel alone, in other layouts."""
    skewed = {tensor for tensor, layout in chosen.items() if layout.slope}

    def natural(node: Node) -> Node:
        if not isinstance(node, Load | Store) or node.tensor not in skewed:
            return node
        return replace(node, indices=tuple(as_written(node)))

    def visit(node: Node) -> Node:
        match node:
            case Load(tensor=tensor, indices=indices) | Store(tensor=tensor, indices=indices) if tensor in chosen:
                return replace(node, indices=chosen[tensor].order(indices))
            case Size(tensor=tensor, axis=axis) if tensor in chosen:
                return chosen[tensor].size(tensor, axis)
            case Allocate(tensor=tensor, sizes=sizes, like=like):
                sizes = chosen[tensor].order(sizes) if tensor in chosen else sizes
                return replace(node, sizes=sizes, like=None if {tensor, like} & chosen.keys() else like)
            case _:
                return node

    return rewrite(rewrite(program, natural), visit)
