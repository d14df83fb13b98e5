"""What one statement of a nest needs: the statements that lead to its value, and those whose results must be kept.

A slice has no stores. What loops before the statement compute (a row's mean), what one iteration leaves for the next,
or what is read from a tensor that the nest changes, cannot be computed again for each element: such variables are
`kept`, in scratch tensors with an element for each iteration of the loops around the place where they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.atomic_updates import update_of
from brickwork.analysis.formula import Formula
from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Check,
    Expression,
    FailureKind,
    For,
    If,
    Load,
    Node,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, blocks_in, read_symbols, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A block on the way to a statement: what stands before, and the loop or branch that leads on (`then` or not)."""

    before: Block
    into: For | If
    then: bool = True

    @property
    def inside(self) -> Block:
        """The block that it leads to."""
        if isinstance(self.into, For):
            return self.into.body
        return self.into.then if self.then else self.into.otherwise


@dataclass(frozen=True, slots=True)
class Place:
    """A statement of a nest, and the way to it from the nest's outermost loop; `before` stands in its own block."""

    steps: tuple[Step, ...]
    before: Block
    store: Store

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops around the statement, outermost first."""
        return tuple(step.into for step in self.steps if isinstance(step.into, For))

    @property
    def branches(self) -> tuple[Step, ...]:
        """The branches that lead to the statement, outermost first."""
        return tuple(step for step in self.steps if isinstance(step.into, If))

    def conditions(self, formulas: Sequence[Formula]) -> dict[int, Formula]:
        """Return the formula of each step into a branch, of those that the model gives for the store.

        Those come in the order of the source, and checks have some too.
        """
        result: dict[int, Formula] = {}
        left = [*formulas]
        blocks = [*(step.before for step in self.steps[1:]), self.before]
        for place in reversed(range(len(self.steps))):
            checks = sum(isinstance(statement, Check) for statement in blocks[place])
            del left[len(left) - checks :]
            if isinstance(self.steps[place].into, If):
                result[place] = left.pop()
        return result


@dataclass(frozen=True, slots=True)
class Kept:
    """A variable whose value is kept, in each iteration of `loops`, right before the statement `ahead` is run.

    That statement stands in the block with the number `level`. So is it in each iteration of the loops `around` the
    nest.
    """

    symbol: Symbol
    loops: tuple[For, ...]
    ahead: Statement
    level: int
    around: tuple[For, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """The statements that lead to a value: for each block on the way, those in front, and last those beside it."""

    levels: tuple[Block, ...]
    kept: tuple[Kept, ...]


def places(root: For) -> Iterator[Place]:
    """Yield the stores of a nest that stand in nothing but loops and branches."""
    yield from _places((), root.body, (Step((), root),))


def _places(before: Block, block: Block, steps: tuple[Step, ...]) -> Iterator[Place]:
    for place, statement in enumerate(block):
        before = block[:place]
        match statement:
            case Store():
                yield Place(steps, before, statement)
            case For(body=body):
                yield from _places((), body, (*steps, Step(before, statement)))
            case If(then=then, otherwise=otherwise):
                yield from _places((), then, (*steps, Step(before, statement)))
                yield from _places((), otherwise, (*steps, Step(before, statement, then=False)))
            case _:
                pass


def accumulations(
    root: For, are_others: Callable[[Sequence[int], Sequence[int]], bool] | None = None
) -> dict[Tensor, list[tuple[Place, Expression]]]:
    """Return the updates of the tensors that a nest adds to, and what is added; none where it may end early.

    All else that it does with these tensors is to elements that `are_others` than those of updates, by their numbers.
    """
    if ends_early(root):
        return {}
    result: dict[Tensor, list[tuple[Place, Expression]]] = {}
    for place in places(root):
        if (added := added_by(place.store)) is not None:
            result.setdefault(place.store.tensor, []).append((place, added))
    touched: dict[Tensor, list[Load | Store]] = {}
    for node in walk(root):
        if isinstance(node, Load | Store) and not node.tensor.is_local:
            touched.setdefault(node.tensor, []).append(node)
    chosen = {
        tensor: _apart([place.store for place, _ in found], touched[tensor], are_others)
        for tensor, found in result.items()
        if tensor in touched
    }
    return {
        tensor: [item for item in result[tensor] if item[0].store in left] for tensor, left in chosen.items() if left
    }


@legality
def _apart(
    updates: Sequence[Store],
    touched: Sequence[Load | Store],
    are_others: Callable[[Sequence[int], Sequence[int]], bool] | None,
) -> Sequence[Store]:
    """Return the updates of a tensor that nothing else in a nest meets: neither reads, nor stores, nor other updates.

    An update that something meets is such a read and store itself.
    """
    while True:
        numbers = {store.access for store in updates}
        own = {node.access for store in updates if (node := own_read(store)) is not None}
        rest = [node.access for node in touched if node.access not in own | numbers]
        if not rest:
            return updates
        left = [store for store in updates if are_others is not None and are_others(rest, [store.access])]
        if len(left) == len(updates):
            return updates
        updates = left


def own_read(store: Store) -> Load | None:
    """Return the read of the element that a store adds to."""
    own = (node for node in walk(store.value) if isinstance(node, Load) and node.tensor == store.tensor)
    return None if store.combine is not None else next((each for each in own if each.indices == store.indices), None)


def updated(root: For) -> frozenset[Tensor]:
    """Return the tensors to some elements of which a nest adds."""
    stores = (place.store for place in places(root))
    return frozenset(store.tensor for store in stores if not store.tensor.is_local and added_by(store) is not None)


def ends_early(root: For) -> bool:
    """Whether a nest may be left, or tensors change places in it: then none of its updates is inverted."""
    found = effects(root)
    # What the nest is derived from has passed the checks of divisions.
    return found.jumps or found.whiles or bool(found.rebinds or found.fails - {FailureKind.DIVISION})


def added_by(store: Store) -> Expression | None:
    """Return what an update adds to its element; None for other stores."""
    if store.combine is not None:
        return store.value if store.combine.name == "add" else None
    update = update_of(store, {})
    return update[1] if update is not None and update[0] == "add" else None


def slice_of(
    place: Place, needed: frozenset[Symbol], branches: Sequence[Step], changing: frozenset[int]
) -> Slice | None:
    """Return what computes the `needed` variables; None where something else than loops, branches and values does.

    Of the branches on the way only the given ones are asked again. `changing` are the loads of elements that the nest
    changes: what they read is kept where other loops of the nest run more often.
    """
    levels: list[Block] = []
    kept: list[Kept] = []
    deepest = effects(place.steps[0].into).depth
    child: Statement = place.store
    before = place.before
    for depth in range(len(place.steps), -1, -1):
        around = place.steps[:depth]
        few = sum(isinstance(step.into, For) for step in around) < deepest
        rises = changing if few else frozenset[int]()
        rising = {symbol for symbol in needed if _rises(symbol, before, around, rises)}
        if rising:
            loops = tuple(step.into for step in around if isinstance(step.into, For))
            ordered = sorted(rising, key=lambda item: item.number)
            kept += [Kept(symbol, loops, _after(symbol, (*before, child)), depth) for symbol in ordered]
        found = _computed(before, needed - rising)
        if found is None or (rising and not depth):
            return None
        chosen, needed = found
        if loads(chosen, changing):
            return None
        levels.append(chosen)
        if depth:
            child, before = around[-1].into, around[-1].before
            if isinstance(child, For):
                needed -= {child.index}
            elif around[-1] in branches:
                needed |= read_symbols(child.condition)
    return Slice(tuple(reversed(levels)), tuple(kept))


def loads(root: Node | Block, numbers: frozenset[int]) -> bool:
    """Whether one of some loads, given by number, is in a tree."""
    return bool(numbers) and any(isinstance(node, Load) and node.access in numbers for node in walk(root))


def loads_of(root: Node, tensors: frozenset[Tensor]) -> frozenset[int]:
    """Return the numbers of the loads of some tensors in a tree."""
    found = effects(root).loads & tensors
    return frozenset(node.access for node in walk(root) if isinstance(node, Load) and node.tensor in found)


def _after(symbol: Symbol, block: Block) -> Statement:
    """Return the first statement of a block before which a variable is as it is before the last one."""
    last = max((place for place, item in enumerate(block[:-1]) if symbol in assigned_symbols(item)), default=-1)
    return block[last + 1]


def _rises(symbol: Symbol, before: Block, around: Sequence[Step], changing: frozenset[int]) -> bool:
    """Whether a loop before a statement computes a variable, or it comes from an earlier iteration of the loop around.

    Or from elements that `changing` loads read.
    """
    found = _computed(before, frozenset({symbol}))
    if found is None:
        return True
    chosen, left = found
    if any(isinstance(node, For) for node in statements(chosen)) or loads(chosen, changing):
        return True
    return bool(around) and isinstance(loop := around[-1].into, For) and bool(left & assigned_symbols(loop.body))


def _computed(block: Block, needed: frozenset[Symbol]) -> tuple[Block, frozenset[Symbol]] | None:
    """Return the statements of a block that compute variables, and the variables that they need themselves."""
    chosen: list[Statement] = []
    for statement in reversed(block):
        if not assigned_symbols(statement) & needed:
            continue
        bare = _bare(statement)
        if bare is None:
            return None
        chosen.append(bare)
        needed -= _assigned_in_any_case(bare)
        needed |= live_before((bare,), NONE) if isinstance(bare, If) else read_symbols(bare) - _indices(bare)
    return tuple(reversed(chosen)), needed


@legality
def _assigned_in_any_case(statement: Statement) -> frozenset[Symbol]:
    """Return the variables that a statement assigns whatever way it takes."""
    match statement:
        case Assign(symbol=symbol):
            return frozenset((symbol,))
        case If(then=then, otherwise=otherwise):
            ways = [frozenset[Symbol]().union(*map(_assigned_in_any_case, block)) for block in (then, otherwise)]
            return ways[0] & ways[1]
        case _:
            return frozenset()


def _indices(statement: Statement) -> frozenset[Symbol]:
    return frozenset(node.index for node in statements(statement) if isinstance(node, For))


def _bare(statement: Statement) -> Statement | None:
    """Return a statement without its stores, or None if it is not made of loops, branches and values."""
    match statement:
        case Assign():
            return None if effects(statement).draws else statement
        case For(body=body):
            inner = _bare_block(body)
            return None if inner is None else replace(statement, body=inner)
        case If(then=then, otherwise=otherwise):
            first, second = _bare_block(then), _bare_block(otherwise)
            return None if first is None or second is None else replace(statement, then=first, otherwise=second)
        case _:
            return None


def _bare_block(block: Block) -> Block | None:
    result = [_bare(statement) for statement in block if not isinstance(statement, Store | Check)]
    found = [item for item in result if item is not None]
    return tuple(found) if len(found) == len(result) else None


def most_stores(statement: Statement) -> int:
    """Return how many stores an iteration of the loops in a statement makes at most: one branch of each is taken."""
    inside = [sum(map(most_stores, block)) for block in blocks_in(statement)]
    return isinstance(statement, Store) + (max(inside) if isinstance(statement, If) else sum(inside))
