"""The memory layouts that emitted functions share: the context of a kernel and the record of a failure.

A kernel is `void @name(ptr %context)`; the context is an array of 8-byte slots that the caller fills. A failure record
is an array of 8-byte words; a kernel that finds a failed check writes it, and the caller reads it after the launch.
"""

from __future__ import annotations

from dataclasses import dataclass

from brickwork.ir.nodes import Kernel, Symbol, Tensor

RECORD_WORDS = 12
RECORD_LOCK = 0
"""1 while a thread writes the record, else 0."""
RECORD_FAILED = 1
"""1 once a check has failed."""
RECORD_ORDER = 2
"""The number of the parallel iteration that failed: of several failures the one with the lowest order stays."""
RECORD_SITE = 3
"""Index of the failure in `Module.failures`."""
RECORD_VALUES = 4
"""Up to 8 recorded values: integers as i64, floats as the bits of a double."""


@dataclass(frozen=True, slots=True)
class TensorSlots:
    """Where a tensor's data pointer, sizes and strides (in elements) stand in the context."""

    data: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ContextLayout:
    """The slots of a kernel's context. Scalars are i64, double bits, or 0/1 for bool."""

    record: int
    tensors: dict[Tensor, TensorSlots]
    scalars: dict[Symbol, int]
    length: int


def context_layout(kernel: Kernel) -> ContextLayout:
    """Return the layout of the context that `kernel` takes."""
    slot = 1
    tensors: dict[Tensor, TensorSlots] = {}
    for tensor in kernel.tensors:
        rank = tensor.type.rank
        sizes = tuple(range(slot + 1, slot + 1 + rank))
        strides = tuple(range(slot + 1 + rank, slot + 1 + 2 * rank))
        tensors[tensor] = TensorSlots(slot, sizes, strides)
        slot += 1 + 2 * rank
    scalars = {symbol: slot + offset for offset, symbol in enumerate(kernel.scalars)}
    return ContextLayout(record=0, tensors=tensors, scalars=scalars, length=slot + len(scalars))
