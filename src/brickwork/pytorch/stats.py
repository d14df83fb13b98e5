"""What an operator has done in this process, as `op.stats()` tells it."""

from __future__ import annotations

from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Specialisation:
    """Code of an operator for one signature: where it came from and how long that took."""

    signature: str
    overload: str
    cached: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Stats:
    """What an operator has done in this process: its specialisations, oldest first."""

    name: str
    specialisations: tuple[Specialisation, ...]
