"""The stages of a compilation, in order: what turns a definition and a signature into an artifact.

Loads all the rooms that compile; a start from a warm cache does without (`compile.py`). Whatever LLVM or isl raise
becomes an `InternalError`, with a folder that holds the stages so far; what the user's source is refused for stays what
it is.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from brickwork.codegen.builder import Module
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.kernel import emit_kernel
from brickwork.codegen.llvm import compile_module
from brickwork.config import config
from brickwork.diagnostics.errors import BrickworkError, InternalError
from brickwork.frontend.definition import Definition
from brickwork.frontend.lower import lower
from brickwork.ir.nodes import Launch
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_kernel, print_program
from brickwork.ir.walk import walk
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.signature import signature_text
from brickwork.target.target import Target
from brickwork.transform.explain import explain
from brickwork.transform.pipeline import schedule_kernel


def build(definition: Definition, signature: Signature, target: Target, *, fast_math: bool = False) -> Artifact:
    """Run all stages for the CPU; those for GPUs are in `device_stages.py`."""
    reached: dict[str, str] = {}
    with surprises(definition, signature, reached):
        return _stages(definition, signature, target, Module(fast_math=fast_math), reached)


def _stages(
    definition: Definition, signature: Signature, target: Target, module: Module, reached: dict[str, str]
) -> Artifact:
    program = lower(definition, signature)
    reached["ir"] = print_program(program)
    functions: dict[str, str] = {}
    explanations: list[str] = []
    schedules: list[str] = []
    for kernel in [node.kernel for node in walk(program.body) if isinstance(node, Launch)]:
        scheduled = schedule_kernel(kernel, target)
        schedules += [str(scheduled.schedule), print_kernel(scheduled.kernel)]
        explanations.append(explain(scheduled))
        functions[kernel.name] = emit_kernel(module, scheduled.kernel, target).removeprefix("@")
    reached["schedule"] = "\n".join(schedules)
    description = emit_entry(module, program, functions, target)
    reached["llvm"] = module.text()
    code = compile_module(reached["llvm"], target)
    return finished(definition, signature, Artifact(code, description, "", reached), explanations)


def finished(definition: Definition, signature: Signature, artifact: Artifact, kernels: list[str]) -> Artifact:
    """Return an artifact with its explanation, written down where that is asked for."""
    explanation = _explanation(definition, signature, kernels)
    _dump(definition, signature, {**artifact.stages, "explain": explanation})
    return replace(artifact, explanation=explanation)


def _explanation(definition: Definition, signature: Signature, kernels: list[str]) -> str:
    """Return what `op.explain()` says of a specialisation."""
    return "\n".join((f"{definition.name}{signature_text(signature)}", f"host part: {host_text(definition)}", *kernels))


def host_text(definition: Definition) -> str:
    """Return where the host part runs, and why."""
    return "native" if definition.host == "native" else f"Python, because {definition.reason}"


@contextmanager
def surprises(definition: Definition, signature: Signature, reached: dict[str, str]) -> Generator[None]:
    """Turn what no stage should raise into an InternalError with a folder that holds the stages so far."""
    try:
        yield
    except InternalError as error:
        raise InternalError(error.message, error.bundle or _bundle(definition, signature, reached)) from error
    except (BrickworkError, MemoryError, RecursionError):
        raise
    except Exception as error:
        message = f"{definition.name}{signature_text(signature)} cannot be compiled: {type(error).__name__}: {error}"
        raise InternalError(message, _bundle(definition, signature, reached)) from error


def _bundle(definition: Definition, signature: Signature, reached: dict[str, str]) -> str | None:
    with suppress(OSError):
        folder = Path(tempfile.mkdtemp(prefix="brickwork-crash-"))
        _write(folder, reached | {"signature": f"{definition.name}{signature_text(signature)}"})
        return str(folder)
    return None


def _dump(definition: Definition, signature: Signature, stages: dict[str, str]) -> None:
    """Write every stage where `config.dump_dir` asks for it."""
    if config.dump_dir:
        digest = hashlib.sha256(signature_text(signature).encode()).hexdigest()[:12]
        folder = Path(config.dump_dir) / f"{definition.name.replace('::', '.')}-{digest}"
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, stages | {"signature": signature_text(signature)})


def _write(folder: Path, stages: dict[str, str]) -> None:
    for name, text in stages.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
