"""A schedule: how the loops of a kernel are run, as data that can be compared, printed and stored.

Loops are named by their indices. How a schedule is chosen is in `defaults.py`, how it is carried out in `apply.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

from brickwork.ir.nodes import Symbol


@dataclass(frozen=True, slots=True)
class Parallel:
    """Share a loop's iterations out among threads."""

    loop: Symbol


@dataclass(frozen=True, slots=True)
class Vectorise:
    """Run `width` iterations of a loop at once, one in each lane."""

    loop: Symbol
    width: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Cut a loop into pieces of `size` iterations, which are shared out among threads."""

    loop: Symbol
    size: int


Directive: TypeAlias = Parallel | Vectorise | Chunk


@dataclass(frozen=True, slots=True)
class Schedule:
    """The directives, at most one of each kind for a loop; loops that are not named run in order."""

    directives: tuple[Directive, ...] = ()

    def __str__(self) -> str:
        """Return one directive a line."""
        return "\n".join(_spell(directive) for directive in self.directives)

    def serialise(self) -> str:
        """Return the schedule as JSON; loops are named by name and number."""
        return json.dumps([_fields(directive) for directive in self.directives])

    def parallel(self, loop: Symbol) -> bool:
        """Whether a loop's iterations are shared out one by one."""
        return Parallel(loop) in self.directives

    def width(self, loop: Symbol) -> int:
        """Return the number of lanes of a loop, or 0."""
        return next((item.width for item in self.directives if isinstance(item, Vectorise) and item.loop == loop), 0)

    def chunk(self, loop: Symbol) -> int:
        """Return the number of iterations in a piece, or 0."""
        return next((item.size for item in self.directives if isinstance(item, Chunk) and item.loop == loop), 0)


def deserialise(text: str, loops: tuple[Symbol, ...]) -> Schedule:
    """Return the schedule that `serialise` wrote, for a kernel with these loop indices."""
    named = {f"{loop.name}#{loop.number}": loop for loop in loops}
    directives: list[Directive] = []
    for kind, name, value in json.loads(text):
        match kind:
            case "parallel":
                directives.append(Parallel(named[name]))
            case "vectorise":
                directives.append(Vectorise(named[name], int(value)))
            case _:
                directives.append(Chunk(named[name], int(value)))
    return Schedule(tuple(directives))


def _fields(directive: Directive) -> tuple[str, str, int]:
    name = f"{directive.loop.name}#{directive.loop.number}"
    match directive:
        case Parallel():
            return ("parallel", name, 1)
        case Vectorise(_, width):
            return ("vectorise", name, width)
        case Chunk(_, size):
            return ("chunk", name, size)


def _spell(directive: Directive) -> str:
    match directive:
        case Parallel(loop):
            return f"parallel({loop.name})"
        case Vectorise(loop, width):
            return f"vectorise({loop.name}, {width})"
        case Chunk(loop, size):
            return f"chunk({loop.name}, {size})"
