"""Every sharding that is found of a kernel of the suite holds: machines with shares have, together, what one would have.

The shares are uneven, and one is empty. The interpreter runs them, so no machines are needed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from brickwork.analysis.sharding import PARTIAL, Sharding, find_shardings
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Program
from brickwork.ir.signature import Signature
from support.kernels import SUITE
from support.tensors import argument_type, to_memory, to_tensor

SIZE = 5
CUTS = (2, 2)
"""Where a machine's share ends and the next one's begins."""


@functools.cache
def program_and_shardings(name: str) -> tuple[Program | None, tuple[Sharding, ...]]:
    """Return the program of a kernel, if its host part is compiled, and how its work may be shared out."""
    definition = define(SUITE[name].function)
    if definition.host == "python":
        return None, ()
    types = tuple(argument_type(item) for item in SUITE[name].arguments(SIZE))
    program = lower(definition, Signature(types))
    return program, find_shardings(program)


def run(program: Program, arguments: Sequence[Any]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the results, and the tensors among the arguments as they are afterwards."""
    memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    results = run_program(program, memories, key=0, check=False)
    after = [to_tensor(m) for m, item in zip(memories, arguments, strict=True) if isinstance(item, torch.Tensor)]
    return [*map(to_tensor, results)], after


def joined(parts: Sequence[torch.Tensor], axis: int | None) -> torch.Tensor:
    """Return what several machines have as one tensor."""
    if axis is None:
        assert all(torch.equal(part, parts[0]) for part in parts)
        return parts[0]
    if axis == PARTIAL:
        return functools.reduce(torch.add, parts)
    return torch.cat([*parts], axis)


def spread(arguments: Sequence[Any], sharding: Sharding) -> list[tuple[Any, ...]]:
    """Return the arguments of each machine."""
    axes = iter(sharding.arguments)
    shares: list[list[Any]] = []
    for item in arguments:
        axis = next(axes) if isinstance(item, torch.Tensor) else None
        if axis is None:
            shares.append([item] * (len(CUTS) + 1))
        else:
            shares.append([part.contiguous() for part in item.tensor_split(CUTS, axis)])
    return [*zip(*shares, strict=True)]


@pytest.mark.parametrize("name", sorted(SUITE))
def test_shares_together_are_the_whole(name):
    program, shardings = program_and_shardings(name)
    if program is None:
        pytest.skip("its host part runs in Python")
    arguments = SUITE[name].arguments(SIZE)
    if not shardings:
        return
    expected, written = run(program, arguments)
    for sharding in shardings:
        machines = [run(program, share) for share in spread(arguments, sharding)]
        for place, axis in enumerate(sharding.results):
            found = joined([results[place] for results, _ in machines], axis)
            torch.testing.assert_close(found, expected[place], msg=f"result {place} of {sharding}")
        for place, axis in enumerate(sharding.arguments):
            found = joined([after[place] for _, after in machines], axis)
            torch.testing.assert_close(found, written[place], msg=f"argument {place} of {sharding}")


def test_most_kernels_can_be_shared_out():
    assert sum(bool(program_and_shardings(name)[1]) for name in SUITE) > len(SUITE) // 2
