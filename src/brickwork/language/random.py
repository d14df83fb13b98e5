"""The random draws of the language. Their numbers are defined in `ir/philox.py`.

Inside an operator, compiled or run by `op.python`, a draw is replaced by the generator; called anywhere else it has no
counter to draw from, and says so.
"""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


def rand() -> float:
    """Draw a float32 from the uniform distribution on [0, 1).

    Every iteration and every place in the source has its own number, which depends on the call's key alone and not on
    the device or the order of execution.
    """
    _refuse("rand")


def randn() -> float:
    """Draw a float32 from the standard normal distribution, N(0, 1); its number is its own as that of `rand`."""
    _refuse("randn")


def randint(low: SupportsIndex, high: SupportsIndex, /) -> int:
    """Draw an int64 from the uniform distribution on `low`, ..., `high - 1`; its number is its own as that of `rand`.

    Raises:
        ValueError: `low` is not less than `high`.
    """
    del low, high
    _refuse("randint")


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(f"bw.{name}() draws inside the loops of an operator; call it in a function with @bw.op")
