"""Every sharding that is found of a kernel of the suite holds: together, machines with shares have what one would have.

So do those of its gradients. The shares are uneven, and one is empty. The interpreter runs them, so no machines are
needed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from brickwork.analysis.sharding import PARTIAL, Sharding, find_shardings
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import Definition
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Program, Rebind
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform.derivation import Backward, Defined, Derived
from brickwork.transform.derive import program_of
from support.kernels import SUITE
from support.shared import define
from support.tensors import argument_type, to_memory, to_tensor

SIZE = 3
CUTS = (1, 1)
"""Where a machine's share ends and the next one's begins."""
NARROW = (torch.bfloat16, torch.float16)
NAMES = sorted(SUITE)


@functools.cache
def definition(name: str) -> Definition:
    return define(SUITE[name].function)


def lowered(defined: Defined, arguments: Sequence[Any]) -> Program:
    return program_of(defined, Signature(tuple(argument_type(item) for item in arguments)))


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


def check(program: Program, arguments: Sequence[Any]) -> int:
    """Compare what machines with shares have with what one has that does everything; return how many ways there are."""
    shardings = find_shardings(program)
    expected, written = run(program, arguments) if shardings else ([], [])
    for sharding in shardings:
        machines = [run(program, share) for share in spread(arguments, sharding)]
        for place, axis in enumerate(sharding.results):
            found = joined([results[place] for results, _ in machines], axis)
            # A sum of what each machine has rounded to few bits is off by some of them.
            off = 8 * torch.finfo(found.dtype).eps if axis == -1 and found.dtype in NARROW else None
            torch.testing.assert_close(found, expected[place], rtol=off, atol=off, msg=f"result {place} of {sharding}")
        for place, axis in enumerate(sharding.arguments):
            found = joined([after[place] for _, after in machines], axis)
            torch.testing.assert_close(found, written[place], msg=f"argument {place} of {sharding}")
    return len(shardings)


@pytest.mark.parametrize("name", NAMES)
def test_shares_together_are_the_whole(name):
    arguments = SUITE[name].arguments(SIZE)
    check(lowered(definition(name), arguments), arguments)


@pytest.mark.parametrize("name", NAMES)
def test_shares_of_gradients_together_are_the_whole(name):
    made = definition(name)
    arguments = SUITE[name].arguments(SIZE)
    results, after = run(lowered(made, arguments), arguments)
    is_float = [isinstance(item, torch.Tensor) and item.is_floating_point() for item in arguments]
    outputs = [item for item, declared in zip(after, made.parameters, strict=False) if declared.name in made.mutated]
    outputs += results
    if made.draws_random or not any(is_float) or any(isinstance(item, list) for item in arguments):
        return
    counts = tuple(int(isinstance(item, torch.Tensor)) for item in arguments)
    floats = tuple(output.is_floating_point() for output in outputs)
    derived = Derived(made, Backward(tuple(is_float)), floats, counts, (True,) * len(arguments))
    source = torch.Generator().manual_seed(1)
    floating = [output for output in outputs if output.is_floating_point()]
    grads = (torch.randn(output.shape, dtype=output.dtype, generator=source) for output in floating)
    given = (*arguments, *grads)
    try:
        program = lowered(derived, given)
    except CompileError:
        return
    if not any(isinstance(node, Rebind) for node in walk(program.body)):
        check(program, given)


def test_most_kernels_can_be_shared_out():
    counts = [len(find_shardings(lowered(definition(name), SUITE[name].arguments(SIZE)))) for name in NAMES]
    assert sum(map(bool, counts)) > len(NAMES) // 2
