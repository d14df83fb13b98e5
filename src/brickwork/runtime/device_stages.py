"""The stages of a compilation for GPUs, in order: what turns a definition and a signature into PTX and its entry.

No driver is needed for them: PTX becomes machine code where it is loaded (`device_code.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brickwork.codegen.builder import Module
from brickwork.codegen.device import emit_device_kernel
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.llvm import compile_device, compile_module
from brickwork.codegen.support import kernel_cell
from brickwork.ir.nodes import Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_program
from brickwork.ir.walk import statements
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.crash import surprises
from brickwork.runtime.libdevice import device_library
from brickwork.runtime.stage_files import StageFiles
from brickwork.runtime.stages import attempt_of, explained, program_of
from brickwork.target.target import Target
from brickwork.transform.derivation import Defined
from brickwork.transform.outline import is_nondeterministic
from brickwork.transform.pipeline import ScheduledKernel, schedule_program


def build(
    definition: Defined,
    signature: Signature,
    target: Target,
    host: Target,
    *,
    fast_math: bool = False,
    edited: Mapping[str, str] | None = None,
) -> Artifact:
    """Run all stages; `host` is the processor that launches. `edited` stages stand in for ours."""
    steps = StageFiles(edited or {})
    with surprises(attempt_of(definition, signature, (target, host), steps, fast_math=fast_math)):
        program = program_of(definition, signature, steps)
        artifact, kernels = emit(program, target, host, Module(fast_math=fast_math), steps)
        return explained(definition, signature, artifact, kernels)


def emit(
    program: Program, target: Target, host: Target, module: Module, steps: StageFiles
) -> tuple[Artifact, Sequence[ScheduledKernel]]:
    """Run the stages after the IR: the kernels of all launches, and the entry; failures have one numbering."""
    program, kernels = schedule_program(program, target)
    pieces = steps.reach("pieces", print_program(program))
    steps.reach("schedule", "\n".join((*(str(each.schedule) for each in kernels), pieces)))
    launches = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    names = tuple(emit_device_kernel(module, kernel, target).removeprefix("@") for kernel in launches)
    text = steps.reach("device", module.text())
    steps.reach("ptx", compile_device(text, target, device_library(text, target)))
    entry = Module(failures=[*module.failures])
    cells = {kernel.name: kernel_cell(number) for number, kernel in enumerate(launches)}
    description = emit_entry(entry, program, cells, host, target, nondeterministic=is_nondeterministic(program))
    code = compile_module(steps.reach("llvm", entry.text()), host)
    return Artifact(code, description, "", steps.reached, kernels=names), kernels
