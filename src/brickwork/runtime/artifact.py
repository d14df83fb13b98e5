"""What a compilation produces, and how it lies in the cache: JSON for facts, compressed text for stages, code as it is.

Reading an artifact back runs nothing of it; the object code is only executed once the loader has linked it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from typing import Any

from brickwork.codegen.builder import FailureSite
from brickwork.codegen.entry_description import EntryDescription
from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import Location, in_this_session, with_cells
from brickwork.ir.dtypes import DTYPES
from brickwork.ir.nodes import Failure, FailureKind
from brickwork.records import dataclass
from brickwork.runtime.cache import Entry
from brickwork.transform.explanation import Explanation, from_json, to_json

_CODE = "object"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One specialisation of an operator: code, what its failures mean, and the stages that led to it as text."""

    code: bytes
    """A relocatable object, or an archive of some, that defines `description.symbol`."""
    description: EntryDescription
    explanation: Explanation
    """What `op.explain()` says."""
    stages: Mapping[str, str]
    """`ir`, `schedule`, `llvm` and, for a GPU, `pieces` (the program that launches its kernels) and `device` (the LLVM
    of kernels that can fail, whose failures the entry knows; `device_ptx.py` makes that of the others); `ptx` only
    where the user puts it in place of ours."""
    warnings: tuple[Diagnostic, ...] = ()
    """What the user is told whenever the code is first used in a process."""
    kernels: Mapping[str, str] = field(default_factory=dict[str, str])
    """For a GPU: its kernels, in the order of their cells (`codegen.support.kernel_cell`), each with the cache's key of
    its PTX."""
    shared: Mapping[str, int] = field(default_factory=dict[str, int])
    """For a GPU: how many bytes of shared memory launches of a kernel give each block, if any."""
    architecture: str = ""
    """For a GPU: what its kernels are compiled for (`sm_90`)."""
    rounding: Rounding = SOURCE
    """How its kernels may round."""


def to_entry(artifact: Artifact) -> Entry:
    """Return an artifact as an entry of the cache."""
    description = artifact.description
    metadata = {
        "operator": description.operator,
        "symbol": description.symbol,
        "failures": [_site_to_json(site) for site in description.failures],
        "explanation": to_json(artifact.explanation),
        "warnings": [[each.code, each.message, _location_to_json(each.loc), each.help] for each in artifact.warnings],
        "kernels": dict(artifact.kernels),
        "shared": dict(artifact.shared),
        "architecture": artifact.architecture,
        "rounding": asdict(artifact.rounding),
    }
    stages = {name: zlib.compress(text.encode(), 1) for name, text in artifact.stages.items()}
    return Entry(metadata, {_CODE: artifact.code, **stages})


def from_entry(entry: Entry) -> Artifact:
    """Return the artifact that an entry holds; stages stay compressed until they are asked for."""
    metadata = entry.metadata
    failures = tuple(_site_from_json(site) for site in metadata["failures"])
    return Artifact(
        code=entry.blobs[_CODE],
        description=EntryDescription(metadata["operator"], metadata["symbol"], failures),
        explanation=from_json(metadata["explanation"], with_cells),
        stages=_Stages(entry.blobs),
        warnings=tuple(_warning_from_json(*each) for each in metadata["warnings"]),
        kernels=metadata["kernels"],
        shared=metadata["shared"],
        architecture=metadata["architecture"],
        rounding=Rounding(**metadata["rounding"]),
    )


class _Stages(Mapping[str, str]):
    """The stages of an entry, each decompressed when it is read."""

    def __init__(self, blobs: Mapping[str, bytes]) -> None:
        self._blobs = {name: blob for name, blob in blobs.items() if name != _CODE}

    def __getitem__(self, name: str) -> str:
        return zlib.decompress(self._blobs[name]).decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._blobs)

    def __len__(self) -> int:
        return len(self._blobs)


def _warning_from_json(code: str, message: str, loc: list[Any], advice: str) -> Diagnostic:
    return Diagnostic(code=code, message=message, loc=_location_from_json(loc), help=advice)


def _site_to_json(site: FailureSite) -> dict[str, Any]:
    return {
        "kind": site.failure.kind.name,
        "message": site.failure.message,
        "values": [dtype.name for dtype in site.values],
        "loc": _location_to_json(site.loc),
    }


def _site_from_json(data: Mapping[str, Any]) -> FailureSite:
    failure = Failure(FailureKind[data["kind"]], data["message"])
    return FailureSite(failure, tuple(DTYPES[name] for name in data["values"]), _location_from_json(data["loc"]))


def _location_to_json(loc: Location) -> list[Any]:
    caller = None if loc.call_site is None else _location_to_json(loc.call_site)
    return [loc.file, loc.line, loc.column, loc.end_line, loc.end_column, loc.function, caller]


def _location_from_json(data: list[Any]) -> Location:
    file, line, column, end_line, end_column, function, caller = data
    return Location(
        file=in_this_session(file),
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        function=function,
        call_site=None if caller is None else _location_from_json(caller),
    )
