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
from brickwork.diagnostics.errors import RaceError
from brickwork.frontend.lower import lower
from brickwork.frontend.reference import python_function
from brickwork.ir.nodes import Kernel, Launch, Node, Program
from brickwork.ir.parse import parse_program
from brickwork.ir.text import print_program
from brickwork.ir.verify import verify_kernel, verify_program
from brickwork.ir.walk import rewrite
from brickwork.target.cpu import host_target
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.schedule import defaults
from support.fuzzing import assert_margins, definition_of, interpreted, is_small, outcome, races, signature_of
from support.generate import programs

EXAMPLES = int(os.environ.get("BRICKWORK_FUZZ_EXAMPLES", "25"))
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


def assert_same(one: Any, other: Any, source: str) -> None:
    assert one[0] is other[0], f"{one[0]} and {other[0]} of\n{source}"
    if one[0] is None:
        for left, right in zip(one[1], other[1], strict=True):
            torch.testing.assert_close(
                left, right, rtol=0.0, atol=0.0, equal_nan=True, msg=lambda text: f"{text}\n{source}"
            )


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
