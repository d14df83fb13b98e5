"""Loops whose only conflicts are updates of elements by one commuting operator: `hist[index[i]] += 1`.

Such iterations may run at once if each update is one indivisible step. Invariant: elements that are read, or stored
otherwise, are others than those that are updated, in whatever iterations. The sum of floats then depends on the order,
which is not fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from brickwork.analysis.definitions import definitions_in
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.races import Facts, find_race, may_touch
from brickwork.analysis.scalars import live_after_loops, scalar_verdict
from brickwork.analysis.verdicts import Analysis, ConflictKind
from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Node,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.operators import OPERATORS, Operator
from brickwork.ir.walk import accesses_in, rewrite, statements, substitute
from brickwork.legality import legality
from brickwork.records import dataclass

_COMMUTING = {
    "sub": "add",
    **{name: name for name in ("add", "mul", "minimum", "maximum", "bit_and", "bit_or", "bit_xor")},
}


@legality
def find_updates(kernel: Kernel, analysis: Analysis, *, claimed: bool = False) -> Analysis:
    """Return the analysis with the loops independent that only updates are in the way of; if `claimed`, only `prange`s.

    A `prange` is one of them although its writer says that iterations never meet: a wrong word loses no update. Of the
    other loops that run in order the updates are then noted.
    """
    live = live_after_loops(kernel.body)
    solver = Solver()
    loops = dict(analysis.loops)
    for loop in analysis.model.loops:
        verdict = loops[loop.node.index]
        blocked = verdict.conflict is not None and verdict.conflict.kind is ConflictKind.ELEMENTS
        tensors = _in_conflict(loop, analysis, solver, reading=not claimed) if blocked else ()
        if tensors:
            free = loop.node.claimed or not claimed
            reductions, _ = scalar_verdict(loop.node, live[loop.node.index])
            loops[loop.node.index] = replace(verdict, independent=free, reductions=reductions, updates=tensors)
    return replace(analysis, loops=loops)


@legality
def _in_conflict(loop: Loop, analysis: Analysis, solver: Solver, *, reading: bool) -> tuple[Tensor, ...]:
    """Return the tensors without which a loop has no conflict, if it does nothing but update them; else none.

    If `reading`, it may read other elements of them: updates are made where these are, not in copies. What else is in
    the way of a `prange` is its writer's word.
    """
    stored = dict.fromkeys(node.tensor for node in statements(loop.node.body) if isinstance(node, Store))
    facts = Facts(analysis.model, solver, analysis.bounds)
    updated = [
        item
        for item in stored
        if not item.is_local
        and (update_operator(loop.node, item) is not None or (reading and is_updated(loop, facts, item)))
    ]
    found = tuple(tensor for tensor in updated if not apart(loop, analysis, solver, {tensor}))
    rest = stored.keys() - found
    return found if loop.node.claimed or apart(loop, analysis, solver, rest) else ()


def apart(loop: Loop, analysis: Analysis, solver: Solver, tensors: Collection[Tensor]) -> bool:
    """Whether the accesses to these tensors are no conflict of a loop's iterations."""
    accesses = [access for access in analysis.accesses if access.tensor in tensors]
    facts = Facts(analysis.model, solver, analysis.bounds)
    return find_race(facts, loop, may_alias=False, accesses=accesses) is None


# ---------------------------------------------------------------- what an update is


def update_operator(loop: For, tensor: Tensor) -> Operator | None:
    """Return the operator by which a loop updates elements of a tensor, if it does nothing else with it.

    The loop remembers those of all tensors: many passes ask.
    """
    known: Mapping[Tensor, Operator] | None = getattr(loop, "updates", None)
    if known is None:
        known = dict(_operators(loop))
        object.__setattr__(loop, "updates", known)
    return known.get(tensor)


@legality
def _operators(loop: For) -> Iterator[tuple[Tensor, Operator]]:
    """Yield the tensors that a loop does nothing with but update their elements, and by which operators."""
    found: dict[Tensor, list[str | None]] = {}
    for store, update in updates_in(loop.body):
        found.setdefault(store.tensor, []).append(None if update is None else update[0])
    touched = Counter(node.tensor for node in accesses_in(loop))
    for tensor, names in found.items():
        name = names[0] if len(set(names)) == 1 else None
        if name is not None and touched[tensor] == 2 * len(names):
            yield tensor, OPERATORS[name]


@legality
def is_updated(loop: Loop, facts: Facts, tensor: Tensor) -> bool:
    """Whether a loop updates elements of a tensor by one operator, and what else it does to it is of no matter to that.

    It may read and store other elements, each iteration its own.
    """
    found = [(store, _update(store, values)) for store, values in _stores(loop.node.body) if store.tensor == tensor]
    updates = {store.access: item for store, item in found if item is not None}
    if len({item.operator for item in updates.values()}) != 1:
        return False
    own = {item.element.access for item in updates.values()}
    accesses = [item for item in facts.model.accesses if item.tensor == tensor and loop in item.loops]
    writes = [item for item in accesses if item.number in updates]
    others = tuple(item for item in accesses if item.number not in own and item.number not in updates)
    if any(may_touch(facts, loop, other, write) for other in others for write in writes):
        return False
    return not any(item.store for item in others) or find_race(facts, loop, may_alias=False, accesses=others) is None


def updates_in(block: Block) -> Iterator[tuple[Store, tuple[str, Expression] | None]]:
    """Yield the stores in a block, with the operator and the operand of those that are updates."""
    for store, values in _stores(block):
        yield store, update_of(store, values)


def with_updates(loop: For, tensors: Collection[Tensor]) -> For:
    """Return the loop with its updates of these tensors made indivisible."""
    updates = {id(store): update_of(store, values) for store, values in _stores(loop.body)}

    def visit(node: Node) -> Node:
        if not isinstance(node, Store) or node.tensor not in tensors or node.combine is not None:
            return node
        update = updates[id(node)]
        return node if update is None else replace(node, value=update[1], combine=OPERATORS[update[0]])

    return rewrite(loop, visit)


Values = Mapping[Symbol, Expression]


@legality
def _stores(block: Block) -> Iterator[tuple[Store, Values]]:
    """Yield the stores in a block, each with what the variables are worth that its own block has set before it."""
    known = definitions_in(block)
    for statement in block:
        match statement:
            case Store():
                yield statement, known.values
            case If(then=then, otherwise=otherwise):
                yield from _stores(then)
                yield from _stores(otherwise)
            case For(body=body):
                yield from _stores(body)
            case While(prelude=prelude, body=body):
                yield from _stores(prelude)
                yield from _stores(body)
            case _:
                pass
        known = known.after(statement)


@legality
def update_of(store: Store, values: Values) -> tuple[str, Expression] | None:
    """Return the operator and the operand of `x[i] = x[i] op operand`."""
    found = _update(store, values)
    return None if found is None else (found.operator, found.operand)


@dataclass(frozen=True, slots=True)
class _Update:
    """What stores into an element what an operator makes of it and an operand."""

    operator: str
    operand: Expression
    element: Load


@legality
def _update(store: Store, values: Values) -> _Update | None:
    value = store.value
    if not isinstance(value, Apply) or len(value.operands) != 2:
        return None
    name = _COMMUTING.get(value.operator.name)
    left, right = value.operands
    if name is None:
        return None
    # The least of NaN and a number is the first of the two: the element has to be first then.
    first_only = value.operator.name == "sub" or (name in {"minimum", "maximum"} and value.dtype.is_float)
    if _is_element(left, store, values):
        element, other = left, right
    elif _is_element(right, store, values) and not first_only:
        element, other = right, left
    else:
        return None
    kind = store.tensor.type.dtype
    if name in {"minimum", "maximum"} and kind.size != value.dtype.size:
        return None
    return _Update(name, build.apply("neg", other) if value.operator.name == "sub" else other, element)


@legality
def _is_element(value: Expression, store: Store, values: Values) -> TypeGuard[Load]:
    if not isinstance(value, Load) or value.tensor != store.tensor:
        return False
    pairs = zip(value.indices, store.indices, strict=True)
    return all(plain(one, values) == plain(other, values) for one, other in pairs)


def plain(index: Expression, values: Values) -> Expression:
    """Return an index in terms of what its variables hold, with all reads of an element alike."""
    return rewrite(substitute(index, values), lambda node: replace(node, access=0) if isinstance(node, Load) else node)
