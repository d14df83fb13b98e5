"""From PTX to kernels that can be launched: machine code by the driver, kept in the cache, and loaded.

PTX depends on the architecture alone; machine code also on the driver that made it, and so do their keys. A GPU newer
than all that brickwork knows has the newest known one's PTX, which its driver translates.
"""

from __future__ import annotations

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


def machine_code(driver: Driver, ptx: str, gpu: Gpu) -> bytes:
    """Return the machine code (a cubin) of PTX for a GPU, from the cache or made now by the driver."""
    version = ".".join(map(str, driver.version))
    capability = ".".join(map(str, gpu.capability))
    key = cache.key_of(("cubin", ptx, capability, version))

    def make() -> Entry:
        with driver.using(gpu.context):
            return Entry({}, {_BLOB: driver.assemble(ptx, f"{gpu.name} (compute capability {capability})")})

    entry, _ = cache.obtain(key, make)
    return entry.blobs[_BLOB]


def load_kernels(driver: Driver, artifact: Artifact, gpus: Sequence[Gpu], *, alike: bool = True) -> tuple[int, ...]:
    """Return the kernels of an artifact, in the order of their cells, loaded on these GPUs.

    Where a machine has GPUs of different capabilities that share one PTX (they are not `alike`), it is loaded as it is,
    so that each gets machine code of its own.
    """
    if not artifact.kernels:
        return ()
    ptx = artifact.stages["ptx"]
    code = machine_code(driver, ptx, gpus[0]) if alike else ptx.encode()
    with driver.using(gpus[0].context):
        library = driver.load(code)
        kernels = tuple(driver.kernel(library, name) for name in artifact.kernels)
    for gpu in gpus:
        prepare(driver, kernels, gpu)
    return kernels


def prepare(driver: Driver, kernels: Sequence[int], gpu: Gpu) -> tuple[int, ...]:
    """Load kernels on a GPU now: no launch has to do it, and graphs can be captured. Returns its functions."""
    with driver.using(gpu.context):
        return tuple(driver.function(kernel) for kernel in kernels)
