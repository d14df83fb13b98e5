"""What the analyses answer: plain data about loops and accesses, for transforms, explanations and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum

from brickwork.analysis.polyhedral_model import Access, Model
from brickwork.diagnostics.location import Location
from brickwork.ir.nodes import Expression, Reduction, Symbol, Tensor
from brickwork.records import dataclass


class Bound(Enum):
    """How an index is kept in range."""

    PROVED = "in range for all arguments"
    GUARDED = "in range where a condition on the arguments holds, which is tested once"
    CHECKED = "checked at each execution"


@dataclass(frozen=True, slots=True)
class BoundVerdict:
    """The answer for one axis of an access.

    `guard` are bool expressions over sizes and kernel scalars. If `plain`, the index is never negative (where the guard
    holds), so that nothing has to be resolved.
    """

    bound: Bound
    guard: tuple[Expression, ...] = ()
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Party:
    """One of two statements in conflict: what it does, and where."""

    action: str
    loc: Location
    indices: Mapping[str, int] = field(default_factory=dict[str, int])


class ConflictKind(Enum):
    """What is in the way of running iterations at once."""

    ELEMENTS = "two accesses that may meet on an element"
    ALIASES = "two tensors that may share memory"
    VARIABLE = "a variable that passes from one iteration to the next"
    EXIT = "a break"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why iterations of a loop depend on one another.

    `sentence` says it in the user's words. If `refuted`, it is certain, and the parties hold two iterations (values of
    loop indices by name) that meet on `element`.
    """

    kind: ConflictKind
    sentence: str
    parties: tuple[Party, ...]
    refuted: bool = False
    element: str | None = None


@dataclass(frozen=True, slots=True)
class LoopVerdict:
    """The answer for a loop, for fixed iterations of the loops around it.

    If `independent`, iterations may run in any order and at once, but for the `reductions`, and as long as elements of
    `updates` are updated in one indivisible step. If not, and there are `updates`, nothing else is in the way.
    """

    independent: bool
    reductions: tuple[Reduction, ...] = ()
    conflict: Conflict | None = None
    claimed: bool = False
    updates: tuple[Tensor, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether iterations may be for threads of their own, and leave nothing to join."""
        return self.independent and not self.reductions


@dataclass(frozen=True, slots=True)
class Analysis:
    """The facts about a kernel. `assumptions` are the conditions under which all of them hold (bounds of scalars).

    `sizes` are the scalars that the host computed of sizes.
    `by_loop` has the accesses by the loops that they are made in, once that is asked.
    """

    loops: Mapping[Symbol, LoopVerdict]
    bounds: Mapping[tuple[int, int], BoundVerdict]
    accesses: tuple[Access, ...]
    assumptions: tuple[Expression, ...]
    model: Model
    sizes: frozenset[Symbol] = frozenset()
    by_loop: dict[Symbol, list[Access]] = field(
        init=False, default_factory=dict[Symbol, "list[Access]"], compare=False, repr=False
    )

    def inside(self, loop: Symbol) -> Sequence[Access]:
        """Return the accesses that are made in a loop."""
        if not self.by_loop:
            for access in self.accesses:
                for index in {around.node.index for around in access.loops}:
                    self.by_loop.setdefault(index, []).append(access)
        return self.by_loop.get(loop, ())
