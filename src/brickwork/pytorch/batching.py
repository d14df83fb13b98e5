"""The call of an operator over samples, as `torch.vmap` asks for it.

One call of the operator that is derived for samples serves them all; where there is none, the operator is called once a
sample. What it stores into is cloned, and returned before the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from brickwork.pytorch.gate import call_in_order
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.tensor_devices import tensors_of


class Samples:
    """The arguments of a call over samples: the first axis of each tensor that differs between samples counts them."""

    def __init__(self, size: int, values: Sequence[Any], dims: Sequence[Any], written: Sequence[int]) -> None:
        """Take arguments with the axis over samples of each tensor, None where it has none.

        `written` are the places of the arguments that the operator stores into.
        """
        self._size = size
        self._written = written
        pairs = enumerate(zip(values, dims, strict=True))
        self._differs = [_has_axis(dim) or (place in written and value is not None) for place, (value, dim) in pairs]
        pairs = enumerate(zip(values, dims, strict=True))
        self.values = [self._whole(value, dim) if self._differs[place] else value for place, (value, dim) in pairs]
        for place in written:
            self.values[place] = clones(self.values[place])

    def given(self, count: int) -> tuple[tuple[bool, ...], bool]:
        """Return which of the first `count` arguments differ between samples, and whether the random key does."""
        return tuple(self._differs[:count]), any(self._differs[count:])

    def at_once(self, count: int, call: Callable[[Sequence[Any]], Any]) -> tuple[torch.Tensor, ...]:
        """Return what is stored into, then the results, of the operator over samples; keys stand after `count`."""
        keys = [key.contiguous() for key in self.values[count:]]
        results = call([*self.values[:count], *keys])
        return (*self._stored(self.values), *tensors_of([results]))

    def one_by_one(self, overload: Any) -> tuple[torch.Tensor, ...]:
        """Return what is stored into, then the results, of one call a sample."""
        if not self._size:
            raise RuntimeError(f"vmap: {overload.name()} cannot be called over no samples at all")
        outputs: list[list[torch.Tensor]] = []
        for number in range(self._size):
            pairs = zip(self.values, self._differs, strict=True)
            sample = [_sample(value, number) if differs else value for value, differs in pairs]
            results = call_in_order(overload, sample)
            outputs.append([*self._stored(sample), *tensors_of([results])])
        return tuple(torch.stack(items) for items in zip(*outputs, strict=True))

    def _stored(self, values: Sequence[Any]) -> list[torch.Tensor]:
        return tensors_of(values[place] for place in self._written)

    def _whole(self, value: Any, dim: Any) -> Any:
        """Return a tensor, or a list of them, with an axis over samples in front."""
        if isinstance(value, list | tuple):
            pairs = zip(cast("Sequence[Any]", value), cast("Sequence[Any]", dim), strict=True)
            return [self._whole(item, axis) for item, axis in pairs]
        if dim is not None:
            return value.movedim(dim, 0)
        return value.unsqueeze(0).expand(self._size, *value.shape) if isinstance(value, torch.Tensor) else value


def without_level(operator: str, flat: Sequence[Any]) -> tuple[int, int, list[Any], list[int | None]]:
    """Take the innermost level of torch's older vmap off a flat list of arguments; it serves `is_grads_batched`.

    Returned are the level, how many samples it has, the arguments and where each has its axis over samples.
    """
    is_batched: Callable[[torch.Tensor], bool] = private("_C._functorch.is_legacy_batchedtensor")
    without: Callable[[torch.Tensor, int, int, int], torch.Tensor] = private("_remove_batch_dim")
    level, rest = 0, tensors_of(flat)
    while any(map(is_batched, rest)):
        level += 1
        rest = [without(tensor, level, 1, 0) for tensor in rest]
    # A tensor that has no axis of a level gets one of as many samples as are asked for, here none.
    values = [without(item, level, 0, 0) if isinstance(item, torch.Tensor) else None for item in flat]
    size = max((value.shape[0] for value in values if value is not None), default=0)
    if not size:
        raise RuntimeError(f"vmap: {operator} cannot be called over no samples at all")
    differs = [value is not None and value.shape[0] == size for value in values]
    chosen = [value if one else item for value, item, one in zip(values, flat, differs, strict=True)]
    return level, size, chosen, [0 if one else None for one in differs]


def with_level(level: int, output: torch.Tensor) -> torch.Tensor:
    """Return a result as that vmap wants it."""
    return private("_add_batch_dim")(output, 0, level)


def _has_axis(dim: Any) -> bool:
    return any(map(_has_axis, cast("Sequence[Any]", dim))) if isinstance(dim, list | tuple) else dim is not None


def _sample(value: Any, number: int) -> Any:
    if isinstance(value, list | tuple):
        return [_sample(item, number) for item in cast("Sequence[Any]", value)]
    return value.select(0, number) if isinstance(value, torch.Tensor) else value


def clones(value: Any) -> Any:
    """Return a tensor, or a list of them, with memory of its own; anything else as it is."""
    if isinstance(value, list | tuple):
        return [clones(item) for item in cast("Sequence[Any]", value)]
    return value.clone().resolve_neg() if isinstance(value, torch.Tensor) else value
