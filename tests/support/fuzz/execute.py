"""The ways to run a case: Python, the checking interpreter, the interpreter on scheduled IR, and machine code."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast
from unittest.mock import patch

import torch

import brickwork as bw
from brickwork.codegen import parallel
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import Definition
from brickwork.frontend.parameter_parts import Form
from brickwork.ir.dtypes import DTYPES, DType
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Assign, For, Kernel, Launch, Program
from brickwork.ir.scalar_semantics import Number
from brickwork.ir.signature import Signature
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.runtime import stages
from brickwork.target.target import Target
from brickwork.transform import pipeline, privatise_reductions
from brickwork.transform.distribute import DISTRIBUTED_NUMBERS
from brickwork.transform.pipeline import ScheduledKernel
from brickwork.transform.promote import PROMOTED_NUMBERS
from brickwork.transform.recognise_reductions import RECOGNISED_NUMBERS
from brickwork.transform.schedule import defaults, panels
from brickwork.transform.wavefront import WAVEFRONT_NUMBERS
from support.fuzz.case import NAME, Case, block
from support.fuzz.guarded import Guard, placed
from support.tensors import argument_type

FAILURES = (IndexError, ZeroDivisionError, ValueError, AssertionError)
"""What a program's own checks raise."""
OVERFLOW = "without overflow"
"""What a RuntimeError says of a number that the elements which it is stored into cannot hold."""
_PROGRAM = re.compile(rf"{NAME}_\d+\.py$")
_PLACES = re.compile(rf"{NAME}_\d+\.py:(\d+)")
KEY = 5
Scheduled: TypeAlias = tuple[Program, tuple[ScheduledKernel, ...]]
"""A program as it is compiled, and its kernels."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the failure's type and words, if it failed, all memory after it, and the results.

    `outside` says what was touched beside the tensors, where that was watched; `lines` are those of the program that
    the failure names, the callers' among them.
    """

    failure: type[Exception] | None
    words: str
    memory: tuple[torch.Tensor, ...]
    results: tuple[torch.Tensor, ...] = ()
    outside: str = ""
    lines: frozenset[int] = frozenset()


def outcome(run: Callable[..., Any], case: Case, guard: Guard | None = None) -> Outcome:
    """Return how a run ends on the case's arguments, which lie in guarded memory if there is some."""
    chosen = case.make() if guard is None else placed(case.make(), guard.place)
    failure, words, lines = None, "", frozenset[int]()
    returned: Any = None
    try:
        returned = run(*chosen, **({"key": KEY} if case.draws else {}))
    except (*FAILURES, OverflowError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and (isinstance(error, CompileError) or OVERFLOW not in str(error)):
            raise
        failure = RuntimeError if isinstance(error, RuntimeError) else type(error)
        words, lines = str(error), _lines(error)
    memory = tuple(block(item).clone() for item in chosen if isinstance(item, torch.Tensor))
    results = cast("tuple[Any, ...]", returned if isinstance(returned, tuple) else (returned,))
    tensors = tuple(item for item in results if isinstance(item, torch.Tensor))
    return Outcome(failure, words, memory, tensors, "" if guard is None else guard.touched(), lines)


def _lines(error: Exception) -> frozenset[int]:
    """Return the lines of the program that a message names, or a traceback that goes through it."""
    frames = (frame.lineno for frame in traceback.extract_tb(error.__traceback__) if _PROGRAM.search(frame.filename))
    named = (int(line) for line in _PLACES.findall(str(error)))
    return frozenset(line for line in (*frames, *named) if line is not None)


def signature_of(case: Case, *, may_alias: bool = False) -> Signature:
    """Return the types of a case's arguments."""
    return Signature(tuple(map(argument_type, case.make())), may_alias=may_alias)


def in_interpreter(program: Program) -> Callable[..., Any]:
    """Return a function that runs a program in the checking interpreter; tensors share memory there as here."""

    def run(*arguments: Any, key: int = 0) -> Any:
        storages: dict[tuple[int, str], list[Number]] = {}
        given = [_memory(item, storages) if isinstance(item, torch.Tensor) else item for item in arguments]
        try:
            results = run_program(program, given, check=True, key=key)
        finally:
            for tensor, memory in zip(arguments, given, strict=True):
                if isinstance(tensor, torch.Tensor):
                    _write_back(tensor, cast("Memory", memory))
        return tuple(_tensor(item) for item in results)

    return run


def _memory(tensor: torch.Tensor, storages: dict[tuple[int, str], list[Number]]) -> Memory:
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    dtype: DType = DTYPES[str(tensor.dtype).removeprefix("torch.")]
    place = (tensor.untyped_storage().data_ptr(), dtype.name)
    if place not in storages:
        storages[place] = [item.item() for item in block(tensor)]
    return Memory(storages[place], tuple(tensor.shape), tensor.stride(), dtype, int(tensor.storage_offset()))


def _write_back(tensor: torch.Tensor, memory: Memory) -> None:
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    block(tensor).copy_(torch.tensor(memory.data, dtype=tensor.dtype))


def _tensor(memory: Memory) -> torch.Tensor:
    data = torch.tensor(memory.data, dtype=getattr(torch, memory.dtype.name))
    return data.as_strided(memory.sizes, memory.strides, memory.offset)


def kernels_of(program: Program) -> list[Kernel]:
    """Return the kernels of a program's launches."""
    return [node.kernel for node in program.body if isinstance(node, Launch)]


def scheduled(program: Program, target: Target, given: str = "") -> Scheduled:
    """Return a program as it is compiled for a target, by a schedule; raises RaceError for a refuted `prange`."""
    made = pipeline.schedule_program(program, target, given)
    verify_program(made[0])
    return made


@contextmanager
def taken(program: Program, target: Target, made: Scheduled) -> Generator[None]:
    """Let the compiler take what a program was scheduled to, instead of doing so again."""

    def schedule(other: Program, other_target: Target, *given: Any) -> Scheduled:
        if other == program and other_target == target:
            return made
        return pipeline.schedule_program(other, other_target, *given)

    with patch.object(stages, "schedule_program", schedule):
        yield


def rewritten(kernel: Kernel | None, after: Kernel) -> set[str]:
    """Return what transforms have done to the loops of a kernel, told by the numbers of what they make.

    None is that of a kernel that the program did not have.
    """
    loops = [node.index for node in walk(after) if isinstance(node, For)]
    numbers = {index.number for index in loops}
    numbers |= {node.symbol.number for node in walk(after) if isinstance(node, Assign)}
    begins = {
        "promoted elements": PROMOTED_NUMBERS,
        "distributed loops": DISTRIBUTED_NUMBERS,
        "recognised reductions": RECOGNISED_NUMBERS,
        "diagonals": WAVEFRONT_NUMBERS,
    }
    found = {name for name, begin in begins.items() if any(begin <= number < begin + 100_000 for number in numbers)}
    before = [node.index for node in walk(kernel or ()) if isinstance(node, For)]
    moved = list(dict.fromkeys(index for index in loops if index in before))
    return found | ({"interchanged loops"} if moved != [index for index in before if index in moved] else set())


def with_kernels(program: Program, kernels: Mapping[str, Kernel]) -> Program:
    """Return a program with other kernels, by name."""
    body = tuple(
        replace(node, kernel=kernels[node.kernel.name]) if isinstance(node, Launch) else node for node in program.body
    )
    return replace(program, body=body)


def operator_of(definition: Definition) -> Callable[..., Any]:
    """Return a case as an operator. Cases with the same schema share one name, and what is registered once for it."""
    marks = [f"{item.name}:{item.kind}:{item.name in definition.mutated}" for item in definition.parameters]
    text = f"{marks} {definition.results} {definition.draws_random} {definition.host}"
    name = hashlib.sha256(text.encode()).hexdigest()[:12]

    def known(*_: object) -> Definition:
        return definition

    with patch.object(sys.modules["brickwork.op"], "define", known):
        return with_objects(definition, bw.op(f"fuzz::program_{name}")(definition.source.function))


def with_objects(definition: Definition, operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator that is called with the parts of its objects, which it takes whole."""
    if definition.given is None:
        return operator
    forms = [*definition.given.forms.values()]
    # Of a refused call the operator says how it does not fit the function, which here takes the parts.
    cast("Any", operator).__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in definition.given.forms]
    )

    def call(*parts: Any, **named: Any) -> Any:
        rest = iter(parts)

        def made(form: Form | str | None) -> Any:
            return form.kind(*(made(part) for _, part in form.fields)) if isinstance(form, Form) else next(rest)

        return operator(*map(made, forms), **named)

    return call


@contextmanager
def small_pieces() -> Generator[None]:
    """Share small tensors out among threads, too: pieces of work are made small."""
    with (
        patch.object(parallel, "SHARE", 1),
        patch.object(parallel, "BLOCK_VECTORS", 1),
        patch.object(parallel, "CHUNKS", 5),
        patch.object(defaults, "LIGHT_CHUNK", 16),
        patch.object(defaults, "HEAVY_CHUNK", 3),
        patch.object(defaults, "REDUCTION_LANES", 8),
        patch.object(panels, "LEAST", 0),
        patch.object(panels, "STAGED_BYTES", 16),
        patch.object(panels, "STRIPS", 1),
        patch.object(panels, "WIDTH_BYTES", 64),
        patch.object(privatise_reductions, "PIECES", 3),
        patch.object(privatise_reductions, "SHARE", 5),
        patch.object(privatise_reductions, "PER_ELEMENT", 0),
    ):
        yield
