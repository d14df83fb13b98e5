"""What a `for` of an operator may run over besides `range`; in plain Python these are ordinary iterators.

The compiler knows these functions by identity; their meaning is the order of iteration in here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Protocol, SupportsIndex, TypeAlias, overload

Axis: TypeAlias = SupportsIndex | tuple[SupportsIndex, SupportsIndex]
"""How far an axis goes: `n`, or `(start, stop)`."""


class HasShape(Protocol):
    """A tensor, as far as `indices` is concerned."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        ...


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
