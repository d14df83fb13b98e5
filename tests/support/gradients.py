"""Derived gradients against central differences, all in the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from brickwork.ir.interpret import Argument, Memory, run_program
from brickwork.ir.nodes import Kernel, Launch, Program, parameter_tensors
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform.derive import Backward
from support.shared import define, derive, lower, verify_program
from support.tensors import argument_type, to_memory, to_tensor

STEP = 1e-6
KEY = 7


def numbers(*sizes: int) -> torch.Tensor:
    """Return normally distributed float64 numbers, the same for the same sizes."""
    generator = torch.Generator("cpu").manual_seed(sum(sizes) + 1)
    return torch.randn(*sizes, generator=generator, dtype=torch.float64, device="cpu")


def is_float(value: Any) -> bool:
    """Whether an argument is a float tensor or a list of them."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, torch.Tensor) and item.is_floating_point() for item in items)


def lowered(function: Callable[..., object], arguments: Sequence[Any]) -> Program:
    """Return the program of a function for the types of these arguments."""
    return lower(define(function), Signature(tuple(map(argument_type, arguments))))


def forward(program: Program, arguments: Sequence[Any]) -> list[torch.Tensor]:
    """Run a program; return the float tensors that it stored into, and then its float results."""
    memories = [_memory(argument) for argument in arguments]
    results = run_program(program, memories, key=KEY)
    names = {tensor.name for tensor in parameter_tensors(program.parameters, mutated=True)}
    tensors = parameter_tensors(program.parameters)
    flat = [item for memory in memories for item in (memory if isinstance(memory, list) else [memory])]
    given = [item for item in flat if isinstance(item, Memory)]
    stored = [memory for tensor, memory in zip(tensors, given, strict=True) if tensor.name in names]
    return [tensor for tensor in map(to_tensor, (*stored, *results)) if tensor.is_floating_point()]


def _memory(value: Any) -> Argument:
    if isinstance(value, torch.Tensor):
        return to_memory(value)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [to_memory(item) if isinstance(item, torch.Tensor) else item for item in items]
    return value


def derived(function: Callable[..., object], arguments: Sequence[Any], wanted: Sequence[bool] | None = None) -> Program:
    """Return the verified program of a function's gradients, of all float tensors if nothing else is said."""
    program = lowered(function, arguments)
    gradients = forward(program, arguments)
    asked = tuple(wanted if wanted is not None else map(is_float, arguments))
    signature = Signature(tuple(map(argument_type, (*arguments, *gradients))))
    result = derive(program, Backward(asked), signature)
    verify_program(result)
    return result


def kernel_of(program: Program) -> Kernel:
    """Return the kernel of a program."""
    return next(node.kernel for node in walk(program) if isinstance(node, Launch))


def check_gradients(
    function: Callable[..., object],
    *arguments: Any,
    wanted: Sequence[bool] | None = None,
    close: float = 1e-6,
) -> Program:
    """Assert that the derived gradients are those of central differences; return the derived program.

    Nothing but the gradients may be written.
    """
    program, result = lowered(function, arguments), derived(function, arguments, wanted)
    generator = torch.Generator().manual_seed(0)
    gradients = [
        torch.randn(item.shape, generator=generator, dtype=torch.float64).to(item.dtype)
        for item in forward(program, arguments)
    ]
    memories = [_memory(argument) for argument in (*arguments, *gradients)]
    found = [to_tensor(memory) for memory in run_program(result, memories, key=KEY)]
    for memory, argument in zip(memories, (*arguments, *gradients), strict=True):
        if isinstance(argument, torch.Tensor) and isinstance(memory, Memory):
            assert torch.equal(to_tensor(memory), argument)
    asked = tuple(wanted if wanted is not None else map(is_float, arguments))
    places = [place for place, chosen in enumerate(asked) if chosen]
    expected = [item for place in places for item in _differences(program, arguments, place, gradients)]
    for got, right in zip(found, expected, strict=True):
        assert got.shape == right.shape
        assert torch.allclose(got.double(), right, rtol=close, atol=close), (got, right)
    return result


def _differences(
    program: Program, arguments: Sequence[Any], place: int, gradients: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Return the gradients of one argument by central differences."""
    items: list[torch.Tensor] = (
        arguments[place] if isinstance(arguments[place], list) else [cast("torch.Tensor", arguments[place])]
    )
    result: list[torch.Tensor] = []
    for position, item in enumerate(items):
        found = torch.zeros(item.numel(), dtype=torch.float64)
        for at in range(item.numel()):
            ends: list[float] = []
            for step in (STEP, -STEP):
                moved = item.clone()
                moved.view(-1)[at] += step
                inner = [*items[:position], moved, *items[position + 1 :]]
                changed = [*arguments]
                changed[place] = inner if isinstance(arguments[place], list) else moved
                outputs = forward(program, changed)
                ends.append(sum((x * g).sum().item() for x, g in zip(outputs, gradients, strict=True)))
            found[at] = (ends[0] - ends[1]) / (2 * STEP)
        result.append(found.view(item.shape))
    return result
