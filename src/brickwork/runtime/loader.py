"""Puts object code into this process: `load(object_bytes, symbols)`; nothing that was loaded is ever taken out.

On Linux on x86-64 a small linker of our own reads the ELF object, so that a warm start needs no LLVM; elsewhere, or
where an object holds something that it does not know, llvmlite's MCJIT does the same.
"""

from __future__ import annotations

from collections.abc import Mapping


class LoadedObject:
    """Code in memory; it lives as long as the process."""

    def address(self, name: str) -> int:
        """Return the address of a global function or variable that the object defines; KeyError if it does not."""
        raise NotImplementedError(name)


def load(object_bytes: bytes, symbols: Mapping[str, int]) -> LoadedObject:
    """Link an object and make it executable.

    Names that the object lacks are looked up in `symbols` (which may be lazy: it is only asked for names that the
    object uses), then among the libraries that the process exports globally (libc, libm). A name found nowhere is a
    `LoadError`.
    """
    raise NotImplementedError(len(object_bytes) + len(symbols))
