"""Places that results of the forward pass tell: where a least or greatest value stood is read, not looked for again.

    for j in range(n):                                      place = result[i]
        if x[i, j] < best: best, where = x[i, j], j   ->    if 0 <= place < n and x[i, place] < best:
    index[i] = where                                            best = x[i, place]

A loop that found nothing leaves `where` as it was, which may be anything; but then no value is better than the one that
`best` had before. What was found is better than that. So the comparison tells the two apart, NaN included. Invariant:
an element of the result is what `where` is after the loop, if the loop found something. Of sizes and integer arguments
it is taken for granted, and checked by the host, that places up to them fit into 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field

from brickwork.analysis.polynomial import SCALAR_LIMIT
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, DType, Kind
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Constant,
    Expression,
    For,
    Load,
    Read,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.scratch import Names


@dataclass(frozen=True, slots=True)
class SavedPlaces:
    """The integer results of one kernel that are given: tensors in place of those that the kernel stores into.

    `is_final` says whether what a store stores is what its tensor ends with. `limits` takes the conditions under which
    results hold the places. Nothing leaves a loop of the kernel but at the end of an iteration.
    """

    tensors: Mapping[Tensor, Tensor]
    scalars: Collection[Symbol]
    is_final: Callable[[Store], bool]
    names: Names
    limits: list[Expression] = field(default_factory=list[Expression])

    def of(self, loop: For, noting: Sequence[Statement], after: Block) -> Load | None:
        """Return the element that is the index of the last iteration which came to some statements, if one is.

        `after` are the statements that follow the loop in its block.
        """
        for node in noting:
            match node:
                case Assign(symbol=where, value=Read(symbol=index)) if index == loop.index:
                    store = self._store(loop, where, after)
                    if store is not None:
                        return self.names.load(self.tensors[store.tensor], *store.indices)
                case _:
                    pass
        return None

    @legality
    def _store(self, loop: For, where: Symbol, after: Block) -> Store | None:
        """Return the store after a loop that leaves a place, which the loop notes in a variable, in a result."""
        if sum(isinstance(node, Assign) and node.symbol == where for node in statements(loop.body)) > 1:
            return None
        changing = frozenset[Symbol]()
        for node in after:
            if isinstance(node, Store) and node.value == build.read(where) and node.tensor in self.tensors:
                indices = effects(node.indices)
                kept = indices.plain and not indices.reads & changing
                limits = _limits(loop, node.tensor.type.dtype, self.scalars)
                if kept and limits is not None and self.is_final(node):
                    self.limits.extend(limits)
                    return node
            changing |= effects(node).assigns
            if where in changing:
                return None
        return None


@legality
def _limits(loop: For, dtype: DType, scalars: Collection[Symbol]) -> tuple[Expression, ...] | None:
    """Return when integers of a type hold all indices of a loop, or None if that is not known."""
    if dtype is INT64:
        return ()
    if not isinstance(loop.start, Constant) or loop.start.value < 0:
        return None
    most = 1 << (dtype.bits if dtype.kind is Kind.UINT else dtype.bits - 1)
    match loop.stop:
        case Constant(value=stop) if stop <= most:
            return ()
        case Size() if most >= SCALAR_LIMIT:
            return (build.apply("ge", build.integer(SCALAR_LIMIT), loop.stop),)
        case Read(symbol=symbol) if most >= SCALAR_LIMIT and symbol in scalars:
            return (build.apply("ge", build.integer(SCALAR_LIMIT), loop.stop),)
        case _:
            return None
