"""Results as files: what was measured, when, with which versions, on what kind of machine. No host is named."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import torch

from brickwork.bench.timers import Timing
from brickwork.records import dataclass

_Made = TypeVar("_Made")
_PACKAGES = (
    "brickwork",
    "torch",
    "llvmlite",
    "islpy",
    "numba",
    "taichi",
    "quadrants",
    "triton",
    "warp-lang",
    "helion",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One comparison: its title, the parameters, each contender's timing, and the one that ratios refer to."""

    title: str
    timings: dict[str, Timing]
    reference: str
    target: str = ""
    """What brickwork must reach, in words."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    device: str = "cpu"
    at_most: float = 0.0
    """Seconds that brickwork may take; 0 where nothing was set."""
    moved: int = 0
    """Bytes that a call reads and writes, where that is what limits it."""
    flops: int = 0
    """Operations on floating-point numbers that a call makes, where that is what limits it."""
    host: dict[str, Timing] = field(default_factory=dict[str, Timing])
    """On a GPU, how long the host takes for a call; `timings` are the device's."""
    launches: dict[str, int] = field(default_factory=dict[str, int])
    """On a GPU, how many kernels a call launches, where the profiler showed them."""
    memory: dict[str, int] = field(default_factory=dict[str, int])
    """Bytes that a call allocates at most at one time, its results included."""

    def ratio(self, name: str) -> float:
        """Return how many times as long as the reference a contender takes."""
        return self.timings[name].median / self.timings[self.reference].median


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The cases of one benchmark, measured in one process."""

    name: str
    cases: tuple[Case, ...]
    date: str
    versions: dict[str, str]
    machine: dict[str, str]
    commit: str
    threads: int


def record(name: str, cases: list[Case]) -> Record:
    """Return the record of cases that were just measured."""
    return Record(
        name=name,
        cases=tuple(cases),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        versions=versions(),
        machine=machine(),
        commit=_commit(),
        threads=torch.get_num_threads(),
    )


def save_all(results: list[Record], path: Path) -> Path:
    """Write the records of one run on a GPU as one JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return path


def load_all(path: Path) -> list[Record]:
    """Read the records that `save_all` wrote."""
    return [of_data(data) for data in json.loads(path.read_text(encoding="utf-8"))]


def save(result: Record, folder: Path) -> Path:
    """Write a record as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    path.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Record:
    """Read a record that `save` wrote."""
    return of_data(json.loads(path.read_text(encoding="utf-8")))


def read(path: Path, form: int, made: Callable[[dict[str, Any]], _Made], what: str) -> _Made:
    """Read what was written as JSON in a form; refuse what is something else, or of a version with other fields."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] == form:
            return made(data)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not {what}, or is one of another version of brickwork") from error
    raise ValueError(f"{path} is not {what}, or is one of another version of brickwork")


def of_data(data: dict[str, Any]) -> Record:
    """Return the record that was turned into this data."""
    cases = tuple(_case(case) for case in data.pop("cases"))
    return Record(cases=cases, **data)


def _case(data: dict[str, Any]) -> Case:
    timings = _timings(data.pop("timings"))
    return Case(timings=timings, host=_timings(data.pop("host", {})), **data)


def _timings(data: Mapping[str, dict[str, Any]]) -> dict[str, Timing]:
    return {name: Timing(**timing) for name, timing in data.items()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if torch.version.cuda and torch.cuda.is_initialized():
        found["cuda"] = torch.version.cuda
    return found


def machine() -> dict[str, str]:
    """Describe the processor, without the name of the host."""
    described = {"architecture": platform.machine(), "cores": str(os.cpu_count() or 0), "system": platform.system()}
    path = Path("/proc/cpuinfo")
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(":", maxsplit=1) for line in lines if ":" in line)
        words = {name.strip(): value.strip() for name, value in fields.items()}
        described["processor"] = words.get("model name", "unknown")
        flags = words.get("flags", "").split()
        described["vectors"] = " ".join(flag for flag in ("avx2", "fma", "avx512f") if flag in flags)
    if torch.cuda.is_initialized():
        device: Any = torch.cuda
        properties = device.get_device_properties(0)
        described["gpu"] = properties.name
        described["compute"] = f"sm_{properties.major}{properties.minor}"
        described["multiprocessors"] = str(properties.multi_processor_count)
    return described


def _commit() -> str:
    """Return the commit that was measured, `+` if files were changed since; or what `BRICKWORK_COMMIT` says."""
    said = os.environ.get("BRICKWORK_COMMIT", "")
    if said:
        return said
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"],  # noqa: S607  # git is found on the path
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return described.stdout.strip()
