"""`bisect`, `heapq`, `functools.reduce` and `itertools.accumulate` as plain Python.

The steps are those of the standard library.

Heaps are laid out as it lays them out.

The compiler inlines these functions as it inlines a user's helpers. The parameters have the names of the originals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from brickwork.language.formulas import require

# ---------------------------------------------------------------- bisect


def bisect_left(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None) -> int:
    """Return where to insert x in a sorted sequence, before items that are equal."""
    require(lo >= 0, "lo must be non-negative")
    low, high = lo, len(a)
    if hi is not None:
        high = hi
    while low < high:
        middle = (low + high) // 2
        item = a[middle] if key is None else key(a[middle])
        if item < x:
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None) -> int:
    """Return where to insert x in a sorted sequence, behind items that are equal."""
    require(lo >= 0, "lo must be non-negative")
    low, high = lo, len(a)
    if hi is not None:
        high = hi
    while low < high:
        middle = (low + high) // 2
        item = a[middle] if key is None else key(a[middle])
        if x < item:
            high = middle
        else:
            low = middle + 1
    return low


def insort_left(a: Any, x: Any, lo: int = 0, hi: int | None = None) -> None:
    """Insert x in a sorted list, before items that are equal."""
    a.insert(bisect_left(a, x, lo, hi), x)


def insort_right(a: Any, x: Any, lo: int = 0, hi: int | None = None) -> None:
    """Insert x in a sorted list, behind items that are equal."""
    a.insert(bisect_right(a, x, lo, hi), x)


# ---------------------------------------------------------------- heapq


def rise(heap: Any, start: int, end: int) -> None:
    """Move the item at `end` towards `start`, past all that are greater."""
    item, place = heap[end], end
    while place > start:
        parent = (place - 1) >> 1
        if not item < heap[parent]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


def sink(heap: Any, start: int) -> None:
    """Move the item at `start` down to a leaf, lesser children up, and then up to its place."""
    end, place = len(heap), start
    item = heap[start]
    while 2 * place + 1 < end:
        child = 2 * place + 1
        if child + 1 < end and not heap[child] < heap[child + 1]:
            child += 1
        heap[place] = heap[child]
        place = child
    heap[place] = item
    rise(heap, start, place)


def heappush(heap: Any, item: Any) -> None:
    """Add an item to a heap."""
    heap.append(item)
    rise(heap, 0, len(heap) - 1)


def heappop(heap: Any) -> Any:
    """Take the least item from a heap."""
    found = heap.pop()
    if heap:
        last = found
        found = heap[0]
        heap[0] = last
        sink(heap, 0)
    return found


def heapreplace(heap: Any, item: Any) -> Any:
    """Take the least item from a heap, then add one."""
    found = heap[0]
    heap[0] = item
    sink(heap, 0)
    return found


def heappushpop(heap: Any, item: Any) -> Any:
    """Add an item to a heap, then take the least."""
    found = item
    if heap and heap[0] < item:
        found = heap[0]
        heap[0] = item
        sink(heap, 0)
    return found


def heapify(x: Any) -> None:
    """Make a heap of a list."""
    half = len(x) // 2
    for k in range(half):
        sink(x, half - 1 - k)


def reduce(function: Callable[[Any, Any], Any], items: Sequence[Any], *first: Any) -> Any:
    """Return `functools.reduce(function, items, first)`."""
    found = first[0] if len(first) == 1 else items[0]
    for place in range(1 - len(first), len(items)):
        found = function(found, items[place])
    return found


def accumulate(items: Any, func: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return the list of `itertools.accumulate(items, func)`."""
    found: list[Any] = []
    if len(items) > 0:
        latest = items[0]
        found.append(latest)
        for place in range(1, len(items)):
            latest = latest + items[place] if func is None else func(latest, items[place])
            found.append(latest)
    return found


def index(items: Sequence[Any], wanted: Any) -> int:
    """Return the place of the first item that equals something."""
    for place in range(len(items)):
        if items[place] == wanted:
            return place
    require(False, "what is looked for is not in the list")
    return -1
