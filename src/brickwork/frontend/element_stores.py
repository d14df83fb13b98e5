"""Stores into elements of tensors and lists."""

from __future__ import annotations

import math

from brickwork.diagnostics.location import Location
from brickwork.frontend.complex_values import as_complex, is_complex
from brickwork.frontend.given_numbers import refuse_overflow
from brickwork.frontend.grown_lists import let_grow
from brickwork.frontend.indexing import numeric, scalar
from brickwork.frontend.lowering_state import State
from brickwork.frontend.rules import error
from brickwork.frontend.typing import Operand, View, numbers_of
from brickwork.ir.build import cast, integer, is_constant
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.nodes import Cast, Constant, Expression, Load, Store, Tensor
from brickwork.ir.walk import walk


def element_of(view: View, loc: Location) -> View:
    """Return the element that is stored into."""
    if view.rank:
        given = f"{len(view.indices)} {'index' if len(view.indices) == 1 else 'indices'}"
        message = f"`{view.tensor.name}` has {view.tensor.type.axes} dimensions, but is stored into with {given}"
        raise error("BW102", message, loc, "store into one element; write a loop for a whole row")
    return view


def store(state: State, view: View, stored: Operand, loc: Location) -> None:
    """Write an element."""
    if view.tensor.type.pairs:
        _store_parts(state, view, as_complex(numeric(state, stored, loc), loc), loc)
        return
    if view.tensor in state.lists and is_complex(stored):
        let_grow(state, View(view.tensor))
    stored = scalar(state, stored, loc)
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


def _store_parts(state: State, view: View, stored: Operand, loc: Location) -> None:
    """Write the parts of a complex element; the second one is evaluated before the first one is written."""
    dtype = view.tensor.type.dtype
    real, imag = (cast(part.expression, dtype, loc) for part in numbers_of(stored))
    if not _reads_own_part(imag, view.tensor):
        imag = state.fix(imag, "imag")
    for place, part in enumerate((real, imag)):
        indices = (*view.indices, integer(place, loc))
        state.emit(Store(tensor=view.tensor, indices=indices, value=part, access=state.access(), loc=loc))


def _reads_own_part(imag: Expression, tensor: Tensor) -> bool:
    """Return whether all that an expression reads of memory are imaginary parts of this tensor."""
    loads = [node for node in walk(imag) if isinstance(node, Load)]
    return all(node.tensor == tensor and is_constant(node.indices[-1], 1) for node in loads)


def _with_fraction(literal: Constant, converted: Expression, loc: Location) -> Expression:
    """Return the conversion of a literal to an integer: one that drops a fraction stays, so that it can be told."""
    if math.isfinite(literal.value) and literal.value != int(literal.value):
        return Cast(operand=literal, dtype=converted.dtype, loc=loc)
    return converted
