"""The processor of this host as a `Target`."""

from __future__ import annotations

import functools
import platform
import sys
from pathlib import Path

from brickwork.config import config
from brickwork.target.target import Target

_LEVELS = (
    ("x86-64-v4", 64, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", 32, {"avx2", "fma", "f16c", "bmi1", "bmi2", "movbe", "abm"}),
)


def host_target(vector_bytes: int | None = None) -> Target:
    """Return this host's target; `vector_bytes` (16, 32, 64) asks for narrower vectors than it has."""
    machine = platform.machine().lower()
    cpu, widest = _level(machine, _flags())
    width = widest if vector_bytes is None else min(vector_bytes, widest)
    fused = widest >= 32 or machine in {"arm64", "aarch64"}
    library = "sleef" if widest >= 32 and sys.platform == "linux" else "none"
    return Target(
        name="cpu",
        identity=f"{machine} {cpu} {sys.platform} vectors={width} library={library}{widest}",
        vector_bytes=width,
        vector_registers=32 if width == 64 or (fused and widest < 32) else 16,
        vector_library=library,
        cpu=cpu,
        fused=fused,
        mask_registers=cpu == "x86-64-v4",
        library_bytes=widest if library == "sleef" else 0,
    )


def configured_target() -> Target:
    """Return this host's target with the vectors that the settings ask for."""
    return _configured(config.vector_bytes)


@functools.cache
def _configured(vector_bytes: int) -> Target:
    return host_target(vector_bytes or None)


def _level(machine: str, flags: frozenset[str]) -> tuple[str, int]:
    """Return the name that LLVM has for what `flags` offer, and the bytes of a vector register."""
    if machine not in {"x86_64", "amd64"}:
        return "generic", 16
    level = ("x86-64", 16)
    for cpu, size, needed in reversed(_LEVELS):
        if not needed <= flags:
            break
        level = (cpu, size)
    return level


def model() -> str:
    """Return what the maker calls the processor, or else its architecture."""
    return _line("model name") or platform.processor() or platform.machine()


def _flags() -> frozenset[str]:
    """Return the processor's features as Linux lists them; empty elsewhere."""
    return frozenset(_line("flags").split())


def _line(name: str) -> str:
    """Return what Linux says of the first processor under a name; nothing elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    line = next((line for line in text.splitlines() if line.startswith(name)), "")
    return line.partition(":")[2].strip()
