"""The stages of one compilation as text, and the files on disk that show them or stand in for them.

A specialisation has a folder of its own, `<operator>-<digest of the signature>`, with one file a stage, numbered in
order: `1-ir.txt`, `2-schedule.txt`, ... `config.dump_dir` asks for such folders to be written; a file of that name
below `config.override_dir` is used instead of what the stage made. Only stages that are read back can be replaced.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from brickwork.config import config
from brickwork.diagnostics.warn import tell
from brickwork.records import dataclass

_FILE = re.compile(r"\d+-(\w+)\.txt")
READ_BACK = frozenset({"ir", "llvm", "device", "ptx"})
"""Stages that another one reads as text."""


@dataclass(frozen=True, slots=True)
class StageFiles:
    """The stages that were reached, in order, and what is used in place of some."""

    edited: Mapping[str, str] = field(default_factory=dict[str, str])
    reached: dict[str, str] = field(default_factory=dict[str, str])

    def reach(self, stage: str, text: str) -> str:
        """Keep the text of a stage, or of what stands in for it; return what is kept."""
        kept = self.reached[stage] = self.edited.get(stage, text)
        return kept


def folder_name(operator: str, signature: str) -> str:
    """Return the name of the folder of a specialisation."""
    digest = hashlib.sha256(signature.encode()).hexdigest()[:12]
    return f"{operator.replace('::', '.')}-{digest}"


def dump(name: str, stages: Mapping[str, str], others: Mapping[str, str]) -> None:
    """Write the stages of a specialisation, numbered, and other texts about it, if that is asked for."""
    if not config.dump_dir:
        return
    folder = Path(config.dump_dir).expanduser() / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, (stage, text) in enumerate(stages.items(), 1):
        (folder / f"{number}-{stage}.txt").write_text(text, encoding="utf-8")
    for other, text in others.items():
        (folder / f"{other}.txt").write_text(text, encoding="utf-8")


def edited_stages(name: str, operator: str) -> dict[str, str]:
    """Return what the user puts in place of stages of a specialisation, with a warning that says so."""
    if not config.override_dir:
        return {}
    folder = Path(config.override_dir).expanduser() / name
    found = {match[1]: path for path in sorted(folder.glob("*.txt")) if (match := _FILE.fullmatch(path.name))}
    edited = {stage: path.read_text(encoding="utf-8") for stage, path in found.items() if stage in READ_BACK}
    if edited:
        names = ", ".join(f"`{stage}`" for stage in edited)
        message = f"{operator}: {names} of {folder} stand in for what brickwork makes; the cache is left alone"
        tell(message)
    return edited
