"""Runs derived programs in the interpreter on torch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Program
from brickwork.ir.signature import Signature
from brickwork.transform.derivation import Derivation
from brickwork.transform.derive import base_signature
from support.shared import define, derive, lower, verify_program
from support.tensors import argument_type, to_memory, to_tensor


def derived(
    function: Callable[..., Any], arguments: Sequence[Any], *derivations: tuple[Derivation, Sequence[Any]]
) -> Program:
    """Return a function's program, derived again and again; `arguments` are those of the last program.

    Each derivation comes with the arguments that it adds. Every program on the way is verified.
    """
    definition = define(function)
    signatures = [Signature(tuple(map(argument_type, arguments)))]
    for derivation, added in reversed(derivations):
        count = len(signatures[-1].arguments) - len(added)
        signatures.append(base_signature(count, derivation, signatures[-1]))
    program = lower(definition, signatures.pop())
    for derivation, _ in derivations:
        program = derive(program, derivation, signatures.pop())
        verify_program(program)
    return program


def interpreted(program: Program, arguments: Sequence[Any], key: int = 0) -> list[torch.Tensor]:
    """Return the results of a program; what it writes of the arguments is written into them."""
    memories = [_argument(value) for value in arguments]
    results = [to_tensor(memory) for memory in run_program(program, memories, key=key)]
    for value, memory in zip(arguments, memories, strict=True):
        for tensor, item in zip(*(_items(value), _items(memory)), strict=True):
            if isinstance(tensor, torch.Tensor) and 0 not in tensor.stride():
                tensor.copy_(to_tensor(item))
    return results


def _argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return to_memory(value)
    return [_argument(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]
