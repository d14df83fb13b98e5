"""Random programs: Python, interpreter and compiled code agree, and what is proved to be free of races is.

`BRICKWORK_FUZZ_EXAMPLES` sets how many programs are tried. Pieces of work are made small, so that small tensors are
shared out among threads, too.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings

import brickwork as bw
from brickwork.codegen import parallel
from brickwork.config import config
from brickwork.diagnostics.errors import CompileError, RaceError
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
from brickwork.transform.schedule import defaults
from support.generate import Generated, programs
from support.tensors import argument_type, to_memory, to_tensor

EXAMPLES = int(os.environ.get("BRICKWORK_FUZZ_EXAMPLES", "25"))
FAILURES = (IndexError, ZeroDivisionError, ValueError)
KEY = 5
LARGEST = 1e6
"""Programs whose numbers grow beyond this are left out: their sums depend on the order."""
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="BRICKWORK_FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "CHUNK_COST", 1)
        patch.setattr(parallel, "BLOCK_VECTORS", 1)
        patch.setattr(parallel, "CHUNKS", 5)
        patch.setattr(defaults, "LIGHT_CHUNK", 16)
        patch.setattr(defaults, "HEAVY_CHUNK", 3)
        patch.setattr(defaults, "REDUCTION_LANES", 8)
        yield


def definition_of(program: Generated, folder: Any) -> Definition | None:
    """Return the definition, or None where the types of the program do not go together."""
    try:
        definition = define(program.function(folder))
        lower(definition, signature_of(program))
    except CompileError:
        return None
    return definition


def signature_of(program: Generated) -> Signature:
    return Signature(tuple(map(argument_type, program.arguments())))


def outcome(run: Any, program: Generated) -> tuple[type[Exception] | None, list[torch.Tensor]]:
    """Return how a run ends, and the memory around the tensors after it."""
    arguments = program.arguments()
    failure = None
    try:
        run(*arguments, **({"key": KEY} if program.draws else {}))
    except FAILURES as error:
        failure = type(error)
    return failure, [block(item) for item in arguments if isinstance(item, torch.Tensor)]


def block(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)


def interpreted(program: Program) -> Any:
    def run(*arguments: Any, key: int = 0) -> None:
        given = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
        try:
            run_program(program, given, check=True, key=key)
        finally:
            for tensor, memory in zip(arguments, given, strict=True):
                if isinstance(tensor, torch.Tensor):
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


def is_small(expected: tuple[type[Exception] | None, list[torch.Tensor]]) -> bool:
    return all(bool((item.double().abs() <= LARGEST).all()) for item in expected[1])


def assert_same(one: Any, other: Any, source: str) -> None:
    assert one[0] is other[0], f"{one[0]} and {other[0]} of\n{source}"
    if one[0] is None:
        for left, right in zip(one[1], other[1], strict=True):
            torch.testing.assert_close(
                left, right, rtol=0.0, atol=0.0, equal_nan=True, msg=lambda text: f"{text}\n{source}"
            )


def assert_margins(found: list[torch.Tensor], program: Generated) -> None:
    """Check that nothing around the tensors has changed, even where the program failed."""
    before = [block(item) for item in program.arguments() if isinstance(item, torch.Tensor)]
    for left, right in zip(found, before, strict=True):
        for part in (slice(0, program.margin), slice(-program.margin, None)):
            assert torch.equal(left[part].double(), right[part].double()), program.source


@fuzz
@given(programs(shared=False))
def test_python_interpreter_and_schedule_agree(tmp_path_factory, program):
    definition = definition_of(program, tmp_path_factory.getbasetemp())
    if definition is None:
        return
    lowered = lower(definition, signature_of(program))
    verify_program(lowered)
    text = print_program(lowered)
    assert print_program(parse_program(text)) == text
    expected = outcome(python_function(definition), program)
    if not is_small(expected):
        return
    try:
        assert_same(outcome(interpreted(lowered), program), expected, program.source)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            after = scheduled(lowered)
    except RaceError:
        assert program.claims
        return
    assert_same(outcome(interpreted(after), program), expected, program.source)


@fuzz
@given(programs())
def test_compiled_programs_agree_with_python(tmp_path_factory, program):
    definition = definition_of(program, tmp_path_factory.getbasetemp())
    if definition is None or races(definition, program):
        return
    expected = outcome(python_function(definition), program)
    if not is_small(expected):
        return
    operator = bw.op(f"fuzz::program_{next(numbers)}")(definition.source.function)
    before = torch.get_num_threads()
    try:
        for threads, vector_bytes in ((1, program.vector_bytes), (2, program.vector_bytes)):
            torch.set_num_threads(threads)
            with config.override(vector_bytes=vector_bytes):
                found = outcome(operator, program)
            assert_same(found, expected, program.source)
            assert_margins(found[1], program)
    except RaceError:
        assert program.claims
    finally:
        torch.set_num_threads(before)


def races(definition: Definition, program: Generated) -> bool:
    """Whether a loop of the program is said to be independent and is not."""
    if not program.claims:
        return False
    try:
        outcome(interpreted(lower(definition, signature_of(program))), program)
    except RaceError:
        return True
    return False
