"""Values that a loop leaves in a tensor for a later loop over the same elements, computed again where they are read.

    for c: y[c] = exp(x[c] - m)                       for c: v = exp(x[c] - m)
           s += y[c]                          ->             s += v
    for c: y[c] = y[c] / s                            for c: w = exp(x[c] - m); y[c] = w / s

So a gradient needs neither the tensor as it was in between nor an adjoint of that. What loops sum up for an element is
dear, and is not computed again; nor is what reads neighbours, or places that elements say, and nor are elements that a
saved result has. Invariant: what is computed again reads what it read the first time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import computed_from
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    Kernel,
    Load,
    Node,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import read_symbols, rewrite, rewrite_statements, statements, substitute, walk, with_blocks
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.autodiff.store_forwarding import is_exact
from brickwork.transform.scratch import Names, copied, with_variables


@dataclass(frozen=True, slots=True)
class _Passed:
    """A value that the innermost of some loops stores into an element of its own, and what it is computed from."""

    store: Store
    loops: tuple[For, ...]
    steps: tuple[Assign, ...]

    @property
    def roots(self) -> tuple[Node, ...]:
        """What the value, its place and the loops around are made of."""
        bounds = (bound for loop in self.loops for bound in (loop.start, loop.stop))
        return (*(item.value for item in self.steps), self.store.value, *self.store.indices, *bounds)

    @legality
    def is_kept_by(self, statement: Statement) -> bool:
        """Whether the value would be the same after a statement, and inside of it."""
        made, changed = effects(self.roots), effects(statement)
        return not (made.loads & changed.changes) and not (made.reads & changed.assigns)


def with_passed_values(kernel: Kernel, kept: Collection[Tensor], names: Names) -> Kernel:
    """Return the kernel with such values computed again; the last value of each element in `kept` is known."""
    stores = Counter(node.tensor for node in walk(kernel.body) if isinstance(node, Store))
    if kernel.may_alias or effects(kernel.body).rebinds or effects(kernel.body).jumps:
        return kernel
    wanted = frozenset(tensor for tensor, count in stores.items() if count > 1 or tensor not in kept)
    return replace(kernel, body=_block(kernel.body, wanted, names))


def _block(block: Block, wanted: Collection[Tensor], names: Names) -> Block:
    result, known = list[Statement](), list[tuple[_Passed, int | None]]()
    for statement in block:
        inner, left = with_blocks(statement, lambda part: _block(part, wanted, names)), known
        known = list[tuple[_Passed, int | None]]()
        for item, at in left:
            tensor = item.store.tensor
            kept = item.is_kept_by(inner)
            if kept and isinstance(inner, For) and tensor in effects(inner).loads:
                inner = _used(inner, item, names)
            done = effects(inner)
            if at is not None and tensor in done.stores - done.loads and _is_over(inner, item):
                result[at] = _unstored(result[at], item, names)
            if kept and tensor not in done.stores:
                known.append((item, None if tensor in done.loads else at))
        known += [(item, len(result)) for item in _found(inner, wanted) if not _is_dear(item)]
        result.append(inner)
    return tuple(result)


# ---------------------------------------------------------------- what is passed on


@legality
def _found(statement: Statement, wanted: Collection[Tensor]) -> Iterator[_Passed]:
    """Yield the values that a loop stores once into each of some elements, made of what it does not change."""
    if not isinstance(statement, For):
        return
    stores = Counter(node.tensor for node in statements(statement) if isinstance(node, Store))
    assigns = Counter(node.symbol for node in statements(statement) if isinstance(node, Assign))
    for loops, before, store in _straight(statement, (), ()):
        indices = [loop.index for loop in loops]
        if store.tensor not in wanted or stores[store.tensor] > 1 or not is_exact(store):
            continue
        if not all(build.read(index) in store.indices for index in indices):
            continue
        steps = computed_from(before, read_symbols(store.value))
        roots = (*(item.value for item in steps), store.value)
        made = effects(roots)
        again = any(assigns[item.symbol] > 1 for item in steps)
        if again or made.draws or made.loads & effects(statement).stores:
            continue
        if not _read_before(steps, (store.value, *store.indices), indices) & effects(statement).assigns:
            yield _Passed(store, loops, steps)


def _is_dear(item: _Passed) -> bool:
    """Whether a value is made of neighbours, or of what elements say where it is."""
    roots = (*(step.value for step in item.steps), item.store.value)
    loads = [node for node in walk(roots) if isinstance(node, Load)]
    return len({load.tensor for load in loads}) < len(loads) or any(effects(load.indices).loads for load in loads)


def _straight(
    loop: For, around: tuple[For, ...], before: tuple[Assign, ...]
) -> Iterator[tuple[tuple[For, ...], tuple[Assign, ...], Store]]:
    """Yield the stores of a nest that stand in no branch, with the loops around and the assignments before them."""
    around = (*around, loop)
    for statement in loop.body:
        match statement:
            case Store():
                yield around, before, statement
            case Assign():
                before = (*before, statement)
            case For():
                yield from _straight(statement, around, before)
            case _:
                pass


def _read_before(steps: Sequence[Assign], roots: Sequence[Node], made: Collection[Symbol]) -> frozenset[Symbol]:
    """Return the variables that assignments, and what follows them, find as they were before; others are `made`."""
    found, made = set[Symbol](), {*made}
    for item in steps:
        found |= read_symbols(item.value) - made
        made.add(item.symbol)
    return frozenset(found | (read_symbols(roots) - made))


# ---------------------------------------------------------------- where it is used


@legality
def _used(loop: For, item: _Passed, names: Names) -> For:
    """Return a loop with a value computed again where its element is read, if it stores into no other of the tensor."""

    def change(found: For, inside: Mapping[Symbol, Expression]) -> For:
        place = _place(item, inside)
        others = [node for node in statements(found) if isinstance(node, Store) and node.tensor == item.store.tensor]
        if any(node.indices != place for node in others):
            return found
        renamed = {step.symbol: names.symbol(step.symbol.name, step.symbol.dtype) for step in item.steps}
        value = names.symbol(item.store.tensor.name, item.store.value.dtype)
        steps = [*item.steps, Assign(symbol=value, value=item.store.value, loc=item.store.loc)]
        again = [with_variables(copied(substitute(step, inside), names), renamed) for step in steps]
        body = _forwarded(found.body, item.store.tensor, place, value)
        return found if body == found.body else replace(found, body=(*again, *body))

    matched = [*_matched(loop, item.loops, {})]
    if _stores_in(loop, item.store.tensor) > sum(_stores_in(each, item.store.tensor) for each, _ in matched):
        return loop
    for each, inside in matched:
        loop = _in_place(loop, each, change(each, inside))
        if _stores_in(each, item.store.tensor):
            break  # those after it find what it stores
    return loop


def _stores_in(loop: For, tensor: Tensor) -> int:
    return sum(isinstance(node, Store) and node.tensor == tensor for node in statements(loop))


def _in_place(root: For, old: For, new: For) -> For:
    (found,) = rewrite_statements((root,), lambda node: (new,) if node is old else (node,))
    return found if isinstance(found, For) else root


def _place(item: _Passed, inside: Mapping[Symbol, Expression]) -> tuple[Expression, ...]:
    return tuple(substitute(index, inside) for index in item.store.indices)


@legality
def _matched(
    loop: For, loops: Sequence[For], inside: Mapping[Symbol, Expression]
) -> Iterator[tuple[For, Mapping[Symbol, Expression]]]:
    """Yield the loops of a nest that run as the innermost of others does, and what the indices of those are there."""
    first, *rest = loops
    start, stop = (substitute(bound, inside) for bound in (first.start, first.stop))
    if (loop.start, loop.stop) != (start, stop):
        return
    inside = {**inside, first.index: build.read(loop.index)}
    if not rest:
        yield loop, inside
        return
    for statement in loop.body:
        if isinstance(statement, For):
            yield from _matched(statement, rest, inside)


@legality
def _forwarded(block: Block, tensor: Tensor, place: Sequence[Expression], value: Symbol) -> Block:
    """Return a block with a variable in place of an element, until something may be stored into the tensor."""

    def visit(node: Node) -> Node:
        read = isinstance(node, Load) and node.tensor == tensor and [*node.indices] == [*place]
        return build.read(value) if read else node

    result = list[Statement]()
    for at, statement in enumerate(block):
        stores = tensor in effects(statement).stores
        result.append(statement if stores and not isinstance(statement, Store) else rewrite(statement, visit))
        if stores:
            return (*result, *block[at + 1 :])
    return tuple(result)


# ---------------------------------------------------------------- what need not be stored


@legality
def _is_over(statement: Statement, item: _Passed) -> bool:
    """Whether a statement stores into each of the elements."""
    return isinstance(statement, For) and any(
        isinstance(node, Store) and node.tensor == item.store.tensor and node.indices == _place(item, inside)
        for loop, inside in _matched(statement, item.loops, {})
        for node in loop.body
    )


def _unstored(statement: Statement, item: _Passed, names: Names) -> Statement:
    """Return what stores the value without that, if it reads the tensor nowhere else."""
    value = names.symbol(item.store.tensor.name, item.store.value.dtype)

    def without(block: Block) -> Block:
        result = list[Statement]()
        for at, node in enumerate(block):
            if isinstance(node, Store) and node.access == item.store.access:
                rest = _forwarded(block[at + 1 :], node.tensor, node.indices, value)
                return (*result, Assign(symbol=value, value=node.value, loc=node.loc), *rest)
            result.append(with_blocks(node, without))
        return tuple(result)

    changed = with_blocks(statement, without)
    return statement if item.store.tensor in effects(changed).loads else changed
