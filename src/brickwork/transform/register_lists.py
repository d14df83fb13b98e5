"""Lists whose length is a size, for the registers of a thread: versions in which the loops over them have literal ends.

    s = [0.0] * n                             if n <= 16:
    for t in range(T):                            for t in range(T):
        for j in range(n):             ->             for j in range(16):
            s[j] = s[j] * w[t, j]                         if j < n: s[j] = s[j] * w[t, j]

Such loops are written out (`codegen/arrays.py`), and each item of the list is a register then. Where the list has just
so many items, other loops of that length end so, too, and what both kinds compute is computed once. A list that an
index of another kind goes through has an address, and stays in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Local,
    Node,
    Read,
    Role,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.privatise import ROOM
from brickwork.transform.schedule.grid import UNROLLED_TOGETHER
from brickwork.transform.sums import sum_of

MOST = ROOM
"""Items of the longest list, which has just so many: a thread has 255 registers."""
FEW = MOST // 4
"""Items of a short list: each iteration is tested to be one."""
LENGTHS = ((FEW, False), (FEW, True), (MOST // 2, True), (MOST, True))
"""The lengths that have a version, and whether it is for lists of just so many items. Without tests of items, what they
read is read at once, and before the loops around: an iteration of `selective_scan` takes 370 instructions, not 900."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A body with literal ends of loops, which does as the given one where the conditions hold; so do the facts."""

    body: Block
    conditions: tuple[Expression, ...]
    facts: tuple[Expression, ...]
    version: str


@legality
def literal_lists(body: Block, indices: frozenset[Symbol]) -> list[Literal]:
    """Return what does as a thread's body for lists of some lengths, in registers; empty if no list can be there.

    `indices` are those of the launched loops around: a length that differs between threads has no version.
    """
    lists = [node.tensor for node in statements(body) if isinstance(node, Local) and not node.values]
    loops = [
        node for node in statements(body) if isinstance(node, For) and any(goes_over(node, each) for each in lists)
    ]
    lengths = [*dict.fromkeys(loop.stop for loop in loops if not isinstance(loop.stop, Constant))]
    if not lengths or read_symbols(lengths) & (assigned_symbols(body) | indices) or effects(lengths).loads:
        return []
    if not all(map(_is_written_out, loops)) or not all(_is_indexed_by(each, body, loops) for each in lists):
        return []
    room = min(prod(each.sizes) for each in lists)
    return [_literal(body, loops, lists, items, exact=exact) for items, exact in LENGTHS if items <= room]


def list_version(tensor: Tensor, items: int, *, exact: bool) -> str:
    """Return the name of the version in which a list, and those beside it, has literal ends of loops."""
    return f"{'' if exact else 'at most '}{items} items of {tensor.name}"


def _literal(body: Block, loops: Sequence[For], lists: Sequence[Tensor], items: int, *, exact: bool) -> Literal:
    """Return the body for lists of so many items, at most if not `exact`."""
    lengths = dict.fromkeys(loop.stop for loop in loops if not isinstance(loop.stop, Constant))
    most = build.integer(items)
    indices = {loop.index for loop in loops}

    def known(node: Node) -> Node:
        node = most if node in lengths else node
        return build.apply(node.operator.name, *node.operands, loc=node.loc) if isinstance(node, Apply) else node

    def change(node: Statement) -> Block:
        if exact and isinstance(node, If) and not node.version:
            condition = rewrite(node.condition, known)
            return node.then if build.is_constant(condition, 1) else (replace(node, condition=condition),)
        if not isinstance(node, For):
            return (node,)
        if items <= FEW and any(isinstance(each, For) and each.index in indices for each in node.body):
            return (replace(node, unrolled=UNROLLED_TOGETHER) if _reads_neighbours(node) else node,)
        if isinstance(node.stop, Constant):
            return (node,)
        if node.index not in indices and not (exact and node.stop in lengths and _is_written_out(node)):
            return (node,)
        inside = build.apply("lt", build.read(node.index), node.stop)
        tested = (If(condition=inside, then=node.body, loc=node.loc),)
        return (replace(node, stop=most, body=node.body if exact else tested, unrolled=1),)

    conditions = tuple(build.apply("eq" if exact else "le", length, most) for length in lengths)
    rests = (build.apply("mod", length, most) for length in lengths if exact)
    facts = tuple(build.apply("eq", rest, build.integer(0)) for rest in rests)
    return Literal(rewrite_statements(body, change), conditions, facts, list_version(lists[0], items, exact=exact))


def goes_over(loop: For, tensor: Tensor) -> bool:
    """Whether a loop's index is in an index of a list."""
    return any(
        isinstance(node, Load | Store) and node.tensor == tensor and loop.index in read_symbols(node.indices)
        for node in walk(loop.body)
    )


def _reads_neighbours(loop: For) -> bool:
    """Whether the steps of a loop in order, which run to their ends, read neighbours, which a thread reads at once."""
    found = effects(loop.body)
    if loop.role is not Role.SEQUENTIAL or found.jumps or found.fails or found.whiles or found.draws:
        return False
    reads = (
        node for node in walk(loop.body) if isinstance(node, Load) and node.tensor.type.contiguous and node.indices
    )
    sums = (sum_of(node.indices[-1]) for node in reads)
    return any(abs(each.often(build.read(loop.index))) == 1 for each in sums if each is not None)


@legality
def _is_written_out(loop: For) -> bool:
    """Whether the code generator writes a loop with a literal end out: it runs in order, from the first item on.

    Tests of single iterations change nothing: a `continue` ends the iteration all the same, and a `break` the loop.
    """
    return loop.role is Role.SEQUENTIAL and build.is_constant(loop.start, 0)


@legality
def _is_indexed_by(tensor: Tensor, body: Block, loops: Sequence[For]) -> bool:
    """Whether all indices of a list are literals in each iteration of these loops."""
    indices = {loop.index for loop in loops}
    accesses = [node for node in walk(body) if isinstance(node, Load | Store) and node.tensor == tensor]
    sums = [sum_of(index) for node in accesses for index in node.indices]
    return all(
        found is not None and all(isinstance(item, Read) and item.symbol in indices for item, _ in found.terms)
        for found in sums
    )
