"""Everything that happens to an operator on its way to machine code, in order; and the cache around it.

    definition, signature -> lower -> schedule each kernel -> emit kernels and entry -> object code -> Artifact

One compilation is made per operator, signature and machine, even if several threads ask at once. Whatever LLVM or isl
raise becomes an `InternalError`; what the user's source is refused for stays what it is.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from brickwork.codegen.builder import Module
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.kernel import emit_kernel
from brickwork.codegen.llvm import compile_module
from brickwork.config import config
from brickwork.diagnostics.errors import BrickworkError, InternalError
from brickwork.frontend.definition import Definition
from brickwork.frontend.lower import lower
from brickwork.ir.dtypes import DType
from brickwork.ir.nodes import Launch, Program, Return
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.runtime import cache
from brickwork.runtime.artifact import Artifact, from_entry, to_entry
from brickwork.runtime.cache import Entry
from brickwork.runtime.signature import signature_text
from brickwork.target.target import Target
from brickwork.transform.pipeline import schedule_kernel

_PACKAGES = ("brickwork", "torch", "llvmlite", "islpy")


@dataclass(frozen=True, slots=True)
class Compilation:
    """An artifact, whether the cache had it, and how long it took to get."""

    artifact: Artifact
    cached: bool
    seconds: float


def compile_operator(
    definition: Definition, signature: Signature, target: Target, *, fast_math: bool = False
) -> Compilation:
    """Return the code of an operator for a signature, from the cache or made now."""
    start = time.perf_counter()
    text = signature_text(signature)
    parts = ("operator", definition.fingerprint, definition.name, f"{text} fast_math={fast_math}")
    key = cache.key_of((*parts, *environment_key(target)))

    def make() -> Entry:
        _log(f"compiles {definition.name}{text}: not in the cache")
        return to_entry(build(definition, signature, target, fast_math=fast_math))

    entry, cached = cache.obtain(key, make)
    return Compilation(from_entry(entry), cached, time.perf_counter() - start)


def cached_object(name: str, make: Callable[[], bytes], target: Target) -> bytes:
    """Return object code that depends on no operator, from the cache or made now."""
    key = cache.key_of((name, *environment_key(target)))
    entry, _ = cache.obtain(key, lambda: Entry({}, {"object": make()}))
    return entry.blobs["object"]


def result_dtypes(definition: Definition, signature: Signature) -> tuple[DType, ...]:
    """Return the element types of the results for arguments of these types."""
    body = lower(definition, signature).body
    return tuple(tensor.type.dtype for node in walk(body) if isinstance(node, Return) for tensor in node.tensors)


def build(definition: Definition, signature: Signature, target: Target, *, fast_math: bool = False) -> Artifact:
    """Run all stages."""
    reached: dict[str, str] = {}
    with _surprises(definition, signature, reached):
        return _stages(definition, signature, target, Module(fast_math=fast_math), reached)


def environment_key(target: Target) -> tuple[str, ...]:
    """Return what compiled code depends on besides the operator: machine, settings, versions, brickwork's source."""
    return (target.identity, config.code_key(), *_versions())


def _stages(
    definition: Definition, signature: Signature, target: Target, module: Module, reached: dict[str, str]
) -> Artifact:
    program = lower(definition, signature)
    reached["ir"] = repr(program)
    functions: dict[str, str] = {}
    explanations: list[str] = []
    schedules: list[str] = []
    for kernel in [node.kernel for node in walk(program.body) if isinstance(node, Launch)]:
        scheduled = schedule_kernel(kernel, target)
        schedules.append(str(scheduled.schedule))
        functions[kernel.name] = emit_kernel(module, scheduled.kernel, target).removeprefix("@")
    reached["schedule"] = "\n".join(schedules)
    description = emit_entry(module, program, functions, target)
    reached["llvm"] = module.text()
    code = compile_module(reached["llvm"], target)
    explanation = explain(definition, signature, program, explanations)
    _dump(definition, signature, reached | {"explain": explanation})
    return Artifact(code, description, explanation, reached)


def explain(definition: Definition, signature: Signature, program: Program, kernels: list[str]) -> str:
    """Return what `op.explain()` says of a specialisation."""
    count = len(kernels)
    lines = [
        f"{program.name}{signature_text(signature)}",
        f"host part: {host_text(definition)}",
        f"launches: {count}",
        *kernels,
    ]
    return "\n".join(lines)


def host_text(definition: Definition) -> str:
    """Return where the host part runs, and why."""
    return "native" if definition.host == "native" else f"Python, because {definition.reason}"


@contextmanager
def _surprises(definition: Definition, signature: Signature, reached: dict[str, str]) -> Generator[None]:
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


def _log(message: str) -> None:
    if config.log:
        sys.stderr.write(f"brickwork {message}\n")


@functools.cache
def _versions() -> tuple[str, ...]:
    """Return the versions of what takes part in a compilation; brickwork's own files by name, size and time."""
    found: list[str] = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} unknown")
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return (*found, digest.hexdigest())
