"""The functions of libdevice that kernels call, cut out of it once and kept in the cache.

libdevice is a library of a few hundred functions, and reading all of it takes longer than all else of a compilation.
"""

from __future__ import annotations

from brickwork.codegen.llvm import device_functions, extract
from brickwork.runtime import cache
from brickwork.runtime.cache import Entry
from brickwork.runtime.compile import environment_key
from brickwork.runtime.cuda_toolkit import find_libdevice, libdevice_identity
from brickwork.target.target import Target

_BLOB = "bitcode"


def device_library(text: str, target: Target) -> bytes | None:
    """Return, as bitcode, the functions of libdevice that a module (LLVM assembly) needs; None if it needs none."""
    names = device_functions(text)
    if not names:
        return None
    key = cache.key_of(("libdevice", libdevice_identity(), *names, *environment_key(target)))
    entry, _ = cache.obtain(key, lambda: Entry({}, {_BLOB: extract(find_libdevice().read_bytes(), names)}))
    return entry.blobs[_BLOB]
