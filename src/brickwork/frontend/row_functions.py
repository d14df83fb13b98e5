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
from brickwork.frontend.indexing import method, numel, numeric, scalar
from brickwork.frontend.lowering_state import Arguments, Frame, State, describe
from brickwork.frontend.random_sites import place
from brickwork.frontend.row_calls import OF_ROWS
from brickwork.frontend.row_forms import over_items
from brickwork.frontend.rows import as_row, combined
from brickwork.frontend.rules import error
from brickwork.frontend.typing import Along, Operand, Record, Row, Value, View
from brickwork.language.math import FUNCTIONS


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
    """Return `row.sum()` and the like."""
    loc = frame.loc(node)
    row = as_row(state, owner, loc)
    if row is None:
        raise error("BW102", f"`{function.attr}` of {describe(owner)}", loc, "write a loop over its rows")
    name = "sum" if function.attr == "mean" else function.attr
    made = over_items(ast.copy_location(ast.Call(function, [function.value], []), node))
    if row.rank > 1 and isinstance(items := made.args[0], ast.GeneratorExp):
        inner = ast.copy_location(ast.Attribute(items.elt, name, ast.Load()), node)
        items.elt = ast.copy_location(ast.Call(inner, [], []), node)
        items.elt.col_offset += 1  # Calls at one place would have one accumulator.
    found = state.reduce(state, frame, made, name)
    if function.attr != "mean":
        return found
    return binary(state, "truediv", scalar(state, found, loc), numel(state, row, loc), loc)


def of_one_dimension(function: object, given: Arguments, loc: Location) -> Arguments:
    """Return the arguments of a function; refuse what is no row of one dimension where it takes such a row."""
    if isinstance(function, types.FunctionType) and function in OF_ROWS and given.positional:
        row = given.positional[0]
        if not isinstance(row, View | Row) or row.rank != 1:
            message = f"a function of a row takes one dimension, and is given {describe(row)}"
            raise error("BW102", message, loc, "index the first ones, in loops over them")
    return given


def of_row(state: State, frame: Frame, node: ast.Call, owner: View | Row, given: Sequence[Operand]) -> Operand:
    """Return the call of a method of a tensor: one of its items, or what it says of its shape."""
    name, loc = node.func.attr if isinstance(node.func, ast.Attribute) else "", frame.loc(node)
    if not isinstance(owner, Row) or f"torch.{name}" not in FUNCTIONS or node.keywords:
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
