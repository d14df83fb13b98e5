"""How a tensor lies in memory, as specialisations see it; the native entries answer the same questions the same way.

A miss is decided by machine code and served by Python: both must agree, so Python asks in here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from brickwork.ir.dtypes import DType
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import ALIGNMENT, NARROW_EXTENT, NARROW_SIZE
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a tensor's elements are: address of the first, sizes, strides in elements, bytes of an element.

    The address is 0 for a tensor without data, which shares memory with no other.
    """

    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    element: int


def tensor_type(dtype: DType, sizes: Sequence[int], strides: Sequence[int]) -> TensorType:
    """Return the type that code for such a tensor is specialised on."""
    return TensorType(dtype, len(sizes), is_contiguous(sizes, strides), unit_axis(sizes, strides))


def real_view(placement: Placement) -> Placement:
    """Return where the parts of the complex elements of a tensor are."""
    strides = (*(2 * stride for stride in placement.strides), 1)
    return Placement(placement.address, (*placement.sizes, 2), strides, placement.element // 2)


def is_contiguous(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements are row-major and dense, by torch's rule (axes of size 1 do not count; empty ones are)."""
    if 0 in sizes:
        return True
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def unit_axis(sizes: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the last axis with stride 1 or size at most 1, if any."""
    axes = [axis for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)) if stride == 1 or size <= 1]
    return axes[-1] if axes else None


def is_injective(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether different indices are seen to have different addresses: each stride exceeds what lies within it."""
    if 0 in sizes:
        return True
    within = 0
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size == 1:
            continue
        if stride <= within:
            return False
        within += (size - 1) * stride
    return True


def extent(placement: Placement) -> int:
    """Return the bytes from the first element to the end of the last; 0 for an empty tensor."""
    if 0 in placement.sizes:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(placement.sizes, placement.strides, strict=True))
    return (last + 1) * placement.element


def may_alias(placements: Sequence[Placement], written: Sequence[int]) -> bool:
    """Whether code must expect a written tensor (by position) to share memory, with another one or with itself."""
    for position in written:
        one = placements[position]
        if not is_injective(one.sizes, one.strides):
            return True
        for other_position, other in enumerate(placements):
            if other_position != position and overlap(one, other):
                return True
    return False


def overlap(one: Placement, two: Placement) -> bool:
    """Whether the memory of two tensors overlaps, from the first element to the last of each."""
    lengths = extent(one), extent(two)
    return (
        all((*lengths, one.address, two.address))
        and one.address < two.address + lengths[1]
        and two.address < one.address + lengths[0]
    )


def is_narrow(placements: Sequence[Placement], integers: Sequence[int]) -> bool:
    """Whether a call is `narrow` (`ir/signature.py`): its tensors, the caller's results too, and all its integers."""
    return all(-NARROW_SIZE < number < NARROW_SIZE for number in integers) and all(map(_is_narrow, placements))


def _is_narrow(placement: Placement) -> bool:
    """Whether sizes, strides and places of elements are small, and with its sizes those of any dense tensor."""
    return (
        max(placement.sizes, default=0) < NARROW_SIZE
        and all(0 <= stride < NARROW_EXTENT for stride in placement.strides)
        and math.prod(max(size, 1) for size in placement.sizes) < NARROW_EXTENT
        and extent(placement) <= NARROW_EXTENT * placement.element
    )


def is_aligned(placements: Sequence[Placement]) -> bool:
    """Whether all tensors, the caller's results too, begin at a multiple of ALIGNMENT bytes (empty ones do)."""
    return all(placement.address % ALIGNMENT == 0 for placement in placements)
