"""The PTX of device kernels, made of their LLVM when it is first asked for, and kept in the cache.

A kernel that no call launches is never compiled. What LLVM refuses is told as of the compilation that the kernel is of.
"""

from __future__ import annotations

from collections.abc import Mapping

from brickwork.codegen.llvm import compile_device
from brickwork.config import config
from brickwork.runtime import cache
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.cache import Entry
from brickwork.runtime.compile import environment_key, log
from brickwork.runtime.crash import Attempt, surprises
from brickwork.runtime.cuda_toolkit import libdevice_identity
from brickwork.runtime.kernel_texts import joined, separated
from brickwork.runtime.libdevice import device_library
from brickwork.target.cpu import host_target
from brickwork.target.cuda import target_named
from brickwork.target.target import Target

_BLOB = "ptx"


def keys_of(modules: Mapping[str, str], target: Target) -> dict[str, str]:
    """Return the cache's key of the PTX of each kernel, by name; `modules` are their LLVM, or PTX in its place."""
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
    text = separated(artifact.stages["device"])[name]
    return compile_device(text, target, device_library(text, target))
