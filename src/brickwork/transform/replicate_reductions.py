"""Privatises array reductions on grids: many iterations update copies of a small tensor, so that few threads meet.

    for i: h[x[i]] += 1     ->     for c, b: copy[c, b] = 0
                                   for i: copy[i // RUN % COPIES, x[i]] += 1
                                   for b: s = 0; for c: s += copy[c, b]
                                          h[b] += s

Sums of floats are taken apart, too: atomic updates have no order either. Invariant: of what is updated nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Expression,
    For,
    Node,
    Reduction,
    Role,
    Size,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import rewrite, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.scratch import Names
from brickwork.transform.split_reductions import flat_place, nested
from brickwork.transform.verbs.split import count_of

COPIES = 512
RUN = 1024
"""Neighbouring iterations that update the same copy."""
MANY_UPDATES = 1 << 19
FEW_ELEMENTS = 4096


@dataclass(frozen=True, slots=True)
class Copies:
    """Three nests that do as one where `condition` holds, with the copies that they use."""

    condition: Expression
    made: Allocate
    cleared: For
    updated: For
    joined: For
    version: str


def copies_version(tensor: Tensor) -> str:
    """Return the name of the version in which iterations update copies of a tensor."""
    return f"copies {tensor.name} {tensor.number}"


def replicate_reductions(levels: Sequence[For], names: Names) -> Copies | None:
    """Return nests that do as one launch of these levels; None if it does not count into a small tensor."""
    last = levels[-1]
    tensor = _counted(last) if last.role is Role.PARALLEL else None
    if tensor is None:
        return None
    extent = Size(tensor=tensor, axis=0)
    copy, made = names.tensor(f"{tensor.name}_copies", tensor.type.dtype, COPIES, extent)
    counts = [count_of(level) for level in levels]
    total = build.product(counts)
    run = build.apply("floordiv", flat_place(levels, counts), build.integer(RUN))
    which = build.apply("mod", run, build.integer(COPIES))

    def visit(node: Node) -> Node:
        if not isinstance(node, Store):
            return node
        return replace(node, tensor=copy, indices=(which, *node.indices), access=next(names.accesses))

    updated = nested(levels, tuple(rewrite(statement, visit) for statement in last.body))
    many = build.apply("ge", total, build.integer(MANY_UPDATES))
    few = build.apply("le", extent, build.integer(FEW_ELEMENTS))
    some = build.apply("ge", extent, build.integer(1))
    condition = build.apply("logical_and", build.apply("logical_and", many, few), some)
    return Copies(condition, made, _cleared(copy, names), updated, _joined(tensor, copy, names), copies_version(tensor))


@legality
def _counted(loop: For) -> Tensor | None:
    """Return the row to whose elements the only store in a loop adds numbers, if nothing in the loop reads it."""
    stores = [node for node in statements(loop.body) if isinstance(node, Store)]
    if len(stores) != 1:
        return None
    tensor, combine = stores[0].tensor, stores[0].combine
    exact = value_dtype(tensor.type.dtype) in {INT64, tensor.type.dtype}  # half floats would be rounded in each copy
    adds = combine is not None and combine.name == "add" and exact
    if not adds or tensor.type.rank != 1 or tensor in effects(loop.body).loads:
        return None
    return tensor


def _cleared(copy: Tensor, names: Names) -> For:
    """Return the nest that begins the copies."""
    row, place = (Symbol(name, next(names.symbols), INT64) for name in ("copy", "place"))
    nothing = build.constant(0, value_dtype(copy.type.dtype))
    zero = names.store(copy, build.read(row), build.read(place), nothing)
    return nested([_over(row, copy, 0, Role.PARALLEL), _over(place, copy, 1, Role.PARALLEL)], (zero,))


def _joined(tensor: Tensor, copy: Tensor, names: Names) -> For:
    """Return the nest that adds the copies to the tensor."""
    row, place = (Symbol(name, next(names.symbols), INT64) for name in ("copy", "place"))
    total = names.symbol("sum", value_dtype(tensor.type.dtype))
    part = build.add(build.read(total), names.load(copy, build.read(row), build.read(place)))
    inner = replace(
        _over(row, copy, 0, Role.THREAD),
        body=(Assign(symbol=total, value=part),),
        reductions=(Reduction(total, OPERATORS["add"]),),
    )
    added = replace(names.store(tensor, build.read(place), build.read(total)), combine=OPERATORS["add"])
    body = (Assign(symbol=total, value=build.constant(0, total.dtype)), inner, added)
    return nested([_over(place, copy, 1, Role.BLOCK)], body)


def _over(index: Symbol, tensor: Tensor, axis: int, role: Role) -> For:
    return For(index=index, start=build.integer(0), stop=Size(tensor=tensor, axis=axis), body=(), role=role)
