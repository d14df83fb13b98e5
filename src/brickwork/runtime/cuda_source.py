"""From CUDA C++ to a kernel's machine code: options and headers, NVRTC, what it says of the user's lines, the cache.

The key is made of all that the code depends on: the text and the headers that it includes, by content, the kernel's
name, the options, and NVRTC's version. Where the text stands in the user's file is no part of it.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError, DeviceError
from brickwork.diagnostics.location import Location
from brickwork.frontend.text_locations import GivenText
from brickwork.host.nvrtc import Nvrtc, Refused, open_nvrtc
from brickwork.records import dataclass
from brickwork.runtime import cache
from brickwork.runtime.cache import Entry
from brickwork.runtime.compile import log
from brickwork.runtime.cuda_headers import HEADERS
from brickwork.runtime.cuda_parameters import Parameter, declare, read
from brickwork.runtime.cuda_toolkit import header_folders, nvrtc_files

_OWN = "brickwork"
"""The file that messages name for what brickwork writes behind the text."""
_MAP = "__nv_name_map"
"""The one that they name for NVRTC's search for the kernel."""
_TEXT = "text"
"""The one for the user's text."""
_ARCHITECTURE = re.compile(r"^(--gpu-architecture|-arch)\b")
_FOLDER = re.compile(r"^(?:-I|--include-path)[= ]?(.+)$")
"""A flag that names a folder of headers."""
_BEFORE = re.compile(r"^(?:-include|--pre-include)\b")
"""A flag that includes a header."""
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(.*)$", re.MULTILINE)
_MESSAGE = re.compile(r"^(.+?)\((\d+)\): (?:catastrophic )?error: (.*)$")
_MOST_MESSAGES = 10


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
    folders = (*given.include, *folders)
    options = _options(given, capability, nvrtc)
    headers = _digest_of_headers(given, folders)
    cached = headers is not None

    def make() -> Entry:
        nonlocal cached
        cached = False
        log(f"compiles `{entry}` of {given.source.name} with {' '.join(options)}")
        return _translate(given.source, entry, nvrtc, (*options, *(f"-I{folder}" for folder in folders)))

    text = given.source.text + declare(entry, _OWN)
    parts = ("cuda", text, entry, *options, ".".join(map(str, nvrtc.version)), headers or "")
    found = make() if headers is None else cache.obtain(cache.key_of(parts), make)[0]
    blobs = {name: zlib.decompress(blob) for name, blob in found.blobs.items()}
    ptx = blobs["ptx"].decode()
    return CudaCode(found.metadata["symbol"], blobs["cubin"], ptx, read(ptx), blobs["log"].decode(), cached)


def _options(given: CudaText, capability: tuple[int, int], nvrtc: Nvrtc) -> tuple[str, ...]:
    """Return the options that decide about the code; the user's come last, and win."""
    options = ["--use_fast_math"] if given.fast_math else []
    if not any(_ARCHITECTURE.match(flag) for flag in given.flags):
        wanted, known = capability[0] * 10 + capability[1], nvrtc.architectures()
        older = [number for number in known if number <= wanted]
        if not older:
            raise DeviceError(
                f"this machine's NVRTC makes code for sm_{known[0]} and later, and the GPU is sm_{wanted}"
            )
        options.append(f"--gpu-architecture={'sm' if wanted in known else 'compute'}_{older[-1]}")
    return (*options, *given.flags)


def _translate(source: GivenText, entry: str, nvrtc: Nvrtc, options: Sequence[str]) -> Entry:
    text = f'#line 1 "{_TEXT}"\n{source.text}\n{declare(entry, _OWN)}'
    try:
        made = nvrtc.translate(text, entry, options, HEADERS)
    except Refused as refused:
        raise CompileError(_diagnostics(source, entry, refused.log)) from None
    blobs = {"cubin": made.cubin, "ptx": made.ptx.encode(), "log": made.log.encode()}
    return Entry({"symbol": made.symbol}, {name: zlib.compress(blob, 1) for name, blob in blobs.items()})


# ---------------------------------------------------------------- headers


def _digest_of_headers(given: CudaText, folders: Sequence[Path]) -> str | None:
    """Return what tells the headers of a text from others; None if an include cannot be followed."""
    if any(_BEFORE.match(flag) for flag in given.flags):
        return None
    folders = (*(Path(found[1]) for flag in given.flags if (found := _FOLDER.match(flag))), *folders)
    digest = hashlib.sha256()
    seen: set[Path] = set()
    waiting = [(given.source.text, folders)]
    while waiting:
        text, around = waiting.pop()
        for name in _included(text):
            if name is None:
                return None
            path = next((folder / name for folder in around if (folder / name).is_file()), None)
            if path is None or path in seen:
                continue
            seen.add(path)
            content = path.read_bytes()
            digest.update(hashlib.sha256(f"{name}\0".encode() + content).digest())
            waiting.append((content.decode(errors="replace"), (path.parent, *folders)))
    return digest.hexdigest()


def _included(text: str) -> Iterator[str | None]:
    """Yield the names that a text includes; None for one that a macro gives."""
    for found in _INCLUDE.findall(text):
        name = re.match(r'["<]([^">]+)[">]', found.strip())
        yield None if name is None else name[1]


# ---------------------------------------------------------------- messages


def _diagnostics(source: GivenText, entry: str, log: str) -> list[Diagnostic]:
    """Return what NVRTC said about a text, each at the user's line."""
    found: list[Diagnostic] = []
    unknown: list[str] = []
    lines = log.splitlines()
    for number, line in enumerate(lines):
        message = _MESSAGE.match(line)
        if message is None:
            continue
        file, at, said = message[1], int(message[2]), message[3]
        if file in {_OWN, _MAP}:
            unknown.append(said)
        else:
            more = lines[number + 1 : number + 3]
            found.append(Diagnostic(code="BW302", message=said, loc=_place(source, file, at, more), help=_help(said)))
    if found:
        return found[:_MOST_MESSAGES]
    if unknown:
        return [_no_kernel(source, entry, unknown[0])]
    return [Diagnostic(code="BW302", message=log.strip(), loc=source.whole_line(1))]


def _no_kernel(source: GivenText, entry: str, said: str) -> Diagnostic:
    """Return what to say if the text is right, but has not one kernel of that name."""
    message = f"the text has no kernel `{entry}` that could be launched: {said}"
    advice = (
        "name a `__global__ void` function, with its namespace and template arguments, such as `scale<float>`; of"
        " several with the same name, rename all but one"
    )
    return Diagnostic(code="BW302", message=message, loc=kernel_place(source, entry), help=advice)


def kernel_place(source: GivenText, entry: str) -> Location:
    """Return where a kernel is declared in a text; its first line if that is not to be seen."""
    name = re.escape(entry.partition("<")[0].rpartition("::")[2].strip())
    for number, line in enumerate(source.text.split("\n"), 1):
        found = re.search(rf"\b{name}\b(?=\s*\()", line)
        if found is not None:
            start = len(line[: found.start()].encode())
            return source.location(number, start, start + len(found[0].encode()))
    first = next((number for number, line in enumerate(source.text.split("\n"), 1) if line.strip()), 1)
    return source.whole_line(first)


def _place(source: GivenText, file: str, line: int, more: Sequence[str]) -> Location:
    """Return the place of a message; `more` are the lines behind it, the source and a caret if it has one."""
    caret = more[1].find("^") - 2 if len(more) == 2 and more[1].strip() == "^" else -1
    if file != _TEXT:
        at = max(caret, 0)
        return Location(file=file, line=line, column=at, end_line=line, end_column=at + 1, function=source.name)
    if caret < 0:
        return source.whole_line(line)
    shown = more[0][2:]
    word = re.match(r"\w+|.", shown[caret:] or " ")
    start = len(shown[:caret].encode())
    return source.location(line, start, start + len((word[0] if word else " ").encode()))


def _help(said: str) -> str:
    """Return what to do about an error; nothing where the compiler's words are enough."""
    if "source file" in said:
        return (
            "give the folder of the header as `include=`; NVRTC has device code only: headers of PyTorch and most of"
            " C++'s standard library are not for it, and CUDA's `<cuda/std/...>` are"
        )
    return ""
