"""The memory layouts that emitted functions share: the context of a kernel and the record of a failure.

A kernel is `void @name(ptr %context)`; the context is an array of 8-byte slots that the caller fills. A failure record
is an array of 8-byte words; a kernel that finds a failed check writes it, and the caller reads it after the launch.

A device kernel is `void @name(<one 8-byte parameter a slot>)`: the array is its parameter buffer. Its record lies in
host memory that the device can write, is shared by all operators and holds the owner of the kernel that failed.
"""

from __future__ import annotations

from dataclasses import field

from brickwork.ir.nodes import Kernel, Rebind, Symbol, Tensor
from brickwork.ir.walk import statements
from brickwork.records import dataclass

RECORD_WORDS = 13
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
RECORD_OWNER = 12
"""For device kernels: the address of the `bw_next` cell of the specialisation whose check failed."""


@dataclass(frozen=True, slots=True)
class TensorSlots:
    """Where a tensor's data pointer, sizes and strides (in elements) stand in the context."""

    data: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ContextLayout:
    """The slots of a kernel's context. Scalars are i64, double bits, or 0/1 for bool.

    In a device kernel's context a float32 scalar is the bits of the float, and `owner` is what goes into RECORD_OWNER.
    Of tensors that a kernel exchanges the context has the handles, too; the caller finds there how they ended.
    """

    record: int
    tensors: dict[Tensor, TensorSlots]
    scalars: dict[Symbol, int]
    length: int
    owner: int | None = None
    handles: dict[Tensor, int] = field(default_factory=dict[Tensor, int])

    def moving(self) -> frozenset[int]:
        """Return the slots that an exchange of tensors changes."""
        return frozenset(
            slot
            for tensor in self.handles
            for slot in (self.tensors[tensor].data, *self.tensors[tensor].strides, self.handles[tensor])
        )


def context_layout(kernel: Kernel, *, device: bool = False) -> ContextLayout:
    """Return the layout of the context that `kernel` takes."""
    slot = 2 if device else 1
    tensors: dict[Tensor, TensorSlots] = {}
    for tensor in kernel.tensors:
        rank = tensor.type.rank
        sizes = tuple(range(slot + 1, slot + 1 + rank))
        strides = tuple(range(slot + 1 + rank, slot + 1 + 2 * rank))
        tensors[tensor] = TensorSlots(slot, sizes, strides)
        slot += 1 + 2 * rank
    scalars = {symbol: slot + offset for offset, symbol in enumerate(kernel.scalars)}
    owner = 1 if device else None
    slot += len(scalars)
    moved = dict.fromkeys(
        tensor for node in statements(kernel.body) if isinstance(node, Rebind) for tensor in node.targets
    )
    handles = {tensor: slot + offset for offset, tensor in enumerate(moved)}
    length = slot + len(handles)
    return ContextLayout(record=0, tensors=tensors, scalars=scalars, length=length, owner=owner, handles=handles)
