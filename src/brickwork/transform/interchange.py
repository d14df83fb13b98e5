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

from brickwork.analysis.atomic_updates import update_operator
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.races import Facts, may_meet
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir.effects import effects
from brickwork.ir.nodes import For, Kernel, Symbol, Tensor
from brickwork.ir.walk import assigned_symbols, rewrite_loops, statements
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.transform.schedule.loop_order import Nest, best_order
from brickwork.transform.schedule.planner import varies_with
from brickwork.transform.schedule.schedule import Reorder
from brickwork.transform.verbs.reorder import heads_of, reordered, unordered


def may_interchange(kernel: Kernel) -> bool:
    """Whether a kernel has a nest whose order can be chosen."""
    return any(len(_band(node, kernel.launched)) > 1 for node in statements(kernel.body) if isinstance(node, For))


@legality
def interchange(kernel: Kernel, analysis: Analysis, *, grid: bool) -> tuple[Kernel, tuple[Reorder, ...]]:
    """Return the kernel with its nests in the order that is best for the target, and how it came to be.

    `analysis` is of this kernel.
    """
    if kernel.may_alias:
        return kernel, ()
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    chooser = _Chooser(facts, analysis, live_after_loops(kernel.body), _inner(kernel), kernel.launched, grid)
    found = (chooser.order(node) for node in statements(kernel.body) if isinstance(node, For))
    orders = tuple(Reorder(order) for order in found if order)
    body = kernel.body
    for each in orders:
        body = rewrite_loops(body, {*each.order}, lambda loop, each=each: (reordered(loop, each),))
    return (replace(kernel, body=body) if orders else kernel), orders


@hazard
def immovable(kernel: Kernel, analysis: Analysis, verb: Reorder) -> str | None:
    """Return why a nest of a kernel cannot be run in a user's order, if it cannot; `analysis` is of this kernel."""
    heads = heads_of(kernel.body, verb)
    if not heads:
        return "these loops do not stand directly in one another, and in nothing else"
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    chooser = _Chooser(facts, analysis, live_after_loops(kernel.body), frozenset(), kernel.launched, grid=False)
    return next((why for head in heads if (why := _why_not(head, verb.order, chooser))), None)


@hazard
def _why_not(head: For, order: tuple[Symbol, ...], chooser: _Chooser) -> str | None:
    """Return why the nest that begins with a loop cannot be run in an order."""
    if why := unordered(head, order):
        return why
    band = [node for node in (head, *statements(head.body)) if isinstance(node, For) and node.index in order]
    if not chooser.is_pure(band):
        return "an iteration may fail or end early, or leaves a variable for others"
    free = chooser.free(band)
    stays = [node.index for node in band if node.index not in free]
    if stays != [index for index in order if index not in free]:
        names = " and ".join(f"'{index.name}'" for index in stays)
        return f"iterations of {names} may meet on an element, and keep their order"
    return None


def _inner(kernel: Kernel) -> frozenset[Symbol]:
    """Return the indices of the loops that belong to a nest that begins further out."""
    nests = (_band(node, kernel.launched) for node in statements(kernel.body) if isinstance(node, For))
    return frozenset(loop.index for nest in nests for loop in nest[1:])


@legality
def _band(loop: For, launched: frozenset[Symbol]) -> tuple[For, ...]:
    """Return the perfectly nested loops from this one inwards; where the user claims something the order is theirs.

    Those that are `launched` belong to none.
    """
    levels = [loop]
    while len(levels[-1].body) == 1 and isinstance(inner := levels[-1].body[0], For) and not inner.claimed:
        levels.append(inner)
    return () if loop.claimed or loop.index in launched else tuple(levels)


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Chooses for the nests of one kernel, but for loops that are `launched`.

    `inside` are loops that belong to a nest that begins further out.
    """

    facts: Facts
    analysis: Analysis
    live: dict[Symbol, frozenset[Symbol]]
    inside: frozenset[Symbol]
    launched: frozenset[Symbol]
    grid: bool

    @legality
    def order(self, loop: For) -> tuple[Symbol, ...]:
        """Return the best order of the nest that begins with a loop; empty if it has that, or cannot have it."""
        if loop.index in self.inside:
            return ()
        band = _band(loop, self.launched)
        if len(band) < 2 or not self.is_pure(band):
            return ()
        nest = Nest(band, self.free_on_grids(band) if self.grid else self.free(band), tuple(self.accesses(band)))
        order = best_order(nest, grid=self.grid)
        return () if order == nest.order else order

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
        return [access for access in self.analysis.inside(index) if access.tensor not in own]

    @legality
    def free_on_grids(self, band: Sequence[For]) -> frozenset[Symbol]:
        """Return the same for a grid, where updates of elements may be atomic, and so have no order.

        They are made so where a loop moves what it updates: it has iterations for threads then, as those that are free.
        And where a loop has to run in order, and would keep all others that stand in it from threads.
        """
        body = band[-1].body
        updated = frozenset(item for item in effects(body).stores if update_operator(band[0], item) is not None)
        updates = [access for access in self.accesses(band) if access.store and access.tensor in updated]
        more = self.free(band, updated)
        moving = {each for each in more if all(varies_with(access, each) for access in updates)}
        free = (self.free(band) if updated else more) | moving
        if not effects(body).loops:
            return free
        places = [place for place, loop in enumerate(band) if loop.index not in more]
        if not places or any(loop.index in free for loop in band[places[0] :]):
            return free
        return more

    def free(self, band: Sequence[For], updated: frozenset[Tensor] = frozenset()) -> frozenset[Symbol]:
        """Return the indices of the loops that can stand anywhere in the nest, but for the order of some updates."""
        accesses = [access for access in self.accesses(band) if access.tensor not in updated]
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
