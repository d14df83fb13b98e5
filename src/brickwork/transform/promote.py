"""Scalar promotion: an element that a loop accumulates into becomes a variable, and so is seen as a reduction.

    for j in range(n): out[i] = out[i] + x[i, j]   ->   if 0 < n: s = out[i]
                                                                  for j in range(n): s = s + x[i, j]
                                                                  out[i] = s

Invariant: the order of the arithmetic and its roundings are unchanged (sums of short integers wrap once, when they are
stored, to what they would be), and no element is touched that was not before or is stored behind the loop anyway,
but for one that exists and that no other iteration touches: it is stored as it was where a condition that changes in
the loop holds for none of its iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, reduce
from typing import TypeAlias

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.isl import Solver
from brickwork.analysis.races import Facts, may_touch
from brickwork.analysis.scalars import NONE, live_after_loops, reduction_of
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Node,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import accesses_in, assigned_symbols, blocks_in, read_symbols, rewrite, statements, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass

PROMOTED_NUMBERS = 2_000_000
"""The number of a variable for an element is this, and that of the access that stores it: no other kernel has it."""


_Taken: TypeAlias = Mapping[tuple[Symbol, int], frozenset[int]]
"""The accesses of elements that are in variables while a loop runs, by the loop and a store."""
Apart: TypeAlias = Callable[[Symbol, int, int], bool]
"""Whether two accesses, by number, never touch one element while the loop of an index runs once."""


@legality
def promote(
    kernel: Kernel,
    apart: Apart | None = None,
    numbers: Iterator[int] | None = None,
    only: Callable[[For, Tensor], bool] | None = None,
) -> Kernel:
    """Return the kernel with accumulated elements in variables, whose `numbers` may be given.

    Other elements of the same tensor may be read meanwhile if `apart` proves that they are others. `only` says of
    a loop and a tensor whether its elements are asked for.
    """
    if kernel.may_alias:
        return kernel
    promoter = _Promoter(numbers, apart, live_after_loops(kernel.body), only=only)
    return replace(kernel, body=tuple(promoter.block(kernel.body)))


@legality
def promote_under_conditions(kernel: Kernel, apart: Apart, plain: Kernel) -> Kernel:
    """Return `plain`, which `promote` made of the kernel, with more elements in variables.

    Those are updated under conditions that change in the loop. Each exists where no condition holds, too, under the
    same guards, and loops are as independent as they were: no other iteration touches it.
    """
    refused: frozenset[tuple[Symbol, int]] = frozenset()
    for _ in statements(kernel.body):
        promoter = _Promoter(None, apart, live_after_loops(kernel.body), refused)
        found = replace(kernel, body=tuple(promoter.block(kernel.body)))
        if not promoter.taken:
            return plain
        wrong = _wrong(found, promoter.taken, plain)
        if not wrong:
            return found
        refused |= wrong
    return plain


@legality
def _wrong(kernel: Kernel, taken: _Taken, plain: Kernel) -> frozenset[tuple[Symbol, int]]:
    """Return which of the elements that were taken from loops may not exist, or make a loop around dependent."""
    analysis, before = (find_updates(each, analyse(each)) for each in (kernel, plain))
    missing = {
        access
        for (access, axis), verdict in analysis.bounds.items()
        if verdict.bound is Bound.CHECKED or not {*verdict.guard} <= {*before.bounds[access, axis].guard}
    }
    loops = [loop for loop in statements(kernel.body) if isinstance(loop, For)]
    within = {loop.index: {loop.index, *assigned_symbols(loop.body)} for loop in loops}
    worse = {
        loop.index
        for loop in loops
        if not analysis.loops[loop.index].independent and (loop.claimed or before.loops[loop.index].independent)
    }
    around = {inner for index in worse for inner in within[index]}
    return frozenset(
        item for item, accesses in taken.items() if item[0] in around or within[item[0]] & worse or accesses & missing
    )


def apart_in(analysis_of: Callable[[], Analysis]) -> Apart:
    """Return what proves accesses apart in the kernel that an analysis, made when first needed, is of."""

    @cache
    def facts() -> Facts:
        analysis = analysis_of()
        return Facts(analysis.model, Solver(), analysis.bounds)

    @legality
    def apart(index: Symbol, one: int, other: int) -> bool:
        known = facts()
        loops = [loop for loop in known.model.loops if loop.node.index == index]
        first = [access for access in known.model.accesses if access.number == one]
        second = [access for access in known.model.accesses if access.number == other]
        if len(loops) != 1 or len(first) != 1 or len(second) != 1:
            return False
        return not may_touch(known, loops[0], first[0], second[0])

    return apart


@dataclass(frozen=True, slots=True)
class _Promoter:
    """Promotes in one kernel; `numbers`, if given, are for new variables, `live` are those read after each loop.

    If some are `refused`, elements are promoted under any conditions but those, by the loop and the store, and noted.
    """

    numbers: Iterator[int] | None
    apart: Apart | None
    live: Mapping[Symbol, frozenset[Symbol]]
    refused: frozenset[tuple[Symbol, int]] | None = None
    only: Callable[[For, Tensor], bool] | None = None
    taken: dict[tuple[Symbol, int], frozenset[int]] = field(default_factory=dict[tuple[Symbol, int], frozenset[int]])
    made: set[Symbol] = field(default_factory=set[Symbol])

    def block(self, block: Block) -> Iterator[Statement]:
        """Yield the statements of a block with accumulated elements in variables."""
        for place, statement in enumerate(block):
            match statement:
                case For():
                    yield from self.loop(statement, block[place + 1 :])
                case If(then=then, otherwise=otherwise):
                    inner = tuple(self.block(then)), tuple(self.block(otherwise))
                    yield replace(statement, then=inner[0], otherwise=inner[1])
                case While(body=body):
                    yield replace(statement, body=tuple(self.block(body)))
                case _:
                    yield statement

    def loop(self, loop: For, following: Block) -> Iterator[Statement]:
        """Yield a loop that others are `following`, and what reads and writes the elements before and after it."""
        written, own = loop, effects(loop.body).declares
        own |= effects(loop.body).rebinds
        stores = [node for node in statements(loop.body) if isinstance(node, Store) and node.tensor not in own]
        stored = dict.fromkeys(node.tensor for node in statements(loop.body) if isinstance(node, Store))
        before: list[Statement] = []
        after: list[Statement] = []
        runs: dict[Expression, None] = {}
        stores = [node for node in stores if self.only is None or self.only(written, node.tensor)]
        for tensor, indices in dict.fromkeys((node.tensor, node.indices) for node in stores):
            accesses = self.accumulator(loop, tensor, indices, stored)
            numbers = frozenset(access.access for access in accesses)
            sure = stored_next((written, *following), tensor, indices)
            sure = not tensor.type.rank or (sure and not stores_without(loop.body, tensor, numbers))
            conditions = None if not accesses else () if sure else reached((loop,), numbers)
            if not accesses:
                continue
            load = next(node for node in accesses if isinstance(node, Load))
            store = next(node for node in accesses if isinstance(node, Store))
            if conditions is None:
                if self.refused is None or (loop.index, store.access) in self.refused:
                    continue
                if stores_without(loop.body, tensor, numbers):
                    continue
                self.taken[loop.index, store.access] = numbers
                conditions = ()
            number = PROMOTED_NUMBERS + store.access if self.numbers is None else next(self.numbers)
            symbol = Symbol(tensor.name, number, value_dtype(tensor.type.dtype))
            first: Statement = Assign(symbol=symbol, value=load, loc=load.loc)
            last: Statement = replace(store, value=Read(symbol=symbol, loc=store.loc))
            if is_idle_unless_reached((written,), numbers, self.read_after(loop)):
                runs.update(dict.fromkeys(conditions))
            elif conditions:
                before.append(replace(first, value=build.constant(0, symbol.dtype)))
                first, last = conditional(conditions, first), conditional(conditions, last)
            before.append(first)
            after.append(last)
            self.made.add(symbol)
            loop = _replace(loop, numbers, symbol)
        loop = replace(loop, body=tuple(self.block(loop.body)))
        whole: Block = (*before, loop, *after)
        yield from (conditional(tuple(runs), *whole),) if runs else whole

    @legality
    def read_after(self, loop: For) -> frozenset[Symbol]:
        """Return the variables that may be read after a loop: those of elements are stored behind a loop around it."""
        return self.live.get(loop.index, NONE) | self.made

    @legality
    def accumulator(
        self, loop: For, tensor: Tensor, indices: Sequence[Expression], stored: Mapping[Tensor, None]
    ) -> Sequence[Load | Store]:
        """Return the accesses to the element at `indices` that a loop stores, if it reads it, too, and it is one."""
        accesses = [node for node in accesses_in(loop.body) if node.tensor == tensor]
        same = [node for node in accesses if node.indices == indices]
        others = [node for node in accesses if node.indices != indices]
        numbers, whole = frozenset(node.access for node in same), value_dtype(tensor.type.dtype)
        if not any(isinstance(node, Load) for node in same):
            return ()
        if whole != tensor.type.dtype and not _wraps_last(loop, numbers, Symbol(tensor.name, -1, whole)):
            return ()
        changing = assigned_symbols(loop.body) | {loop.index}
        if any(read_symbols(index) & changing for index in indices):
            return ()
        if any(isinstance(node, Load) and node.tensor in stored for index in indices for node in walk(index)):
            return ()
        return same if all(self.is_apart(loop, one, other) for one in same for other in others) else ()

    @legality
    def is_apart(self, loop: For, one: Load | Store, other: Load | Store) -> bool:
        """Whether two accesses do not meet on an element that one of them writes, while a loop runs."""
        if isinstance(one, Load) and isinstance(other, Load):
            return True
        return self.apart is not None and self.apart(loop.index, one.access, other.access)


@legality
def stored_next(block: Block, tensor: Tensor, indices: Sequence[Expression]) -> bool:
    """Whether what follows a block's first statement stores into an element, whatever that does."""
    if any(isinstance(node, Load) for node in walk(tuple(indices))):
        return False
    for item in block:
        match item:
            case Store() if item.tensor == tensor and item.indices == tuple(indices):
                return True
            case _ if assigned_symbols(item) & read_symbols(indices) or effects(item).leaves or effects(item).fails:
                return False
            case _:
                pass
    return False


@legality
def reached(
    block: Block, numbers: frozenset[int], changing: frozenset[Symbol] = frozenset()
) -> tuple[Expression, ...] | None:
    """Return conditions under which a block runs one of some accesses, given by number, and else none of them.

    They are over what does not change in the block, or in what is around it: what is `changing`. Each is to be
    computed only where those before it hold. None: there are no such conditions.
    """
    changing = changing | assigned_symbols(block)
    ways: list[tuple[Expression, ...] | None] = []
    ends = False
    for statement in block:
        if reads(statement, numbers):
            way = None if ends else _reached_in(statement, numbers, changing)
            if way == ():
                return ()
            ways.append(way)
        ends |= effects(statement).leaves or bool(effects(statement).fails)
    return _one_of(ways)


@legality
def _reached_in(
    statement: Statement, numbers: frozenset[int], changing: frozenset[Symbol]
) -> tuple[Expression, ...] | None:
    """Return the same for a statement with such an access."""
    match statement:
        case For(start=start, stop=stop, body=body):
            inner = reached(body, numbers, changing)
            condition = build.apply("lt", start, stop, loc=statement.loc)
            if inner is None or not _stays(condition, changing):
                return None
            return (condition, *inner)
        case If(condition=condition, then=then, otherwise=otherwise):
            inner = reached(then, numbers, changing)
            if inner is None or not _stays(condition, changing):
                return None
            return None if reads(otherwise, numbers) else (condition, *inner)
        case While():
            return None
        case _:
            return ()


@legality
def _stays(condition: Expression, changing: frozenset[Symbol]) -> bool:
    """Whether a condition reads neither elements nor variables that change."""
    return effects(condition).plain and not effects(condition).reads & changing


@legality
def _one_of(ways: Sequence[tuple[Expression, ...] | None]) -> tuple[Expression, ...] | None:
    """Return the conditions under which one of several statements is reached."""
    either: list[Expression] = []
    for way in dict.fromkeys(ways):
        if way is None:
            return None
        either.append(reduce(lambda one, other: build.apply("logical_and", one, other), way))
    if not either:
        return None
    return ways[0] if len(either) == 1 else (reduce(lambda one, other: build.apply("logical_or", one, other), either),)


@legality
def is_idle_unless_reached(block: Block, numbers: frozenset[int], live: frozenset[Symbol] | None) -> bool:
    """Whether a block does nothing at all where none of some accesses is reached; `live` are read after it, None: all.

    All of its accesses are reached under the same conditions.
    """
    parts = [statement for statement in block if reads(statement, numbers)]
    if any(not isinstance(part, For | If) for part in parts):
        return True
    others = effects([statement for statement in block if statement not in parts])
    seen = others.assigns if live is None else others.assigns & live
    if others.changes or seen or others.fails or others.leaves:
        return False
    return all(is_idle_unless_reached(inner, numbers, live) for part in parts for inner in blocks_in(part))


@hazard
def stores_without(block: Block, tensor: Tensor, numbers: frozenset[int]) -> bool:
    """Whether other elements of a tensor may be stored where none of some accesses is reached.

    The element of these is read before, and stored behind, whether any is: one that another store changes is not kept.
    """
    plain = [statement for statement in block if not isinstance(statement, For | If | While)]
    if reads(tuple(plain), numbers) and not effects(block).leaves:
        return False
    stored = any(isinstance(each, Store) and each.tensor == tensor and each.access not in numbers for each in plain)
    return stored or any(stores_without(inner, tensor, numbers) for each in block for inner in blocks_in(each))


def conditional(conditions: Sequence[Expression], *block: Statement) -> Statement:
    """Return what runs a block where conditions hold, each of which is computed where those before it do."""
    for condition in reversed(conditions):
        block = (If(condition=condition, then=block, loc=block[0].loc),)
    (statement,) = block
    return statement


def reads(root: Node | Block, numbers: frozenset[int]) -> bool:
    """Whether there are accesses of these numbers in a tree."""
    return any(isinstance(node, Load | Store) and node.access in numbers for node in walk(root))


@legality
def _wraps_last(loop: For, numbers: frozenset[int], symbol: Symbol) -> bool:
    """Whether an integer may have all of its bits in a variable until it is stored, as it is added up or multiplied."""
    return symbol.dtype is INT64 and reduction_of(_replace(loop, numbers, symbol).body, symbol) in {"add", "mul"}


def _replace(loop: For, numbers: frozenset[int], symbol: Symbol) -> For:
    def visit(node: Node) -> Node:
        match node:
            case Load(access=access) if access in numbers:
                return Read(symbol=symbol, loc=node.loc)
            case Store(access=access, value=value) if access in numbers:
                return Assign(symbol=symbol, value=value, loc=node.loc)
            case _:
                return node

    return rewrite(loop, visit)
