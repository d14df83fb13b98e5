"""What becomes of a list of numbers that loops have filled, in plain Python."""

from __future__ import annotations

from typing import Any


def items_of(items: Any) -> Any:
    """Return the items of a list, of which a tensor is made."""
    return items


def taken(items: Any, count: Any, dtype: Any = None) -> Any:
    """Return the first items as a tensor of their own; the count may be a tensor that loops left."""
    number = count.item() if hasattr(count, "item") else count
    if not isinstance(number, int):  # a graph is traced, which knows no more than that there is a number
        return items.new_empty((number, *items.shape[1:]), dtype=dtype)
    found = items.narrow(0, 0, number)
    return found.clone() if dtype is None else found.to(dtype, copy=True)
