"""Tensors in expressions: indices resolved and counted, elements read, sizes and other attributes.

A negative index counts from the end; one that is seen to be non-negative is used as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.complex_values import ADVICE, PARTS, is_complex
from brickwork.frontend.lowering_state import State, describe, dimensions
from brickwork.frontend.optional_numbers import required
from brickwork.frontend.row_forms import REDUCED
from brickwork.frontend.rules import error
from brickwork.frontend.typing import (
    Absent,
    ElementType,
    Items,
    Maybe,
    Nothing,
    Opaque,
    Operand,
    Record,
    Row,
    Value,
    View,
)
from brickwork.ir.build import add, apply, cast, constant, integer, is_constant, mul, select, size
from brickwork.ir.dtypes import BOOL, INT64, value_dtype
from brickwork.ir.nodes import Constant, Expression, Load
from brickwork.language.complex_numbers import Complex
from brickwork.language.math import is_pointwise


def numeric(state: State, operand: Operand | None, loc: Location) -> Value | Record:
    """Return the operand as a number, which may be complex: a fully indexed tensor is read."""
    if isinstance(operand, View) and is_complex_element(operand):
        return load(state, operand, loc)
    if isinstance(operand, Maybe):
        return numeric(state, required(state, operand, loc), loc)
    return operand if is_complex(operand) else scalar(state, operand, loc)


def is_complex_element(operand: Operand | None) -> bool:
    """Return whether an operand is a complex element that is not read yet."""
    return isinstance(operand, View) and operand.rank == 0 and operand.tensor.type.pairs


def scalar(state: State, operand: Operand | None, loc: Location) -> Value:
    """Return the operand as a real number: a fully indexed tensor is read."""
    if isinstance(operand, Value):
        return operand
    if is_complex(operand) or is_complex_element(operand):
        raise error("BW101", "a real number is needed here, not a complex one", loc, ADVICE)
    if isinstance(operand, Maybe):
        return scalar(state, required(state, operand, loc), loc)
    if isinstance(operand, View):
        if operand.rank == 0:
            return element(state, operand, operand.indices, loc)
        name, rank = operand.tensor.name, operand.tensor.type.axes
        left = range(len(operand.indices), rank)
        if operand.tensor in state.kept_arrays and _is_one(state, operand, loc):
            return element(state, operand, (*operand.indices, *(integer(0, loc) for _ in left)), loc)
        if operand.tensor in state.lists:
            message = f"{list_name(operand)} is a list here, not a number"
            raise error("BW102", message, loc, "index it, or write a loop over its items")
        advice = f"write {_indices(rank)}, one for each dimension of `{name}`"
        read = f"`{name}` has {dimensions(rank)}, but is read with {_indices(len(operand.indices))}"
        message = read if operand.indices else f"`{name}` is a tensor here, not an element"
        raise error("BW102", message, loc, advice)
    if isinstance(operand, Row) and all(is_constant(extent, 1) for extent in operand.sizes):
        return scalar(state, operand.item(tuple(integer(0, loc) for _ in operand.sizes)), loc)
    if isinstance(operand, Row):
        advice = "write an index for each dimension, or store into a part of that size, such as `out[i, :]`"
        raise error("BW102", f"a number is needed here, not {describe(operand)}", loc, advice)
    raise error("BW101", f"a number is needed here, not {describe(operand)}", loc, advice_for(operand))


def _is_one(state: State, view: View, loc: Location) -> bool:
    """Return whether what is left of an array has one item, which torch takes for a number."""
    axes = range(len(view.indices), view.tensor.type.axes)
    known = next((array.sizes for array in state.row_arrays.values() if array.tensor == view.tensor), ())
    sizes = known or tuple(size(view.tensor, axis, loc) for axis in range(view.tensor.type.axes))
    return all(is_constant(sizes[axis], 1) for axis in axes)


def called_on(
    state: State, owner: Operand, name: str, arguments: Sequence[Operand], loc: Location
) -> tuple[Operand, ...]:
    """Return what a method that is a formula is called with: a number, or a list; nothing where it is not meant."""
    if name == "index":
        return (owner, *arguments) if isinstance(owner, Items | View) and len(arguments) == 1 else ()
    is_number = isinstance(owner, Value) or (isinstance(owner, View) and owner.is_element)
    return (scalar(state, owner, loc),) if is_number else ()


def advice_for(operand: Operand | None, otherwise: str = "write a number or an element") -> str:
    """Return what to write where an operand does not do."""
    match operand:
        case Absent():
            return f"test `{operand.name} is not None` before"
        case Nothing():
            return f"end `{operand.function}` with a `return` that has a value, or call it in a line of its own"
        case _:
            return otherwise


def _indices(count: int) -> str:
    return f"{count} {'index' if count == 1 else 'indices'}"


def list_name(view: View) -> str:
    """Return how messages call a list, or a row of one."""
    name = "this list" if view.tensor.name == "list" else f"`{view.tensor.name}`"
    return f"a row of {name}" if view.indices else name


def load(state: State, view: View, loc: Location) -> Value | Record:
    """Return the element that a fully indexed view is."""
    if view.tensor.type.pairs:
        parts = (element(state, view, (*view.indices, integer(place, loc)), loc) for place in range(2))
        return Record(Complex, PARTS, tuple(parts))
    return element(state, view, view.indices, loc)


def element(state: State, view: View, indices: tuple[Expression, ...], loc: Location) -> Value:
    """Return an element as memory has it."""
    dtype = value_dtype(view.tensor.type.dtype)
    weak = view.tensor in state.weak or (view.tensor in state.lists and state.lists[view.tensor].kind.weak)
    return Value(Load(tensor=view.tensor, indices=indices, access=state.access(), dtype=dtype, loc=loc), weak)


def index(state: State, view: View, indices: Sequence[Operand], loc: Location) -> View:
    """Return the view with further axes indexed."""
    if len(indices) > 1 and view.tensor in state.lists:
        raise error("BW102", f"{list_name(view)} is indexed by a tuple", loc, "write `a[i][j]`")
    flat: list[Operand] = []
    for item in indices:
        flat.extend(item.items if isinstance(item, Items) else (item,))
    name, rank = view.tensor.name, view.tensor.type.axes
    if len(flat) > view.rank:
        message = f"`{name}` has {dimensions(rank)}, but {_indices(len(view.indices) + len(flat))}"
        raise error("BW102", message, loc, "write one index for each dimension")
    resolved = list(view.indices)
    for item in flat:
        value = scalar(state, item, loc)
        if not value.dtype.is_integer:
            where = value.expression.loc if value.expression.loc.is_within(loc) else loc
            message = f"an index of `{name}` is {value.type}, not an integer"
            raise error("BW103", message, where, "write int(...) around it, or divide with //")
        resolved.append(resolve(state, cast(value.expression, INT64, loc), view, len(resolved), loc))
    return View(view.tensor, tuple(resolved), indexed=True)


def resolve(state: State, expression: Expression, view: View, axis: int, loc: Location) -> Expression:
    """Return the index counted from the start."""
    if is_nonnegative(state, expression):
        return expression
    extent = size(view.tensor, axis, loc)
    if isinstance(expression, Constant):
        return add(extent, expression, loc)
    expression = state.fix(expression, "index")
    negative = apply("lt", expression, integer(0, loc), loc=loc)
    return select(negative, add(expression, extent, loc), expression, loc)


def size_of(view: View | Row, axis: int, loc: Location) -> Value:
    """Return the extent of an axis of a view; negative axes count from the end."""
    if not -view.rank <= axis < view.rank:
        name = f"`{view.tensor.name}`" if isinstance(view, View) else "the row"
        message = f"{name} has {dimensions(view.rank)}: there is no dimension {axis}"
        raise error("BW102", message, loc, "dimensions count from 0")
    if isinstance(view, Row):
        return Value(view.sizes[axis], weak=True)
    return Value(size(view.tensor, len(view.indices) + axis % view.rank, loc), weak=True)


def shape(view: View | Row, loc: Location) -> Items:
    """Return `x.shape`."""
    return Items(tuple(size_of(view, axis, loc) for axis in range(view.rank)))


def attribute(view: View | Row, name: str, loc: Location) -> Operand:
    """Return an attribute of a tensor."""
    match name:
        case "shape":
            return shape(view, loc)
        case "ndim":
            return Value(integer(view.rank, loc), weak=True)
        case "dtype" if isinstance(view, View):
            return ElementType(view.tensor.type.element)
        case "device":
            return Opaque("device")
        case _:
            advice = "use shape, ndim, or indices"
            if name in PARTS and isinstance(view, View):
                advice = f"index it first: `{view.tensor.name}[...].{name}`"
            elif is_pointwise(f"torch.{name}") or name in {*REDUCED, "item"}:
                advice = f"call it: `.{name}()`"
            raise error("BW003", f"a tensor's `{name}` is not part of the language", loc, advice)


def method(state: State, view: View | Row, name: str, arguments: Sequence[Operand], loc: Location) -> Operand:
    """Return a method call on a tensor that asks for its shape."""
    match name, arguments:
        case "size", []:
            return shape(view, loc)
        case "size", [Value(expression=Constant(value=int(axis)))]:
            return size_of(view, axis, loc)
        case "dim", []:
            return Value(integer(view.rank, loc), weak=True)
        case "is_floating_point", [] if isinstance(view, View):
            return Value(constant(view.tensor.type.element.is_float, BOOL, loc))
        case "is_complex", [] if isinstance(view, View):
            return Value(constant(view.tensor.type.pairs, BOOL, loc))
        case "numel", []:
            return numel(state, view, loc)
        case "item", [] if isinstance(view, View) and view.rank == 0:
            return load(state, view, loc)
        case _:
            raise error("BW004", f"a tensor's `{name}` cannot be called here", loc, "write a loop over its elements")


def numel(state: State, view: View | Row, loc: Location) -> Value:
    """Return the number of elements."""
    result: Expression = integer(1, loc)
    for axis in range(view.rank):
        result = mul(result, size_of(view, axis, loc).expression, loc)
    state.nonnegative.add(result)
    return Value(result, weak=True)
