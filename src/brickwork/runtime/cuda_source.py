"""From CUDA C++ to a kernel's machine code: options and headers, NVRTC, what it says of the user's lines, the cache.

A text is taken as it is written for nvcc: `cuda_host_code.py` says what of it NVRTC does not see, `nvcc_flags.py` what
becomes of flags. Messages of NVRTC are put in the user's terms by `cuda_messages.py`.

The key is made of all that the code depends on: the text and the headers that it includes, by content, the kernel's
name, the options, and NVRTC's version. Where the text stands in the user's file is no part of it.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from brickwork.diagnostics.errors import CompileError, DeviceError
from brickwork.frontend.text_locations import GivenText
from brickwork.host.nvrtc import Nvrtc, Refused, open_nvrtc
from brickwork.records import dataclass
from brickwork.runtime import cache
from brickwork.runtime.cache import Entry
from brickwork.runtime.compile import log
from brickwork.runtime.cuda_host_code import DevicePart, device_part
from brickwork.runtime.cuda_includes import Headers, headers_of, included
from brickwork.runtime.cuda_messages import OWN, TEXT, Told
from brickwork.runtime.cuda_parameters import Parameter, declare, read
from brickwork.runtime.cuda_toolkit import header_folders, nvrtc_files
from brickwork.runtime.nvcc_flags import nvrtc_flags

_ARCHITECTURE = re.compile(r"^(--gpu-architecture|-arch)\b")
_FOLDER = re.compile(r"^(?:-I|--include-path)[= ]?(.+)$")
"""A flag that names a folder of headers."""
_BEFORE = re.compile(r"^(?:-include|--pre-include)\b")
"""A flag that includes a header."""
_LINES = frozenset({"-lineinfo", "--generate-line-info", "-G", "--device-debug"})
"""Flags for which code knows the lines that it was made of."""
_DEVICE_BY_DEFAULT = "--device-as-default-execution-space"
"""Makes device code of what has no `__device__`: constants, `constexpr` functions, functions of structs."""
_ALL_DEVICE = frozenset({_DEVICE_BY_DEFAULT, "-default-device"})


@dataclass(frozen=True, slots=True)
class CudaText:
    """CUDA C++ text with the options and headers that it is compiled with."""

    source: GivenText
    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    fast_math: bool = False


@dataclass(frozen=True, slots=True)
class CudaCode:
    """A kernel: its name in the code, the code, and what it takes."""

    symbol: str
    cubin: bytes
    """Machine code; empty if the flags ask for code of a virtual architecture."""
    ptx: str
    parameters: tuple[Parameter, ...]
    log: str
    """Warnings of the compiler, by lines of the text."""
    cached: bool


def find_nvrtc(major: int | None) -> tuple[Nvrtc, tuple[Path, ...]]:
    """Return this machine's NVRTC, if possible of CUDA's version `major`, and the folders of the headers beside it."""
    for file in nvrtc_files(major):
        try:
            return open_nvrtc(file), header_folders(file)
        except OSError:
            continue
    raise DeviceError(
        "NVRTC, NVIDIA's compiler of CUDA C++, is not to be found: it comes with PyTorch for CUDA; else install"
        " `nvidia-cuda-nvrtc`, or set CUDA_HOME to the folder of a CUDA toolkit"
    )


def compile_cuda(given: CudaText, entry: str, capability: tuple[int, int], major: int | None) -> CudaCode:
    """Return the kernel `entry` (a name, or a name expression such as `scale<float>`) for GPUs of a capability."""
    nvrtc, folders = find_nvrtc(major)
    source, flags = given.source, nvrtc_flags(given.flags)
    part = DevicePart(source.text) if _ALL_DEVICE & {*flags.options} else device_part(source.text)
    entry = part.qualified(entry)
    named = tuple(Path(found[1]) for flag in flags.options if (found := _FOLDER.match(flag)))
    headers = headers_of(part.text, (*named, *given.include), folders)
    options = (*_options(given.fast_math, flags.options, capability, nvrtc), _DEVICE_BY_DEFAULT)
    digest = None if any(_BEFORE.match(flag) for flag in options) else headers.digest
    first = f'#line {source.line} "{source.file}"' if _LINES & {*options} else f'#line 1 "{TEXT}"'
    text = f"{first}\n{part.text}\n{declare(entry, OWN)}"
    make = _Making(Told(source, part, entry, nvrtc.version[0]), text, options, headers, nvrtc)
    parts = ("cuda", text, entry, *options, ".".join(map(str, nvrtc.version)), digest or "")
    found = make() if digest is None else cache.obtain(cache.key_of(parts), make)[0]
    blobs = {name: zlib.decompress(blob) for name, blob in found.blobs.items()}
    ptx = blobs["ptx"].decode()
    said = "\n".join(filter(None, (*_notes(source, part, headers), *flags.notes, blobs["log"].decode().strip())))
    return CudaCode(found.metadata["symbol"], blobs["cubin"], ptx, read(ptx), said, make.cached)


def _options(fast_math: bool, flags: tuple[str, ...], capability: tuple[int, int], nvrtc: Nvrtc) -> tuple[str, ...]:
    """Return the options that decide about the code; the user's come last, and win."""
    options = ["--use_fast_math"] if fast_math else []
    if not any(_ARCHITECTURE.match(flag) for flag in flags):
        wanted, known = capability[0] * 10 + capability[1], nvrtc.architectures()
        older = [number for number in known if number <= wanted]
        if not older:
            raise DeviceError(
                f"this machine's NVRTC makes code for sm_{known[0]} and later, and the GPU is sm_{wanted}"
            )
        options.append(f"--gpu-architecture={'sm' if wanted in known else 'compute'}_{older[-1]}")
    return (*options, *(flag for flag in flags if flag not in _ALL_DEVICE))


class _Making:
    """Compiles a text when it is called, and knows whether it was."""

    def __init__(self, told: Told, text: str, options: tuple[str, ...], headers: Headers, nvrtc: Nvrtc) -> None:
        """Take the text, and what it is compiled with."""
        self.told, self.text, self.options, self.headers, self.nvrtc = told, text, options, headers, nvrtc
        self.cached = True

    def __call__(self) -> Entry:
        """Return the code."""
        self.cached = False
        log(f"compiles `{self.told.entry}` of {self.told.source.name} with {' '.join(self.options)}")
        options = (*self.options, *(f"-I{folder}" for folder in self.headers.folders))
        try:
            made = self.nvrtc.translate(self.text, self.told.entry, options, self.headers.texts)
        except Refused as refused:
            raise CompileError(self.told.diagnostics(refused.log)) from None
        blobs = {"cubin": made.cubin, "ptx": made.ptx.encode(), "log": made.log.encode()}
        return Entry({"symbol": made.symbol}, {name: zlib.compress(blob, 1) for name, blob in blobs.items()})


def _notes(source: GivenText, part: DevicePart, headers: Headers) -> list[str]:
    """Return what is said of the parts of a text that are skipped."""
    found = [
        f"line {number}: the header {name} is for the host, and skipped"
        for number, line in enumerate(source.text.split("\n"), 1)
        for name in included(line)
        if name in headers.host
    ]
    return [*found, *map(str, part.skipped)]
