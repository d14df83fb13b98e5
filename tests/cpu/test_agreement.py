"""Three executions of every kernel of the suite agree: op.python, the interpreter, compiled code."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from brickwork.frontend.definition import Definition
from brickwork.frontend.reference import python_function
from brickwork.ir.interpret import run_program
from brickwork.ir.signature import Signature
from support.forms import SIZES, forms
from support.kernels import SUITE, Case
from support.pairs import in_turn
from support.shared import define, lower, verify_program
from support.sweep import sampled
from support.tensors import LAYOUTS, argument_type, copy, to_memory, to_tensor

KEY = 123456789012345
TOLERANCES = {torch.float16: 1e-3, torch.bfloat16: 1e-2, torch.float32: 4e-6, torch.float64: 1e-13}
"""Relative to the size of the numbers: a*b+c may contract, functions differ by a few units in the last place."""
NAMES = sorted(SUITE)


@functools.cache
def definition(name: str) -> Definition:
    return define(SUITE[name].function)


@functools.cache
def operator(name: str, vector_bytes: int) -> Any:
    made = bw.op(f"suite_{vector_bytes}::{name}")(SUITE[name].function)
    return made


def arguments_of(case: Case, size: int, layout: str) -> tuple[Any, ...]:
    mutated = definition(case.name).mutated
    names = [parameter.name for parameter in definition(case.name).parameters]
    change = LAYOUTS[layout]
    made = []
    for name, value in zip(names, case.arguments(size), strict=True):
        keep = not isinstance(value, torch.Tensor) or (layout == "expanded" and name in mutated)
        made.append(value if keep else change(value))
    return tuple(made)


def results_of(returned: Any, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    results = [] if returned is None else list(returned) if isinstance(returned, tuple | list) else [returned]
    return [*results, *(item for item in arguments if isinstance(item, torch.Tensor))]


def run_python(case: Case, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    named = {"key": KEY} if case.draws else {}
    return results_of(python_function(definition(case.name))(*arguments, **named), arguments)


def run_interpreter(case: Case, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    program = lower(definition(case.name), Signature(tuple(argument_type(item) for item in arguments)))
    verify_program(program)
    memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    results = run_program(program, memories, key=KEY, check=True)
    after = [to_tensor(item) for item in memories if not isinstance(item, bool | int | float | list | tuple)]
    return [*map(to_tensor, results), *after]


def run_compiled(case: Case, arguments: tuple[Any, ...], vector_bytes: int = 0) -> list[torch.Tensor]:
    named = {"key": KEY} if case.draws else {}
    with config.override(vector_bytes=vector_bytes):
        return results_of(operator(case.name, vector_bytes)(*arguments, **named), arguments)


def assert_same(one: list[torch.Tensor], other: list[torch.Tensor], case: Case | None = None) -> None:
    for left, right in zip(one, other, strict=True):
        exact = case is None or case.exact
        tolerance = 0.0 if exact else TOLERANCES.get(case.computed or left.dtype, 0.0)
        torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(("name", "size", "layout"), forms())
def test_python_and_interpreter_agree(name: str, size: str, layout: str) -> None:
    case = SUITE[name]
    arguments = arguments_of(case, SIZES[size], layout)
    expected = run_python(case, tuple(map(copy, arguments)))
    assert_same(run_interpreter(case, arguments), expected)


@pytest.mark.parametrize(("name", "size", "layout"), sampled(forms()))
def test_compiled_agrees_with_python(name: str, size: str, layout: str) -> None:
    case = SUITE[name]
    arguments = arguments_of(case, SIZES[size], layout)
    expected = run_python(case, tuple(map(copy, arguments)))
    assert_same(run_compiled(case, tuple(map(copy, arguments))), expected, case)


@pytest.mark.parametrize(("name", "widest"), sampled(in_turn(NAMES, [32, 64, 32], 1), 5))
def test_threads_and_vector_widths_change_no_bit(name: str, widest: int) -> None:
    case = SUITE[name]
    arguments = arguments_of(case, 37, "plain")
    before = torch.get_num_threads()
    found: list[list[torch.Tensor]] = []
    try:
        for threads, vector_bytes in ((1, 16), (2, widest)):
            torch.set_num_threads(threads)
            found.append(run_compiled(case, tuple(map(copy, arguments)), vector_bytes))
    finally:
        torch.set_num_threads(before)
    for left, right in zip(*found, strict=True):
        assert torch.equal(
            left.view(torch.uint8) if left.ndim else left, right.view(torch.uint8) if left.ndim else right
        )
