"""What a published operator is: its loops, where the CUDA kernel stands that computes the same, inputs and a reference.

The operators stand in the modules beside this one, a group each. They are written as a person writes loops who has read
the published kernel: none is adapted to brickwork.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch

from brickwork.op import Op

Size = Literal["tiny", "small", "large"]
"""`small` is bound by launches, `large` by the work; `tiny` is for tests."""


@dataclass(frozen=True, slots=True)
class Source:
    """Makes tensors on a device, the same for the same calls; on the device "meta" they have no data."""

    device: torch.device
    generator: torch.Generator | None

    def normal(self, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return normal numbers."""
        return torch.randn(sizes, generator=self.generator, device=self.device, dtype=dtype)

    def uniform(
        self, *sizes: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Return numbers from `low` to below `high`."""
        found = torch.rand(sizes, generator=self.generator, device=self.device, dtype=torch.float32)
        return (low + (high - low) * found).to(dtype)

    def integers(self, low: int, high: int, *sizes: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Return integers from `low` to below `high`."""
        return torch.randint(low, high, sizes, generator=self.generator, device=self.device, dtype=dtype)

    def listed(self, values: list[Any], dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Return a tensor of these values."""
        return torch.tensor(values, device=self.device, dtype=dtype)


def values(tensor: torch.Tensor) -> Any:
    """Return a tensor as numbers, in lists for its axes."""
    return cast("Any", tensor).tolist()


def source(device: str | torch.device) -> Source:
    """Return a source of tensors on a device."""
    place = torch.device(device)
    return Source(place, None if place.type == "meta" else torch.Generator(place).manual_seed(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An operator beside which a published CUDA kernel is measured.

    `inputs` makes the arguments of `op` from a source and one of the sizes. `reference` takes the same arguments and
    returns the same results, made of torch's functions, which autograd differentiates. `gradient` names the arguments
    whose gradients the published operator computes.
    """

    op: Op
    repository: str
    file: str
    commit: str
    inputs: Callable[..., tuple[Any, ...]]
    reference: Callable[..., Any]
    tiny: tuple[int, ...]
    small: tuple[int, ...]
    large: tuple[int, ...]
    gradient: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The operator's name, without its namespace."""
        return self.op.name.partition("::")[2]

    def arguments(self, size: Size, device: str | torch.device) -> tuple[Any, ...]:
        """Return arguments of one of the sizes, on a device."""
        sizes = {"tiny": self.tiny, "small": self.small, "large": self.large}[size]
        return self.inputs(source(device), *sizes)
