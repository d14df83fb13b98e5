"""Random programs: Python, interpreter and compiled code agree, and what is proved to be free of races is.

`BRICKWORK_FUZZ_EXAMPLES` sets how many programs are tried.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import Definition, define
from brickwork.frontend.lower import lower
from brickwork.frontend.reference import python_function
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Kernel, Launch, Node, Program
from brickwork.ir.parse import parse_program
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_program
from brickwork.ir.verify import verify_kernel, verify_program
from brickwork.ir.walk import rewrite
from brickwork.target.cpu import host_target
from brickwork.transform.pipeline import schedule_kernel
from support.generate import Generated, programs
from support.tensors import argument_type, copy, to_memory, to_tensor

EXAMPLES = int(os.environ.get("BRICKWORK_FUZZ_EXAMPLES", "25"))
FAILURES = (IndexError, ZeroDivisionError, ValueError)
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="BRICKWORK_FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
numbers = itertools.count()


def definition_of(program: Generated, folder: Any) -> Definition | None:
    """Return the definition, or None where the types of the program do not go together."""
    try:
        definition = define(program.function(folder))
        lower(definition, signature_of(program.arguments()))
    except CompileError:
        return None
    return definition


def signature_of(arguments: tuple[torch.Tensor, ...]) -> Signature:
    return Signature(tuple(map(argument_type, arguments)))


def outcome(run: Any, arguments: tuple[Any, ...]) -> tuple[type[Exception] | None, tuple[Any, ...]]:
    try:
        run(*arguments)
    except FAILURES as error:
        return type(error), arguments
    return None, arguments


def interpreted(program: Program) -> Any:
    def run(*tensors: torch.Tensor) -> None:
        memories = [to_memory(item) for item in tensors]
        try:
            run_program(program, memories, check=True)
        finally:
            for tensor, memory in zip(tensors, memories, strict=True):
                tensor.copy_(to_tensor(memory))

    return run


def scheduled(program: Program) -> Program:
    target = host_target()

    def change(node: Node) -> Node:
        if isinstance(node, Launch):
            kernel = schedule_kernel(node.kernel, target)
            found = kernel if isinstance(kernel, Kernel) else kernel.kernel
            verify_kernel(found)
            return Launch(kernel=found)
        return node

    return rewrite(program, change)


def assert_same(one: Any, other: Any, source: str, *, tolerance: float = 0.0) -> None:
    assert one[0] is other[0], f"{one[0]} and {other[0]} of\n{source}"
    if one[0] is None:
        for left, right in zip(one[1], other[1], strict=True):
            torch.testing.assert_close(
                left, right, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda text: f"{text}\n{source}"
            )


@fuzz
@given(programs())
def test_python_interpreter_and_schedule_agree(tmp_path_factory, program):
    definition = definition_of(program, tmp_path_factory.getbasetemp())
    if definition is None:
        return
    arguments = program.arguments()
    lowered = lower(definition, signature_of(arguments))
    verify_program(lowered)
    text = print_program(lowered)
    assert print_program(parse_program(text)) == text
    expected = outcome(python_function(definition), tuple(map(copy, arguments)))
    assert_same(outcome(interpreted(lowered), tuple(map(copy, arguments))), expected, program.source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = scheduled(lowered)
    assert_same(outcome(interpreted(after), tuple(map(copy, arguments))), expected, program.source)


@fuzz
@given(programs())
def test_compiled_programs_agree_with_python(tmp_path_factory, program):
    definition = definition_of(program, tmp_path_factory.getbasetemp())
    if definition is None:
        return
    arguments = program.arguments()
    operator = bw.op(f"fuzz::program_{next(numbers)}")(definition.source.function)
    expected = outcome(python_function(definition), tuple(map(copy, arguments)))
    if any(not math.isfinite(float(item.double().abs().max())) for item in expected[1] if item.numel()):
        return
    found = outcome(operator, tuple(map(copy, arguments)))
    assert_same(found, expected, program.source, tolerance=0.0)
