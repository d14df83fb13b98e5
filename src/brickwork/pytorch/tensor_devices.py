"""The devices of the tensors of a call, and so of what it makes: tensors without a device of their own, random keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch.compiler import is_dynamo_compiling

from brickwork.frontend.definition import Definition
from brickwork.frontend.named_devices import names_device
from brickwork.pytorch.libtorch import private

_CPU = torch.device("cpu")
_function_modes: Callable[[], int] = private("_C._len_torch_function_stack")
"""How many of torch's modes on functions are on; a default device is one."""


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
    device = device_of(values) or _CPU
    return nullcontext() if device == _CPU and not _function_modes() else device


def made_like_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes tensors where its arguments are, if no device is named."""

    def call(*arguments: Any, **named: Any) -> Any:
        with allocating_like((*arguments, *named.values())):
            return function(*arguments, **named)

    return call


def at_default_device(definition: Definition, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of an operator, with its results on torch's default device if it counts.

    That is where no argument is a tensor and the source names no device. The CPU computes the results. The default
    device is a mode of torch's on functions, and torch switches such a mode off while it serves a call of `torch.ops`:
    so it counts for calls of the operator's handle.
    """
    kinds = {item.kind for item in definition.parameters}
    if kinds & {"tensor", "list[tensor]"} or names_device(definition.source):
        return call

    def placed(*arguments: Any, **named: Any) -> Any:
        results = call(*arguments, **named)
        if results is None or not (is_dynamo_compiling() or _function_modes()):
            return results
        # Dynamo does not know torch.get_default_device.
        device = torch.empty(0).device
        if device.type == "cpu":
            return results
        return results.to(device) if isinstance(results, torch.Tensor) else tuple(each.to(device) for each in results)

    return placed


def without_data(value: object) -> object:
    """Return an argument with meta tensors of the same layout in place of tensors."""
    if isinstance(value, list | tuple):
        return [without_data(item) for item in cast("Sequence[object]", value)]
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
