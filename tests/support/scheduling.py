"""Runs functions as written and as scheduled in the interpreter, with races watched for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Launch, Node, Program
from brickwork.ir.walk import rewrite
from brickwork.target.target import Target
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.privatise import scratch_of
from support.lowering import Nested, memory, nested, program_of

AVX2 = Target(name="cpu", identity="test", vector_bytes=32, vector_registers=16, vector_library="none")
AVX512 = Target(name="cpu", identity="test", vector_bytes=64, vector_registers=32, vector_library="none")


def scheduled(program: Program, target: Target = AVX2) -> Program:
    """Return the program with each kernel as it would be compiled for a target."""
    scratch = scratch_of(program)

    def visit(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        return Launch(kernel=schedule_kernel(node.kernel, target, scratch=scratch).kernel)

    return rewrite(program, visit)


def agree(function: Callable[..., object], *arguments: object, target: Target = AVX2) -> Nested:
    """Run a function both ways on copies; return the first result, or else the first tensor after the call."""
    program = program_of(function, *arguments)
    plain = _run(program, arguments, check=False)
    fast = _run(scheduled(program, target), arguments, check=True)
    assert plain == fast
    return plain[0]


def _run(program: Program, arguments: Sequence[object], *, check: bool) -> tuple[Nested, ...]:
    given = [memory(nested(item), item.dtype) if isinstance(item, Memory) else item for item in arguments]
    results = run_program(program, cast("Sequence[Memory]", given), check=check)
    return tuple(nested(item) for item in (*results, *given) if isinstance(item, Memory))
