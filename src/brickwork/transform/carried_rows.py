"""Rows of tensors that a loop carries: a thread has them in a list meanwhile, and so in registers.

    for t in range(T):                              if 0 < T and 0 < n:
        for i in range(n):                              for i in range(n): row[i] = s[i, j]
            s[i, j] = s[i, j] * w[t, i]      ->         for t in range(T):
                                                            for i in range(n): row[i] = row[i] * w[t, i]
                                                        for i in range(n): s[i, j] = row[i]
                                                    else: the loop as it was

Invariant: no element is touched that the loop did not store into, so that threads which were independent stay so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Local,
    Node,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, statements, walk, with_blocks
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.guard import conjunction
from brickwork.transform.promote import conditional, is_idle_unless_reached, reached
from brickwork.transform.register_lists import MOST
from brickwork.transform.scratch import Names


@dataclass(frozen=True, slots=True)
class Row:
    """The accesses of a loop to a tensor, all of one row of it: along an `axis`, from its first element to an end."""

    accesses: tuple[Load | Store, ...]
    axis: int
    stop: Expression
    store: int
    reached: tuple[Expression, ...]
    """The conditions under which the loop surely stores into all elements of the row, by the store of this number. The
    first one is that the loop has an iteration."""

    @property
    def loops(self) -> frozenset[Symbol]:
        """The indices of the loops along the row."""
        return read_symbols(node.indices[self.axis] for node in self.accesses)

    @property
    def tensor(self) -> Tensor:
        """The tensor."""
        return self.accesses[0].tensor


def with_carried_rows(block: Block, names: Names) -> Block:
    """Return a thread's block with the rows that its loops carry in lists of at most `MOST` items."""
    return tuple(_statement(statement, names) for statement in block)


def _statement(statement: Statement, names: Names) -> Statement:
    if isinstance(statement, For) and (rows := carried_rows(statement)):
        return _with(statement, rows, names)
    inside = isinstance(statement, For | If)
    return with_blocks(statement, lambda block: with_carried_rows(block, names)) if inside else statement


@legality
def carried_rows(loop: For) -> list[Row]:
    """Return the rows that a loop reads and stores into in its iterations, and nothing else of their tensors."""
    inside = effects(loop.body)
    if inside.fails or inside.leaves or inside.rebinds:
        return []
    stored = sorted(inside.stores & inside.loads, key=lambda item: item.number)
    rows = [_row(loop, tensor) for tensor in stored]
    return [row for row in rows if row is not None]


@legality
def _row(loop: For, tensor: Tensor) -> Row | None:
    """Return the row of a tensor that a loop carries, if there is one and no other element is touched."""
    accesses = tuple(node for node in walk(loop.body) if isinstance(node, Load | Store) and node.tensor == tensor)
    stores = [node for node in accesses if isinstance(node, Store)]
    if (
        tensor.is_local
        or value_dtype(tensor.type.dtype) != tensor.type.dtype
        or any(node.combine is not None for node in stores)
    ):
        return None
    changing = assigned_symbols((loop,))
    axes = [axis for axis, index in enumerate(stores[0].indices) if read_symbols(index) & changing]
    if len(axes) != 1:
        return None
    fixed = [_without(node.indices, axes[0]) for node in accesses]
    if any(indices != fixed[0] for indices in fixed) or effects(fixed[0]).loads:
        return None
    stop = _end([node.indices[axes[0]] for node in accesses], loop)
    if stop is None or (isinstance(stop, Constant) and int(stop.value) > MOST):
        return None
    # A loop whose end changes in the loop around is not surely reached.
    ways = ((store.access, reached((loop,), frozenset((store.access,)))) for store in stores)
    for number, conditions in ways:
        if conditions is not None:
            return Row(accesses, axes[0], stop, number, conditions)
    return None


@legality
def _end(indices: Sequence[Expression], loop: For) -> Expression | None:
    """Return where the loops in a loop end of which these are the indices, if they all begin at 0 and end there.

    There are no loops in them: they would not be written out, and the list would stay in memory.
    """
    loops = (node for node in statements(loop.body) if isinstance(node, For))
    inside = {node.index: node for node in loops if not effects(node.body).loops}
    rows = [inside.get(index.symbol) if isinstance(index, Read) else None for index in indices]
    ends = {row.stop if row is not None and build.is_constant(row.start, 0) else None for row in rows}
    return ends.pop() if len(ends) == 1 else None


def _without(indices: Sequence[Expression], axis: int) -> tuple[Expression, ...]:
    return (*indices[:axis], *indices[axis + 1 :])


def _with(loop: For, rows: Sequence[Row], names: Names) -> Statement:
    """Return a loop with these rows in lists, and what reads them before and stores them after it."""
    before, after, lists = list[Statement](), list[Statement](), dict[Tensor, tuple[Tensor, int]]()
    for row in rows:
        kind = TensorType(row.tensor.type.dtype, 1, contiguous=True, unit_axis=0)
        made, _ = names.tensor(row.tensor.name, kind.dtype, MOST)
        made = replace(made, sizes=(MOST,))
        lists[row.tensor] = made, row.axis
        before += [Local(tensor=made, loc=loop.loc), _over(row, names, made, fill=True)]
        after.append(_over(row, names, made, fill=False))

    def visit(node: Node) -> Node:
        match node:
            case Load(tensor=tensor, indices=indices) | Store(tensor=tensor, indices=indices) if tensor in lists:
                made, axis = lists[tensor]
                return replace(node, tensor=made, indices=(indices[axis],))
            case _:
                return node

    conditions = (*dict.fromkeys(condition for row in rows for condition in row.reached),)
    block: Block = (*before, rewrite(loop, visit), *after)
    if all(is_idle_unless_reached((loop,), frozenset((row.store,)), None) for row in rows):
        return conditional(conditions, *block)
    inner = conjunction(conditions[1:])
    both: Statement = If(condition=inner, then=block, otherwise=(loop,), loc=loop.loc)
    return conditional(conditions[:1], *(block if build.is_constant(inner, 1) else (both,)))


def _over(row: Row, names: Names, made: Tensor, *, fill: bool) -> For:
    """Return the loop that fills a list with a row, or stores it back."""
    index = names.symbol(made.name, INT64)
    item = build.read(index)
    own = row.accesses[0].indices
    place = (*own[: row.axis], item, *own[row.axis + 1 :])
    step = (
        names.store(made, item, names.load(row.tensor, *place))
        if fill
        else names.store(row.tensor, *place, names.load(made, item))
    )
    return For(index=index, start=build.integer(0), stop=row.stop, body=(step,))
