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
from brickwork.analysis.symbolic import unwrapped
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
        known, assigned = _definitions(kernel.body)
        found = [(node, loop) for node, loop in _accesses(kernel.body, None) if node.tensor in scratch]
        for tensor in dict.fromkeys(node.tensor for node, _ in found):
            loops = [(node, loop) for node, loop in found if node.tensor == tensor]
            wanted = [_wanted(node, loop.index, known, assigned) for node, loop in loops]
            votes = Counter(each[0] for each in wanted if each is not None)
            # Of ways that as many accesses want the tensor's own one stays.
            layout = max(
                votes, key=lambda each: (each is not None and each.slope > 0, votes[each], each is None), default=None
            )
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


def _accesses(block: Block, around: For | None) -> Iterator[tuple[Load | Store, For]]:
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
            case For(role=role, body=body):
                yield from _accesses(body, around if role is Role.SEQUENTIAL else statement)
            case If(condition=condition, then=then, otherwise=otherwise):
                yield from _found((condition,), around)
                yield from _accesses((*then, *otherwise), around)
            case While(prelude=prelude, condition=condition, body=body):
                yield from _found((condition,), around)
                yield from _accesses((*prelude, *body), around)
            case _:
                yield from _found((statement,), around)


def _found(roots: Sequence[Node], around: For | None) -> Iterator[tuple[Load | Store, For]]:
    if around is not None and around.role is not Role.BLOCK:
        yield from ((node, around) for node in walk(roots) if isinstance(node, Load | Store))


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


def _wanted(
    access: Load | Store, threads: Symbol, known: Mapping[Symbol, Expression], unknown: frozenset[Symbol]
) -> tuple[Layout | None] | None:
    """Return the layout in which neighbouring threads access neighbours, None in it for the tensor's own.

    None where threads access the same element, or where this is not seen.
    """
    moves: list[int] = []
    for index in access.indices:
        value = substitute(index, known)
        move = slope(value, threads)
        if move is None or read_symbols(value) & unknown:
            return None
        moves.append(move)
    moving = [axis for axis, move in enumerate(moves) if move]
    ones = [axis for axis in moving if abs(moves[axis]) == 1]
    if not ones or len(moving) > 2:
        return None
    axis = ones[0]
    if len(moving) == 1:
        return (None if axis == len(moves) - 1 else Layout(axis),)
    along = next(each for each in moving if each != axis)
    skew = -moves[along] * moves[axis]
    return (Layout(axis, along, skew),) if skew > 0 else None


def with_layouts(program: Program, chosen: Mapping[Tensor, Layout]) -> Program:
    """Return the program with tensors, which it allocates for one kernel alone, in other layouts."""
    skewed = {tensor for tensor, layout in chosen.items() if layout.slope}

    def natural(node: Node) -> Node:
        if not isinstance(node, Load | Store) or node.tensor not in skewed:
            return node
        indices = (unwrapped(index, node.tensor, axis) or index for axis, index in enumerate(node.indices))
        return replace(node, indices=tuple(indices))

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
