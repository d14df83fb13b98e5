"""Rows that loops make, in `op.python`: what the names of `language/made_rows.py` mean there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

from brickwork.frontend.environment import default_dtype, is_tensor, torch_dtype
from brickwork.frontend.reference_rows import RowValue, as_row
from brickwork.frontend.reference_scalar import convert, dtype_of, number_type, result, scalar
from brickwork.ir.dtypes import DTYPES, DType, value_dtype
from brickwork.ir.scalar_semantics import narrow


def made_row(name: str, arguments: Sequence[Any]) -> Any:
    """Return the row that a function of `language/made_rows.py` makes."""
    match name, [*arguments]:
        case "filled", [value, sizes, *kind]:
            return _filled(value, _sizes(sizes), _kind(kind))
        case "filled_like", [value, like, *kind]:
            row = as_row(like)
            own = DTYPES[dtype_of(like).name] if is_tensor(like) else _type_of(row.items if row else (like,))
            return _filled(value, row.sizes if row else (), _kind(kind) or own)
        case "counted_up", [start, stop, step, *kind]:
            bounds = [scalar(item).__index__() for item in (start, stop, step)]
            if (bounds[1] - bounds[0]) * bounds[2] < 0:
                raise RuntimeError("upper bound and lower bound inconsistent with step sign")
            places = range(*bounds)
            dtype = _kind(kind) or value_dtype(DTYPES["int64"])
            return RowValue((len(places),), tuple(_typed(item, dtype) for item in places))
        case "joined_rows", [rows, *axis]:
            return _joined([*map(_row, rows)], *axis or (0,))
        case "stacked_rows", [rows, *more]:
            return _stacked([*map(_row, rows)], more[0] if more else 0, _kind(more[1:]))
        case "widened", [row, axis] if is_tensor(row) and row.ndim:
            return row.unsqueeze(axis)
        case "turned", [row, *axes] if is_tensor(row) and row.ndim:
            return row.transpose(*axes) if axes else row.t()
        case "widened", [row, axis]:
            return _widened(_row(row), axis)
        case "turned", [row, *axes]:
            return _turned(_row(row), *axes or (-2, -1))
        case "converted", [row, kind]:
            found, dtype = as_row(row), _kind([kind])
            if found is None:
                return _typed(row, dtype)
            own = DTYPES[dtype_of(row).name] if is_tensor(row) else _type_of(found.items)
            if own is dtype:
                return row
            return RowValue(found.sizes, tuple(_typed(item, dtype) for item in found.items))
        case _:
            raise TypeError(f"{name} is not called so")


def _kind(given: Sequence[Any]) -> DType | None:
    name = torch_dtype(given[0]) if given else None
    return None if name is None else DTYPES[name]


def _sizes(found: Any) -> tuple[int, ...]:
    parts = cast("Sequence[Any]", found) if isinstance(found, tuple | list) else (found,)
    return tuple(scalar(item).__index__() for item in parts)


def _typed(value: Any, kind: DType | None) -> Any:
    """Return a number in the type that torch gives a new tensor of it."""
    number = scalar(value)
    dtype = kind or (default_dtype() if number.dtype.is_float else number.dtype)
    return result(narrow(convert(number, value_dtype(dtype)), dtype), value_dtype(dtype), weak=False)


def _type_of(items: Sequence[Any]) -> DType | None:
    kind = number_type([scalar(item) for item in items]) if items else None
    return None if kind is None or (kind.weak and kind.dtype.is_float) else kind.dtype


def _filled(value: Any, sizes: tuple[int, ...], kind: DType | None) -> Any:
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {[*sizes]}")
    item = _typed(value, kind)
    count = 1
    for size in sizes:
        count *= size
    return RowValue(sizes, (item,) * count) if sizes else item


def _row(found: Any) -> RowValue:
    row = as_row(found)
    return RowValue((), (found,)) if row is None else row


def _widened(row: RowValue, axis: int) -> RowValue:
    at = axis % (row.ndim + 1)
    return RowValue((*row.sizes[:at], 1, *row.sizes[at:]), row.items)


def _turned(row: RowValue, one: int, other: int) -> RowValue:
    if row.ndim < 2:
        return row
    order = [*range(row.ndim)]
    order[one], order[other] = order[other], order[one]
    sizes = tuple(row.sizes[axis] for axis in order)
    places = itertools.product(*map(range, sizes))
    return RowValue(sizes, tuple(row[tuple(place[order.index(axis)] for axis in range(row.ndim))] for place in places))


def _joined(rows: Sequence[RowValue], axis: int) -> RowValue:
    at = axis % rows[0].ndim
    for row in rows[1:]:
        for number, (one, other) in enumerate(zip(rows[0].sizes, row.sizes, strict=True)):
            if number != at and one != other:
                message = f"Sizes of tensors must match except in dimension {at}."
                raise RuntimeError(f"{message} Expected size {one} but got size {other}")
    found = [(row, place) for row in rows for place in range(row.sizes[at])]
    sizes = (*rows[0].sizes[:at], len(found), *rows[0].sizes[at + 1 :])

    def item(place: tuple[int, ...]) -> Any:
        row, own = found[place[at]]
        return row[(*place[:at], own, *place[at + 1 :])]

    items = tuple(map(item, itertools.product(*map(range, sizes))))
    kind = number_type([scalar(each) for each in items]) if items else None
    if kind is not None:
        items = tuple(result(convert(scalar(each), kind.dtype), kind.dtype, weak=kind.weak) for each in items)
    return RowValue(sizes, items)


def _stacked(rows: Sequence[RowValue], axis: int, kind: DType | None) -> RowValue:
    if not rows[0].ndim:
        rows = [RowValue((), tuple(_typed(item, kind or _type_of([item])) for item in row.items)) for row in rows]
    return _joined([_widened(row, axis) for row in rows], axis)
