"""How many of Taichi's published test functions pass: the record that `python -m tests.taichi_language` writes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

RECORD = Path(__file__).parent / "results" / "cpu-2core" / "taichi-tests.json"
DOCUMENT, MARK = "docs/guide/taichi.md", "published tests"


@dataclass(frozen=True, slots=True)
class File:
    """A file of tests: how many functions count, and which of them fail."""

    functions: int
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A complete run: the version of Taichi's tests, the commit that ran them, and what came of it."""

    taichi: str
    commit: str
    date: str
    files: dict[str, File]

    @property
    def functions(self) -> int:
        """How many functions count."""
        return sum(each.functions for each in self.files.values())

    @property
    def passed(self) -> int:
        """How many of them pass."""
        return self.functions - sum(len(each.failed) for each in self.files.values())


def save(run: Run, path: Path = RECORD) -> None:
    """Write a run."""
    path.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")


def load(path: Path = RECORD) -> Run:
    """Read a run."""
    found = json.loads(path.read_text(encoding="utf-8"))
    files = {name: File(each["functions"], tuple(each["failed"])) for name, each in found.pop("files").items()}
    return Run(files=files, **found)


def markdown(run: Run) -> str:
    """Return the counts, and a table of the files in which functions fail."""
    whole = [each for each in run.files.values() if not each.failed]
    counts = f"{run.passed} of {run.functions} functions pass (Taichi {run.taichi}; commit {run.commit}; {run.date})"
    files = f"{len(whole)} of {len(run.files)} files pass with all their functions"
    lines = [f"{counts}. {files}. The others:", "", "| file | pass | fail |", "|---|---|---|"]
    for name, each in sorted(run.files.items(), key=lambda item: (-len(item[1].failed), item[0])):
        if each.failed:
            failed = ", ".join(f"`{one.removeprefix('test_')}`" for one in each.failed)
            lines.append(f"| `{name}` | {each.functions - len(each.failed)} of {each.functions} | {failed} |")
    return "\n".join(lines)
