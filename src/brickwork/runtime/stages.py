"""The stages of a compilation, in order: what turns a definition and a signature into an artifact.

This module needs LLVM and isl; `compile.py` imports it when the cache first lacks something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brickwork.codegen.builder import Module
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.entry_description import ANY, Sizes
from brickwork.codegen.kernel import emit_kernel
from brickwork.codegen.llvm import compile_in_parts
from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.diagnostics.location import NOWHERE, Location, with_files
from brickwork.frontend.definition import Definition
from brickwork.ir.dtypes import DType
from brickwork.ir.nodes import Program
from brickwork.ir.parse import parse_program
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_kernel, print_program
from brickwork.ir.verify import verify_program
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.crash import Attempt, surprises
from brickwork.runtime.signature import signature_text
from brickwork.runtime.stage_files import StageFiles
from brickwork.target.target import Target
from brickwork.transform import derive
from brickwork.transform.derivation import Defined, origin_of
from brickwork.transform.explain import explain
from brickwork.transform.explanation import Explanation, Line
from brickwork.transform.pipeline import ScheduledKernel, schedule_program
from brickwork.transform.warn import dropped_fractions, warnings_of


def build(
    definition: Defined,
    signature: Signature,
    target: Target,
    rounding: Rounding = SOURCE,
    *,
    schedule: str = "",
    sizes: Sizes = ANY,
    edited: Mapping[str, str] | None = None,
) -> Artifact:
    """Run all stages for the CPU; those for GPUs are in `device_stages.py`.

    `schedule` is the user's, `sizes` those that the code is for alone, and `edited` stages stand in for ours.
    """
    steps = StageFiles(edited or {})
    with surprises(attempt_of(definition, signature, (target,), steps, rounding=rounding)):
        program = program_of(definition, signature, steps)
        artifact, kernels = emit(
            program,
            target,
            Module(rounding=rounding),
            steps,
            default_dtype=required_default(definition, signature),
            given=(schedule, definition.loc),
            sizes=sizes,
        )
        return explained(definition, signature, program, artifact, kernels)


def program_of(definition: Defined, signature: Signature, steps: StageFiles) -> Program:
    """Return the IR of an operator for a signature, or what stands in for it."""
    program = derive.program_of(definition, signature)
    text = steps.reach("ir", print_program(program))
    return parse_program(text) if "ir" in steps.edited else program


def required_default(definition: Defined, signature: Signature) -> DType | None:
    """Return the default dtype of torch that calls must have been made under; None where it does not matter."""
    return signature.default_dtype if definition.reads_default_dtype else None


def emit(
    program: Program,
    target: Target,
    module: Module,
    steps: StageFiles,
    *,
    default_dtype: DType | None = None,
    given: tuple[str, Location] = ("", NOWHERE),
    sizes: Sizes = ANY,
) -> tuple[Artifact, list[ScheduledKernel]]:
    """Run the stages after the IR; `default_dtype` and `sizes` as in `emit_entry`.

    `given` is the user's schedule, and its place.

    Passes rely on the rules of the IR without asking, so they are verified first (1.5 ms of timex's 230 ms).
    """
    verify_program(program)
    program, scheduled = schedule_program(program, target, *given)
    kernels = [*scheduled]
    texts = [text for each in kernels for text in (each.text, print_kernel(each.kernel))]
    steps.reach("schedule", "\n".join(texts))
    functions = {each.kernel.name: emit_kernel(module, each.kernel, target).removeprefix("@") for each in kernels}
    description = emit_entry(module, program, functions, target, default_dtype=default_dtype, sizes=sizes)
    code = compile_in_parts(steps.reach("llvm", module.text()), target)
    return Artifact(code, description, Explanation(), steps.reached), kernels


def explained(
    definition: Defined, signature: Signature, program: Program, artifact: Artifact, kernels: Sequence[ScheduledKernel]
) -> Artifact:
    """Return an artifact with what `op.explain()` says of it, and what the user is warned of."""
    head = f"{definition.name}{signature_text(signature)}"
    lines = (Line(head), Line(f"host part: {host_text(definition)}"))
    said = Explanation((*lines, *(part for kernel in kernels for part in explain(kernel).parts)))
    dropped = dropped_fractions(program) if isinstance(definition, Definition) else ()
    told = (*dropped, *(warning for kernel in kernels for warning in warnings_of(kernel)))
    files = origin_of(definition).files
    return replace(artifact, explanation=said.mapped(lambda text: with_files(text, files)), warnings=told)


def host_text(definition: Defined) -> str:
    """Return where the host part runs, and why."""
    return "native" if definition.host == "native" else f"Python, because {definition.reason}"


def attempt_of(
    definition: Defined, signature: Signature, targets: tuple[Target, ...], steps: StageFiles, *, rounding: Rounding
) -> Attempt:
    """Return what is told of a compilation that fails for no fault of the user's."""
    origin = origin_of(definition)
    functions = (origin.source, *origin.helpers.values())
    return Attempt(
        operator=definition.name,
        loc=definition.loc,
        signature=signature_text(signature),
        sources=tuple(f"# {each.location(each.node)}\n{each.text}" for each in functions),
        targets=targets,
        rounding=rounding,
        stages=steps.reached,
        edited=tuple(steps.edited),
        function=origin.source.function,
    )
