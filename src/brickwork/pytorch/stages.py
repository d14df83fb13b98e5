"""The stages of a compilation that `Op.inspect` shows, by name."""

from __future__ import annotations

from typing import Literal, TypeAlias

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
DEVICE_STAGES = ("ptx", "sass", "resources")
"""Those that are made of a kernel when they are looked at."""
