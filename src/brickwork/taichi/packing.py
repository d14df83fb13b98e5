"""Numbers of a call in tensors, where there are more than an operator of PyTorch takes as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Assign, Symbol, Tensor
from brickwork.taichi import state
from brickwork.taichi.builder import Builder
from brickwork.taichi.errors import unsupported

MOST_ARGUMENTS = 60
"""PyTorch takes 64 arguments of an operator: this leaves some to a random key and to what gradients are derived for."""


class Numbers:
    """Stands for the numbers of a call, of one kind."""


def pack(builder: Builder, symbols: Sequence[Symbol]) -> list[tuple[Tensor, int]]:
    """Load numbers from tensors before all else; return the tensors, each with how many numbers it has."""
    made: list[tuple[Tensor, int]] = []
    loads: list[Assign] = []
    for part, kind in (("integers", INT64), ("floats", FLOAT64)):
        own = [each for each in symbols if (each.dtype is FLOAT64) == (kind is FLOAT64)]
        if not own:
            continue
        tensor = builder.tensor(part, kind, 1, Numbers(), part)
        made.append((tensor, len(own)))
        for place, symbol in enumerate(own):
            value = build.cast(builder.load(tensor, (build.integer(place),), kind), symbol.dtype)
            loads.append(Assign(symbol=symbol, value=value, loc=builder.loc))
    builder.block[:0] = loads
    if len(builder.bound) > MOST_ARGUMENTS:
        raise unsupported(
            f"a kernel of {len(builder.bound)} fields and arrays", f"split it: {MOST_ARGUMENTS} are taken"
        )
    return made


def packed(part: str, numbers: Sequence[Any]) -> torch.Tensor:
    """Return the numbers of a call of one kind as a tensor."""
    kind = torch.float64 if part == "floats" else torch.int64
    own = [each for each in numbers if isinstance(each, float) == (part == "floats")]
    return torch.tensor(own, dtype=kind, device=state.settings().device)
