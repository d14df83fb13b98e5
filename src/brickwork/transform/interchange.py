"""Loop interchange in perfect nests: loops that can run in parallel go outside, those that accumulate inside.

    for i in range(n):                        for i in range(n):
        for k in range(l):           ->           for j in range(m):
            for j in range(m):                        for k in range(l):
                c[i, j] += a[i, k] * b[k, j]              c[i, j] += a[i, k] * b[k, j]

A loop is free if no two iterations that differ in its index touch one element (and one of them writes it), whatever the
other loops of the nest do: it can stand anywhere in the nest. The others keep their order. So each element sees the
same updates in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.races import Facts, may_meet
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir.effects import effects
from brickwork.ir.nodes import For, Kernel, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, rewrite_statements, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.schedule.loop_order import Nest, best_order
from brickwork.transform.verbs.reorder import permute


def may_interchange(kernel: Kernel) -> bool:
    """Whether a kernel has a nest whose order can be chosen."""
    return any(len(_band(node)) > 1 for node in statements(kernel.body) if isinstance(node, For))


@legality
def interchange(kernel: Kernel, analysis: Analysis, *, grid: bool) -> Kernel:
    """Return the kernel with its nests in the order that is best for the target; `analysis` is of this kernel."""
    if kernel.may_alias:
        return kernel
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    chooser = _Chooser(facts, analysis, live_after_loops(kernel.body), _inner(kernel), grid)
    body = rewrite_statements(kernel.body, chooser.statement)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _inner(kernel: Kernel) -> frozenset[Symbol]:
    """Return the indices of the loops that belong to a nest that begins further out."""
    nests = (_band(node) for node in statements(kernel.body) if isinstance(node, For))
    return frozenset(loop.index for nest in nests for loop in nest[1:])


@legality
def _band(loop: For) -> tuple[For, ...]:
    """Return the perfectly nested loops from this one inwards; where the user claims something the order is theirs."""
    levels = [loop]
    while len(levels[-1].body) == 1 and isinstance(inner := levels[-1].body[0], For) and not inner.claimed:
        levels.append(inner)
    return () if loop.claimed else tuple(levels)


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Chooses for the nests of one kernel; `inside` are loops that belong to a nest that begins further out."""

    facts: Facts
    analysis: Analysis
    live: dict[Symbol, frozenset[Symbol]]
    inside: frozenset[Symbol]
    grid: bool

    def statement(self, statement: Statement) -> tuple[Statement, ...]:
        """Return a nest in its best order."""
        if not isinstance(statement, For) or statement.index in self.inside:
            return (statement,)
        band = _band(statement)
        if len(band) < 2 or not self.is_pure(band):
            return (statement,)
        nest = Nest(band, self.free(band), tuple(self.accesses(band)))
        order = best_order(nest, grid=self.grid)
        return (statement,) if order == nest.order else (permute(statement, order),)

    @legality
    def is_pure(self, band: Sequence[For]) -> bool:
        """Whether nothing but elements passes between a nest's iterations."""
        body = band[-1].body
        assigned = assigned_symbols(body)
        if (found := effects(body)).leaves or found.fails or found.rebinds:
            return False
        return not (live_before(body, NONE) | self.live.get(band[0].index, NONE)) & assigned

    @legality
    def accesses(self, band: Sequence[For]) -> list[Access]:
        """Return the accesses inside a nest, but for those to what belongs to one iteration."""
        index = band[-1].index
        own = effects(band[-1].body).declares
        inside = [item for item in self.analysis.accesses if any(loop.node.index == index for loop in item.loops)]
        return [access for access in inside if access.tensor not in own]

    def free(self, band: Sequence[For]) -> frozenset[Symbol]:
        """Return the indices of the loops that can stand anywhere in the nest."""
        accesses = self.accesses(band)
        depth = next(loop.depth for loop in self.analysis.model.loops if loop.node.index == band[0].index)
        return frozenset(loop.index for loop in band if self.is_free(loop, accesses, depth))

    @legality
    def is_free(self, loop: For, accesses: Sequence[Access], depth: int) -> bool:
        """Whether iterations that differ in a loop's index never meet on an element that one of them writes."""
        around = next(item for item in self.analysis.model.loops if item.node.index == loop.index)
        return not any(
            (one.store or other.store)
            and one.tensor == other.tensor
            and may_meet(self.facts, around, one, other, depth=depth)
            for one in accesses
            for other in accesses
        )
