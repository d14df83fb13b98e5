"""What a question found, its tables and why others are missing, as one JSON file; and how that differs from before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from brickwork.bench.compare_runs import Changes
from brickwork.bench.record import read
from brickwork.bench.table import Table
from brickwork.records import dataclass

_FORMAT = 1
_REASONS = ("failed", "wrong")
"""How notes begin that say why a contender was not timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The tables that answer a question, by their short names, and why others could not be made."""

    question: str
    asks: str
    tables: dict[str, Table] = field(default_factory=dict[str, Table])
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def save(self, folder: Path) -> Path:
        """Write them as a JSON file that is named like the question."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.question}.json"
        data = {
            "format": _FORMAT,
            "question": self.question,
            "asks": self.asks,
            "tables": {name: table.data() for name, table in self.tables.items()},
            "failures": self.failures,
        }
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        return path

    @staticmethod
    def load(path: Path) -> Findings:
        """Read what `save` wrote."""
        return read(path, _FORMAT, Findings._of_data, "an answer to a question")

    @staticmethod
    def _of_data(data: dict[str, Any]) -> Findings:
        return Findings(
            question=data["question"],
            asks=data["asks"],
            tables={name: Table.of_data(table) for name, table in data["tables"].items()},
            failures=data["failures"],
        )

    def troubles(self) -> list[str]:
        """Return, a line each, what could not be measured: tables, and contenders of tables."""
        found = [f"{self.question}, {name}: {why}" for name, why in self.failures.items()]
        for name, table in self.tables.items():
            for x, case in zip(table.x_values, table.record.cases, strict=True):
                found += [
                    f"{self.question}, {name}, {table.x_name} = {x}: {line}: {note}"
                    for line, note in case.notes.items()
                    if line not in case.timings and note.startswith(_REASONS)
                ]
        return found

    def against(self, earlier: Findings) -> dict[str, Changes]:
        """Compare those tables that an earlier run has, too."""
        both = [name for name in self.tables if name in earlier.tables]
        return {name: self.tables[name].against(earlier.tables[name]) for name in both}


def common(tables: Sequence[Table]) -> dict[str, str]:
    """Return what is said alike of how each of several tables was measured."""
    first, *rest = [dict(table.sheet().facts) for table in tables] or [dict[str, str]()]
    return {key: value for key, value in first.items() if all(each.get(key) == value for each in rest)}
