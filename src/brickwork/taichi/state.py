"""What `ti.init` sets, and which kernel this thread is compiling."""

from __future__ import annotations

import threading
import weakref
from dataclasses import field
from typing import Any

import torch

from brickwork.records import dataclass
from brickwork.taichi.scalars import ScalarType, f32, i32


@dataclass(slots=True)
class Settings:
    """The settings of `ti.init` that mean something here; the others are taken and have no effect."""

    default_fp: ScalarType = f32
    default_ip: ScalarType = i32
    debug: bool = False
    device: str = "cpu"
    arch: Any = None
    races: str = "warn"
    """What a proved race of a parallel loop is: a warning, and the loop runs in order, or an `error`."""
    generator: torch.Generator = field(default_factory=torch.Generator)
    """What random numbers are drawn with: kernels leave PyTorch's own alone."""
    others: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class _State:
    settings: Settings = field(default_factory=Settings)
    generation: int = 0
    local: threading.local = field(default_factory=threading.local)
    adjoints: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet[Any])
    duals: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet[Any])
    loose: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet[Any])
    compiled: int = 0
    times: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    unplaced: list[Any] = field(default_factory=list[Any])
    resets: list[Any] = field(default_factory=list[Any])


_state = _State()


def settings() -> Settings:
    """Return the settings now."""
    return _state.settings


def set_settings(settings: Settings) -> None:
    """Begin anew: what was laid out before is forgotten."""
    _state.settings = settings
    _state.generation += 1
    _state.compiled = 0
    _state.unplaced.clear()
    for fields in (_state.loose, _state.adjoints, _state.duals):
        fields.clear()
    for reset in _state.resets:
        reset()


def at_reset(action: Any) -> None:
    """Have something done whenever `ti.init` or `ti.reset` is called."""
    _state.resets.append(action)


def adjoints() -> weakref.WeakSet[Any]:
    """Return the fields of gradients."""
    return _state.adjoints


def duals() -> weakref.WeakSet[Any]:
    """Return the fields of tangents."""
    return _state.duals


def loose() -> weakref.WeakSet[Any]:
    """Return the fields that are laid out by their shape alone."""
    return _state.loose


def count_compiled() -> None:
    """Count a kernel that is compiled."""
    _state.compiled += 1


def compiled() -> int:
    """Return how many kernels were compiled since the last reset."""
    return _state.compiled


def times() -> list[tuple[str, float]]:
    """Return the kernels that were measured, each with its seconds."""
    return _state.times


def unplaced() -> list[Any]:
    """Return the fields that were made without a shape since the last reset."""
    return _state.unplaced


def generation() -> int:
    """Return how often `ti.init` or `ti.reset` was called: kernels are compiled again then."""
    return _state.generation


def builder() -> Any:
    """Return what this thread is compiling a kernel with, or None in Python's scope."""
    return getattr(_state.local, "builder", None)


def set_builder(builder: Any) -> Any:
    """Compile with another builder from now on; return the one before."""
    before = getattr(_state.local, "builder", None)
    _state.local.builder = builder
    return before


def recorder() -> Any:
    """Return the tape that this thread's kernels are recorded on, or None."""
    return getattr(_state.local, "recorder", None)


def is_quiet() -> bool:
    """Return whether a call of a kernel is that and nothing else: no tape records it, and all fields have cells."""
    return builder() is None and recorder() is None and not _state.unplaced


def set_recorder(recorder: Any) -> Any:
    """Record on another tape from now on; return the one before."""
    before = getattr(_state.local, "recorder", None)
    _state.local.recorder = recorder
    return before
