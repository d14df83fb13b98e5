"""Runs a compilation again from a crash bundle alone: the stages after the IR, for the machine that it was for.

Nothing is linked or run of what comes out. A failure before there was IR cannot be repeated so: what was told of it is
shown again.
"""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from brickwork.codegen.builder import Module
from brickwork.codegen.rounding import Rounding
from brickwork.diagnostics.errors import BrickworkError
from brickwork.ir.parse import parse_program
from brickwork.runtime import device_ptx, device_stages, stages
from brickwork.runtime.crash import failure_text
from brickwork.runtime.stage_files import StageFiles
from brickwork.target.target import Target


def replay(path: str) -> tuple[str, bool]:
    """Return what happens now to the compilation of a bundle, and whether it still fails."""
    try:
        bundle = cast("dict[str, Any]", json.loads(Path(path).read_text(encoding="utf-8")))
        targets = tuple(Target(**each) for each in bundle["targets"])
        text = cast("dict[str, str]", bundle["stages"]).get("ir")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrickworkError(f"{path} is no crash bundle: {error}") from None
    head = f"{bundle['operator']}{bundle['signature']}"
    if text is None or not targets:
        why = "it failed before there was IR, and cannot be repeated from the bundle; this is what was seen:"
        return f"{head}: {why}\n{bundle['traceback']}", True
    with _Caught() as caught:
        _run(text, targets, Rounding(**bundle["rounding"]))
    if caught.error is None:
        return f"{head}: no failure any more; it was '{bundle['failure']}'", False
    again = "the same failure"
    if failure_text(caught.error) != bundle["failure"]:
        again = f"another failure than '{bundle['failure']}'"
    return f"{head}: {again}\n{''.join(traceback.format_exception(caught.error))}", True


def _run(text: str, targets: tuple[Target, ...], rounding: Rounding) -> None:
    program = parse_program(text)
    if targets[0].grid:
        artifact, _ = device_stages.emit(program, targets[0], targets[-1], StageFiles(), rounding=rounding)
        for name in artifact.kernels:
            device_ptx.compiled(artifact, name)
    else:
        stages.emit(program, targets[0], Module(rounding=rounding), StageFiles())


class _Caught:
    """A context that keeps what is raised in it."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None
