"""One function run in four ways: as plain Python over torch's tensors, as op.python, by the interpreter, compiled."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

import brickwork as bw
from brickwork.frontend.reference import python_function
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Return
from brickwork.ir.signature import Signature
from support.shared import define, lower, verify_program
from support.tensors import argument_type, to_memory, to_tensor


def _outcome(run: Callable[..., Any], arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    given = copy.deepcopy(arguments)
    returned = run(*given)
    results: list[Any] = [returned]
    if returned is None or isinstance(returned, tuple | list):
        results = list(cast("Sequence[Any]", returned or ()))
    found = [*results, *(item for item in given if isinstance(item, torch.Tensor))]
    return [torch.as_tensor(item) for item in found]


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    definition = define(function)

    def run(*arguments: Any) -> Any:
        program = lower(definition, Signature(tuple(map(argument_type, arguments))))
        verify_program(program)
        memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
        results = run_program(program, memories, check=True)
        for given, after in zip(arguments, memories, strict=True):
            if isinstance(given, torch.Tensor):
                given.copy_(_of_parts(to_tensor(after), pairs=given.is_complex()))
        returned = next(node for node in program.body if isinstance(node, Return))
        pairs = zip(results, returned.tensors, strict=True)
        return tuple(_of_parts(to_tensor(result), pairs=tensor.type.pairs) for result, tensor in pairs)

    return run


def _of_parts(tensor: torch.Tensor, *, pairs: bool) -> torch.Tensor:
    """Return the complex tensor with these parts."""
    return torch.view_as_complex(tensor.contiguous()) if pairs else tensor


def agree(function: Callable[..., Any], *arguments: Any, plain: bool = True, name: str = "") -> bw.Op:
    """Compare the four; without `plain` (where torch's views would tell the difference) the last three."""
    operator = bw.op(f"fourfold::{name or function.__name__}")(function)
    compiled = _outcome(operator, arguments)
    others = {"op.python": python_function(define(function)), "the interpreter": _interpreted(function)}
    if plain:
        others["plain Python"] = function
    for way, run in others.items():
        found = _outcome(run, arguments)
        assert len(found) == len(compiled), way
        for one, other in zip(compiled, found, strict=True):
            torch.testing.assert_close(
                one, other.to(one.dtype), equal_nan=True, msg=lambda text, way=way: f"{way}: {text}"
            )
    return operator


def failure(function: Callable[..., Any], *arguments: Any) -> tuple[type[BaseException], str]:
    """Return the exception of compiled code, after checking that op.python raises one of that type and text."""
    operator = bw.op(f"fourfold::{function.__name__}")(function)
    found: list[tuple[type[BaseException], str]] = []
    for run in (operator, operator.python):
        try:
            run(*copy.deepcopy(arguments))
        except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
            found.append((type(error), str(error).splitlines()[-1]))
    assert len(found) == 2, found
    assert found[0][0] is found[1][0]
    return found[0]
