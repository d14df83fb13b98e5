"""The random draws of the language. Their numbers are defined in `ir/philox.py`.

Inside an operator, compiled or run by `op.python`, a draw is replaced by the generator; called anywhere else it has no
counter to draw from, and says so.
"""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


def rand() -> float:
    """Return a float32 in [0, 1), uniformly distributed; every iteration and every place in the source has its own."""
    _refuse("rand")


def randn() -> float:
    """Return a float32 with the standard normal distribution."""
    _refuse("randn")


def randint(low: SupportsIndex, high: SupportsIndex, /) -> int:
    """Return an int in [low, high), uniformly distributed; ValueError if `low` is not below `high`."""
    del low, high
    _refuse("randint")


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(f"bw.{name}() draws inside the loops of an operator; call it in a function with @bw.op")
