"""Finds recurrences in nests that may be cut into chunks: what they pass on, and how that begins.

What is passed on is a state, whose use is not looked at here (`slopes.py`), or is only accumulated into. A list is
passed on item by item, by loops over all of its items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from brickwork.analysis.atomic_updates import update_operator
from brickwork.analysis.scalars import NONE, live_before, reduction_of
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT64, UINT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Block,
    Expression,
    For,
    If,
    Load,
    Node,
    Read,
    Reduction,
    Role,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import assigned_symbols, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.slopes import Item, dtype_of

STATES = frozenset({FLOAT32, FLOAT64, INT64, UINT64})
"""The types of what is passed on."""

Carrying = Mapping[Symbol, frozenset[Tensor]]
"""The recurrences by their indices, with the tensors on whose elements their updates may meet."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What a loop only accumulates into: a variable, or each item of a list."""

    item: Item
    reduction: Reduction


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A loop in an iteration of a nest, what is before and after it, and what it passes on.

    What is before it has no stores: these are in `ahead`, which is to run before all else, if it has some.
    `extents` are how many items the lists have, `starts` what each item of a state is before the loop, at an index.
    """

    ahead: Block
    before: Block
    loop: For
    after: Block
    states: tuple[Item, ...]
    sums: tuple[Sum, ...]
    extents: Mapping[Tensor, Expression]
    starts: Mapping[Tensor, tuple[Symbol, Expression]]
    rows: tuple[For, ...] = ()
    """The loop that is all there is in the loop, if it is as long in each iteration: both are one range."""

    @property
    def is_short(self) -> bool:
        """Whether an iteration, of both loops if these are rows, has no loops that are longer than lists."""
        loops = [node for node in statements((self.loop, *self.rows)[-1].body) if isinstance(node, For)]
        short = {loop.stop for loop in loops if _lists_of(loop)}
        return all(loop.stop in short for loop in loops)


@legality
def recurrence_in(
    levels: Sequence[For], places: Partition, carrying: Carrying, facts: Sequence[Expression]
) -> Recurrence | None:
    """Return the first recurrence in a nest of threads, if it may be cut but for what its states are."""
    body = levels[-1].body
    loop = next((node for node in body if isinstance(node, For) and node.index in carrying), None)
    if loop is None or levels[-1].role is not Role.PARALLEL:
        return None
    place = body.index(loop)
    before, after = body[:place], body[place + 1 :]
    whole = effects(body)
    if loop.role is not Role.SEQUENTIAL or whole.fails or whole.whiles or whole.rebinds:
        return None
    inside = {level.index for level in levels} | assigned_symbols(body)
    known = Partition(places.device | inside)
    if not known.is_known(loop.start, loop.stop) or effects(loop.body).leaves:
        return None
    if not _stores_first(before):
        return None
    ahead, before = before, without_stores(before)
    if not _updates_at_once(loop, carrying[loop.index]):
        return None
    passed = _passed_on(before, loop, after)
    if passed is None:
        return None
    states, sums = passed
    same = _Equal(facts)
    extents = dict[Tensor, Expression]()
    for item in (*states, *(each.item for each in sums)):
        if isinstance(item, Tensor):
            extent = _extent(item, loop.body, same)
            if extent is None or not known.is_known(extent):
                return None
            extents[item] = extent
    starts = {item: _start(item, before, extents[item], same) for item in states if isinstance(item, Tensor)}
    given = {item: start for item, start in starts.items() if start is not None}
    if len(given) < len(starts):
        return None
    rows = _rows(loop, Partition(known.device | {loop.index}))
    return Recurrence(ahead, before, loop, after, states, sums, extents, given, rows)


@legality
def _rows(loop: For, known: Partition) -> tuple[For, ...]:
    """Return the loop that is all there is in a recurrence over variables, and as long in each iteration."""
    match loop.body:
        case (For(role=Role.SEQUENTIAL) as row,) if known.is_known(row.start, row.stop) and not _lists_of(row):
            return (row,)
        case _:
            return ()


@legality
def _updates_at_once(loop: For, tensors: Collection[Tensor]) -> bool:
    """Whether updates of elements on which iterations may meet are indivisible."""
    stores = [node for node in statements(loop.body) if isinstance(node, Store) and node.tensor in tensors]
    return all(node.combine is not None for node in stores)


def without_stores(block: Block) -> Block:
    """Return a block that does nothing but give variables and lists their values."""

    def change(statement: Statement) -> Block:
        return () if isinstance(statement, Store) and not statement.tensor.is_local else (statement,)

    return rewrite_statements(block, change)


@legality
def _stores_first(block: Block) -> bool:
    """Whether what a block reads is the same once it has run: no store into a tensor follows a read of it."""
    read = set[Tensor]()
    for statement in block:
        stored = {tensor for tensor in effects(statement).stores if not tensor.is_local}
        read |= effects(statement).loads
        if stored & read:
            return False
    return True


@legality
def reads_as_before(block: Block, loop: For) -> bool:
    """Whether what a block, made of a loop's, reads of tensors that the loop stores into is what was there before it.

    Iterations do not meet on elements, and each reads before it stores.
    """
    stores = [node for node in statements(loop.body) if isinstance(node, Store) and not node.tensor.is_local]
    if any(node.combine is not None and node.tensor in effects(block).loads for node in stores):
        return False
    late = frozenset(_read_late(loop.body, frozenset()))
    return not any(isinstance(node, Load) and node.access in late for node in walk(block))


def _read_late(block: Block, stored: frozenset[Tensor]) -> Iterator[int]:
    """Yield which elements of tensors an iteration may read after it stored into them, by number."""
    for statement in block:
        made = frozenset(tensor for tensor in effects(statement).stores if not tensor.is_local)
        match statement:
            case If(condition=condition, then=then, otherwise=otherwise):
                yield from _loads_of(condition, stored)
                for part in (then, otherwise):
                    yield from _read_late(part, stored)
            case Store():
                yield from _loads_of(statement, stored)
            case _:
                yield from _loads_of(statement, stored | made)
        stored |= made


def _loads_of(root: Node, tensors: frozenset[Tensor]) -> Iterator[int]:
    return (node.access for node in walk(root) if isinstance(node, Load) and node.tensor in tensors)


@legality
def _passed_on(before: Block, loop: For, after: Block) -> tuple[tuple[Item, ...], tuple[Sum, ...]] | None:
    """Return the states of a loop and what it accumulates, if nothing else is passed on, or read after it."""
    assigned, states, sums = assigned_symbols(loop.body), list[Item](), list[Sum]()
    for symbol in sorted(live_before(loop.body, NONE) & assigned, key=lambda item: item.number):
        name = reduction_of(loop.body, symbol)
        if name is None:
            states.append(symbol)
        else:
            sums.append(Sum(symbol, Reduction(symbol, OPERATORS[name])))
    lists = effects(before).declares & effects(loop).stores
    passed = {*states, *(each.item for each in sums)}
    if live_before(after, NONE) & assigned - passed:
        return None
    for tensor in sorted(lists, key=lambda item: item.number):
        operator = update_operator(loop, tensor)
        if operator is not None and operator.name == "add":
            sums.append(Sum(tensor, Reduction(Symbol(tensor.name, tensor.number, tensor.type.dtype), operator)))
        elif not _begins_filled(loop.body, tensor):
            states.append(tensor)
        elif tensor in effects(after).loads and not _begins_filled(after, tensor):
            return None
    if not states or any(dtype_of(item) not in STATES for item in states):
        return None
    return tuple(states), tuple(sums)


@legality
def _begins_filled(block: Block, tensor: Tensor) -> bool:
    """Whether a block stores each item of a list that it loads before it loads one."""
    touching = [node for node in block if tensor in effects(node).loads | effects(node).stores]
    match touching:
        case []:
            return True
        case [For(body=(Store(tensor=stored, indices=(Read(symbol=index),)) as store,)) as fill, *_] if (
            stored == tensor and index == fill.index and tensor not in effects(store.value).loads
        ):
            loops = [node for node in statements(block) if isinstance(node, For) and goes_over(node, tensor)]
            ends = {(loop.start, loop.stop) for loop in loops}
            return len(ends) == 1 and _is_gone_over(block, tensor)
        case [For(body=body)]:
            return _begins_filled(body, tensor)
        case _:
            return False


def _lists_of(loop: For) -> set[Tensor]:
    """Return the lists that a loop goes over item by item."""
    nodes = (node for node in walk(loop.body) if isinstance(node, Load | Store) and node.tensor.is_local)
    return {node.tensor for node in nodes if node.indices == (build.read(loop.index),)}


def goes_over(loop: For, tensor: Tensor) -> bool:
    """Whether a loop goes over a list item by item."""
    return tensor in _lists_of(loop)


@legality
def _is_gone_over(block: Block, tensor: Tensor) -> bool:
    """Whether each access of a list in a block is at the index of a loop in it."""
    loops = {node.index for node in statements(block) if isinstance(node, For)}
    accesses = [node for node in walk(block) if isinstance(node, Load | Store) and node.tensor == tensor]
    return all(
        len(node.indices) == 1 and isinstance(index := node.indices[0], Read) and index.symbol in loops
        for node in accesses
    )


class _Equal:
    """Tells which sizes are equal, by facts."""

    def __init__(self, facts: Sequence[Expression]) -> None:
        self._known: dict[Expression, Expression] = {}
        for fact in facts:
            match fact:
                case Apply(operator=operator, operands=(Size() as one, Size() as other)) if operator.name == "eq":
                    one, other = self.least(one), self.least(other)
                    if one != other:
                        self._known[one] = other
                case _:
                    pass

    def least(self, size: Expression) -> Expression:
        """Return the size that stands for all that are equal to this one."""
        while size in self._known:
            size = self._known[size]
        return size


@legality
def _extent(tensor: Tensor, block: Block, same: _Equal) -> Expression | None:
    """Return where all loops over a list end, which have to go through all accesses of it from the first item on."""
    loops = [node for node in statements(block) if isinstance(node, For) and goes_over(node, tensor)]
    ends = {same.least(loop.stop) for loop in loops}
    if len(ends) != 1 or not all(build.is_constant(loop.start, 0) for loop in loops):
        return None
    return loops[0].stop if _is_gone_over(block, tensor) else None


@legality
def _start(tensor: Tensor, before: Block, extent: Expression, same: _Equal) -> tuple[Symbol, Expression] | None:
    """Return what items of a list are given last before a loop, at an index, if all are given that."""
    storing = [node for node in before if tensor in effects(node).stores]
    match storing:
        case [*_, For(index=index, start=start, stop=stop, body=(Store(indices=indices, value=value),))] if (
            indices == (build.read(index),) and tensor not in effects(value).loads
        ):
            whole = build.is_constant(start, 0) and same.least(stop) == same.least(extent)
            return (index, value) if whole else None
        case _:
            return None
