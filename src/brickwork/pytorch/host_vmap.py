"""What a host part in Python makes under `torch.vmap`: tensors that differ between samples as the arguments do.

    y = x.relu()                     # x is the same for all samples
    out = torch.empty_like(y)        # and so is what is made like it,
    for i in range(n):
        out[i] = y[i] * w[i]         # until something of a sample is to be stored there

PyTorch refuses to store something of a sample into what all samples share. So tensors are made one for each sample, by
what allocates them; where the loops store into what other functions return, by giving these an argument for each
sample. An argument that the operator itself stores into is left as it is: PyTorch's refusal of it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from brickwork.frontend.environment import ALLOCATIONS, NEW_METHODS
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.tensor_devices import tensors_of

_MAKERS = frozenset({name.removeprefix("torch.") for name in ALLOCATIONS} | NEW_METHODS | {"clone", "tensor", "arange"})


def under_vmap() -> bool:
    """Whether a `torch.vmap` is running on this thread, maybe inside other transforms."""
    stack = private("_C._functorch.get_interpreter_stack")()
    return any(item.key() == private("_C._functorch.TransformType.Vmap") for item in stack or ())


def made_by_sample(values: Mapping[str, Any]) -> AbstractContextManager[object]:
    """Return a context in which allocations differ between samples if an argument does."""
    mask = _mask(values)
    return nullcontext() if mask is None else _Making(mask)


def by_sample(values: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any]:
    """Return arguments that all differ between samples if one does, but for those to be kept."""
    mask = _mask(values)
    return {name: value if mask is None or name in kept else _each(value, mask) for name, value in values.items()}


def _mask(values: Mapping[str, Any]) -> torch.Tensor | None:
    """Return a truth without dimensions that differs between samples of each transform in which an argument does."""
    result: torch.Tensor | None = None
    for tensor in tensors_of(values.values()):
        one = tensor.new_ones((), dtype=torch.bool)
        result = one if result is None else result & one
    return result


def _each(value: Any, mask: torch.Tensor) -> Any:
    if isinstance(value, list | tuple):
        return [_each(item, mask) for item in cast("Sequence[Any]", value)]
    return torch.where(mask, value, value) if isinstance(value, torch.Tensor) else value


class _Making(TorchFunctionMode):
    """Gives each sample its own of what is allocated."""

    def __init__(self, mask: torch.Tensor) -> None:
        super().__init__()
        self._mask = mask

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        return _each(result, self._mask) if getattr(func, "__name__", "") in _MAKERS else result
