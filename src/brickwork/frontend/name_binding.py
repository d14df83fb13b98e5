"""What a name stands for once something is assigned to it: a variable, several of them, or the operand itself."""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.complex_values import as_complex, is_complex
from brickwork.frontend.evaluation_order import settle
from brickwork.frontend.indexing import load
from brickwork.frontend.list_rebinding import (
    bound_before,
    moves,
    moves_grown,
    rebind,
    settle_names,
)
from brickwork.frontend.lowering_state import (
    Binding,
    Frame,
    Key,
    ListDemanded,
    State,
    Together,
    Variable,
    describe,
)
from brickwork.frontend.optional_numbers import as_maybe, demand, note_flag
from brickwork.frontend.row_arrays import bind_array, demand_array, is_part
from brickwork.frontend.rules import unsupported
from brickwork.frontend.tensor_rebinding import is_whole
from brickwork.frontend.typing import (
    Grown,
    Items,
    Maybe,
    Operand,
    Record,
    Value,
    View,
    form_of,
    is_none,
    numbers_of,
    parts_of,
)
from brickwork.ir.build import read
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Cast,
    Expression,
)
from brickwork.ir.walk import walk


def assign_name(state: State, frame: Frame, name: str, found: Operand, loc: Location) -> None:
    """Let a name stand for an operand from now on."""
    key = (frame.path, name)
    if key in state.rows and isinstance(found, View) and found.rank == 0 and not found.indexed:
        with state.in_kernel():
            assign_name(state, frame, name, View(found.tensor, found.indices, indexed=True), loc)
        return
    if isinstance(found, View) and found.is_element:
        found = load(state, found, loc)
    if key in state.maybe and (is_none(found) or isinstance(found, Value | Items | Record | Maybe)):
        optional = settle(state, as_maybe(found, state.maybe[key], loc), loc)
        frame.bindings[name] = bound = bound_together(state, frame, name, optional, loc)
        note_flag(state, read(state.variable(bound.keys[0])), parts_of(optional)[0])
        return
    if isinstance(found, Value | Record) and (key in state.complex or _is_complex_outside(state, frame, name)):
        found = as_complex(found, loc)
    if is_complex(found):
        if any(isinstance(each, Variable | Value) for each in _outside(state, frame, name)):
            demand_complex(state, key)
        if key in state.complex:
            frame.bindings[name] = bound_together(state, frame, name, settle(state, found, loc), loc)
            return
    if is_none(found) and isinstance(before := bound_before(state, frame, name), Variable):
        demand(state, key, Value(read(state.variable(before.key), loc)))
    if isinstance(found, Value) and name not in frame.aliases:
        _refuse_number(state, frame, name, found, loc)
        state.assign(key, found, loc)
        frame.bindings[name] = Variable(key)
        return
    if key in state.rows and is_part(found, state):
        bind_array(state, frame, name, found, loc)
        return
    if isinstance(found, Grown | Items) and moves_grown(state, frame, name, found, loc):
        return
    if moves(state, frame, name, found):
        rebind(state, frame, [(name, found)], loc)
        return
    found = settle(state, found, loc)
    if isinstance(found, Value) and _is_rounded(found.expression):
        found = Value(state.pin(found.expression, name), found.weak)
    if is_together(frame, name, found):
        frame.bindings[name] = bound_together(state, frame, name, found, loc)
        return
    _bind(state, frame, name, found, loc)


def demand_complex(state: State, key: Key) -> None:
    """Begin again with a name that is complex wherever it is assigned a number, if that is new."""
    if key not in state.complex:
        state.complex.add(key)
        raise ListDemanded


def demand_complex_where_branches_meet(state: State, frame: Frame, after: Sequence[dict[str, Binding]]) -> None:
    """Begin again where a name is a real number after one branch and a complex one after another."""
    for name in {name for each in after for name, found in each.items() if is_complex(complex_in(found))}:
        if any(isinstance(each.get(name), Variable | Value) for each in after):
            demand_complex(state, (frame.path, name))


def complex_in(found: Binding | None) -> Operand | None:
    """Return what a name with a variable for each number was assigned last; any other operand as it is."""
    return found.latest if isinstance(found, Together) else None if isinstance(found, Variable) else found


def _outside(state: State, frame: Frame, name: str) -> list[Binding]:
    """Return what a name stood for before each of the loops around."""
    levels = (level for level in state.loops if level.frame_path == frame.path and not level.written_out)
    return [level.outer[name] for level in levels if name in level.outer]


def _is_complex_outside(state: State, frame: Frame, name: str) -> bool:
    return any(isinstance(each, Together) and is_complex(each.latest) for each in _outside(state, frame, name))


def is_together(frame: Frame, name: str, found: Operand) -> bool:
    """Return whether a name gets a variable for each number of what it is assigned."""
    if name not in frame.several - frame.aliases:
        return False
    held = [*parts_of(found)]
    kinds = Value | Record | Items | Maybe
    return (isinstance(found, Record) or bool(held)) and all(isinstance(item, kinds) for item in held)


def bound_together(state: State, frame: Frame, name: str, found: Operand, loc: Location) -> Together:
    """Assign each number of a tuple or a value with parts to a variable."""
    form = form_of(found)
    for level in state.loops:
        before = level.outer.get(name) if level.frame_path == frame.path else None
        if before is not None and not isinstance(before, Variable | Together) and is_none(before):
            demand(state, (frame.path, name), found)
            raise unsupported(f"`{name}` is None before the loop, and {describe(found)} in it", loc, "use another name")
        if isinstance(before, Together) and before.form != form and not level.written_out:
            advice = "use another name"
            message = (
                f"`{name}` is {describe(before.latest)} before the loop, and {describe(found)} of another form in it"
            )
            raise unsupported(message, loc, advice)
    keys = tuple((frame.path, f"{name}[{number}]") for number, _ in enumerate(numbers_of(found)))
    for key, item in zip(keys, numbers_of(found), strict=True):
        state.assign(key, item, loc)
    return Together(keys, form, found)


def _is_rounded(expression: Expression) -> bool:
    """Whether an integer comes from floats: proofs about indices need one name for it, and know no more."""
    casts = [node for node in walk(expression) if isinstance(node, Cast)]
    return expression.dtype is INT64 and any(node.operand.dtype.is_float for node in casts)


def _refuse_number(state: State, frame: Frame, name: str, found: Value, loc: Location) -> None:
    """Refuse a number for a name that was something else before a loop around: later iterations would not see it."""
    for level in state.loops:
        before = level.outer.get(name) if level.frame_path == frame.path else None
        if before is None or isinstance(before, Value | Variable):
            continue
        advice = "use another name"
        if isinstance(before, View) and not before.rank:
            demand_array(state, (frame.path, name))
        elif not isinstance(before, Together) and is_none(before):
            demand(state, (frame.path, name), found)
            advice = f"give `{name}` another name here, or a number before the loop"
        what = describe(before.latest if isinstance(before, Together) else before)
        raise unsupported(f"`{name}` is {what} before the loop, and a number in it", loc, advice)


def _bind(state: State, frame: Frame, name: str, found: Operand, loc: Location) -> None:
    """Let a name stand for a tensor, a tuple or a host value; in a loop it may not change between iterations."""
    for level in state.loops:
        before = level.outer.get(name)
        if level.frame_path != frame.path or before is None or before == found:
            continue
        arrays = isinstance(found, View) and found.tensor in state.kept_arrays
        if is_part(before, state) and is_part(found, state) and (arrays or not (is_whole(before) and is_whole(found))):
            demand_array(state, (frame.path, name))
        if not (is_whole(before) and is_whole(found)):
            raise unsupported(f"`{name}` is bound to another tensor inside a loop", loc, "use another name")
        state.exchanged_at = loc
    settle_names(state, found)
    state.moved.pop(name, None)
    state.made -= {found.tensor} if isinstance(found, View) else set()
    frame.bindings[name] = found
