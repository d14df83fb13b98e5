"""Where NVIDIA's files are on this machine: the math library libdevice, tools, the compiler NVRTC, headers of CUDA.

None of them comes with brickwork. They are looked for in the packages that torch and others bring (triton, the `nvidia`
wheels), in the folders that CUDA_HOME and CUDA_PATH name, where toolkits are usually put, and, tools, on PATH. Nothing
is imported for it.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from brickwork.diagnostics.errors import DeviceError

_LIBDEVICE = "libdevice.10.bc"
_FOLDERS_OF_LIBDEVICE = ("backends/nvidia/lib", "nvvm/libdevice", "libdevice", "*/nvvm/libdevice", "*/libdevice")
_FOLDERS_OF_TOOLS = ("backends/nvidia/bin", "bin", "*/bin", "*/nvvm/bin")
_FOLDERS_OF_LIBRARIES = ("lib", "lib64", "bin", "*/lib", "*/bin", "targets/*/lib")
_FOLDERS_OF_HEADERS = (
    *("include", "*/include", "backends/nvidia/include", "targets/*/include"),
    *("include/cccl", "*/include/cccl", "targets/*/include/cccl"),
)
_HEADER = "cuda_fp16.h"
_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_USUAL = ("usr/local/cuda", "usr/local/cuda-*", "opt/cuda")


def find_libdevice() -> Path:
    """Return the file of libdevice; DeviceError if there is none."""
    found = _first(roots(os.environ), _FOLDERS_OF_LIBDEVICE, _LIBDEVICE)
    if found is None:
        raise DeviceError(
            f"{_LIBDEVICE}, NVIDIA's library of math functions for GPUs, is not to be found: install `triton` or"
            " `nvidia-nvvm`, or set CUDA_HOME to the folder of a CUDA toolkit"
        )
    return found


@functools.cache
def libdevice_identity() -> str:
    """Return what tells this machine's libdevice from another, for cache keys."""
    try:
        status = find_libdevice().stat()
    except (DeviceError, OSError):
        return "no libdevice"
    return f"libdevice {status.st_size} {status.st_mtime_ns}"


def find_tool(name: str) -> Path | None:
    """Return a program of the toolkit (`ptxas`, `nvdisasm`, `cuobjdump`), or None."""
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path)
    file = f"{name}.exe" if sys.platform == "win32" else name
    return _first(roots(os.environ), _FOLDERS_OF_TOOLS, file)


def nvrtc_files(major: int | None) -> Iterator[str]:
    """Yield where NVRTC may be: first of CUDA's version `major`, at last names that the system's loader knows."""
    pattern = "nvrtc64_{}_0.dll" if sys.platform == "win32" else "libnvrtc.so.{}"
    wanted = [pattern.format("*" if major is None else f"{major}0" if sys.platform == "win32" else major)]
    wanted += [pattern.format("*")] if major is not None else []
    for name in wanted:
        for root in roots(os.environ):
            for folder in _FOLDERS_OF_LIBRARIES:
                yield from (str(path) for path in sorted(root.glob(f"{folder}/{name}"), reverse=True))
    yield from (name for name in wanted if "*" not in name)


def header_folders(nvrtc: str) -> tuple[Path, ...]:
    """Return the folders of CUDA's headers (`cuda_fp16.h`, `mma.h`) that go with an NVRTC; empty if there are none."""
    beside = Path(nvrtc).parent.parent / "include"
    if (beside / _HEADER).exists():
        found = beside
    else:
        header = _first(roots(os.environ), _FOLDERS_OF_HEADERS, _HEADER)
        if header is None:
            return ()
        found = header.parent
    return tuple(folder for folder in (found, found / "cccl") if folder.is_dir())


def header_folder(name: str) -> Path | None:
    """Return the folder of NVIDIA's in which a header is (`curand_kernel.h`, `cub/block/block_reduce.cuh`), or None."""
    found = _first(roots(os.environ), _FOLDERS_OF_HEADERS, name)
    return None if found is None else Path(*found.parts[: -len(Path(name).parts)])


def roots(environment: Mapping[str, str], system: Path = Path("/")) -> Iterator[Path]:
    """Yield the folders that may hold NVIDIA's files: what the user names, then packages, then usual places."""
    yield from (Path(environment[name]) for name in _VARIABLES if environment.get(name))
    for package in ("triton", "nvidia"):
        yield from _package_folders(package)
    for pattern in _USUAL:
        yield from sorted(system.glob(pattern), reverse=True)


@functools.cache
def _package_folders(name: str) -> tuple[Path, ...]:
    """Return the folders of an installed package."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return ()
    return () if spec is None else tuple(Path(folder) for folder in spec.submodule_search_locations or ())


def _first(folders: Iterator[Path], patterns: tuple[str, ...], file: str) -> Path | None:
    for folder in folders:
        for pattern in patterns:
            found = sorted(folder.glob(f"{pattern}/{file}"), reverse=True)
            if found:
                return found[0]
    return None
