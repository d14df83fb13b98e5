"""What loops run over in `op.python`: how many iterations, and the item of each, made when the iteration begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Turns:
    """The iterations of one loop."""

    count: int
    item: Callable[[int], Any]


@dataclass(frozen=True, slots=True)
class Nest:
    """Several ranges, the last one fastest."""

    axes: Sequence[range]
    tuples: bool
    """Whether an item is a tuple of one index from each."""


def turns_of(items: Sequence[Any]) -> Turns:
    """Return the iterations over a sequence."""
    return Turns(len(items), items.__getitem__)


def counted(inner: Turns, start: int) -> Turns:
    """Return the iterations over `enumerate(inner, start)`."""
    return Turns(inner.count, lambda turn: (start + turn, inner.item(turn)))


def joined(parts: Sequence[Turns], *, strict: bool = False) -> Turns:
    """Return the iterations over `zip(*parts)`: as many as the shortest part has; `strict`: each has as many."""
    for place, part in enumerate(parts[1:] if strict else (), 2):
        if part.count != parts[0].count:
            raise ValueError(f"zip() argument {place} has {part.count} items, and argument 1 has {parts[0].count}")
    return Turns(min(part.count for part in parts), lambda turn: tuple(part.item(turn) for part in parts))


def backward(inner: Turns) -> Turns:
    """Return the iterations from the last to the first."""
    return Turns(inner.count, lambda turn: inner.item(inner.count - 1 - turn))
