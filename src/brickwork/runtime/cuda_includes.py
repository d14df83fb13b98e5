"""The headers that a text includes, directly or by others: what tells them from others, where they are, whose they are.

A header is looked for as nvcc looks for it: beside the text, in the folders that the user names, then in NVIDIA's
packages and toolkits. PyTorch's headers are never read, and those of C++'s library and of libraries that only the host
calls not where they are missing: `texts` has what device code has of each. A header of the user's has its code for the
host skipped, as the text has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from brickwork.records import dataclass
from brickwork.runtime.cuda_headers import HEADERS, TARGET
from brickwork.runtime.cuda_host_code import device_part, is_host_header
from brickwork.runtime.cuda_toolkit import header_folder

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(.*)$", re.MULTILINE)
_NEVER_READ = re.compile(
    r"(?:torch|ATen|c10|caffe2|pybind11|THC?)/|thrust/(?:\w+_vector|sort|scan|reduce|copy|fill|execution_policy)\.h$"
)
"""PyTorch's headers, and those of Thrust's algorithms, which launch kernels of their own."""
_COMMON = "#pragma once\n" + "".join(
    f"#include <{name}>\n" for name in ("cstdint", "cmath", "climits", "cfloat", "algorithm")
)
"""What code has of other headers for the host, which include these."""
_PYTORCHS = f"""{_COMMON}
#ifndef C10_HOST_DEVICE
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define GPU_LAMBDA __host__ __device__
#endif
"""
"""What device code has of PyTorch's headers."""


@dataclass(frozen=True, slots=True)
class Headers:
    """What is known of the headers of a text."""

    digest: str | None
    """What tells them from others, by content; None if a macro names one, so that it cannot be followed."""
    folders: tuple[Path, ...]
    """Where they are."""
    texts: Mapping[str, str]
    """Those that are given to NVRTC by name."""
    host: tuple[str, ...]
    """Those for the host, which are skipped."""


def headers_of(text: str, own: Sequence[Path], nvidia: Sequence[Path]) -> Headers:
    """Follow what a text includes, from the user's own folders, then from NVIDIA's."""
    folders = (*own, *nvidia)
    digest = hashlib.sha256()
    followed = True
    seen: set[Path] = set()
    further: list[Path] = []
    texts: dict[str, str] = {}
    parts: dict[str, str] = {}
    waiting = [(text, tuple(folders))]
    while waiting:
        text, around = waiting.pop()
        for name in included(text):
            if name is None:
                followed = False
                continue
            if _NEVER_READ.match(name):
                texts[name] = _PYTORCHS
                continue
            path = next((folder / name for folder in (*around, *further) if (folder / name).is_file()), None)
            if path is None and name not in HEADERS and name not in texts:
                path = _beyond(name, further, texts)
            if path is None or path in seen:
                continue
            seen.add(path)
            content = path.read_bytes()
            digest.update(hashlib.sha256(f"{name}\0".encode() + content).digest())
            inner = content.decode(errors="replace")
            if not any(path.is_relative_to(folder) for folder in (*nvidia, *further)):
                part = device_part(inner)
                inner = part.text
                if part.skipped:
                    parts[name] = f'#line 1 "{path}"\n{inner}'
            waiting.append((inner, (path.parent, *around)))
    host = tuple(name for name in texts if name not in TARGET)
    return Headers(digest.hexdigest() if followed else None, (*folders, *further), HEADERS | texts | parts, host)


def _beyond(name: str, further: list[Path], texts: dict[str, str]) -> Path | None:
    """Return a header that NVIDIA's files have, adding its folder; else note what stands in for it."""
    folder = header_folder(name)
    if folder is not None:
        further.append(folder)
        return folder / name
    if name in TARGET:
        texts[name] = TARGET[name]
    elif is_host_header(name):
        texts[name] = _COMMON
    return None


def included(text: str) -> Iterator[str | None]:
    """Yield the names that a text includes; None for one that a macro gives."""
    for found in _INCLUDE.findall(text):
        name = re.match(r'["<]([^">]+)[">]', found.strip())
        yield None if name is None else name[1]
