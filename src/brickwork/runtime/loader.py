"""Puts object code into this process: `load(object_bytes, symbols)`; nothing that was loaded is ever taken out.

On Linux on x86-64 a small linker of our own (`elf.py`) does it, so that a warm start needs no LLVM; elsewhere, or where
an object holds something that it does not know, llvmlite's MCJIT does the same.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import accumulate
from typing import Any

from brickwork.codegen.archive import members
from brickwork.records import dataclass
from brickwork.runtime import elf

_REGISTER = "__register_frame"
"""The C++ runtime's function that takes an unwind table."""


_MCJIT = threading.Lock()
"""Held while MCJIT links: its table of symbols is the process's, and two objects mean different things by one name."""
_MISSING = "symbol {!r} is not to be found in this process"


class LoadError(Exception):
    """Object code cannot be linked: a symbol or a kind of relocation is unknown."""


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """Code in memory; it lives as long as the process."""

    _addresses: Mapping[str, int]
    _keeper: object = field(default=None, repr=False)

    def address(self, name: str) -> int:
        """Return the address of a global function or variable that the object defines; KeyError if it does not."""
        return self._addresses[name]


def load(object_bytes: bytes, symbols: Mapping[str, int]) -> LoadedObject:
    """Link an object, or those of an archive with one another, and make them executable.

    Names that they lack are looked up in `symbols` (which may be lazy: it is only asked for names that are
    used), then among the libraries that the process exports globally (libc, libm). A name found nowhere is a
    `LoadError`.
    """
    if sys.platform == "linux" and platform.machine() == "x86_64":
        try:
            return _load_elf(object_bytes, symbols)
        except elf.UnsupportedObjectError:
            pass
    with _MCJIT:
        return _load_with_llvm(object_bytes, symbols)


def _found(name: str, symbols: Mapping[str, int]) -> int | None:
    """Return the address of a name: from `symbols`, else from what the process exports globally."""
    address = symbols.get(name)
    if address is None:
        try:
            address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
        except AttributeError:
            return None
    return address


def _load_elf(object_bytes: bytes, symbols: Mapping[str, int]) -> LoadedObject:
    layouts = [elf.read(each) for each in members(object_bytes)]
    first = _map(sum(each.size for each in layouts))
    placed = [*zip(accumulate((each.size for each in layouts[:-1]), initial=first), layouts, strict=True)]
    known = {name: base + offset for base, each in placed for name, offset in each.definitions().items()}
    for base, layout in placed:
        _put(layout, base, lambda name: known[name] if name in known else _found(name, symbols))
    return LoadedObject(known)


def _put(layout: elf.Layout, base: int, resolve: Callable[[str], int | None]) -> None:
    """Link an object for an address and make it executable there."""
    try:
        image = elf.link(layout, base, resolve)
    except KeyError as missing:
        raise LoadError(_MISSING.format(missing.args[0])) from None
    ctypes.memmove(base, image, len(image))
    libc = ctypes.CDLL(None, use_errno=True)
    protect = libc.mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(base, layout.code_size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise LoadError(f"the system refuses executable memory: errno {ctypes.get_errno()}")
    frames = layout.frames()
    if frames is not None:
        _register_frames(base + frames)


def _map(size: int) -> int:
    """Return the address of fresh memory, which stays mapped for ever."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    address = function(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise LoadError(f"no memory for {size} bytes of code: errno {ctypes.get_errno()}")
    return int(address)


def _register_frames(address: int) -> None:
    """Tell the C++ runtime how to walk over the code's frames, where it can be told."""
    try:
        register = getattr(ctypes.CDLL("libgcc_s.so.1"), _REGISTER)
    except (OSError, AttributeError):
        return
    register(ctypes.c_void_p(address))


def _load_with_llvm(object_bytes: bytes, symbols: Mapping[str, int]) -> LoadedObject:
    """Link with MCJIT, which keeps one table of symbols for the whole process: `_MCJIT` is held."""
    import llvmlite.binding

    llvm: Any = llvmlite.binding
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    objects = members(object_bytes)
    references = [llvm.ObjectFileRef.from_data(each) for each in objects]
    lacking = {name: weak for each in objects for name, weak in elf.undefined(each).items()}
    for name in {name for each in objects for name in elf.defined(each)}:
        lacking.pop(name, None)
    for name, weak in (dict.fromkeys(symbols, True) | lacking).items():
        address = _found(name, symbols)
        if address is not None:
            llvm.add_symbol(name, address)
        elif not weak:
            raise LoadError(_MISSING.format(name))
    machine = llvm.Target.from_default_triple().create_target_machine(codemodel="small")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for reference in references:
        engine.add_object_file(reference)
    engine.finalize_object()
    return LoadedObject(_EngineAddresses(engine), (engine, references))


class _EngineAddresses(dict[str, int]):
    """Asks an execution engine for addresses."""

    def __init__(self, engine: Any) -> None:
        super().__init__()
        self._engine = engine

    def __missing__(self, name: str) -> int:
        address = int(self._engine.get_function_address(name)) or int(self._engine.get_global_value_address(name))
        if not address:
            raise KeyError(name)
        return address
