"""What a kernel of the suite is, and makers of arguments. The kernels are in `kernels.py` and its like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel of the suite. `exact` says that no rounding is left to the machine; `least` is the smallest size.

    `computed` is the type in which it computes, where that is not the type of its results.
    """

    function: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    exact: bool = False
    least: int = 0
    draws: bool = False
    computed: torch.dtype | None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__


SUITE: dict[str, Case] = {}
"""Every kernel by name."""


def case(
    arguments: Callable[[int], tuple[Any, ...]],
    *,
    exact: bool = False,
    least: int = 0,
    draws: bool = False,
    computed: torch.dtype | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the suite."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        SUITE[function.__name__] = Case(function, arguments, exact, least, draws, computed)
        return function

    return add


def floats(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return normally distributed numbers."""
    generator = torch.Generator().manual_seed(sum(sizes) + 1)
    return torch.randn(*sizes, generator=generator, dtype=torch.float64).to(dtype)


def integers(low: int, high: int, *sizes: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Return integers in [low, high)."""
    generator = torch.Generator().manual_seed(sum(sizes) + 2)
    return torch.randint(low, high, sizes, generator=generator).to(dtype)
