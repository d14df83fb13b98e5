"""Where the tensors of a call are, and so where what it makes belongs: tensors without a device of their own, keys."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import torch


def device_of(values: Iterable[object]) -> torch.device | None:
    """Return the device of the first tensor among the arguments of a call; None if there is none."""
    return next((value.device for value in values if isinstance(value, torch.Tensor)), None)


def allocating_like(values: Iterable[object]) -> AbstractContextManager[object]:
    """Return a context in which tensors are made where the arguments are, if no device is named, as in native code."""
    device = device_of(values)
    if device is None or device.type == torch.get_default_device().type == "cpu":
        return nullcontext()
    return device
