"""What a compilation knows of a tensor, for tensors of real numbers and of complex ones."""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.ir.dtypes import COMPLEX, PARTS, DType
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class TensorType:
    """What a compilation knows of a tensor: element type, rank, and how it lies in memory.

    `contiguous` says row-major and dense. `unit_axis` is an axis along which neighbours are adjacent in memory (its
    stride is 1, or its size at most 1): the last such axis, or None. Of a tensor with `pairs` the elements are complex:
    this is its real view, whose last axis, the unit axis, has the real and the imaginary part.
    """

    dtype: DType
    rank: int
    contiguous: bool = False
    unit_axis: int | None = None
    pairs: bool = False

    @property
    def element(self) -> DType:
        """The type of an element as torch has it."""
        return COMPLEX[self.dtype] if self.pairs else self.dtype

    @property
    def neighbours(self) -> int | None:
        """The axis along which elements as torch has them are adjacent in memory, if one is known."""
        if not self.pairs:
            return self.unit_axis
        return self.rank - 2 if self.contiguous and self.rank > 1 else None

    @property
    def axes(self) -> int:
        """How many axes torch's tensor has."""
        return self.rank - self.pairs


def type_of(element: DType, axes: int, *, dense: bool = False) -> TensorType:
    """Return the type of a tensor with elements as torch has them; `dense`: row-major."""
    pairs = element in PARTS
    rank = axes + pairs
    unit = rank - 1 if rank and (dense or pairs) else None
    return TensorType(PARTS.get(element, element), rank, contiguous=dense, unit_axis=unit, pairs=pairs)


def joined_type(kinds: Sequence[TensorType]) -> TensorType:
    """Return what holds of tensors of all these types."""
    first = kinds[0]
    contiguous = all(kind.contiguous for kind in kinds)
    unit = first.unit_axis if all(kind.unit_axis == first.unit_axis for kind in kinds) else None
    return TensorType(first.dtype, first.rank, contiguous, unit, first.pairs)
