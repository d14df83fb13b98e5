"""Functions of rows: `torch.exp(x[i])` is a row, computed item by item, and `x[i].sum()` a number."""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import binary
from brickwork.frontend.calls import call
from brickwork.frontend.complex_values import of_complex
from brickwork.frontend.environment import helper, intrinsic
from brickwork.frontend.evaluation_order import in_array
from brickwork.frontend.indexing import method, numel, numeric, scalar
from brickwork.frontend.lowering_state import Arguments, Frame, State, describe
from brickwork.frontend.parts import binary_operand
from brickwork.frontend.random_sites import place
from brickwork.frontend.row_calls import OF_ROWS
from brickwork.frontend.row_forms import AXES, REDUCED, goes_along, over_items
from brickwork.frontend.rows import along_axis, as_row, at_places, combined, for_each_row, is_of_rows, product
from brickwork.frontend.rules import error
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.typing import Along, Items, Operand, Record, Row, Value, View
from brickwork.ir.nodes import Constant
from brickwork.language.math import FUNCTIONS
from brickwork.language.rows import chunks, first_in_order, parts


def of_rows(state: State, frame: Frame, function: object, given: Arguments) -> Operand:
    """Return a function of elements, item by item."""
    name, node, formula = intrinsic(function) or "", given.call, helper(function)
    loc, count = frame.loc(node), len(given.positional)

    def of_items(items: Sequence[Value | Record]) -> Value | Record:
        own = of_complex(name, items)
        if own is not None:
            found = state.inline(state, state.helpers[own], Arguments(tuple(items), {}, node), frame)
        elif formula is None:
            found = call(state, name, items, (*frame.path, place(node)), loc)
        else:
            named = dict(zip(given.keywords, items[count:], strict=True))
            found = state.inline(state, state.helpers[formula], Arguments(tuple(items[:count]), named, node), frame)
        return numeric(state, found, loc)

    return combined(state, [*given.positional, *given.keywords.values()], of_items, loc)


def reduced(state: State, frame: Frame, node: ast.Call, function: ast.Attribute, owner: Operand) -> Operand:
    """Return `row.sum()` and the like; `row.sum(0)` is a row of one axis less."""
    loc = frame.loc(node)
    row = as_row(state, owner, loc)
    if row is None:
        raise error("BW102", f"`{function.attr}` of {describe(owner)}", loc, "write a loop over its rows")
    axis, keeps = _axis(node, loc)
    if axis is None:
        return _reduced(state, frame, node, function.attr, row)
    if not -row.rank <= axis < row.rank:
        message = f"`{function.attr}` goes along axis {axis} of {describe(row)}"
        raise error("BW102", message, loc, f"write an axis from {-row.rank} to {row.rank - 1}")
    if row.dear and row.rank > 1:
        row = in_array(state, row, loc)

    def over_axis(part: Row) -> Value | Record:
        return numeric(state, _reduced(state, frame, node, function.attr, part), loc)

    return along_axis(row, axis % row.rank, over_axis, keeps=keeps)


def _axis(node: ast.Call, loc: Location) -> tuple[int | None, bool]:
    """Return the axis that a reduction is given, and whether it stays."""
    words = dict(zip(AXES, node.args, strict=False)) | {item.arg or "**": item.value for item in node.keywords}
    if not goes_along(node):
        raise error("BW004", "a row is reduced along an axis that is a literal", loc, "write the number of the axis")
    found = {word: ast.literal_eval(item) for word, item in words.items()}
    return found.get("dim"), bool(found.get("keepdim"))


def _reduced(state: State, frame: Frame, node: ast.Call, function: str, row: Row) -> Operand:
    loc, name = frame.loc(node), REDUCED[function]
    found = over(state, frame, node, row, name)
    return (
        binary(state, "truediv", scalar(state, found, loc), numel(state, row, loc), loc)
        if function == "mean"
        else found
    )


def product_of_rows(state: State, frame: Frame, node: ast.BinOp, sides: Sequence[Operand]) -> Operand | None:
    """Return `a @ b` of rows and matrices; None of anything else."""
    loc = frame.loc(node)

    def multiplied(pair: Sequence[Value | Record]) -> Value | Record:
        return numeric(state, binary_operand(state, frame, "mul", (pair[0], pair[1]), node), loc)

    def added_up(row: Row) -> Value | Record:
        return numeric(state, over(state, frame, node, row, "sum"), loc)

    return product(state, sides, multiplied, added_up, loc)


def over(state: State, frame: Frame, node: ast.expr, row: Row, name: str) -> Operand:
    """Return `name` (`sum`, `min`, ...) of the items of a row that no name of the source stands for."""
    bindings, local = {**frame.bindings}, frame.local
    frame.local |= {_ROW}
    frame.bindings[_ROW] = row
    items = ast.copy_location(ast.Name(_ROW, ast.Load()), node)
    made = over_items(ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [items], []), node))
    if row.rank > 1 and isinstance(inner := made.args[0], ast.GeneratorExp):
        each = ast.copy_location(ast.Attribute(inner.elt, name, ast.Load()), node)
        inner.elt = ast.copy_location(ast.Call(each, [], []), node)
        inner.elt.col_offset += 1  # Calls at one place would have one accumulator.
    found = state.reduce(state, frame, made, name, spreads=name in {"min", "max"})
    frame.bindings, frame.local = bindings, local
    return found


_ROW = "items of a row"
"""The name that such rows have: names with spaces are nobody's."""


def call_on_rows(
    state: State, frame: Frame, function: types.FunctionType | None, source: SourceFunction, given: Arguments
) -> Operand | None:
    """Return the call of a helper; a function of a row is called for each row of a part with more dimensions."""
    if function not in OF_ROWS or not given.positional:
        return state.inline(state, source, given, frame)
    loc, words = frame.loc(given.call), dict(given.keywords)
    row, along = as_row(state, given.positional[0], loc), words.pop("dim", None)
    given = Arguments(given.positional, words, given.call)
    if row is None or (row.rank > 1 and not isinstance(along, Value)):
        message = f"a function of a row takes one dimension, and is given {describe(given.positional[0])}"
        raise error("BW102", message, loc, "index the first ones, in loops over them, or name the axis: `dim=-1`")
    if row.rank == 1 or not isinstance(along, Value) or not isinstance(along.expression, Constant):
        return state.inline(state, source, given, frame)

    def of_part(part: Row) -> Operand | None:
        return state.inline(state, source, Arguments((part, *given.positional[1:]), words, given.call), frame)

    axis = int(along.expression.value) % row.rank
    if function not in {chunks, parts}:
        return for_each_row(state, row, axis, of_part, loc, same=function is not first_in_order)
    places = of_part(Row((row.sizes[axis],), lambda at: Value(at[0]), ()))
    whole = in_array(state, row, loc) if row.dear else row
    return Items(tuple(at_places(state, whole, axis, each, loc) for each in getattr(places, "items", ())))


def of_row(state: State, frame: Frame, node: ast.Call, owner: View | Row, given: Sequence[Operand]) -> Operand:
    """Return the call of a method of a tensor: one of its items, or what it says of its shape."""
    name, loc = node.func.attr if isinstance(node.func, ast.Attribute) else "", frame.loc(node)
    if isinstance(node.func, ast.Attribute) and is_of_rows(state, [owner]) and name in REDUCED and goes_along(node):
        return reduced(state, frame, node, node.func, owner)
    if not is_of_rows(state, [owner]) or f"torch.{name}" not in FUNCTIONS or node.keywords:
        return method(state, owner, name, given, loc)

    def of_items(items: Sequence[Value | Record]) -> Value | Record:
        return numeric(state, call(state, f"torch.{name}", items, (*frame.path, place(node)), loc), loc)

    return combined(state, [owner, *given], of_items, loc)


def refuse_condition(state: State, found: Operand, loc: Location) -> None:
    """Refuse a tensor where a condition is needed, and a comparison of rows: a tensor in it lacks indices."""
    if isinstance(found, View) and found.rank and found.tensor not in state.lists:
        name = found.tensor.name
        advice = f"index it; whether an optional one is there asks `{name} is not None`"
        raise error("BW102", f"`{name}` is a tensor here, not a condition", loc, advice)
    if isinstance(found, Row):
        for slab in found.reads:
            fixed = tuple(axis for axis in slab.axes if not isinstance(axis, Along))
            scalar(state, View(slab.tensor, fixed, indexed=True), loc)
