"""From PTX to a kernel that can be launched: machine code by the driver, kept in the cache, and loaded.

PTX depends on the architecture alone; machine code also on the driver that made it, and so do their keys. A GPU newer
than all that brickwork knows has the newest known one's PTX, which its driver translates. Where the cache has machine
code, no PTX is made (`device_ptx.py`), and LLVM is not loaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from brickwork.host.driver import Driver
from brickwork.records import dataclass
from brickwork.runtime import cache
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.cache import Entry

_BLOB = "cubin"


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that code is loaded for: what the driver calls it, its compute capability, and its primary context."""

    name: str
    capability: tuple[int, int]
    context: int


def machine_code(driver: Driver, artifact: Artifact, name: str, gpu: Gpu) -> bytes:
    """Return the machine code (a cubin) of a kernel for a GPU, from the cache or made now by the driver."""
    version = ".".join(map(str, driver.version))
    capability = ".".join(map(str, gpu.capability))
    key = cache.key_of((_BLOB, artifact.kernels[name], capability, version))

    def make() -> Entry:
        ptx = _ptx(artifact, name)
        with driver.using(gpu.context):
            return Entry({}, {_BLOB: driver.assemble(ptx, f"{gpu.name} (compute capability {capability})")})

    entry, _ = cache.obtain(key, make)
    return entry.blobs[_BLOB]


def load_kernel(driver: Driver, artifact: Artifact, name: str, gpus: Sequence[Gpu], *, alike: bool = True) -> int:
    """Return a kernel of an artifact, loaded on these GPUs.

    Where a machine has GPUs of different capabilities that share one PTX (they are not `alike`), it is loaded as it is,
    so that each gets machine code of its own.
    """
    code = machine_code(driver, artifact, name, gpus[0]) if alike else _ptx(artifact, name).encode()
    with driver.using(gpus[0].context):
        kernel = driver.kernel(driver.load(code), name)
    shared = artifact.shared.get(name, 0)
    for gpu in gpus:
        function_on(driver, kernel, gpu, shared)
    return kernel


def function_on(driver: Driver, kernel: int, gpu: Gpu, shared: int = 0) -> int:
    """Load a kernel on a GPU now: no launch has to do it, and graphs can be captured. Returns its function.

    Its launches may give each block so many bytes of `shared` memory beside what it declares.
    """
    with driver.using(gpu.context):
        function = driver.function(kernel)
        if shared:
            driver.allow_shared(function, shared)
            driver.prefer_shared(function)
        return function


def _ptx(artifact: Artifact, name: str) -> str:
    return importlib.import_module("brickwork.runtime.device_ptx").ptx_of_kernel(artifact, name)
