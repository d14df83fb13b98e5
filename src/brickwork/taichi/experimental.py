"""`ti.experimental`: an older name of `ti.real_func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brickwork.diagnostics.warn import tell
from brickwork.taichi import functions


def real_func(func: Callable[..., Any]) -> functions.Func:
    """Make a function as `ti.real_func` does, and say that this is its name."""
    said = "ti.experimental.real_func is deprecated because it is no longer experimental. Use ti.real_func instead."
    tell(said, DeprecationWarning)
    return functions.real_func(func)
