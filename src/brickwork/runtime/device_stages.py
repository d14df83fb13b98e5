"""The stages of a compilation for GPUs, in order: what turns a definition and a signature into kernels and their entry.

Kernels are IR here, and LLVM where they can fail: the entry has the numbers of failures. Each becomes LLVM, PTX
(`device_ptx.py`) and machine code (`device_code.py`) when it is first launched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brickwork.codegen.builder import FailureSite, Module
from brickwork.codegen.device import device_name, emit_device_kernel, shared_bytes
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.llvm import compile_module
from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.codegen.support import kernel_cell
from brickwork.config import config
from brickwork.ir.dtypes import DType
from brickwork.ir.nodes import Check, Kernel, Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_kernel, print_program
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import statements
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.crash import surprises
from brickwork.runtime.device_ptx import keys_of, ptx_of, rounded
from brickwork.runtime.kernel_texts import joined, separated
from brickwork.runtime.stage_files import StageFiles
from brickwork.runtime.stages import attempt_of, explained, program_of, required_default
from brickwork.target.target import Target
from brickwork.transform.derivation import Defined
from brickwork.transform.explanation import Explanation
from brickwork.transform.outline import is_nondeterministic
from brickwork.transform.pipeline import ScheduledKernel, schedule_program


def build(
    definition: Defined,
    signature: Signature,
    target: Target,
    host: Target,
    *,
    rounding: Rounding = SOURCE,
    edited: Mapping[str, str] | None = None,
) -> Artifact:
    """Run all stages; `host` is the processor that launches. `edited` stages stand in for ours."""
    steps = StageFiles(edited or {})
    with surprises(attempt_of(definition, signature, (target, host), steps, rounding=rounding)):
        program = program_of(definition, signature, steps)
        default = required_default(definition, signature)
        artifact, kernels = emit(program, target, host, steps, rounding=rounding, default_dtype=default)
        if edited:
            ptx_of(artifact)
        return explained(definition, signature, program, artifact, kernels)


def emit(
    program: Program,
    target: Target,
    host: Target,
    steps: StageFiles,
    *,
    rounding: Rounding = SOURCE,
    default_dtype: DType | None = None,
) -> tuple[Artifact, Sequence[ScheduledKernel]]:
    """Run the stages after the IR: the kernels of all launches, and the entry; failures have one numbering."""
    verify_program(program)
    target = rounded(target, rounding)
    program, kernels = schedule_program(program, target)
    pieces = steps.reach("pieces", print_program(program))
    steps.reach("schedule", "\n".join((*(each.text for each in kernels), pieces)))
    launches = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    failures: list[FailureSite] = []
    modules: dict[str, str] = {}
    for kernel in launches:
        if config.line_info or can_fail(kernel):
            module = Module(failures=failures, rounding=rounding, lines=bool(config.line_info))
            name = emit_device_kernel(module, kernel, target)
            modules[name] = module.text()
    text = steps.reach("device", joined(modules, ";"))
    if "ptx" in steps.edited:
        text = steps.reach("ptx", "")
    entry = Module(failures=failures)
    cells = {kernel.name: kernel_cell(number) for number, kernel in enumerate(launches)}
    varies = is_nondeterministic(program)
    description = emit_entry(entry, program, cells, host, target, nondeterministic=varies, default_dtype=default_dtype)
    code = compile_module(steps.reach("llvm", entry.text()), host)
    texts = {device_name(kernel): f"{rounding}\n{print_kernel(kernel)}" for kernel in launches} | separated(text)
    artifact = Artifact(
        code,
        description,
        Explanation(),
        steps.reached,
        kernels=keys_of(texts, target),
        shared={device_name(kernel): size for kernel in launches if (size := shared_bytes(kernel))},
        architecture=target.cpu,
        rounding=rounding,
    )
    return artifact, kernels


def can_fail(kernel: Kernel) -> bool:
    """Whether a device kernel has failures, whose numbers and places its entry has to know."""
    return any(isinstance(node, Check) for node in statements(kernel.body))
