"""Runs any program as machine code on the CPU, as an operator of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from brickwork.ir.nodes import Program, Return
from brickwork.ir.walk import walk
from brickwork.pytorch.gate import ArgumentKind
from brickwork.target.cpu import host_target
from support.entries import Operator
from support.shared import schedule_program

_KINDS: dict[type, ArgumentKind] = {
    torch.Tensor: ArgumentKind.TENSOR,
    bool: ArgumentKind.BOOL,
    int: ArgumentKind.INT,
    float: ArgumentKind.FLOAT,
}


def compiled(program: Program, arguments: Sequence[Any]) -> list[torch.Tensor]:
    """Return the results of a program for tensors and numbers; it is compiled for this one call."""
    kinds = [_KINDS[type(item)] for item in arguments]
    names = ", ".join(f"{kind.value} a{place}" for place, kind in enumerate(kinds))
    count = sum(len(node.tensors) for node in walk(program) if isinstance(node, Return))
    results = ", ".join(["Tensor"] * count)
    made = Operator(names, f"({results})", kinds, lambda _: schedule_program(program, host_target())[0])
    found = made(*arguments)
    return [found] if isinstance(found, torch.Tensor) else [*cast("Sequence[torch.Tensor]", found or ())]
