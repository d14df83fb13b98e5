"""Python statements to IR: assignment, branches, `while`, `assert`, and helpers inline. `for` is in loops.py."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import BINARY, binary
from brickwork.frontend.asserts import lower_assert, lower_guard, lower_raise
from brickwork.frontend.complex_values import as_complex, is_complex
from brickwork.frontend.element_stores import element_of, store
from brickwork.frontend.evaluation_order import kept, kept_place, settle
from brickwork.frontend.expressions import (
    call_operand,
    condition,
    index_operands,
    operand,
    slice_operands,
    value,
)
from brickwork.frontend.given_numbers import as_given
from brickwork.frontend.grown_lists import item_at, let_grow, place_of, pop, refuse_running, store_at
from brickwork.frontend.indexing import advice_for, index, is_complex_element, load, numeric, scalar
from brickwork.frontend.iterables import unpacked
from brickwork.frontend.list_forms import is_list
from brickwork.frontend.list_rebinding import (
    grown_of,
    is_array,
    moves,
    rebind,
    store_rows,
)
from brickwork.frontend.loop_heads import returns
from brickwork.frontend.loops import Else, breaks, enter, keep_assigned, leave, lower_else, lower_for, new_flag
from brickwork.frontend.lowering_state import (
    Binding,
    Frame,
    Key,
    ListDemanded,
    LoopLevel,
    Returning,
    State,
    Together,
    describe,
)
from brickwork.frontend.name_binding import assign_name, demand_complex_where_branches_meet
from brickwork.frontend.optional_numbers import demand_where_branches_meet, named_if, note_met, present_if
from brickwork.frontend.parts import as_record, binary_number, binary_operand, item_of, store_item
from brickwork.frontend.raised import only_raise
from brickwork.frontend.row_arrays import demand_array, is_part, is_seen, note_change, refuse_turned, refuse_two_names
from brickwork.frontend.row_forms import is_sliced, spelled_out
from brickwork.frontend.rows import combined, is_of_rows, part_of_slab, row_of, slab_of, store_row
from brickwork.frontend.rules import REFUSED_STATEMENTS, error, unassigned, unsupported
from brickwork.frontend.tensor_rebinding import restore
from brickwork.frontend.typing import (
    Grown,
    Items,
    Operand,
    Record,
    Row,
    Slab,
    View,
    form_of,
    numbers_of,
)
from brickwork.ir.build import add, integer, read
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import (
    Assign,
    Break,
    Constant,
    Continue,
    Expression,
    If,
    Statement,
    While,
)


def lower_statements(state: State, frame: Frame, statements: Sequence[ast.stmt]) -> None:
    """Lower statements one after the other."""
    for statement in statements:
        state.lowering(frame, statement, partial(lower_statement, state, frame, statement))


def lower_statement(state: State, frame: Frame, node: ast.stmt) -> None:
    """Lower one statement."""
    loc = frame.loc(node)
    match node:
        case ast.Assign():
            _assign(state, frame, node.targets, node.value, loc)
        case ast.AnnAssign():
            if node.value is not None:
                _assign(state, frame, [node.target], node.value, loc)
        case ast.AugAssign():
            _augmented(state, frame, node, loc)
        case ast.If():
            _if(state, frame, node, loc)
        case ast.For():
            lower_for(state, frame, node, assign=assign_target, body=lower_statements)
            _leave_with(state, frame, node, loc)
        case ast.While():
            _while(state, frame, node, loc)
            _leave_with(state, frame, node, loc)
        case ast.Break():
            restore(state, frame, state.loops[-1].outer, loc)
            _break(state, loc)
        case ast.Continue():
            restore(state, frame, state.loops[-1].outer, loc)
            state.emit(Continue(loc=loc))
            state.ended = True
        case ast.Assert():
            lower_assert(state, frame, node)
            state.present |= present_if(state, frame, node.test, holds=True)
        case ast.Raise():
            lower_raise(state, frame, node)
        case ast.Pass():
            pass
        case ast.Expr():
            _effect(state, frame, node)
        case ast.Delete():
            _delete(state, frame, node)
        case ast.Return() if frame.returning is not None:
            _return_from_loop(state, frame, frame.returning, node)
        case ast.Return():
            raise error("BW012", "`return` inside a loop", loc, "set a variable and `break`")
        case _:
            message, advice = REFUSED_STATEMENTS.get(type(node), ("this statement is not part of the language", ""))
            raise error("BW002", message, loc, advice)


def _effect(state: State, frame: Frame, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return
    if not isinstance(node.value, ast.Call):
        raise error("BW002", "this expression has no effect", frame.loc(node), "assign it, or leave it out")
    call_operand(state, frame, node.value)


def _break(state: State, loc: Location) -> None:
    if not state.ended:
        state.loops[-1].exits.append(set(state.assigned))
    flag = state.loops[-1].flag
    if flag is not None:
        state.emit(Assign(symbol=flag, value=Constant(value=True, dtype=BOOL), loc=loc))
    state.emit(Break(loc=loc))
    state.ended = True


# ---------------------------------------------------------------- assignment


def _assign(state: State, frame: Frame, targets: list[ast.expr], source: ast.expr, loc: Location) -> None:
    found = _assigned(state, frame, targets[0], source)
    if len(targets) > 1:
        found = settle(state, found, loc)
    for target in targets:
        assign_target(state, frame, target, found, loc)


def _assigned(state: State, frame: Frame, target: ast.expr, source: ast.expr) -> Operand:
    """Return what a target gets: new lists have its names."""
    match target, source:
        case ast.Name(id=name), _ if is_list(source, frame.source.captured, frame.local):
            return state.make_list(state, frame, source, name)
        case ast.Tuple(elts=parts), ast.Tuple(elts=items) if len(parts) == len(items) and not any(
            isinstance(each, ast.Starred) for each in (*parts, *items)
        ):
            found: list[Operand] = []
            for part, item in zip(parts, items, strict=True):
                position = len(state.block)
                latest = _assigned(state, frame, part, item)
                found = [*(kept(state, earlier, position, frame.loc(item)) for earlier in found), latest]
            return Items(tuple(found))
        case _:
            return as_given(frame, source, operand(state, frame, source))


def assign_target(state: State, frame: Frame, target: ast.expr, found: Operand, loc: Location) -> None:
    """Assign an operand to a name, an element, or a tuple of them."""
    match target:
        case ast.Name():
            assign_name(state, frame, target.id, found, loc)
        case ast.Subscript() if (grown := grown_of(frame, target.value)) is not None:
            _store_grown(state, frame, grown, target, found)
        case ast.Subscript() if (owner := _value_of(state, frame, target)) is not None:
            position = len(state.block)
            indices = index_operands(state, frame, target)
            store_item(state, frame, owner, target, indices, kept(state, found, position, loc))
        case ast.Subscript():
            position = len(state.block)
            place = _part(state, frame, target)
            found = kept(state, found, position, loc)
            if isinstance(place, Slab):
                store_row(state, place, found, store, loc)
            elif place.rank:
                store_rows(state, [(place, found)], loc)
            else:
                store(state, place, found, loc)
        case ast.Tuple() | ast.List():
            found = unpacked(state, frame, found, target)
            if not isinstance(found, Items):
                advice = advice_for(found, "unpack a tuple of that length")
                raise error("BW101", f"{describe(found)} cannot be unpacked", loc, advice)
            if any(isinstance(part, ast.Starred) for part in target.elts):
                found = _gathered(frame, target, found)
            if len(found.items) != len(target.elts):
                raise error("BW101", _counts(len(target.elts), found), loc, "write one name for each value")
            settled = [settle(state, item, loc) for item in found.items]
            parts = [part.value if isinstance(part, ast.Starred) else part for part in target.elts]
            for part, item in _without_lists(state, frame, list(zip(parts, settled, strict=True)), loc):
                assign_target(state, frame, part, item, loc)
        case _:
            raise _unassigned(state, frame, target)


def _counts(names: int, found: Items) -> str:
    """Return how many names and values there are, where the numbers differ."""
    assigned = "1 name is" if names == 1 else f"{names} names are"
    values = "is 1 value" if len(found.items) == 1 else f"are {len(found.items)} values"
    return f"{assigned} assigned, but there {values}"


def _unassigned(state: State, frame: Frame, target: ast.expr) -> CompileError:
    """Return the refusal of an assignment to something that is no name and no element."""
    owner = operand(state, frame, target.value) if isinstance(target, ast.Attribute) and state.values.kinds else None
    if not isinstance(owner, Record) or not isinstance(target, ast.Attribute):
        return unassigned(target, frame.loc(target))
    message = f"`{ast.unparse(target)}` is stored into, and {describe(owner)} is a value here: others may hold it"
    make = f"_replace({target.attr}=...)" if owner.is_tuple else None
    name = ast.unparse(target.value)
    advice = (
        f"make a new one: `{name} = {name}.{make}`"
        if make
        else f"make a new one: `{name} = {owner.kind.__name__}(...)`"
    )
    return error("BW002", message, frame.loc(target), advice)


def _without_lists(
    state: State, frame: Frame, pairs: list[tuple[ast.expr, Operand]], loc: Location
) -> list[tuple[ast.expr, Operand]]:
    """Assign lists whose items have to move, all at once; return the other pairs."""
    names = [
        (part.id, item) for part, item in pairs if isinstance(part, ast.Name) and moves(state, frame, part.id, item)
    ]
    lists = [item for part, item in pairs if isinstance(part, ast.Subscript) and is_array(state, item)]
    rows = [
        (_place(state, frame, part), item)
        for part, item in pairs
        if isinstance(part, ast.Subscript) and any(item is one for one in lists)
    ]
    if names:
        rebind(state, frame, names, loc)
    if rows:
        store_rows(state, rows, loc)
    done = [*(item for _, item in names), *lists]
    return [(part, item) for part, item in pairs if not any(item is one for one in done)]


def _gathered(frame: Frame, target: ast.Tuple | ast.List, found: Items) -> Items:
    """Return the items with those that `*name` takes put together."""
    at = next(place for place, part in enumerate(target.elts) if isinstance(part, ast.Starred))
    after = len(target.elts) - at - 1
    if len(found.items) < at + after:
        raise error("BW101", _counts(at + after, found), frame.loc(target), "write one name for each value")
    end = len(found.items) - after
    return Items((*found.items[:at], Items(found.items[at:end]), *found.items[end:]))


def _delete(state: State, frame: Frame, node: ast.Delete) -> None:
    """Forget names: reading them is refused from here on; take items out of lists."""
    for target in node.targets:
        if isinstance(target, ast.Subscript) and not is_sliced(target):
            owner = operand(state, frame, target.value)
            let_grow(state, owner)
            if isinstance(owner, Grown):
                refuse_running(state, owner, frame.loc(target))
                pop(state, owner, value(state, frame, target.slice), frame.loc(target))
                continue
        if not isinstance(target, ast.Name):
            raise error("BW002", "only a name or an item of a list can be deleted", frame.loc(target), "leave it out")
        state.lookup(frame, target.id, frame.loc(target))
        frame.bindings.pop(target.id)
        state.assigned.discard((frame.path, target.id))


def _part(state: State, frame: Frame, target: ast.Subscript) -> View | Slab:
    """Return what is stored into: an element, a row of a list, or a part of a tensor."""
    loc = frame.loc(target)
    row = operand(state, frame, target.value) if isinstance(target.value, ast.Name) else None
    if isinstance(row, Row) and isinstance(target.value, ast.Name) and not row.view:
        refuse_two_names(state, row, loc)
        is_seen(state, row, loc)
        demand_array(state, (frame.path, target.value.id))
    if isinstance(row, Row) and row.view:
        refuse_turned(row, loc)
        bounds = slice_operands(state, frame, spelled_out(target, row.rank))
        note_change(state, row.reads[0].tensor, loc)
        return part_of_slab(state, row.reads[0], bounds, loc)
    if is_sliced(target):
        owner, position = _owner(state, frame, target.value), len(state.block)
        if isinstance(owner, View) and owner.tensor not in state.lists:
            target = spelled_out(target, owner.rank)
            bounds = slice_operands(state, frame, target)
            note_change(state, owner.tensor, loc)
            return slab_of(state, kept_place(state, owner, position), bounds, loc)
    place = _place(state, frame, target)
    note_change(state, place.tensor, loc)
    return place if not place.rank or place.tensor in state.lists else slab_of(state, place, (), loc)


def _place(state: State, frame: Frame, target: ast.Subscript) -> View:
    """Return what is stored into: an element, or a row of a list."""
    loc = frame.loc(target)
    owner = _owner(state, frame, target.value)
    if isinstance(owner, Items) and owner.site is not None:
        state.arrays.add(owner.site)
        raise ListDemanded
    if isinstance(owner, Items):
        message = (
            f"`{ast.unparse(target.value)}` is a tuple, or a list from outside of the loops: it is not stored into"
        )
        raise error("BW002", message, loc, "make a list with [...] inside the loop, or a tensor")
    if not isinstance(owner, View):
        raise error("BW002", f"{describe(owner)} cannot be stored into", loc, "store into a tensor or a list")
    return _indexed(state, frame, owner, target)


def _indexed(state: State, frame: Frame, owner: View, node: ast.Subscript) -> View:
    """Return a view with further axes indexed."""
    position = len(state.block)
    indices = index_operands(state, frame, node)
    return index(state, kept_place(state, owner, position), indices, frame.loc(node))


def _owner(state: State, frame: Frame, node: ast.expr) -> Operand:
    """Return a tensor, list or row that is stored into; a list that is indexed by a variable has to be an array."""
    if not isinstance(node, ast.Subscript):
        return operand(state, frame, node)
    owner = _owner(state, frame, node.value)
    if isinstance(owner, View):
        return _indexed(state, frame, owner, node)
    if isinstance(owner, Items) and owner.site is not None:
        at = value(state, frame, node.slice).expression
        if isinstance(at, Constant) and -len(owner.items) <= at.value < len(owner.items):
            return owner.items[int(at.value)]
        state.arrays.add(owner.site)
        raise ListDemanded
    return operand(state, frame, node)


def _augmented(state: State, frame: Frame, node: ast.AugAssign, loc: Location) -> None:
    if isinstance(node.target, ast.Name):
        before = state.lookup(frame, node.target.id, loc)
        refuse_two_names(state, before, loc)
        if is_part(before, state) and (isinstance(before, View) or before.view):
            _update_part(state, frame, node, before)
            return
        if isinstance(before, Row) and is_seen(state, before, loc):
            demand_array(state, (frame.path, node.target.id))
        if isinstance(node.op, ast.Add):
            let_grow(state, before)
            if isinstance(before, Grown):
                state.extend(state, frame, before, node.value)
                return
        assign_name(state, frame, node.target.id, _combine(state, frame, node, before), loc)
    elif isinstance(node.target, ast.Subscript) and (grown := grown_of(frame, node.target.value)) is not None:
        position = place_of(state, grown, value(state, frame, node.target.slice), loc)
        before = item_at(state, grown, position, loc)
        store_at(state, grown, position, _combine(state, frame, node, before), loc)
    elif isinstance(node.target, ast.Subscript) and (owner := _value_of(state, frame, node.target)) is not None:
        indices = [settle(state, item, loc) for item in index_operands(state, frame, node.target)]
        before = item_of(state, frame, owner, node.target, indices)
        store_item(state, frame, owner, node.target, indices, _combine(state, frame, node, before))
    elif isinstance(node.target, ast.Subscript):
        view = _part(state, frame, node.target)
        if isinstance(view, Slab):
            store_row(state, view, _combine(state, frame, node, row_of(state, view, loc)), store, loc)
            return
        view = element_of(view, loc)
        element, position = load(state, view, frame.loc(node.target)), len(state.block)
        combined = _combine(state, frame, node, element)
        store(state, kept_place(state, view, position), combined, loc)
    else:
        raise _unassigned(state, frame, node.target)


def _update_part(state: State, frame: Frame, node: ast.AugAssign, part: View | Row) -> None:
    """Lower `row += y` of a part of a tensor: it is stored into."""
    loc = frame.loc(node)
    slab = slab_of(state, part, (), loc) if isinstance(part, View) else part.reads[0]
    refuse_turned(part, loc)
    if slab.tensor in state.constant:
        name = ast.unparse(node.target)
        message = f"`{name}` is a part of `{slab.tensor.name}`, which would be changed in place"
        advice = f"make a new row, `{name} = {name} + ...`; where the change is meant, index it: `{name}[:] += ...`"
        raise unsupported(message, loc, advice)
    note_change(state, slab.tensor, loc)
    store_row(state, slab, _combine(state, frame, node, row_of(state, slab, loc)), store, loc)


def _combine(state: State, frame: Frame, node: ast.AugAssign, before: Operand) -> Operand:
    """Return the new value of `x += y`."""
    loc, position = frame.loc(node), len(state.block)
    before = _loaded(state, before, loc)
    increment = operand(state, frame, node.value)
    increment = settle(state, increment, loc) if is_complex(before) else increment
    sides = kept(state, before, position, loc), increment
    name = BINARY.get(type(node.op), "matmul")
    if any(isinstance(side, Record) for side in sides) or name == "matmul":
        left = ast.copy_location(ast.Name("left", ast.Load()), node)
        whole = ast.copy_location(ast.BinOp(left, node.op, node.value), node)
        return binary_operand(state, frame, name, sides, whole, stored=True)
    if is_of_rows(state, sides):
        return combined(state, sides, lambda pair: binary_number(state, frame, name, pair, node.value), loc)
    if any(map(is_complex_element, sides)):
        return binary_number(state, frame, name, [numeric(state, side, loc) for side in sides], node.value)
    right = scalar(state, increment, frame.loc(node.value))
    return binary(state, name, scalar(state, sides[0], loc), right, loc)


def _store_grown(state: State, frame: Frame, grown: Grown, target: ast.Subscript, found: Operand) -> None:
    """Lower `h[i] = x` of a list that grows."""
    position, loc = len(state.block), frame.loc(target)
    if is_sliced(target):
        raise error("BW002", "a slice of a list is stored into", loc, "make a new list: `h[:a] + new + h[b:]`")
    at = value(state, frame, target.slice)
    found = kept(state, found, position, loc)
    store_at(state, grown, place_of(state, grown, at, loc), found, loc)


def _loaded(state: State, found: Operand, loc: Location) -> Operand:
    return load(state, found, loc) if isinstance(found, View) and found.rank == 0 else found


def _value_of(state: State, frame: Frame, target: ast.Subscript) -> Record | None:
    """Return what `v[i] = x` stores into where it is a value with parts."""
    if not state.values.kinds or not isinstance(target.value, ast.Name | ast.Attribute):
        return None
    return as_record(operand(state, frame, target.value))


# ---------------------------------------------------------------- control flow


def _if(state: State, frame: Frame, node: ast.If, loc: Location) -> None:
    if (raised := only_raise(node.body)) is not None:
        if lower_guard(state, frame, node, raised):
            state.present |= present_if(state, frame, node.test, holds=False)
            lower_statements(state, frame, node.orelse)
        return
    try:
        test = condition(state, frame, node.test)
    except CompileError:
        _note_items(state, frame, [*node.body, *node.orelse])
        raise
    if isinstance(test, Constant):
        lower_statements(state, frame, node.body if test.value else node.orelse)
        return
    blocks, ends = _branches(state, frame, node.test, [node.body, node.orelse])
    state.emit(If(condition=test, then=blocks[0], otherwise=blocks[1], loc=loc))
    state.ended = state.ended or all(ends)


def _note_items(state: State, frame: Frame, body: Sequence[ast.stmt]) -> None:
    """Begin anew where statements say what a list holds whose items the condition before them could not read."""
    for node in body:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr="append" | "appendleft"))):
                found = grown_of(frame, owner)
                if found is None or found.form is not None:
                    continue
                with state.perhaps([]), suppress(CompileError):
                    lower_statement(state, frame, node)
            case _:
                pass


def _branches(
    state: State, frame: Frame, test: ast.expr, bodies: Sequence[Sequence[ast.stmt]]
) -> tuple[list[tuple[Statement, ...]], list[bool]]:
    """Lower alternatives; afterwards is assigned what every one that goes on has assigned."""
    assigned, bindings = set(state.assigned), dict(frame.bindings)
    frame.branches += 1
    state.branch_places.append(((frame.path, len(state.loops)), state.block, len(state.block)))
    results: list[tuple[Statement, ...]] = []
    ends: list[bool] = []
    after: list[tuple[set[Key], dict[str, Binding]]] = []
    present, left = set(state.present), list[set[Expression]]()
    for body, holds in zip(bodies, (True, False), strict=True):
        state.assigned, frame.bindings = assigned | named_if(frame, test, holds=holds), dict(bindings)
        state.present = present | present_if(state, frame, test, holds=holds)
        block: list[Statement] = []
        with state.into(block):
            lower_statements(state, frame, body)
            if body:
                restore(state, frame, bindings, frame.loc(body[-1]), loop=False)
            ends.append(state.ended)
        results.append(tuple(block))
        if not ends[-1]:
            after.append((state.assigned, frame.bindings))
            left.append(state.present)
    frame.branches -= 1
    state.branch_places.pop()
    state.present = set[Expression].intersection(*left) if left else present
    demand_where_branches_meet(state, frame, [item[1] for item in after])
    demand_complex_where_branches_meet(state, frame, [item[1] for item in after])
    state.assigned = set[Key].intersection(*(item[0] for item in after)) if after else assigned
    frame.bindings = _common(bindings, [item[1] for item in after])
    for name in set[str].intersection(*(set(item[1]) for item in after)) - set(frame.bindings) if after else ():
        found = [item[1][name] for item in after]
        if all(isinstance(item, Items | View | Together | Row) for item in found):
            state.either[name] = all(is_part(item, state) for item in found)
    return results, ends


def _common(before: dict[str, Binding], after: list[dict[str, Binding]]) -> dict[str, Binding]:
    """Return the bindings that all branches agree on."""
    if not after:
        return before
    return {name: found for name, found in after[0].items() if all(item.get(name) == found for item in after)}


def _while(state: State, frame: Frame, node: ast.While, loc: Location) -> None:
    counts = state.draws_random and state.while_counter is None
    counter = state.while_counter
    if counts:
        counter = state.while_counter = state.symbol("turns", INT64)
        state.emit(Assign(symbol=counter, value=integer(0), loc=loc))
    flag = new_flag(state, loc) if node.orelse and breaks(node.body) else None
    position = len(state.block)
    level = LoopLevel(None, None, True, dict(frame.bindings), frame.path, flag=flag)
    saved = enter(state, frame, level)
    prelude: list[Statement] = []
    with state.into(prelude):
        test = condition(state, frame, node.test)
    body: list[Statement] = []
    with state.into(body):
        note_met(state, frame, node.test, holds=True)
        if counter is not None:
            state.emit(Assign(symbol=counter, value=add(read(counter), integer(1)), loc=loc))
        lower_statements(state, frame, node.body)
        restore(state, frame, level.outer, frame.loc(node.body[-1]))
    leave(state, frame, saved)
    endless = isinstance(test, Constant) and bool(test.value)
    if endless and level.exits:
        keep_assigned(state, frame, set[Key].intersection(*level.exits), len(state.block), loc)
    state.emit(While(prelude=tuple(prelude), condition=test, body=tuple(body), loc=loc))
    if counts:
        state.while_counter = None
    if node.orelse and not endless:
        lower_else(state, frame, Else(node.orelse, flag, level.exits, position, loc), lower_statements)


# ---------------------------------------------------------------- returning from a helper's loop


def _return_from_loop(state: State, frame: Frame, returning: Returning, node: ast.Return) -> None:
    """Keep what is returned in variables, set the flag and leave the loop."""
    loc = frame.loc(node)
    if node.value is None:
        found: Operand = Items(())
    else:
        found = settle(state, operand(state, frame, node.value), loc)
    if is_complex(returning.form):
        found = as_complex(found, loc)
    if returning.form is not None and form_of(returning.form) != form_of(found):
        message = "the returns of a loop differ in what they give"
        raise error("BW101", message, loc, "return the same kind of value everywhere")
    returning.form = found
    for number, item in enumerate(numbers_of(found)):
        state.assign(returned_key(frame, number), item, loc)
    state.emit(Assign(symbol=returning.flag, value=Constant(value=True, dtype=BOOL), loc=loc))
    _break(state, loc)


def returned_key(frame: Frame, number: int) -> Key:
    """Return the variable for one of the values that a helper's loop returns."""
    return frame.path, f"returned[{number}]"


def _leave_with(state: State, frame: Frame, node: ast.For | ast.While, loc: Location) -> None:
    """After an inner loop that returns: leave the loop of the same helper around it, too."""
    if frame.returning is None or not state.loops or state.loops[-1].frame_path != frame.path or not returns(node):
        return
    block: list[Statement] = []
    with state.into(block):
        _break(state, loc)
    state.emit(If(condition=read(frame.returning.flag, loc), then=tuple(block), loc=loc))
