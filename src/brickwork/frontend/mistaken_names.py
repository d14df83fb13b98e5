"""Refusals of expressions that name what is not there: attributes of modules, axes, functions."""

from __future__ import annotations

import ast
import difflib
import types

from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend.environment import resolve
from brickwork.frontend.lowering_state import Frame, State, describe, dimensions
from brickwork.frontend.rules import error
from brickwork.frontend.typing import Items, Value, View
from brickwork.ir.nodes import Constant


def refuse_unknown(frame: Frame, node: ast.Attribute, loc: Location) -> None:
    """Refuse a name that its module does not have."""
    owner = resolve(node.value, frame.source.captured, frame.local)
    if isinstance(owner, types.ModuleType) and not hasattr(owner, node.attr):
        name = ast.unparse(node.value)
        close = difflib.get_close_matches(node.attr, dir(owner), 1)
        advice = f"write `{name}.{close[0]}`, if that is meant" if close else "look it up in the module's documentation"
        raise error("BW005", f"`{name}` has no `{node.attr}`", loc, advice)


def refuse_axis(node: ast.expr, sizes: Items, at: Value, loc: Location) -> None:
    """Refuse `x.shape[2]` of a tensor that has fewer dimensions."""
    axis, count = at.expression, len(sizes.items)
    if not isinstance(node, ast.Attribute) or node.attr != "shape" or not isinstance(axis, Constant):
        return
    if not -count <= axis.value < count:
        message = f"`{ast.unparse(node.value)}` has {dimensions(count)}: there is no dimension {axis.value}"
        raise error("BW102", message, loc, "dimensions count from 0")


def not_a_function(state: State, frame: Frame, node: ast.expr, loc: Location) -> CompileError:
    """Return the refusal of a call of something that cannot be called."""
    name = ast.unparse(node)
    if not isinstance(node, ast.Name) or node.id not in frame.local:
        return error("BW004", f"`{name}` cannot be called here", loc, "call a plain Python function")
    found = state.lookup(frame, node.id, loc)
    tensor = isinstance(found, View) and found.rank > 0
    advice = f"write `{name}[...]` for an element" if tensor else "give this variable another name"
    return error("BW004", f"`{name}` is {describe(found)} here, not a function", loc, advice)
