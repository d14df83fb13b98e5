"""Which updates of a tensor's elements never meet: those of other iterations, and those of other places.

    for j: g[j] += a; g[n + j] += b          no element is updated twice, where both indices stay in range
    for k, c in range(d): g[k * d + c] += a  other k are other elements, since c stays below d

Such updates are as good where they stand: their loops are independent, and nothing is computed again for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from brickwork.analysis.access_cases import is_natural
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Axis, Loop, Model, is_fixed
from brickwork.analysis.races import Facts, are_separated, may_coincide
from brickwork.analysis.verdicts import Bound, BoundVerdict
from brickwork.ir.nodes import For
from brickwork.legality import legality
from brickwork.transform.autodiff.slices import Place, accumulations


class SeparateUpdates:
    """Answers for the accesses of one kernel, by their numbers."""

    def __init__(self, model: Model, solver: Solver, accesses: Mapping[int, Access]) -> None:
        """Begin with nothing known."""
        self.model, self.solver, self.accesses = model, solver, accesses
        self.single: set[int] = set()
        """The accesses that are made of each element in one iteration at most, found by loops that look for it."""

    @legality
    def is_separate(self, updates: Sequence[Place], depth: int) -> bool:
        """Whether an element belongs to one iteration of each loop around all updates of it."""
        for place, one in enumerate(updates):
            if one.store.access not in self.single and not self._meet_in_no_loop(one, one, depth):
                return False
            for other in updates[place + 1 :]:
                if not (self._meet_in_no_loop(one, other, depth) or self._are_disjoint(one, other, depth)):
                    return False
        return True

    @legality
    def are_once(self, updates: Sequence[Place], depth: int) -> bool:
        """Whether no element is updated twice."""
        pairs = ((one, other) for place, one in enumerate(updates) for other in updates[place + 1 :])
        return self.is_separate(updates, depth) and all(self._are_disjoint(*pair, depth) for pair in pairs)

    @legality
    def is_same_iteration(self, first: Access, second: Access, depth: int) -> bool:
        """Whether two accesses touch one element in the same iteration of all loops around them, if at all."""
        return first.loops == second.loops and self.is_same_common_iteration(first, second, depth)

    @legality
    def is_same_common_iteration(self, first: Access, second: Access, depth: int) -> bool:
        """Whether two accesses touch one element in the same iteration of the loops around both alone."""
        common = [loop for loop in first.loops[depth:] if loop in second.loops]
        return all(self.moves(first, second, loop) for loop in common)

    @legality
    def moves(self, first: Access, second: Access, loop: Loop) -> bool:
        """Whether two accesses are to other elements in other iterations of a loop, whatever loops inside do."""
        return are_separated(self._facts(first, second), loop, first, second)

    @legality
    def are_others(self, reads: Iterable[int], updates: Iterable[int], depth: int) -> bool:
        """Whether reads are of other elements than updates, by their numbers, in an iteration of `depth` loops."""
        numbers = [*updates]
        pairs = [(self.accesses.get(one), self.accesses.get(other)) for one in reads for other in numbers]
        return all(
            one is not None and other is not None and self.is_disjoint(one, other, depth) for one, other in pairs
        )

    def free_around(self, access: Access, depth: int) -> tuple[For, ...]:
        """Return those of the `depth` loops around an access that pass nothing on by its tensor, but for sums."""
        same = [item for item in self.model.accesses if item.tensor == access.tensor]
        return tuple(
            loop.node
            for loop in access.loops[:depth]
            if access.tensor in accumulations(loop.node)
            or all(self.moves(access, other, loop) for other in same if loop in other.loops)
        )

    def is_told(self, access: Access, depth: int) -> bool:
        """Whether elements that loops around a nest read say an access's place, where others may say the same one.

        Sums for each element would keep iterations of these loops in order, which may add to it at once.
        """
        atoms = {atom for axis in access.axes for atom in axis.value.atoms()}
        said = [atom for atom in atoms if atom in self.model.elements and not is_fixed(atom)]
        return depth > 0 and bool(said) and not self.moves(access, access, access.loops[depth - 1])

    @legality
    def is_plain(self, access: Access, axis: Axis) -> bool:
        """Whether an index never counts from the end."""
        model = self.model.within(access)
        return not axis.wraps or is_natural(model, self.solver, access, axis.value)

    @legality
    def _meet_in_no_loop(self, one: Place, other: Place, depth: int) -> bool:
        first, second = self.accesses[one.store.access], self.accesses[other.store.access]
        return self.is_same_common_iteration(first, second, depth)

    @legality
    def is_disjoint(self, first: Access, second: Access, depth: int) -> bool:
        """Whether two accesses are to other elements, in whatever iterations of the loops inside of `depth` others."""
        return not may_coincide(self._facts(first, second), depth, first, second)

    @legality
    def _are_disjoint(self, one: Place, other: Place, depth: int) -> bool:
        """Whether two updates are so."""
        return self.is_disjoint(self.accesses[one.store.access], self.accesses[other.store.access], depth)

    def _facts(self, *accesses: Access) -> Facts:
        return Facts(self.model, self.solver, dict(self._bounds(accesses)))

    def _bounds(self, accesses: Iterable[Access]) -> Iterable[tuple[tuple[int, int], BoundVerdict]]:
        for access in accesses:
            for place, axis in enumerate(access.axes):
                yield (access.number, place), BoundVerdict(Bound.CHECKED, plain=self.is_plain(access, axis))
