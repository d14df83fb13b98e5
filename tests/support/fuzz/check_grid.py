"""What must hold of every case scheduled for a GPU, without one: in the interpreter the pieces do as Python does.

Their kernels, and the host program that launches them, are written as LLVM, too, which nothing runs.
After a check that fails they go on, as they do there (`support/launches.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import llvmlite.binding
import torch

from brickwork.codegen.builder import FailureSite, Module
from brickwork.codegen.device import emit_device_kernel
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.support import kernel_cell
from brickwork.diagnostics.errors import CompileError, RaceError
from brickwork.frontend.definition import Definition, define
from brickwork.frontend.lower import lower
from brickwork.frontend.reference import python_function as in_python
from brickwork.ir.nodes import Launch, Program, Role
from brickwork.ir.signature import NARROW_SIZE, Signature
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.pytorch.arguments import with_values
from brickwork.target.cpu import host_target
from brickwork.target.cuda import cuda_target
from brickwork.target.target import Target
from brickwork.transform import free_parts, ranks, replicate_reductions, split_recurrences, split_reductions, split_rows
from brickwork.transform.pipeline import schedule_program
from brickwork.transform.schedule import grid, long_sums, register_tile, shared_work
from support.fuzz.case import Case, NumberArgument
from support.fuzz.check import agreed_outcome, compare, is_small
from support.fuzz.check_gradients import CLOSE, examine_gradients
from support.fuzz.execute import FAILURES, in_interpreter, outcome, rewritten, signature_of
from support.launches import as_launched

GPU = cuda_target((9, 0))
FEW = replace(GPU, threads=1)
"""Has enough to do with any nest."""
FREE = replace(GPU, launch_ns=0)
"""Launches cost nothing there."""


def examine_in_pieces(case: Case, folder: Path, *, close: float = 0.0) -> Counter[str]:
    """Run the pieces of a case in the interpreter; return what was seen, or raise FoundError.

    `close` is how far numbers may be apart: sums have another order there.
    """
    seen: Counter[str] = Counter(programs=1)
    with _small_pieces():
        try:
            definition = define(case.function(folder))
            program = lower(definition, _signature(case, definition))
            pieces, made = schedule_program(program, _target(case))
        except (CompileError, RaceError):
            seen["refused"] += 1
            return seen
        _write(pieces, _target(case))
        before = {node.kernel.name: node.kernel for node in walk(program.body) if isinstance(node, Launch)}
        for name in {name for item in made for name in rewritten(before.get(item.source.name), item.source)}:
            seen[f"programs with {name}"] += 1
        expected = outcome(in_python(definition), case)
        agreed = agreed_outcome(case, program, expected, seen) if is_small(expected, case) else None
        if agreed is None:
            return seen
        expected = agreed
        found = outcome(as_launched(in_interpreter(pieces), FAILURES), case)
        if found.failure is None or expected.failure is None:
            compare("pieces", found, expected, case, close=close)
        seen["compared"] += 1
    return seen


def examine_gradients_in_pieces(case: Case, folder: Path) -> Counter[str]:
    """Do so with a case, and with its derivatives; they are compared as `check_gradients` does."""
    seen = examine_in_pieces(case, folder, close=CLOSE)

    def run(program: Program, arguments: list[Any]) -> Sequence[torch.Tensor]:
        with _small_pieces():
            pieces, _ = schedule_program(program, _target(case))
        _write(pieces, _target(case))
        return as_launched(in_interpreter(pieces), FAILURES)(*arguments)

    easy = _is_easy(case)
    found = examine_gradients(case, folder, {"pieces": run}, {"device": "cuda", "narrow": easy, "aligned": easy})
    return seen + Counter({f"derivatives: {name}": count for name, count in found.items()})


def _write(program: Program, target: Target) -> None:
    """Verify a program, and write it as LLVM, which takes it."""
    verify_program(program)
    kernels = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    failures: list[FailureSite] = []
    device, entry = Module(failures=failures), Module(failures=failures)
    for kernel in kernels:
        emit_device_kernel(device, kernel, target)
    cells = {kernel.name: kernel_cell(number) for number, kernel in enumerate(kernels)}
    emit_entry(entry, program, cells, host_target(), target)
    for module in (device, entry):
        cast("Any", llvmlite.binding).parse_assembly(module.text()).verify()


def _target(case: Case) -> Target:
    return (FEW, FREE, GPU, GPU)[case.seed % 4]


def _is_easy(case: Case) -> bool:
    """Whether a case's arguments are called aligned and narrow: half of them are."""
    numbers = [item.value for item in case.arguments if isinstance(item, NumberArgument)]
    numbers = [value for value in numbers if isinstance(value, int | float)]
    return case.seed % 2 == 0 and all(abs(value) < NARROW_SIZE for value in numbers)


def _signature(case: Case, definition: Definition) -> Signature:
    """Return the types of the arguments; for half of the cases also that they are aligned and narrow.

    Two of three are for the values of their small rates, as calls are.
    """
    easy = _is_easy(case)
    found = replace(signature_of(case, may_alias=case.shares), device="cuda", narrow=easy, aligned=easy)
    if case.seed % 3 == 0:
        return found
    values = [item.value if isinstance(item, NumberArgument) else None for item in case.arguments]
    return replace(found, arguments=(*with_values(definition, found.arguments, values, "cuda"),))


@contextmanager
def _small_pieces() -> Generator[None]:
    """Let small nests be split and copied, too."""
    few = split_reductions.Limits(few=100, least=2, unit=1, enough=200, most=5)
    with (
        patch.multiple(grid, LIGHT_PIECE=3, SHORT=2),
        patch.multiple(replicate_reductions, FEW_COPIES=2, RUN=2, COPIES=3),
        patch.object(split_reductions, "THREADS", few),
        patch.object(split_reductions, "BLOCKS", replace(few, unit=2)),
        patch.multiple(split_rows, EVEN=replace(few, unit=2), RAGGED=few, few_iterations=_one),
        patch.object(split_reductions, "DEEP", few),
        patch.object(split_reductions, "TILES", replace(few, joined=Role.PARALLEL)),
        patch.object(register_tile, "busy_threads", _one),
        patch.object(long_sums, "LONG", 2),
        patch.object(free_parts, "SHORT", 1),
        patch.object(ranks, "UNROLLED", 2),
        patch.object(split_recurrences, "UNROLLED", 2),
        patch.object(shared_work, "_INSIDE", 200),
    ):
        yield


def _one(_target: Target) -> int:
    """Return so few iterations or threads that pieces and tiles are always worth it."""
    return 1
