"""Arguments saved for the backward pass: which ones, and how a flat list of them becomes arguments again."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import torch

from brickwork.pytorch.tensor_devices import is_spread
from brickwork.records import dataclass

Values: TypeAlias = Sequence[Any]
"""The arguments of a call in the order of the schema."""


@dataclass(frozen=True, slots=True)
class ArgumentLengths:
    """How the arguments of a call lie in a flat list: for each the length of its list, None where it is none."""

    items: tuple[int | None, ...]

    def restore(self, flat: Values) -> list[Any]:
        """Return the arguments that a flat list stands for."""
        if len(flat) == len(self.items) and not any(self.items):
            return [*flat]
        rest = iter(flat)
        return [next(rest) if length is None else [next(rest) for _ in range(length)] for length in self.items]

    def spread(self, values: Values) -> list[Any]:
        """Return a flat list that repeats what is said of an argument for each of its items.

        The last value goes for all arguments beyond.
        """
        more = [values[-1]] * (len(self.items) - len(values))
        pairs = zip((*values, *more), self.items, strict=False)
        return [value for value, length in pairs for _ in range(1 if length is None else length)]

    def grouped(self, flat: Values) -> list[list[Any]]:
        """Return the items of a flat list by argument."""
        rest = iter(flat)
        return [[next(rest) for _ in range(1 if length is None else length)] for length in self.items]


@dataclass(frozen=True, slots=True)
class WithoutElements:
    """What is kept of a tensor whose elements the backward operator does not read.

    `spread` is a DTensor of one element on the same mesh if the tensor is a DTensor.
    """

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    spread: torch.Tensor | None

    def tensor(self) -> torch.Tensor:
        """Return a tensor of its shape that has no elements to speak of."""
        one = torch.empty((), dtype=self.dtype, device=self.device) if self.spread is None else self.spread
        return one.expand(self.shape)

    def zeros(self) -> torch.Tensor:
        """Return a tensor of zeros."""
        if self.spread is not None:
            return self.spread.new_zeros(self.shape)
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


def without_elements(item: Any) -> Any:
    """Return what is kept of a tensor whose elements are not read; anything else as it is."""
    if not isinstance(item, torch.Tensor):
        return item
    spread = item.new_empty(()) if is_spread(item) else None
    return WithoutElements(item.shape, item.dtype, item.device, spread)


@functools.lru_cache(maxsize=64)
def stand_in(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return a tensor of a shape that has no elements to speak of, the same one again and again.

    It is real: for calls that no mode has to do with.
    """
    return torch.empty((), dtype=dtype, device=device).expand(shape)


def flattened_arguments(values: Values) -> tuple[ArgumentLengths, list[Any]]:
    """Return the arguments with the items of lists in their places, and how to undo that."""
    lengths = ArgumentLengths(
        tuple(len(cast("Values", item)) if isinstance(item, list | tuple) else None for item in values)
    )
    return lengths, [each for item in values for each in sequence(item)]


def sequence(value: Any) -> Values:
    """Return several values; of a single one a sequence of one."""
    return cast("Values", value) if isinstance(value, list | tuple) else (value,)
