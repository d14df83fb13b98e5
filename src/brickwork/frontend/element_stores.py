"""Stores into elements of tensors and lists."""

from __future__ import annotations

import math

from brickwork.diagnostics.location import Location
from brickwork.frontend.given_numbers import refuse_overflow
from brickwork.frontend.lowering_state import State
from brickwork.frontend.rules import error
from brickwork.frontend.typing import Value, View
from brickwork.ir.build import cast
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.nodes import Cast, Constant, Expression, Store


def element_of(view: View, loc: Location) -> View:
    """Return the element that is stored into."""
    if view.rank:
        given = f"{len(view.indices)} {'index' if len(view.indices) == 1 else 'indices'}"
        message = f"`{view.tensor.name}` has {view.tensor.type.rank} dimensions, but is stored into with {given}"
        raise error("BW102", message, loc, "store into one element; write a loop for a whole row")
    return view


def store(state: State, view: View, stored: Value, loc: Location) -> None:
    """Write an element."""
    if view.tensor in state.lists:
        state.widen(state.lists[view.tensor].key, stored.type, view.tensor.name, loc)
    element = view.tensor.type.dtype
    if stored.given and view.tensor not in state.lists:
        refuse_overflow(state, stored, element, loc)
    dtype = value_dtype(element)
    converted = cast(stored.expression, dtype, loc)
    if stored.dtype.is_float and dtype.is_integer and isinstance(stored.expression, Constant):
        converted = _with_fraction(stored.expression, converted, loc)
    state.emit(
        Store(
            tensor=view.tensor,
            indices=view.indices,
            value=converted,
            access=state.access(),
            loc=loc,
        )
    )


def _with_fraction(literal: Constant, converted: Expression, loc: Location) -> Expression:
    """Return the conversion of a literal to an integer: one that drops a fraction stays, so that it can be told."""
    if math.isfinite(literal.value) and literal.value != int(literal.value):
        return Cast(operand=literal, dtype=converted.dtype, loc=loc)
    return converted
