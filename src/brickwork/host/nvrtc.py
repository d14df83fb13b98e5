"""NVRTC, NVIDIA's compiler of CUDA C++ as a library: text in, machine code and PTX out.

`open_nvrtc` opens a file, with the library of built-in functions that lies beside it; importing this module opens
nothing. What NVRTC says of a text that it refuses comes back as it is, in `Refused.log`.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from brickwork.diagnostics.errors import DeviceError
from brickwork.records import dataclass

_COMPILATION = 6
"""NVRTC's answer if the text is not right."""
_INVALID_OPTION = 5


@dataclass(frozen=True, slots=True)
class Translated:
    """What NVRTC made of a text."""

    symbol: str
    """The name that the kernel has in the machine code."""
    cubin: bytes
    """The machine code; empty if code was made for a virtual architecture."""
    ptx: str
    log: str
    """Warnings."""


class Refused(Exception):  # noqa: N818  # it is caught by whoever asks, and no user sees it
    """The text is not right; `log` says why."""

    def __init__(self, log: str) -> None:
        """Keep what NVRTC said."""
        self.log = log
        super().__init__(log)


@functools.cache
def open_nvrtc(file: str) -> Nvrtc:
    """Return the library in a file, or of a name that the system's loader finds; OSError if there is none.

    Packages put its built-in functions into the same folder, where it does not look itself.
    """
    for beside in sorted(Path(file).parent.glob("*nvrtc-builtins*")) if Path(file).is_absolute() else ():
        if ".alt." not in beside.name:
            ctypes.CDLL(str(beside))
    return Nvrtc(ctypes.CDLL(file))


class Nvrtc:
    """NVIDIA's compiler library, NVRTC: each call is checked, and a failure is a DeviceError."""

    def __init__(self, library: Any) -> None:
        """Take the library, which has NVRTC's functions as attributes."""
        self._library = library
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def architectures(self) -> tuple[int, ...]:
        """Return the architectures that it makes code for, such as 90, in ascending order."""
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return tuple(sorted(numbers))

    def translate(
        self, text: str, entry: str, options: Sequence[str], headers: Mapping[str, str] | None = None
    ) -> Translated:
        """Return the code of a text with the kernel `entry`, a name expression such as `scale<float>`.

        `headers` are texts that it may include by name.
        """
        program, headers = ctypes.c_void_p(), headers or {}
        texts = (ctypes.c_char_p * len(headers))(*(header.encode() for header in headers.values()))
        names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
        given = (ctypes.c_int(len(headers)), texts, names)
        self._call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"source", *given)
        try:
            self._call("nvrtcAddNameExpression", program, entry.encode())
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            code = int(self._library.nvrtcCompileProgram(program, ctypes.c_int(len(options)), given))
            log = self._bytes(program, "nvrtcGetProgramLog").decode(errors="replace")
            if code == _COMPILATION:
                raise Refused(log)
            if code:
                what = log.strip() or f"the options are {' '.join(options)}" if code == _INVALID_OPTION else log.strip()
                raise DeviceError(f"nvrtcCompileProgram: {self._describe(code)}\n{what}".rstrip())
            symbol = ctypes.c_char_p()
            self._call("nvrtcGetLoweredName", program, entry.encode(), ctypes.byref(symbol))
            name = (symbol.value or b"").decode()
            ptx = self._bytes(program, "nvrtcGetPTX").decode(errors="replace")
            return Translated(name, self._bytes(program, "nvrtcGetCUBIN", text=False), ptx, log)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, name: str, *, text: bool = True) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"{name}Size", program, ctypes.byref(size))
        if not size.value:
            return b""
        data = ctypes.create_string_buffer(size.value)
        self._call(name, program, data)
        return data.value if text else data.raw

    def _describe(self, code: int) -> str:
        return (self._library.nvrtcGetErrorString(ctypes.c_int(code)) or b"unknown error").decode(errors="replace")

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function of NVRTC; DeviceError if it is missing or says that something is wrong."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise DeviceError(
                f"the NVRTC of this machine lacks {name}; brickwork needs one of CUDA 12 or later"
            ) from None
        code = int(function(*arguments))
        if code:
            raise DeviceError(f"{name}: {self._describe(code)}")
