"""Runs functions as written and as scheduled in the interpreter, with races watched for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast
from zlib import crc32

from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import For, Kernel, Launch, Node, Program
from brickwork.ir.signature import Signature
from brickwork.ir.walk import rewrite, walk
from brickwork.target.cuda import cuda_target
from brickwork.target.target import Target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.privatise import scratch_of
from support.lowering import Nested, argument_type, memory, nested, program_of
from support.shared import define, lower, schedule_program, verify_program

AVX2 = Target(name="cpu", identity="test", vector_bytes=32, vector_registers=16, vector_library="none")
AVX512 = Target(name="cpu", identity="test", vector_bytes=64, vector_registers=32, vector_library="none")
GPU = cuda_target((9, 0))


def scheduled(program: Program, target: Target = AVX2) -> Program:
    """Return the program with each kernel as it would be compiled for a target."""
    program = canonical(program)
    scratch = scratch_of(program)

    def visit(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        return Launch(kernel=schedule_kernel(node.kernel, target, scratch=scratch).kernel)

    return rewrite(program, visit)


def kernel_of(function: Callable[..., object], *arguments: object) -> Kernel:
    """Return the only kernel of a function for the types of these arguments, as it is before it is scheduled."""
    (launch,) = [node for node in walk(program_of(function, *arguments)) if isinstance(node, Launch)]
    return launch.kernel


def loops_of(kernel: Kernel) -> dict[str, For]:
    """Return the loops of a kernel by the names of their indices."""
    return {node.index.name: node for node in walk(kernel) if isinstance(node, For)}


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


def same(function: Callable[..., object], *arguments: object, may_alias: bool = False) -> tuple[Nested, ...]:
    """Run a function as written, as for a processor and, if nothing fails, as for a GPU; return what it leaves.

    That are its results and the tensors among its arguments. All ways give the same: also the failure, and what was
    written before it. A third of the functions, by their names, run as for a processor with wider vectors, too.
    """
    types = tuple(map(argument_type, arguments))
    program = way(function, Signature(types, may_alias=may_alias))
    written, failure = _outcome(program, arguments, check=False)
    wide = crc32(function.__qualname__.encode()) % 3 == 0
    for target in (AVX2, AVX512) if wide else (AVX2,):
        ways = way(function, Signature(types, may_alias=may_alias), target)
        assert _outcome(ways, arguments, check=True) == (written, failure), target
    if not failure:
        signature = Signature(types, device="cuda", may_alias=may_alias, narrow=True, aligned=True)
        pieces = way(function, signature, GPU)
        assert _outcome(pieces, arguments, check=True) == (written, failure), "GPU"
    return written


def way(function: Callable[..., object], signature: Signature, target: Target | None = None) -> Program:
    """Return the program of a function, as it is written or as it is scheduled for a target."""
    if target is None:
        return lower(define(function), signature)
    scheduled_for_target = schedule_program(way(function, signature), target)[0]
    verify_program(scheduled_for_target)
    return scheduled_for_target


def _outcome(program: Program, arguments: Sequence[object], *, check: bool) -> tuple[tuple[Nested, ...], str]:
    """Return what a program leaves in its results and its arguments, of which two may share memory, and its failure."""
    copies: dict[int, list[float]] = {}
    given: list[object] = []
    for item in arguments:
        if isinstance(item, Memory):
            data = copies.setdefault(id(item.data), [*item.data])
            item = Memory(data, item.sizes, item.strides, item.dtype, item.offset)
        given.append(item)
    results: Sequence[object] = ()
    failure = ""
    try:
        results = run_program(program, cast("Sequence[Memory]", given), check=check)
    except (IndexError, ZeroDivisionError, AssertionError) as error:
        failure = repr(error)
    return tuple(nested(item) for item in (*results, *given) if isinstance(item, Memory)), failure
