"""The stages of a compilation that `Op.inspect` shows, by name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from brickwork.codegen.llvm import assembly
from brickwork.pytorch.devices import devices
from brickwork.runtime.artifact import Artifact
from brickwork.target.target import Target

Stage: TypeAlias = Literal[
    "ir",
    "schedule",
    "llvm",
    "asm",
    "device",
    "ptx",
    "sass",
    "resources",
    "backward ir",
    "backward schedule",
    "backward llvm",
    "backward asm",
    "backward device",
    "backward ptx",
    "backward sass",
    "backward resources",
]
"""What `Op.inspect` shows, of the operator and of its gradient; the last four of each for GPUs."""

BACKWARD = "backward "
"""Begins the names of a gradient's stages."""
DEVICE_STAGES = ("device", "ptx", "sass", "resources")
"""Those that are made of a kernel when they are looked at."""


def named_stage(stage: object, operator: str) -> str:
    """Return the name of a stage; raise TypeError where an argument of a call stands in its place."""
    if isinstance(stage, str):
        return stage
    short = operator.rpartition("::")[2]
    raise TypeError(
        f"{short}.inspect takes the name of a stage before the arguments of a call, as in {short}.inspect('ir', ...); "
        f"it got {type(stage).__name__}. Stages: ir, schedule, llvm, asm; on GPUs also device, ptx, sass, resources"
    )


def stage_text(artifact: Artifact, stage: str, numbers: Sequence[Any] | None, target: Target) -> str:
    """Return a stage of a compilation as text; `numbers` are the arguments of a call as sizes and numbers."""
    if stage in artifact.stages and not (stage == "device" and artifact.kernels):
        return artifact.stages[stage]
    if stage == "asm":
        return assembly(artifact.stages["llvm"], target)
    if artifact.kernels and stage in DEVICE_STAGES:
        room = importlib.import_module("brickwork.runtime.inspection")
        shown: str = room.shown(stage, artifact, devices().like(artifact.architecture), numbers)
        return shown
    more = DEVICE_STAGES if artifact.kernels else ()
    names = dict.fromkeys((*artifact.stages, "asm", *more))
    raise ValueError(f"there is no stage {stage!r}; there are: {', '.join(names)}")
