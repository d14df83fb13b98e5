"""A machine that code is made for, as data that transforms and emitters ask for properties, never for its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a schedule and an emitter need to know of a machine."""

    name: str
    """`cpu` or `cuda`; only for messages and cache keys."""
    identity: str
    """Everything about the machine that generated code depends on, as text for the cache key."""
    vector_bytes: int
    """Width of the SIMD registers; 0 where lanes are threads."""
    vector_registers: int
    """Number of SIMD registers."""
    vector_library: str
    """`sleef` where torch exports its vector functions, else `none`."""
