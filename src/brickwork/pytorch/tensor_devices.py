"""The devices of the tensors of a call, and so of what it makes: tensors without a device of their own, random keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import torch


def tensors_of(values: Iterable[object]) -> list[torch.Tensor]:
    """Return the tensors among the arguments of a call, items of lists too."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += tensors_of(cast("Sequence[object]", value))
    return found


def is_spread(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a DTensor, of which each machine has a part or a copy."""
    return hasattr(tensor, "device_mesh")


def device_of(values: Iterable[object]) -> torch.device | None:
    """Return the device of the first tensor among the arguments of a call; None if there is none."""
    return next((tensor.device for tensor in tensors_of(values)), None)


def allocating_like(values: Iterable[object]) -> AbstractContextManager[object]:
    """Return a context in which tensors are made where the arguments are, if no device is named, as in native code."""
    device = device_of(values)
    if device is None or device.type == torch.get_default_device().type == "cpu":
        return nullcontext()
    return device


def without_data(value: object) -> object:
    """Return an argument with meta tensors of the same layout in place of tensors."""
    if isinstance(value, list | tuple):
        return [without_data(item) for item in cast("Sequence[object]", value)]
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
