"""Which stores reach a load, for tensors that a kernel both loads and stores into, and which stores follow it.

An element that nothing stores into before the load is what the tensor began with; one that nothing stores into after
the load is what the tensor ends with. All others have to be kept on a tape. The same questions tell which stores
overwrite what was used before.

Order is that of the source: of two accesses the one in an earlier iteration of a loop around both is first, or the one
that stands first. Proofs rest on the assumptions of the analysis, but on no guard. Iterations that the user calls
parallel do not meet.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import count, takewhile
from typing import TypeAlias

from brickwork.analysis.isl import Solver
from brickwork.analysis.races import Facts, may_coincide, may_meet
from brickwork.analysis.verdicts import Analysis, Bound, BoundVerdict
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Block, For, If, Kernel, Load, Node, Store, Tensor, While
from brickwork.ir.walk import children, walk
from brickwork.records import dataclass


class Known(Enum):
    """Where the value of a load can be found afterwards."""

    BEGINNING = "the tensor as it was before the kernel"
    END = "the tensor as it is after the kernel"
    TAPE = "nowhere: it has to be kept"


_Branches: TypeAlias = tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class _Position:
    """When an access happens in an iteration, and what is around it.

    `branches` are (number of the If, whether `then`), `turns` the numbers of each `while`.
    """

    order: int
    branches: _Branches
    turns: tuple[int, ...]


class ReachingStores:
    """Answers for the accesses of one normalised kernel, by their numbers."""

    def __init__(self, kernel: Kernel, analysis: Analysis) -> None:
        """Note where the accesses stand."""
        careful = {
            place: BoundVerdict(Bound.CHECKED, plain=False) if verdict.bound is Bound.GUARDED else verdict
            for place, verdict in analysis.bounds.items()
        }
        self.facts = Facts(analysis.model, Solver(), careful)
        self.accesses = {access.number: access for access in analysis.model.accesses}
        self.numbers = count()
        self.positions: dict[int, _Position] = {}
        self.stores: dict[Tensor, list[int]] = {}
        self.loads: dict[Tensor, list[int]] = {}
        self.answers: dict[int, Known] = {}
        self.exchanged = effects(kernel.body).rebinds
        self._note(kernel.body, (), ())

    def _note(self, block: Block, branches: _Branches, turns: tuple[int, ...]) -> None:
        for statement in block:
            match statement:
                case If(condition=condition, then=then, otherwise=otherwise):
                    self._note_loads((condition,), branches, turns)
                    number = next(self.numbers)
                    self._note(then, (*branches, (number, True)), turns)
                    self._note(otherwise, (*branches, (number, False)), turns)
                case For(start=start, stop=stop, body=body):
                    self._note_loads((start, stop), branches, turns)
                    self._note(body, branches, turns)
                case While(condition=condition, body=body):
                    turns = (*turns, next(self.numbers))
                    self._note_loads((condition,), branches, turns)
                    self._note(body, branches, turns)
                    turns = turns[:-1]
                case Store(tensor=tensor, access=access):
                    self._note_loads(children(statement), branches, turns)
                    self.positions[access] = _Position(next(self.numbers), branches, turns)
                    self.stores.setdefault(tensor, []).append(access)
                case _:
                    self._note_loads(children(statement), branches, turns)

    def _note_loads(
        self, roots: Iterable[Node], branches: tuple[tuple[int, bool], ...], turns: tuple[int, ...]
    ) -> None:
        for node in walk(roots):
            if isinstance(node, Load):
                self.positions[node.access] = _Position(next(self.numbers), branches, turns)
                self.loads.setdefault(node.tensor, []).append(node.access)

    # ------------------------------------------------------------ answers

    def changes(self, tensor: Tensor) -> bool:
        """Whether the kernel stores into a tensor or exchanges it."""
        return tensor in self.stores or tensor in self.exchanged

    def known(self, load: Load) -> Known:
        """Return where the value of a load from a tensor that the kernel stores into is found afterwards."""
        if load.access not in self.answers:
            self.answers[load.access] = self._known(load)
        return self.answers[load.access]

    def _known(self, load: Load) -> Known:
        if load.tensor in self.exchanged:
            return Known.TAPE
        stores = self.stores.get(load.tensor, [])
        if not any(self.may_follow(store, load.access) for store in stores):
            return Known.BEGINNING
        if not any(self.may_follow(load.access, store) for store in stores):
            return Known.END
        return Known.TAPE

    def always_in_range(self, load: Load, axis: int) -> bool:
        """Whether an index of a load is proved to be in range, and not on a condition."""
        verdict = self.facts.bounds.get((load.access, axis))
        proved = verdict is not None and verdict.bound is Bound.PROVED
        return proved and not self.positions[load.access].branches

    def overwrites(self, store: Store) -> bool:
        """Whether a store may replace an element that was stored or loaded before."""
        others = (*self.stores[store.tensor], *self.loads.get(store.tensor, []))
        return store.tensor in self.exchanged or any(self.may_follow(other, store.access) for other in others)

    def is_final(self, store: Store) -> bool:
        """Whether what is stored is what the tensor ends with."""
        if store.tensor in self.exchanged:
            return False
        return not any(self.may_follow(store.access, other) for other in self.stores[store.tensor])

    def may_follow(self, first: int, second: int) -> bool:
        """Whether the second of two accesses of a tensor may touch, later, an element that the first touches."""
        one, other = self.accesses.get(first), self.accesses.get(second)
        if one is None or other is None:
            return False  # The analysis found no way that leads there.
        if {*self.positions[first].turns} & {*self.positions[second].turns}:
            return may_coincide(self.facts, 0, one, other)
        pairs = zip(one.loops, other.loops, strict=False)
        common = [loop for loop, _ in takewhile(lambda pair: pair[0].node.index == pair[1].node.index, pairs)]
        apart = (loop for loop in common if not loop.node.claimed)
        if any(may_meet(self.facts, loop, one, other, depth=loop.depth) for loop in apart):
            return True
        depth = common[-1].depth + 1 if common else 0
        return self._stands_after(first, second) and may_coincide(self.facts, depth, one, other)

    def _stands_after(self, first: int, second: int) -> bool:
        """Whether the second access may be reached after the first in one iteration of the loops around both."""
        one, other = self.positions[first], self.positions[second]
        if other.order <= one.order:
            return False
        chosen = dict(one.branches)
        return all(chosen.get(number, then) == then for number, then in other.branches)
