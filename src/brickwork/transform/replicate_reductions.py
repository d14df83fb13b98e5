"""Privatises array reductions on grids: many iterations update copies of a small tensor, so that few threads meet.

    for i: h[x[i]] += 1     ->     for c, b: copy[c, b] = 0
                                   for i: copy[i // RUN % COPIES, x[i]] += 1
                                   for b: s = 0; for c: s += copy[c, b]
                                          h[b] += s

Sums of floats are taken apart, too: atomic updates have no order either. Tensors may have several axes, as a grid has
of which each pixel reads some cells, and others may be stored into. Invariant: of what is updated nothing is read.
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
    Block,
    Expression,
    For,
    Node,
    Read,
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
from brickwork.target.target import BLOCK_THREADS, Target
from brickwork.transform.guard import conjunction
from brickwork.transform.scratch import Names
from brickwork.transform.split_reductions import flat_place, nested
from brickwork.transform.verbs.split import count_of

COPIES = 512
RUN = BLOCK_THREADS
"""Neighbouring iterations, each of a thread, that update the same copy."""
FEW_COPIES = 8
"""Least copies, and updates of each element: with fewer threads would wait for one another still (not measured)."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Three nests that do as one where `condition` holds, with the copies that they use."""

    condition: Expression
    made: Allocate
    cleared: For
    updated: For
    joined: For
    version: str


def room(target: Target) -> int:
    """Return how many elements all copies have at most: so many that few threads of the machine meet at one.

    A tensor that has as many elements as the machine keeps threads gets no copies: few meet there in any case.
    """
    return FEW_COPIES * target.threads


def copies_version(tensor: Tensor) -> str:
    """Return the name of the version in which iterations update copies of a tensor."""
    return f"copies {tensor.name} {tensor.number}"


def replicate_reductions(levels: Sequence[For], names: Names, target: Target) -> Copies | None:
    """Return nests that do as one launch of these levels; None if it does not count into a small tensor."""
    last = levels[-1]
    tensor = _counted(levels) if last.role in {Role.PARALLEL, Role.BLOCK} else None
    if tensor is None:
        return None
    # All threads of a block update one copy: those that wait for one another are few.
    together = RUN if last.role is Role.PARALLEL else 1
    extents = [Size(tensor=tensor, axis=axis) for axis in range(tensor.type.rank)]
    elements = build.apply("maximum", build.product(extents), build.integer(1))
    wanted = build.apply(
        "minimum", build.apply("floordiv", build.integer(room(target)), elements), build.integer(COPIES)
    )
    copies = build.apply("maximum", wanted, build.integer(1))
    copy, made = names.tensor(f"{tensor.name}_copies", tensor.type.dtype, copies, *extents)
    counts = [count_of(level) for level in levels]
    total = build.product(counts)
    run = build.apply("floordiv", flat_place(levels, counts), build.integer(together))
    which = build.apply("mod", run, Size(tensor=copy, axis=0))

    def visit(node: Node) -> Node:
        if not isinstance(node, Store) or node.tensor != tensor:
            return node
        return replace(node, tensor=copy, indices=(which, *node.indices), access=next(names.accesses))

    updated = nested(levels, tuple(rewrite(statement, visit) for statement in last.body))
    # There are a run for each copy, several updates of each element, and room for copies; some element, too.
    asked = (
        build.apply("ge", total, build.integer(COPIES * together)),
        build.apply("ge", total, build.mul(elements, build.integer(FEW_COPIES))),
        build.apply("ge", wanted, build.integer(FEW_COPIES)),
        build.apply("ge", build.product(extents), build.integer(1)),
    )
    condition = conjunction(asked)
    return Copies(condition, made, _cleared(copy, names), updated, _joined(tensor, copy, names), copies_version(tensor))


def _counted(levels: Sequence[For]) -> Tensor | None:
    """Return the tensor to add to in copies: that whose elements the iterations say the least about, if some do not."""
    body, own = levels[-1].body, {level.index for level in levels}
    said = dict[Tensor, int]()
    for node in statements(body):
        if isinstance(node, Store) and may_have_copies(node.tensor, body):
            told = sum(not (isinstance(index, Read) and index.symbol in own) for index in node.indices)
            said[node.tensor] = max(told, said.get(node.tensor, 0))
    most = max(said, key=lambda tensor: said[tensor], default=None)
    return most if most is not None and said[most] else None


@legality
def may_have_copies(tensor: Tensor, body: Block) -> bool:
    """Whether all that a block does with a tensor is to add numbers to its elements, in one step each."""
    stores = [node for node in statements(body) if isinstance(node, Store) and node.tensor == tensor]
    exact = value_dtype(tensor.type.dtype) in {INT64, tensor.type.dtype}  # half floats would be rounded in each copy
    adds = all(node.combine is not None and node.combine.name == "add" for node in stores)
    return adds and exact and not tensor.is_local and tensor not in effects(body).loads


def _cleared(copy: Tensor, names: Names) -> For:
    """Return the nest that begins the copies."""
    places = [Symbol(name, next(names.symbols), INT64) for name in ("copy", *["place"] * (copy.type.rank - 1))]
    begun = names.store(copy, *map(build.read, places), build.empty_sum(value_dtype(copy.type.dtype)))
    return nested([_over(place, copy, axis, Role.PARALLEL) for axis, place in enumerate(places)], (begun,))


def _joined(tensor: Tensor, copy: Tensor, names: Names) -> For:
    """Return the nest that adds the copies to the tensor."""
    row, *places = (Symbol(name, next(names.symbols), INT64) for name in ("copy", *["place"] * tensor.type.rank))
    place = [*map(build.read, places)]
    total = names.symbol("sum", value_dtype(tensor.type.dtype))
    part = build.add(build.read(total), names.load(copy, build.read(row), *place))
    inner = replace(
        _over(row, copy, 0, Role.THREAD),
        body=(Assign(symbol=total, value=part),),
        reductions=(Reduction(total, OPERATORS["add"]),),
    )
    added = replace(names.store(tensor, *place, build.read(total)), combine=OPERATORS["add"])
    body = (Assign(symbol=total, value=build.empty_sum(total.dtype)), inner, added)
    return nested([_over(each, copy, 1 + axis, Role.BLOCK) for axis, each in enumerate(places)], body)


def _over(index: Symbol, tensor: Tensor, axis: int, role: Role) -> For:
    return For(index=index, start=build.integer(0), stop=Size(tensor=tensor, axis=axis), body=(), role=role)
