"""Machine code of the kernels that a first call launches, made by threads before it launches the first.

Entries ask for a kernel when they first launch it, so one after the other, and each takes LLVM and the driver a tenth
of a second. What sizes and numbers tell of the launches is known before. Nothing rests on it: another kernel is made
when it is launched, and what goes wrong here is told when the kernel is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from brickwork.codegen.llvm import processors
from brickwork.host.driver import Driver
from brickwork.ir.nodes import Launch
from brickwork.ir.walk import statements
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.device_code import Gpu, machine_code
from brickwork.runtime.launches import Argument, launches, pieces_of


def make_ahead(driver: Driver, artifact: Artifact, gpu: Gpu, arguments: Sequence[Argument]) -> None:
    """Put machine code of the kernels that a call launches into the cache; `arguments` are its sizes and numbers."""
    make_together(driver, artifact, gpu, launched(artifact, arguments))


def make_together(driver: Driver, artifact: Artifact, gpu: Gpu, names: Sequence[str]) -> None:
    """Put machine code of several kernels into the cache, made by threads; a single one is left to its load."""
    if len(names) < 2:
        return
    with ThreadPoolExecutor(min(len(names), processors())) as pool:
        wait([pool.submit(machine_code, driver, artifact, name, gpu) for name in names])


def launched(artifact: Artifact, arguments: Sequence[Argument]) -> tuple[str, ...]:
    """Return the names of the kernels of an artifact that a call launches, as far as that is known before it."""
    program = pieces_of(artifact)
    pieces = (node.kernel.name for node in statements(program.body) if isinstance(node, Launch))
    names = dict(zip(pieces, artifact.kernels, strict=True))
    found = launches(program, arguments, most=len(names))
    return tuple(dict.fromkeys(names[each.kernel] for each in found if each.blocks != 0))
