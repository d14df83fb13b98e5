"""The marks of functions that decide whether a change of a program is legal, or a check may be left out.

`python -m tests.mutate` finds the functions by them, drops each of their conditions, and asks whether a test fails.
Functions that decide what pays have no mark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["hazard", "legality"]

Decider = TypeVar("Decider", bound=Callable[..., Any])


def legality(function: Decider) -> Decider:
    """Mark a function that allows what it answers True or a value; it is returned as it is."""
    return function


def hazard(function: Decider) -> Decider:
    """Mark a function that forbids what it answers True or a value; it is returned as it is."""
    return function
