"""The LLVM and PTX of device kernels, made of their IR when they are first asked for; PTX is kept in the cache.

A kernel that no call launches is never compiled. What LLVM refuses is told as of the compilation that the kernel is of.
Invariant: what is made here has no failures, since the entry would not know them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brickwork.codegen.builder import Module
from brickwork.codegen.device import device_name, emit_device_kernel
from brickwork.codegen.llvm import compile_device
from brickwork.codegen.rounding import Rounding
from brickwork.config import config
from brickwork.diagnostics.errors import InternalError
from brickwork.ir.nodes import Launch
from brickwork.ir.walk import statements
from brickwork.runtime import cache
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.cache import Entry
from brickwork.runtime.compile import environment_key, log
from brickwork.runtime.crash import Attempt, surprises
from brickwork.runtime.cuda_toolkit import libdevice_identity
from brickwork.runtime.kernel_texts import joined, separated
from brickwork.runtime.launches import pieces_of
from brickwork.runtime.libdevice import device_library
from brickwork.target.cpu import host_target
from brickwork.target.cuda import target_named
from brickwork.target.target import Target

_BLOB = "ptx"


def keys_of(modules: Mapping[str, str], target: Target) -> dict[str, str]:
    """Return the cache's key of the PTX of each kernel, by name; `modules` are their IR, LLVM or PTX."""
    return {
        name: cache.key_of(("ptx", text, libdevice_identity(), *environment_key(target)))
        for name, text in modules.items()
    }


def ptx_of_kernel(artifact: Artifact, name: str) -> str:
    """Return the PTX of a kernel of an artifact, from the cache or made now."""
    if _BLOB in artifact.stages:
        return separated(artifact.stages[_BLOB])[name]
    operator = artifact.description.operator

    def make() -> Entry:
        log(f"compiles the kernel {name} of {operator}: not in the cache")
        machines = (target_named(artifact.architecture), host_target(config.vector_bytes or None))
        with surprises(Attempt(operator=operator, targets=machines, stages=dict(artifact.stages))):
            return Entry({}, {_BLOB: compiled(artifact, name).encode()})

    entry, _ = cache.obtain(artifact.kernels[name], make)
    return entry.blobs[_BLOB].decode()


def ptx_of(artifact: Artifact) -> str:
    """Return the PTX of all kernels of an artifact."""
    return joined({name: ptx_of_kernel(artifact, name) for name in artifact.kernels}, "//")


def compiled(artifact: Artifact, name: str) -> str:
    """Return the PTX of a kernel of an artifact, made by LLVM."""
    target = target_named(artifact.architecture)
    text = device_text(artifact, name)
    return compile_device(text, target, device_library(text, target))


def device_of(artifact: Artifact) -> str:
    """Return the LLVM of all kernels of an artifact."""
    return joined({name: device_text(artifact, name) for name in artifact.kernels}, ";")


def device_text(artifact: Artifact, name: str) -> str:
    """Return the LLVM of a kernel of an artifact: what was made with its entry, or is made now."""
    made = separated(artifact.stages.get("device", "")).get(name)
    if made is not None:
        return made
    module = Module(rounding=artifact.rounding)
    launched = (node.kernel for node in statements(pieces_of(artifact).body) if isinstance(node, Launch))
    kernel = next(kernel for kernel in launched if device_name(kernel) == name)
    emit_device_kernel(module, kernel, rounded(target_named(artifact.architecture), artifact.rounding))
    if module.failures:
        raise InternalError(f"the kernel {name} has failures that its entry does not know")
    return module.text()


def rounded(target: Target, rounding: Rounding) -> Target:
    """Return a target with the instructions that may be used where code is to round so."""
    return target if rounding.matrices else replace(target, matrix="")
