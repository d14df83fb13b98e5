"""Watches the memory accesses of loops whose iterations are said to be independent, and finds two that collide.

The interpreter reports iterations and accesses; a race is a pair of accesses of two iterations of one loop to one
element, at least one of them writing; updates by one operator (`Store.combine`) do not collide, nor do stores of one
literal. In a BLOCK loop, what all threads read in lockstep must not be written before a barrier, which stands after
each THREAD loop and after each store outside of one; of a local each thread has its own. So it is for the threads of a
part of a warp, in a WARP loop, after which a barrier of the block stands, too. One thread does such a store, and what
the store itself reads is of use to that thread alone. Invariant: after the first race nothing more is recorded, as it
is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TypeAlias

from brickwork.diagnostics.diagnostic import Diagnostic, Note
from brickwork.diagnostics.errors import RaceError
from brickwork.diagnostics.location import Location
from brickwork.ir.nodes import For, Role, Tensor
from brickwork.ir.operators import Operator
from brickwork.records import dataclass

Element: TypeAlias = tuple[int, int]
"""The identity of a storage and a position in it."""

_SHARED = frozenset({Role.THREAD, Role.TILE, Role.CHUNKED_TILE})
"""The loops whose iterations are for threads of a block; a barrier follows."""
_LOCKSTEP = frozenset({Role.BLOCK, Role.WARP})
"""The loops whose iterations are for several threads, in lockstep."""


@dataclass(frozen=True, slots=True)
class Access:
    """One execution of a Load or a Store."""

    iteration: int
    tensor: Tensor
    indices: tuple[int, ...]
    writes: bool
    combine: Operator | None
    loc: Location
    literal: str | None = None


@dataclass(slots=True)
class _History:
    """What the iterations so far did to one element: of each kind of access those of up to two iterations."""

    writes: list[Access] = field(default_factory=list[Access])
    reads: list[Access] = field(default_factory=list[Access])


@dataclass(slots=True)
class _Watch:
    """One execution of a watched loop. `steps` are the reads of all threads of a block since the last barrier."""

    loop: For
    iteration: int = 0
    steps: dict[Element, Access] = field(default_factory=dict[Element, Access])
    elements: dict[Element, _History] = field(default_factory=dict[Element, _History])


class Detector:
    """The watched loops that are being executed, innermost last."""

    def __init__(self) -> None:
        """Begin with no loop."""
        self.watches: list[_Watch] = []
        self._threads: Sequence[_Watch] = ()
        self._own: set[Element] = set()
        self.made: dict[int, Location] = {}
        """Where the source makes tensors that are no arguments, by their storage."""

    def store(self) -> None:
        """Begin a store: what is read for the first time from now on is read for it."""
        self._own.clear()

    def enter(self, loop: For) -> None:
        """Begin an execution of a watched loop."""
        self.watches.append(_Watch(loop))
        self._threads = self._lockstep()

    def iterate(self, iteration: int) -> None:
        """Begin an iteration of the innermost watched loop."""
        self.watches[-1].iteration = iteration
        self.watches[-1].steps.clear()

    def leave(self) -> None:
        """End the innermost watched loop."""
        left = self.watches[-1]
        self.leave_to(len(self.watches) - 1)
        if left.loop.role in {*_SHARED, Role.WARP}:
            for watch in self._threads:
                watch.steps.clear()

    def leave_to(self, depth: int) -> None:
        """End watched loops without the barrier after them, until so many are left."""
        del self.watches[depth:]
        self._threads = self._lockstep()

    def access(self, element: Element, now: Access) -> None:
        """Record an access, whose `iteration` is filled in here; raise RaceError if it collides with another one."""
        for watch in self.watches:
            if self._is_moved(element[0], watch.loop):
                continue
            iteration, history = watch.iteration, watch.elements.get(element)
            if history is None:
                history = watch.elements[element] = _History()
            other = _collision(history, now, iteration)
            if other is not None:
                raise RaceError(_describe(watch.loop, other, replace(now, iteration=iteration)))
            seen = history.writes if now.writes else history.reads
            alike = [access.iteration for access in seen if _kind(access) == _kind(now)]
            if len(alike) < 2 and iteration not in alike:
                seen.append(replace(now, iteration=iteration))
        if not now.tensor.is_local:
            self._step(element, now)

    def _is_moved(self, storage: int, loop: For) -> bool:
        """Return whether a tensor was moved before a loop that is claimed independent, and makes it in each turn."""
        place = self.made.get(storage)
        return (
            place is not None
            and loop.role is Role.SEQUENTIAL
            and place.file == loop.loc.file
            and place.function == loop.loc.function
            and place.line > loop.loc.line
        )

    def _step(self, element: Element, now: Access) -> None:
        """Watch the order of what the threads of a block do in lockstep."""
        for watch in self.watches if now.writes else ():
            if watch.loop.role in _LOCKSTEP and element in watch.steps and element not in self._own:
                raise RaceError(_describe_step(watch.loop, watch.steps[element], now))
        threads = self._threads
        if not threads:
            return
        if now.writes:
            for watch in threads:
                watch.steps.clear()
        elif element not in threads[0].steps:
            threads[0].steps[element] = now
            self._own.add(element)

    def _lockstep(self) -> Sequence[_Watch]:
        """Return the innermost loop whose iterations are for several threads, with those in it; none in one thread."""
        roles = [watch.loop.role for watch in self.watches]
        place = next((place for place in reversed(range(len(roles))) if roles[place] in _LOCKSTEP), None)
        return () if place is None or not _SHARED.isdisjoint(roles[place:]) else self.watches[place:]


def _collision(history: _History, now: Access, iteration: int) -> Access | None:
    for other in (*history.writes, *history.reads) if now.writes else history.writes:
        if other.iteration != iteration and not _commute(other, now):
            return other
    return None


def _commute(one: Access, other: Access) -> bool:
    return _kind(one) == _kind(other) != (None, None)


def _kind(access: Access) -> tuple[Operator | None, str | None]:
    return access.combine, access.literal


def _describe(loop: For, first: Access, second: Access) -> Diagnostic:
    name = loop.index.name
    verbs = {True: "writes", False: "reads"}
    return Diagnostic(
        code="BW201",
        message=(
            f"iterations {name}={first.iteration} and {name}={second.iteration} of a parallel loop collide: "
            f"one {verbs[first.writes]} {_element(first)}, the other {verbs[second.writes]} {_element(second)}"
        ),
        loc=second.loc,
        notes=(Note(first.loc, f"iteration {name}={first.iteration} here"), Note(loop.loc, "the loop")),
        help="write a plain `range` loop, which runs in order where iterations depend on one another",
    )


def _describe_step(loop: For, first: Access, second: Access) -> Diagnostic:
    return Diagnostic(
        code="BW201",
        message=(
            f"a thread of the block may read {_element(first)} after another one has written it: "
            "there is no barrier between the two"
        ),
        loc=second.loc,
        notes=(Note(first.loc, "all threads read it here"), Note(loop.loc, "the loop")),
        help="this is a fault of the schedule",
    )


def _element(access: Access) -> str:
    return f"{access.tensor.name}[{', '.join(map(str, access.indices))}]"
