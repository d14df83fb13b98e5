"""What `op.python` returns: tensors of the numbers, lists and rows that a run has left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from brickwork.frontend import reference_complex as complex_numbers
from brickwork.frontend.environment import is_tensor
from brickwork.frontend.reference_rows import RowValue
from brickwork.frontend.reference_scalar import convert, scalar
from brickwork.ir.dtypes import PARTS, DType


def finish(returned: Any, out: Any, types: Callable[[], Sequence[tuple[DType, tuple[int, ...]]]]) -> Any:
    """Return the results as tensors, copied into the caller's if there are any.

    `types` gives the element types of the results, and their sizes that are known; it is asked only where a result is a
    number or a list, as the type of a variable depends on all its assignments.
    """
    if returned is None:
        return None
    several = isinstance(returned, tuple | list)
    items: list[Any] = list(cast("Sequence[Any]", returned)) if several else [returned]
    found = [item if is_tensor(item) else _cell(item, *types()[place]) for place, item in enumerate(items)]
    if out is not None:
        targets: list[Any] = list(cast("Sequence[Any]", out)) if isinstance(out, tuple | list) else [out]
        for target, item in zip(targets, found, strict=True):
            if tuple(target.shape) != tuple(item.shape):
                raise ValueError(f"`out` has shape {tuple(target.shape)}, the result {tuple(item.shape)}")
            target.copy_(item)
        return cast("Any", out)
    return tuple(found) if several else found[0]


def _cell(value: Any, dtype: DType, sizes: tuple[int, ...] = ()) -> Any:
    torch = sys.modules["torch"]
    if is_tensor(value):
        return value.to(getattr(torch, dtype.name))
    if isinstance(value, RowValue):
        items = [_cell(item, dtype) for item in value.items]
        return torch.stack([torch.empty((), dtype=getattr(torch, dtype.name)), *items])[1:].reshape(value.sizes)
    if isinstance(value, list | tuple):  # of a list that loops filled
        items = [_cell(item, dtype) for item in cast("Sequence[Any]", value)]
        return torch.stack(items) if items else torch.empty((0, *sizes[-1:]), dtype=getattr(torch, dtype.name))
    number = complex_numbers.stored(value, dtype) if dtype in PARTS else convert(scalar(value), dtype)
    return torch.tensor(number, dtype=getattr(torch, dtype.name))
