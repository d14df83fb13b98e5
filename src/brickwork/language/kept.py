"""What becomes of a list of numbers that loops have filled, in plain Python."""

from __future__ import annotations

from typing import Any


class Kept(list[Any]):
    """The items of a list, of which one tensor is made."""


def items_of(items: Any) -> Any:
    """Return the items of a list, of which a tensor is made."""
    return Kept(items)


def taken(items: Any, count: Any, dtype: Any = None) -> Any:
    """Return the first items as a tensor of their own; the count may be a tensor that loops left, or None for all."""
    if count is None:
        return items
    number = count.item() if hasattr(count, "item") else count
    if not isinstance(number, int):  # a graph is traced, which knows no more than that there is a number
        places = items.new_ones((number,), dtype=count.dtype).cumsum(0) - 1
        found = items.index_select(0, places)  # the size of what `narrow` gives is a minimum there
        return found if dtype is None else found.to(dtype)
    found = items.narrow(0, 0, number)
    return found.clone() if dtype is None else found.to(dtype, copy=True)


def stacked(items: Any, count: Any, axis: int = 0) -> Any:
    """Return the first rows as a tensor of their own, one behind the other along a new axis."""
    return _taken_rows(items, count).movedim(0, axis).contiguous()


def joined(items: Any, count: Any, axis: int = 0) -> Any:
    """Return the first rows as a tensor of their own, one behind the other along an axis that they have."""
    found = _taken_rows(items, count)
    axis %= found.dim() - 1
    return found.movedim(0, axis).flatten(axis, axis + 1)


def _taken_rows(items: Any, count: Any) -> Any:
    if items.shape[0] == 0:
        raise RuntimeError("a list of tensors is empty that is stacked")
    return taken(items, count)
