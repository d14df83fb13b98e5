"""What Python keeps of an emitted entry; light, so that a warm start need not load the emitters."""

from __future__ import annotations

from typing import TypeAlias

from brickwork.codegen.builder import FailureSite
from brickwork.records import dataclass

Sizes: TypeAlias = tuple[tuple[int, ...], ...]
"""The sizes of tensors, one after the other."""
ANY: Sizes = ()
"""In place of sizes that code is for alone."""


@dataclass(frozen=True, slots=True)
class EntryDescription:
    """What Python needs of an emitted entry: kept in the cache beside the object."""

    operator: str
    """`Program.name`, for messages."""
    symbol: str
    """The entry function's name in the object."""
    failures: tuple[FailureSite, ...]
    """What each number in `RECORD_SITE` means: a copy of `Module.failures`."""
