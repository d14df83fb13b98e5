"""The loop order that is best for a target, of those that are legal: a cost model, and pure arithmetic.

What may be exchanged with what is found in `transform/interchange.py`. The rules, for loops that are free to stand
anywhere in the nest and others that keep their order (the schedule puts the best of the free ones innermost for lanes):
- Where the innermost of the others accumulates (no store moves with it) the free loops stand outside: they run in
  parallel, and each element stays in a register meanwhile.
- On a grid the free loops stand outside in any case, as each of their iterations is a thread.
- On a processor a nest that does not accumulate changes only if its outermost loop is not free, so that nothing is
  lost, and another innermost loop goes along memory better.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.polyhedral_model import Access
from brickwork.ir.nodes import For, Symbol
from brickwork.ir.walk import read_symbols
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.schedule.planner import DEPTH_WEIGHT, access_cost, varies_with

WORTH = 0.75
"""An order must cost less than this part of what the source's costs to be preferred."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Perfectly nested loops, outermost first, the indices of those that are free, and the accesses inside."""

    loops: tuple[For, ...]
    free: frozenset[Symbol]
    accesses: tuple[Access, ...]

    @property
    def order(self) -> tuple[Symbol, ...]:
        """The indices in the order of the source."""
        return tuple(loop.index for loop in self.loops)

    @legality
    def allows(self, order: Sequence[Symbol]) -> bool:
        """Whether each loop stands inside of those that its bounds depend on."""
        heads = {loop.index: loop for loop in self.loops}
        return all(
            not read_symbols((heads[index].start, heads[index].stop)) & frozenset(order[place:])
            for place, index in enumerate(order)
        )

    def cost(self, innermost: Symbol) -> float:
        """Return about how long the accesses take if neighbouring iterations of this loop run at once."""
        return sum(access_cost(access, {innermost}) * DEPTH_WEIGHT ** len(access.loops) for access in self.accesses)

    def accumulates(self, rest: Sequence[Symbol]) -> bool:
        """Whether no store moves with the loops that are not free."""
        stores = [access for access in self.accesses if access.store]
        return not any(varies_with(access, index) for access in stores for index in rest)


def best_order(nest: Nest, *, grid: bool) -> tuple[Symbol, ...]:
    """Return the best order that the nest allows."""
    free = [index for index in nest.order if index in nest.free]
    rest = [index for index in nest.order if index not in nest.free]
    if not free:
        return nest.order
    choices: list[list[Symbol]] = []
    if grid or (rest and nest.accumulates(rest[-1:])):
        choices = [[*free, *rest]]
    elif rest and nest.order[0] not in nest.free:
        innermost = _cheaper(nest, [*free, rest[-1]], nest.order[-1])
        if innermost == nest.order[-1]:
            return nest.order
        around = [index for index in nest.order if index != innermost]
        choices = [[*around, innermost]] if innermost in nest.free else [[*free, *rest]]
    return next((tuple(order) for order in choices if nest.allows(order)), nest.order)


def _cheaper(nest: Nest, candidates: Sequence[Symbol], usual: Symbol) -> Symbol:
    """Return the candidate with the lowest cost as innermost loop, or the usual one if it costs hardly more."""
    best = min(candidates, key=nest.cost)
    return best if nest.cost(best) < WORTH * nest.cost(usual) else usual
