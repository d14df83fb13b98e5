"""The stages of a compilation for GPUs, in order: what turns a definition and a signature into PTX and its entry.

No driver is needed for them: PTX becomes machine code where it is loaded (`device_code.py`).
"""

from __future__ import annotations

from brickwork.codegen.builder import Module
from brickwork.codegen.device import emit_device_kernel
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.llvm import compile_device, compile_module
from brickwork.codegen.support import kernel_cell
from brickwork.frontend.definition import Definition
from brickwork.frontend.lower import lower
from brickwork.ir.nodes import Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_program
from brickwork.ir.walk import walk
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.libdevice import device_library
from brickwork.runtime.stages import finished, surprises
from brickwork.target.target import Target
from brickwork.transform.explain import explain
from brickwork.transform.pieces import unordered
from brickwork.transform.pipeline import schedule_program


def build(
    definition: Definition, signature: Signature, target: Target, host: Target, *, fast_math: bool = False
) -> Artifact:
    """Run all stages; `host` is the processor that launches."""
    reached: dict[str, str] = {}
    with surprises(definition, signature, reached):
        program = lower(definition, signature)
        reached["ir"] = print_program(program)
        program, scheduled = schedule_program(program, target)
        reached["pieces"] = print_program(program)
        reached["schedule"] = "\n".join((*(str(each.schedule) for each in scheduled), reached["pieces"]))
        artifact = _emit(program, target, host, Module(fast_math=fast_math), reached)
        return finished(definition, signature, artifact, [explain(each) for each in scheduled])


def _emit(program: Program, target: Target, host: Target, module: Module, reached: dict[str, str]) -> Artifact:
    """Emit the kernels of all launches, and the entry; failures have one numbering, the kernels' first."""
    launches = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    names = tuple(emit_device_kernel(module, kernel, target).removeprefix("@") for kernel in launches)
    text = reached["device"] = module.text()
    reached["ptx"] = compile_device(text, target, device_library(text, target))
    entry = Module(failures=[*module.failures])
    cells = {kernel.name: kernel_cell(number) for number, kernel in enumerate(launches)}
    description = emit_entry(entry, program, cells, host, target, unordered=unordered(program))
    reached["llvm"] = entry.text()
    return Artifact(compile_module(reached["llvm"], host), description, "", reached, names)
