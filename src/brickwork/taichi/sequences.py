"""Lists and tuples of Python, of whatever is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Return whether something is a list or a tuple."""
    return isinstance(value, list | tuple)


def items_of(value: Any) -> list[Any]:
    """Return what can be iterated over as a list."""
    return [*value]
