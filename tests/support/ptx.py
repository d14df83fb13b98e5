"""PTX of programs, and what the assembler says of it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from brickwork.codegen.builder import Module
from brickwork.codegen.device import emit_device_kernel
from brickwork.codegen.llvm import compile_device
from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.diagnostics.errors import DeviceError, RaceError
from brickwork.frontend.definition import Definition
from brickwork.ir.nodes import For, Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.runtime.cuda_toolkit import find_tool
from brickwork.runtime.libdevice import device_library
from brickwork.target.target import Target
from support.shared import define, lower, schedule_program
from support.tensors import argument_type

_KERNEL = re.compile(r"Compiling entry function '(\w+)'(.*?)Used (\d+) registers", re.DOTALL)
_MEMORY = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores")


@dataclass(frozen=True)
class Assembled:
    """What a kernel needs: registers, and bytes of its own memory for a stack and for registers that did not fit.

    Those with `matrix` instructions have many sums in registers, and blocks of few threads.
    """

    registers: int
    stack: int
    spilled: int
    matrix: bool = False


def program_for_gpu(function: Callable[..., Any], *arguments: Any, easy: bool = True) -> Program:
    """Return the program of a call on a GPU; tensors are small and aligned if it is `easy`."""
    known = getattr(function, "definition", None)
    definition = known if isinstance(known, Definition) else define(function)
    return lower(definition, Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=easy, aligned=easy))


def add_program(module: Module, program: Program, target: Target, *, tiles: slice | None = None) -> list[str]:
    """Add the kernels of a program to a module, or `tiles` of those that run by tiles; return their names."""
    scheduled, _ = schedule_program(program, target)
    kernels = [node.kernel for node in walk(scheduled.body) if isinstance(node, Launch)]
    if tiles is not None:
        kernels = [each for each in kernels if any(isinstance(node, For) and node.role.is_tile for node in walk(each))]
        kernels = kernels[tiles]
    return [emit_device_kernel(module, kernel, target) for kernel in kernels]


def ptx_of(
    programs: Iterable[Program], target: Target, *, rounding: Rounding = SOURCE, tiles: slice | None = None
) -> str:
    """Return the PTX of all kernels of some programs, or of some `tiles`, but those with claims that are refuted.

    Skips the test if it needs libdevice and there is none.
    """
    module = Module(rounding=rounding)
    for program in programs:
        with suppress(RaceError):
            add_program(module, program, target, tiles=tiles)
    text = module.text()
    try:
        return compile_device(text, target, device_library(text, target))
    except DeviceError as error:
        pytest.skip(str(error))


def assemble(ptx: str, target: Target, folder: Path) -> dict[str, Assembled]:
    """Return what each kernel needs; skips the test where there is no assembler."""
    tool = find_tool("ptxas")
    if tool is None:
        pytest.skip("there is no ptxas on this machine")
    source, code = folder / "kernels.ptx", folder / "kernels.cubin"
    source.write_text(ptx)
    machine = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    command = [str(tool), "-v", f"-arch={machine[1] if machine else target.cpu}", str(source), "-o", str(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    found: dict[str, Assembled] = {}
    for name, between, registers in _KERNEL.findall(done.stderr):
        memory = _MEMORY.search(between)
        assert memory is not None
        text = ptx.partition(f".entry {name}(")[2].partition(".entry ")[0]
        found[name] = Assembled(int(registers), int(memory[1]), int(memory[2]), "mma" in text)
    return found
