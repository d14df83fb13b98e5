"""The table of small loop programs, as a user writes them, with the verdicts that exact reasoning reaches.

A verdict is a letter for each loop, in the order of the source: `p` independent, `r` independent but for reductions,
`s` in order. Nothing is run here; the programs stand in `verdicts_spaces.py`, `verdicts_numbers.py`,
`verdicts_elements.py` and `verdicts_steps.py`, and are data of `tests/unit/analysis/test_verdicts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import torch

Tensor: TypeAlias = torch.Tensor
Function = TypeVar("Function", bound=Callable[..., None])
INDICES = 0
"""Instead of a rank: a vector of int64."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A program, the verdicts of its loops, and the ranks of its tensors that are not vectors of float64."""

    function: Callable[..., None]
    letters: str
    ranks: Mapping[str, int]


VERDICTS: dict[str, Expected] = {}
"""The programs by name."""


def verdict(letters: str, **ranks: int) -> Callable[[Function], Function]:
    """Put a program into the table with the verdicts of its loops."""

    def keep(function: Function) -> Function:
        VERDICTS[function.__name__] = Expected(function, letters, ranks)
        return function

    return keep
