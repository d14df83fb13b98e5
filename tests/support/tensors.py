"""Between torch's tensors and the interpreter's memories, and the layouts in which tests lay out a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import torch

from brickwork.ir.dtypes import BOOL, DTYPES, FLOAT64, INT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import TensorType
from brickwork.ir.scalar_semantics import Number
from brickwork.ir.signature import AbsentType, ArgumentType, ListType, ScalarType, TensorListType, TextType


def to_memory(tensor: torch.Tensor) -> Memory:
    """Return the tensor's elements, of a complex one its parts, with its sizes, strides and offset; a copy."""
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    dtype = DTYPES[str(tensor.dtype).removeprefix("torch.")]
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = tensor.as_strided((count,), (1,), 0)
    numbers: list[Number] = [item.item() for item in flat]
    return Memory(numbers, tuple(tensor.shape), tensor.stride(), dtype, int(tensor.storage_offset()))


def to_tensor(memory: Memory) -> torch.Tensor:
    """Return a memory as a tensor; a copy."""
    data = torch.tensor(memory.data, dtype=getattr(torch, memory.dtype.name))
    return data.as_strided(memory.sizes, memory.strides, memory.offset).clone()


def argument_type(value: Any) -> ArgumentType:
    """Return the type of an argument of an operator."""
    match value:
        case torch.Tensor():
            if value.is_complex():
                return replace(cast("TensorType", argument_type(torch.view_as_real(value))), pairs=True)
            axes = [axis for axis in range(value.ndim) if value.stride(axis) == 1 or value.shape[axis] <= 1]
            dtype = DTYPES[str(value.dtype).removeprefix("torch.")]
            return TensorType(dtype, value.ndim, value.is_contiguous(), axes[-1] if axes else None)
        case None:
            return AbsentType()
        case str():
            return TextType(value)
        case bool():
            return ScalarType(BOOL)
        case int():
            return ScalarType(INT64)
        case float():
            return ScalarType(FLOAT64)
        case [torch.Tensor(), *_]:
            return TensorListType(tuple(cast("TensorType", argument_type(item)) for item in value))
        case _:
            return ListType(FLOAT64 if any(isinstance(item, float) for item in value) else INT64, len(value))


def copy(value: Any) -> Any:
    """Return the argument with memory of its own and the same layout."""
    if not isinstance(value, torch.Tensor):
        return value
    count = value.untyped_storage().nbytes() // value.element_size()
    return value.as_strided((count,), (1,), 0).clone().as_strided(value.shape, value.stride(), value.storage_offset())


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as it is."""
    return tensor


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values with the axes in the opposite order in memory."""
    order = tuple(range(tensor.ndim))[::-1]
    return tensor.permute(order).contiguous().permute(order)


def sliced(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values as every second element of a larger tensor, from an offset."""
    larger = tensor.new_zeros([2 * size + 3 for size in tensor.shape])
    part = larger[tuple(slice(2, 2 + 2 * size, 2) for size in tensor.shape)]
    part.copy_(tensor)
    return part


def expanded(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose first axis has the stride 0."""
    return tensor[:1].expand_as(tensor) if tensor.ndim and tensor.shape[0] else tensor


def beside(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor of the same values that begins an element after the beginning of its memory."""
    memory = tensor.new_zeros(tensor.numel() + 1)
    return memory[1:].view(tensor.shape).copy_(tensor)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": plain,
    "transposed": transposed,
    "sliced": sliced,
    "expanded": expanded,
}
"""Ways to lay out a tensor."""
