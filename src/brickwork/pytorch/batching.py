"""What `torch.vmap` asks of operators: a call over samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

import torch

from brickwork.pytorch.gate import call_in_order
from brickwork.pytorch.placement import tensors_of


class Batchable(Protocol):
    """An operator that is called over samples."""

    @property
    def overload(self) -> Any:
        """The operator as the dispatcher knows it."""
        ...


def over_samples(
    operator: Batchable, size: int, dims: Sequence[Any], values: Sequence[Any], written: Sequence[int]
) -> tuple[torch.Tensor, ...]:
    """Return what an operator stores into, then its results, with a first axis over samples.

    `dims` has for each argument the axis of samples, None where it has none.
    """
    samples: list[tuple[torch.Tensor, ...]] = []
    for number in range(size):
        sample = [_sample(value, dim, number) for value, dim in zip(values, dims, strict=True)]
        for place in written:
            sample[place] = clones(sample[place])
        results: Any = call_in_order(operator.overload, sample)
        results = (results,) if isinstance(results, torch.Tensor) else results or ()
        samples.append((*tensors_of(sample[place] for place in written), *results))
    return tuple(torch.stack(items) for items in zip(*samples, strict=True))


def clones(value: Any) -> Any:
    """Return a tensor, or a list of them, with memory of its own; anything else as it is."""
    if isinstance(value, list | tuple):
        return [clones(item) for item in cast("Sequence[Any]", value)]
    return value.clone().resolve_neg() if isinstance(value, torch.Tensor) else value


def _sample(value: Any, dim: Any, number: int) -> Any:
    if isinstance(value, list | tuple):
        pairs = zip(cast("Sequence[Any]", value), cast("Sequence[Any]", dim), strict=True)
        return [_sample(item, axis, number) for item, axis in pairs]
    return value if dim is None else value.select(dim, number)
