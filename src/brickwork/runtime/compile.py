"""Compiled code for an operator and a signature: from the cache, or made by the stages and kept.

One compilation is made per operator, signature and machine, even if several threads ask at once. The stages
(`stages.py`) and all that they need are loaded when the cache first lacks something.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import cast

from brickwork.codegen.entry_description import ANY, Sizes
from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.config import config
from brickwork.ir.signature import Signature
from brickwork.records import dataclass
from brickwork.runtime import cache
from brickwork.runtime.artifact import Artifact, from_entry, to_entry
from brickwork.runtime.cache import Entry
from brickwork.runtime.cuda_toolkit import libdevice_identity
from brickwork.runtime.signature import signature_text
from brickwork.runtime.stage_files import dump, edited_stages, folder_name
from brickwork.target.target import Target
from brickwork.transform.derivation import Defined, Derived

_PACKAGES = ("brickwork", "torch", "llvmlite", "islpy")


@dataclass(frozen=True, slots=True)
class Compilation:
    """An artifact, whether the cache had it, and how long it took to get."""

    artifact: Artifact
    cached: bool
    seconds: float


def compile_operator(
    definition: Defined,
    signature: Signature,
    target: Target,
    rounding: Rounding = SOURCE,
    host: Target | None = None,
    *,
    schedule: str = "",
    sizes: Sizes = ANY,
) -> Compilation:
    """Return the code of an operator for a signature, from the cache or made now.

    For a GPU, `host` is the processor that launches; the code holds PTX, and no driver is asked (`device_code.py`).
    `schedule` is the user's for processors; code for `sizes` takes only calls with just these.
    """
    host = host or target
    start = time.perf_counter()
    text = signature_text(signature)
    name = folder_name(definition.name, f"{target.name} {text}")

    def make(edited: Mapping[str, str] | None = None) -> Entry:
        log(f"compiles {definition.name}{text}: {'it is overridden' if edited else 'not in the cache'}")
        with _uncollected():
            if target.grid:
                made = _device_stages().build(definition, signature, target, host, rounding=rounding, edited=edited)
            else:
                build = _stages().build
                made = build(definition, signature, target, rounding, schedule=schedule, sizes=sizes, edited=edited)
            return to_entry(cast("Artifact", made))

    edited = edited_stages(name, definition.name)
    if edited:
        entry, cached = make(edited), False
    else:
        parts = ("operator", definition.fingerprint, definition.name, f"{text} {rounding}", schedule, str(sizes))
        more = (host.identity, libdevice_identity()) if target.grid else ()
        entry, cached = cache.obtain(cache.key_of((*parts, *more, *environment_key(target))), make)
    artifact = from_entry(entry)
    if config.dump_dir:
        dump(name, _all_stages(artifact), {"signature": text, "explain": artifact.explanation.text()})
    return Compilation(artifact, cached, time.perf_counter() - start)


def _all_stages(artifact: Artifact) -> Mapping[str, str]:
    """Return the stages of an artifact with LLVM and PTX of all its kernels, which are made when they are needed."""
    if not artifact.kernels:
        return artifact.stages
    room = importlib.import_module("brickwork.runtime.device_ptx")
    return {**artifact.stages, "device": room.device_of(artifact), "ptx": room.ptx_of(artifact)}


def elements_read(derived: Derived, signature: Signature, laid: Signature | None = None) -> tuple[bool, ...]:
    """Return for each parameter of what an operator is derived from, and result, whether its elements are looked at.

    That does not depend on how tensors lie in memory. `laid` says it of those that are at hand: what is derived then
    is what is compiled next.
    """
    text = signature_text(signature)

    def make() -> Entry:
        log(f"derives {derived.name}{text}")
        with _uncollected():
            derive = importlib.import_module("brickwork.transform.derive")
            found: tuple[bool, ...] = derive.elements_read(derived, laid or signature)
        return Entry({"read": list(found)}, {})

    key = cache.key_of(("elements read", derived.fingerprint, derived.name, text, *versions()))
    entry, _ = cache.obtain(key, make)
    return tuple(entry.metadata["read"])


def cached_object(name: str, make: Callable[[], bytes], target: Target) -> bytes:
    """Return object code that depends on no operator, from the cache or made now."""
    key = cache.key_of((name, *environment_key(target)))
    entry, _ = cache.obtain(key, lambda: Entry({}, {"object": make()}))
    return entry.blobs["object"]


def environment_key(target: Target) -> tuple[str, ...]:
    """Return what compiled code depends on besides the operator: machine, settings, versions, brickwork's source."""
    return (target.identity, config.code_key(), *versions())


@contextmanager
def _uncollected() -> Generator[None]:
    """Run the body without collections of garbage: a compilation makes little, and torch has much to look through."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _stages() -> ModuleType:
    return importlib.import_module("brickwork.runtime.stages")


def _device_stages() -> ModuleType:
    return importlib.import_module("brickwork.runtime.device_stages")


def log(message: str) -> None:
    """Say what is compiled, where the setting asks for it."""
    if config.log:
        sys.stderr.write(f"brickwork {message}\n")


@functools.cache
def versions() -> tuple[str, ...]:
    """Return the versions of what takes part in a compilation; brickwork's own files by name, size and time."""
    found: list[str] = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} unknown")
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted((*root.rglob("*.py"), *root.rglob("*.ll"))):
        status = path.stat()
        digest.update(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return (*found, digest.hexdigest())
