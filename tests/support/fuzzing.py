"""Running generated programs: their definitions, how a run ends, and which of them are no fair test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch

from brickwork.diagnostics.errors import CompileError, RaceError
from brickwork.frontend.definition import Definition, define
from brickwork.frontend.lower import lower
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Program
from brickwork.ir.signature import Signature
from support.generate import Generated
from support.tensors import argument_type, to_memory, to_tensor

FAILURES = (IndexError, ZeroDivisionError, ValueError)
KEY = 5
LARGEST = 1e6
"""Programs whose numbers grow beyond this are left out: their sums depend on the order."""
Outcome: TypeAlias = tuple[type[Exception] | None, list[torch.Tensor]]
"""How a run ended, and the memory around the tensors after it."""


def definition_of(program: Generated, folder: Path) -> Definition | None:
    """Return the definition, or None where the types of the program do not go together."""
    try:
        definition = define(program.function(folder))
        lower(definition, signature_of(program))
    except CompileError:
        return None
    return definition


def signature_of(program: Generated) -> Signature:
    """Return the types of the program's arguments."""
    return Signature(tuple(map(argument_type, program.arguments())))


def outcome(run: Callable[..., Any], program: Generated, arguments: Sequence[Any] | None = None) -> Outcome:
    """Return how a run ends on the program's arguments, or on those given."""
    chosen = program.arguments() if arguments is None else arguments
    failure = None
    try:
        run(*chosen, **({"key": KEY} if program.draws else {}))
    except FAILURES as error:
        failure = type(error)
    return failure, [block(item) for item in chosen if isinstance(item, torch.Tensor)]


def block(tensor: torch.Tensor) -> torch.Tensor:
    """Return all of the memory that a tensor lies in."""
    return tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)


def interpreted(program: Program) -> Callable[..., None]:
    """Return a function that runs a program in the checking interpreter."""

    def run(*arguments: Any, key: int = 0) -> None:
        given = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
        try:
            run_program(program, given, check=True, key=key)
        finally:
            for tensor, memory in zip(arguments, given, strict=True):
                if isinstance(tensor, torch.Tensor):
                    tensor.copy_(to_tensor(memory))

    return run


def is_small(found: Outcome) -> bool:
    """Whether no number has grown so large that the order of a sum would show."""
    return all(bool((item.double().abs() <= LARGEST).all()) for item in found[1])


def assert_margins(found: list[torch.Tensor], program: Generated) -> None:
    """Check that nothing around the tensors has changed, even where the program failed."""
    before = [block(item) for item in program.arguments() if isinstance(item, torch.Tensor)]
    for left, right in zip(found, before, strict=True):
        for part in (slice(0, program.margin), slice(-program.margin, None)):
            assert torch.equal(left[part].double(), right[part].double()), program.source


def races(definition: Definition, program: Generated) -> bool:
    """Whether a loop of the program is said to be independent and is not."""
    if not program.claims:
        return False
    try:
        outcome(interpreted(lower(definition, signature_of(program))), program)
    except RaceError:
        return True
    return False
