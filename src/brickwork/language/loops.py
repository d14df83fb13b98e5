"""What a `for` of an operator may run over besides `range`; in plain Python these are ordinary iterators.

The compiler knows these functions by identity; their meaning is the order of iteration in here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, Self, SupportsIndex, TypeAlias, TypeVar, overload

Axis: TypeAlias = SupportsIndex | tuple[SupportsIndex, SupportsIndex]
"""How far an axis goes: `n`, or `(start, stop)`."""


class HasShape(Protocol):
    """A tensor, as far as `indices` is concerned."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        ...


Item = TypeVar("Item")


class _Bounded(list[Item]):
    """A list of at most so many items."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def append(self, item: Item) -> None:
        """Add an item, if there is room."""
        self._make_room()
        super().append(item)

    def insert(self, index: SupportsIndex, item: Item) -> None:
        """Put an item before another, if there is room."""
        self._make_room()
        super().insert(index, item)

    def extend(self, items: Iterable[Item]) -> None:
        """Add items, as far as there is room."""
        for item in items:
            self.append(item)

    def __iadd__(self, items: Iterable[Item]) -> Self:
        """Add items, as far as there is room."""
        self.extend(items)
        return self

    def _make_room(self) -> None:
        if len(self) >= self._most:
            raise IndexError(f"a list of at most {self._most} items is full")


def bounded(most: SupportsIndex, /) -> list[Any]:
    """Return an empty list that may hold so many items: `stack = bw.bounded(64)`. One more is an IndexError.

    In an operator a list that grows has room for as many items as its loops can add; this says it where a `while` adds
    them.
    """
    return _Bounded(most.__index__())


@overload
def prange(stop: SupportsIndex, /) -> range: ...
@overload
def prange(start: SupportsIndex, stop: SupportsIndex, /) -> range: ...
def prange(start: SupportsIndex, stop: SupportsIndex | None = None, /) -> range:
    """Run over `range(stop)` or `range(start, stop)` in parallel: you say that the iterations are independent.

    Independent are iterations none of which reads or writes an element that another one writes; sums into one variable
    or element (`s += x`) are allowed. brickwork believes you where it cannot decide by itself. Loops whose independence
    it can prove run in parallel as plain `range` loops, too.

    Raises:
        RaceError: brickwork can show two iterations that collide. It is raised when the operator is compiled.
    """
    return range(start) if stop is None else range(start, stop)


def ndrange(*axes: Axis, parallel: bool = False) -> Iterator[Any]:
    """Run over all index tuples of several ranges, the last one fastest; over plain indices for one range.

    Args:
        axes: One for each range: `n` for `range(n)`, or `(start, stop)`.
        parallel: You say that all iterations are independent, as with `prange`.

    Examples:
        >>> list(ndrange(2, (5, 7)))
        [(0, 5), (0, 6), (1, 5), (1, 6)]
    """
    del parallel
    ranges = [range(*axis) if isinstance(axis, tuple) else range(axis) for axis in axes]
    return iter(ranges[0]) if len(ranges) == 1 else itertools.product(*ranges)


def indices(tensor: HasShape, /) -> Iterator[tuple[int, ...]]:
    """Run over the index tuples of all elements of a tensor, the last index fastest.

    A tensor without dimensions has one element, with the index ().
    """
    return itertools.product(*(range(size) for size in tensor.shape))
