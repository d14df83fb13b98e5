"""What must hold of every contraction: in tiles, or in panels, it gives what plain Python gives.

Python runs the source on floats of 64 bits. Sums of small integers and of halves are exact in any order: they are
compared bit for bit, other ones within a bound. Without a GPU the schedules for one run in the interpreter, by tiles of
few rows, and a kernel is assembled: it spills no register, and groups of warps run on.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from brickwork.codegen.builder import Module
from brickwork.codegen.device import emit_device_kernel
from brickwork.codegen.llvm import compile_device
from brickwork.codegen.rounding import SOURCE
from brickwork.config import config
from brickwork.frontend.definition import Definition, define
from brickwork.frontend.lower import lower
from brickwork.ir.nodes import For, Kernel, Launch, Program, Role
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.runtime.cuda_toolkit import find_tool
from brickwork.runtime.libdevice import device_library
from brickwork.target import matrix
from brickwork.target.cuda import cuda_target
from brickwork.target.matrix import Form
from brickwork.target.target import Target
from brickwork.transform import nests_apart
from brickwork.transform.pipeline import schedule_program
from brickwork.transform.schedule import contract
from brickwork.transform.schedule.panels import PANELS
from support.fuzz.case import Case, TensorArgument
from support.fuzz.check import FoundError, compare
from support.fuzz.execute import in_interpreter, operator_of, outcome, signature_of, small_pieces
from support.scheduling import AVX2

SPILLED = 64
"""Bytes: some registers of a computed factor beside the sums of the largest tile."""
CAPABILITIES = ((9, 0), (8, 0))
"""Of GPUs whose kernels are assembled: one multiplies by groups of warps, the other by warps."""
ASSEMBLED = 5
"""Of so many programs one has a kernel assembled."""
_SINGLE = 2.0**-23
_FEW = (Form(2, 3, chunked=False, terms=1), Form(3, 4, chunked=True, terms=1), Form(4, 2, chunked=True, terms=2))
"""Tiles of few rows: the interpreter runs their loops, whatever their sizes."""
_MET = (Form(3, 2, chunked=False, terms=1), Form(4, 3, chunked=True, terms=1))


def examine_contraction(case: Case, folder: Path, device: str) -> Counter[str]:
    """Compare a contraction on a device, or for a grid or in panels in the interpreter; return what was seen."""
    seen: Counter[str] = Counter(programs=1)
    function = case.function(folder)
    definition = define(function)
    plain = _Plain(function)
    expected = outcome(plain, case)
    if device == "grid":
        found = outcome(in_interpreter(_in_tiles(case, definition, seen)), case)
    elif device == "panels":
        found = outcome(in_interpreter(_in_panels(case, definition, seen)), case)
    elif device == "cuda":
        from support.fuzz.check_cuda import outcome_on_gpu  # torch starts CUDA there

        found = outcome_on_gpu(case, definition)
    else:
        with config.override(cache_size=0), small_pieces():
            found = outcome(operator_of(definition), case)
    if any(isinstance(item, TensorArgument) and item.data == "smooth" for item in case.arguments):
        _nearly(found.memory[-1], expected.memory[-1], plain.magnitude)
        found = replace(found, memory=(*found.memory[:-1], expected.memory[-1]))
    compare(device or "machine code", found, expected, case)
    seen["compared"] += 1
    return seen


# ---------------------------------------------------------------- plain Python


@dataclass(slots=True)
class _Elements:
    """A tensor's elements, as Python's numbers; `reads` counts how often one was read."""

    data: list[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    reads: int = 0

    def __getitem__(self, place: Any) -> Any:
        self.reads += 1
        return self.data[self._place(place)]

    def __setitem__(self, place: Any, value: Any) -> None:
        self.data[self._place(place)] = value

    def _place(self, place: Any) -> int:
        if isinstance(place, int):
            return place * self.strides[0]
        return sum(map(int.__mul__, place, self.strides))


@dataclass(slots=True)
class _Plain:
    """Runs a function as plain Python; `magnitude` is the most that its sums may be, were all terms positive."""

    function: Callable[..., None]
    magnitude: float = 0.0

    def __call__(self, *tensors: torch.Tensor) -> None:
        dense = [item.contiguous() for item in tensors]
        given = [
            _Elements([each.item() for each in item.flatten()], tuple(item.shape), item.stride()) for item in dense
        ]
        self.function(*given)
        largest = [float(item.double().abs().max()) if item.numel() else 0.0 for item in tensors[:-1]]
        terms = max(item.reads for item in given) / max(tensors[-1].numel(), 1)
        self.magnitude = terms * math.prod(1 + 2 * each for each in largest)
        tensors[-1].copy_(torch.tensor(given[-1].data, dtype=torch.float64).reshape(tensors[-1].shape))


def _nearly(found: torch.Tensor, expected: torch.Tensor, magnitude: float) -> None:
    """Raise FoundError unless numbers are near enough: sums of float32 in any order, and one rounding."""
    one, other = found.double(), expected.double()
    most = magnitude * _SINGLE + 2 * torch.finfo(found.dtype).eps * other.abs()
    if not bool(((one - other).abs() <= most).all()):
        raise FoundError("bound", f"{(one - other).abs().max()} is more than {most.max()}")


# ---------------------------------------------------------------- schedules


def _in_panels(case: Case, definition: Definition, seen: Counter[str]) -> Program:
    """Return a program as it is scheduled for a processor, in small panels."""
    with small_pieces():
        found, kernels = schedule_program(lower(definition, signature_of(case)), AVX2)
    seen["contractions"] += any(version.name == PANELS for item in kernels for version in item.versions)
    return found


def _in_tiles(case: Case, definition: Definition, seen: Counter[str]) -> Program:
    """Return a program as it is scheduled for a GPU, by tiles of few rows; one of its kernels is assembled."""
    easy = case.seed % 3 > 0
    program = lower(definition, replace(signature_of(case), device="cuda", narrow=easy, aligned=easy))
    target = cuda_target(CAPABILITIES[case.seed % len(CAPABILITIES)])
    if case.seed % ASSEMBLED == 0:
        contracted = [item for item in _kernels(schedule_program(program, target)[0]) if _is_contracted(item)]
        seen["assembled"] += bool(contracted)
        if contracted:
            _assemble(contracted[case.seed // ASSEMBLED % len(contracted)], target)
    with few_rows():
        pieces, _ = schedule_program(program, target)
    verify_program(pieces)
    seen["contractions"] += any(map(_is_contracted, _kernels(pieces)))
    return pieces


def _kernels(program: Program) -> Iterator[Kernel]:
    return (node.kernel for node in walk(program.body) if isinstance(node, Launch))


def _is_contracted(kernel: Kernel) -> bool:
    roles = {Role.CONTRACT, Role.CONTRACT_GROUPS}
    return any(isinstance(node, For) and node.role in roles for node in walk(kernel))


@contextmanager
def few_rows() -> Generator[None]:
    """Let contractions of few rows and terms be worth tiles."""
    with (
        patch.multiple(contract, FORMS=_FEW, MET=_MET, ROW_BYTES=16, CHUNK_BYTES=8),
        patch.multiple(contract, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=1, FULL=0),
        patch.object(matrix, "GROUP_ROWS", 1),
        patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=1),
    ):
        yield


def _assemble(kernel: Kernel, target: Target) -> None:
    """Raise FoundError if a kernel spills registers, or if its groups of warps wait; nothing without an assembler."""
    tool = find_tool("ptxas")
    if tool is None:
        return
    module = Module(rounding=SOURCE)
    emit_device_kernel(module, kernel, target)
    text = module.text()
    ptx = compile_device(text, target, device_library(text, target))
    machine = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    command = [str(tool), "-v", "-c", f"-arch={machine[1] if machine else target.cpu}", "-o", os.devnull, "-"]
    said = subprocess.run(command, input=ptx, capture_output=True, text=True, check=False)
    if said.returncode:
        raise FoundError("assembly", said.stderr[:2000])
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill stores", said.stderr)))
    if spilled > SPILLED:
        raise FoundError("spills", f"{spilled} bytes of {kernel.name}")
    if waits := re.findall(r"\(C75\d\d\).*", said.stderr):
        raise FoundError("groups wait", waits[0])
