"""From the record of a failed check to the exception that the caller of the operator gets."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from brickwork.codegen.builder import FailureSite
from brickwork.codegen.convention import RECORD_SITE, RECORD_VALUES
from brickwork.diagnostics.location import NOWHERE, chain
from brickwork.ir.dtypes import BOOL, UINT64, DType


def exception_of(record: Sequence[int], failures: Sequence[FailureSite], operator: str) -> Exception:
    """Return the exception for a record (its words as unsigned integers): message, operator and line."""
    site = failures[record[RECORD_SITE]]
    values = [_value(record[RECORD_VALUES + index], dtype) for index, dtype in enumerate(site.values)]
    message = site.failure.message.format(*values)
    place = "" if site.loc == NOWHERE else f", {chain(site.loc)}"
    return site.failure.kind.exception(f"{message} ({operator}{place})")


def _value(word: int, dtype: DType) -> bool | int | float:
    if dtype is BOOL:
        return bool(word)
    if dtype.is_float:
        return struct.unpack("<d", struct.pack("<Q", word))[0]
    return word if dtype is UINT64 else word - ((word >> 63) << 64)
