"""Watches the memory accesses of loops whose iterations are said to be independent, and finds two that collide.

The interpreter reports iterations and accesses; a race is a pair of accesses of two iterations of one loop to one
element, at least one of them writing. Invariant: after the first race nothing more is recorded, as it is raised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from brickwork.diagnostics.diagnostic import Diagnostic, Note
from brickwork.diagnostics.errors import RaceError
from brickwork.diagnostics.location import Location
from brickwork.ir.nodes import For, Tensor

Element: TypeAlias = tuple[int, int]
"""The identity of a storage and a position in it."""


@dataclass(frozen=True, slots=True)
class Access:
    """One execution of a Load or a Store."""

    iteration: int
    tensor: Tensor
    indices: tuple[int, ...]
    writes: bool
    loc: Location


@dataclass(slots=True)
class _History:
    """What the iterations so far did to one element: the last write, and reads of up to two different iterations."""

    write: Access | None = None
    reads: list[Access] = field(default_factory=list[Access])


@dataclass(slots=True)
class _Watch:
    """One execution of a watched loop."""

    loop: For
    iteration: int = 0
    elements: dict[Element, _History] = field(default_factory=dict[Element, _History])


class Detector:
    """The watched loops that are being executed, innermost last."""

    def __init__(self) -> None:
        """Begin with no loop."""
        self._watches: list[_Watch] = []

    def enter(self, loop: For) -> None:
        """Begin an execution of a watched loop."""
        self._watches.append(_Watch(loop))

    def iterate(self, iteration: int) -> None:
        """Begin an iteration of the innermost watched loop."""
        self._watches[-1].iteration = iteration

    def leave(self) -> None:
        """End the innermost watched loop."""
        self._watches.pop()

    def access(self, element: Element, tensor: Tensor, indices: tuple[int, ...], writes: bool, loc: Location) -> None:
        """Record an access; raise RaceError if it collides with one of another iteration."""
        for watch in self._watches:
            now = Access(watch.iteration, tensor, indices, writes, loc)
            history = watch.elements.setdefault(element, _History())
            other = _collision(history, now)
            if other is not None:
                raise RaceError(_describe(watch.loop, other, now))
            if writes:
                history.write = now
            elif len(history.reads) < 2 and all(read.iteration != now.iteration for read in history.reads):
                history.reads.append(now)


def _collision(history: _History, now: Access) -> Access | None:
    candidates = [history.write] if history.write is not None else []
    if now.writes:
        candidates.extend(history.reads)
    return next((other for other in candidates if other.iteration != now.iteration), None)


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


def _element(access: Access) -> str:
    return f"{access.tensor.name}[{', '.join(map(str, access.indices))}]"
