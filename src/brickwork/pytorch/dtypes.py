"""torch's element types and brickwork's: the same names, so that each is found by the other's."""

from __future__ import annotations

import torch

from brickwork.ir.dtypes import ELEMENTS, DType


def from_torch(dtype: torch.dtype) -> DType | None:
    """Return the element type, or None for one that brickwork does not have (quantised, 8-bit floats)."""
    return ELEMENTS.get(str(dtype).removeprefix("torch."))


def to_torch(dtype: DType) -> torch.dtype:
    """Return torch's type of the same name."""
    return getattr(torch, dtype.name)


def has_gradient(value: object) -> bool:
    """Return whether a value is a tensor of floats, or of complex numbers, which gradients are of."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
