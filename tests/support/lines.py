"""A helper in a file of its own."""

from __future__ import annotations

import math


def root(value: float) -> float:
    """Return the square root of a number."""
    return math.sqrt(value)
