"""Names of lists that get other lists: in a straight line they stand for others, elsewhere the contents move.

In a loop or a branch a name stands for one array, whatever way led there. `prev, cur = cur, prev` exchanges the items
of the two arrays, or on a CPU the arrays if the host allocates them with one length. `cur = [0] * n` overwrites them,
and `prev = cur` moves them and takes the name `cur` out of use. That is what Python does as long as no other name
stands for any of these lists, which is asked for here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.grown_lists import copy_items, let_grow
from brickwork.frontend.indexing import element, list_name, size_of
from brickwork.frontend.lowering_state import Binding, Frame, ListDemanded, State, Together
from brickwork.frontend.plain_loops import emit_loop
from brickwork.frontend.rules import error, unsupported
from brickwork.frontend.typing import Grown, Items, Operand, Value, View, parts_of
from brickwork.ir.build import apply, cast, read
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Constant, Expression, FailureKind, Rebind, Store, Symbol, Tensor
from brickwork.ir.walk import assigned_symbols, read_symbols, substitute

ADVICE = "copy the items: `a = b[:]`"


def is_array(state: State, found: Binding | None) -> bool:
    """Return whether a binding is a list, or a row of one."""
    return isinstance(found, View) and found.rank > 0 and found.tensor in state.lists


def bound_before(state: State, frame: Frame, name: str) -> Binding | None:
    """Return what a name stands for: now, or where it was taken out of use, before the loops around."""
    found = frame.bindings.get(name)
    levels = [level for level in state.loops if level.frame_path == frame.path]
    return next((level.outer[name] for level in levels if name in level.outer), found) if found is None else found


def moves(state: State, frame: Frame, name: str, found: Operand) -> bool:
    """Return whether giving a name a list means that its items move."""
    before = bound_before(state, frame, name)
    if before is None or before == found or not (state.loops or frame.branches):
        return False
    lists = [item for item in (before, found) if is_array(state, item) or _may_be_array(item)]
    if isinstance(before, Together) and not is_array(state, found):
        return False
    return len(lists) == 2 and (frame.branches > 0 or _is_outer(state, frame, name))


def _is_outer(state: State, frame: Frame, name: str) -> bool:
    return any(level.frame_path == frame.path and name in level.outer for level in state.loops)


def _may_be_array(found: Binding | None) -> bool:
    return isinstance(found, Items | Together) and found.site is not None


def rebind(state: State, frame: Frame, pairs: Sequence[tuple[str, Operand]], loc: Location) -> None:
    """Give names lists at once, by moving items."""
    targets: list[tuple[View, View]] = []
    for name, found in pairs:
        before = bound_before(state, frame, name)
        _demand_all(state, [before, found])
        if not isinstance(before, View) or not isinstance(found, View):
            raise unsupported(f"`{name}` is bound to another tensor inside a loop", loc, "use another name")
        targets.append((before, found))
    names = {name for name, _ in pairs}
    for (name, _), (before, found) in zip(pairs, targets, strict=True):
        others = {*_names_of(state, before.tensor)} - {(frame.path, name)}
        if others or before.indices:
            message = f"`{name}` gets another list here, but is not the only name of the one that it stands for"
            raise unsupported(message, loc, ADVICE)
        sources = {*_names_of(state, found.tensor)} - {(frame.path, item) for item in names}
        if found.tensor in state.fresh:
            continue
        if found.indices or len(sources) > 1 or any(path != frame.path for path, _ in sources):
            raise unsupported(f"`{name}` gets a list that has other names", loc, ADVICE)
        level = next((level for level in reversed(state.loops) if level.frame_path == frame.path), None)
        if sources and (level is None or level.branches != frame.branches):
            raise unsupported(f"`{name}` gets a list that has another name, in a branch", loc, ADVICE)
        for _, source in sources:
            frame.bindings.pop(source)
            state.moved[source] = loc
    if len({found.tensor for _, found in targets}) != len(targets):
        raise unsupported("two names get one and the same list", loc, ADVICE)
    if _change_places(state, targets):
        lists = [(target.tensor, source.tensor) for target, source in targets]
        state.emit(Rebind(targets=tuple(to for to, _ in lists), sources=tuple(of for _, of in lists), loc=loc))
    else:
        move_items(state, targets, loc)
    for (name, _), (before, _) in zip(pairs, targets, strict=True):
        frame.bindings[name] = before


def _change_places(state: State, pairs: Sequence[tuple[View, View]]) -> bool:
    """Return whether lists that the host allocates are exchanged for one another, of one length and item type."""
    if not state.in_place:
        return False
    targets, sources = {target.tensor for target, _ in pairs}, {source.tensor for _, source in pairs}
    forms = {(tensor.type, state.lists[tensor].kind, state.lists[tensor].sizes) for tensor in targets}
    return targets == sources and len(forms) == 1 and not any(tensor.is_local for tensor in targets)


def _demand_all(state: State, found: Sequence[Binding | None]) -> None:
    """Begin again with lists as arrays if they are not yet."""
    sites = [item.site for item in found if isinstance(item, Items | Together) and item.site is not None]
    if sites:
        state.arrays.update(sites)
        raise ListDemanded


def _names_of(state: State, tensor: Tensor) -> Iterator[tuple[object, str]]:
    for frame in state.frames:
        for name, found in frame.bindings.items():
            if _holds(found, tensor):
                yield frame.path, name


def _holds(found: Binding, tensor: Tensor) -> bool:
    if parts := parts_of(found):
        return any(_holds(item, tensor) for item in parts)
    return isinstance(found, View) and found.tensor == tensor


def store_rows(state: State, pairs: Sequence[tuple[View, Operand]], loc: Location) -> None:
    """Store rows at once."""
    tensors = {target.tensor for target, _ in pairs}
    targets: list[tuple[View, View]] = []
    for target, found in pairs:
        _demand_all(state, [found if isinstance(found, Items) else None])
        if not isinstance(found, View) or not is_array(state, found):
            message = f"{list_name(target)} is a list, and gets something else"
            raise error("BW102", message, loc, "write one index for each dimension")
        exchanged = found.tensor in tensors and bool(found.indices)
        if not exchanged and found.tensor not in state.fresh:
            advice = "copy the items: `a[i] = b[:]`"
            raise unsupported(f"{list_name(target)} would be one and the same list as another", loc, advice)
        if any(_is_row(item, target.tensor) for frame in state.frames for item in frame.bindings.values()):
            raise unsupported(f"{list_name(target)} is replaced while a name stands for a row", loc, "index it instead")
        targets.append((target, found))
    sources = [_place(state, found) for _, found in targets if found.tensor not in state.fresh]
    if sources and sorted(sources) != sorted(_place(state, target) for target, _ in targets):
        raise unsupported("rows that would be one and the same list", loc, "copy the items: `a[i] = a[j][:]`")
    move_items(state, targets, loc)


def _place(state: State, view: View) -> str:
    """Return a row as text, with what variables of the block were set to in place of them, as long as that holds."""
    values: dict[Symbol, Expression] = {}
    for item in state.block:
        changed = assigned_symbols(item)
        stored = effects(item).stores
        values = {
            symbol: value
            for symbol, value in values.items()
            if not ({symbol} | read_symbols(value)) & changed and not (stored and effects(value).loads)
        }
        if isinstance(item, Assign) and item.symbol not in read_symbols(item.value):
            values[item.symbol] = item.value
    return str([substitute(index, values) for index in view.indices])


def _is_row(found: Binding, tensor: Tensor) -> bool:
    return isinstance(found, View) and found.tensor == tensor and bool(found.indices)


def move_items(state: State, pairs: Sequence[tuple[View, View]], loc: Location) -> None:
    """Store the items of each source into its target; all sources are read before anything is stored."""
    first = pairs[0][0]
    for target, source in pairs:
        if target.rank != source.rank or target.rank != first.rank:
            raise unsupported(f"{list_name(target)} gets a list of another form", loc, "use another name")
        for size, other in zip(_sizes(state, target), _sizes(state, source), strict=True):
            same = apply("eq", size, other, loc=loc)
            if isinstance(same, Constant) and not same.value:
                raise unsupported(f"{list_name(target)} gets a list of another length", loc, "use another name")
            message = f"{list_name(target)} of length {{0}} gets a list of length {{1}}".replace("`", "'")
            if size != other:
                state.check(same, FailureKind.RUNTIME, message, (size, other), loc)
        keys = [state.lists[view.tensor].key for view in (target, source)]
        for key, other in (keys, keys[::-1]):
            state.widen(key, state.types[other], target.tensor.name, loc)
    _level(state, pairs, (), loc)


def _sizes(state: State, view: View) -> tuple[Expression, ...]:
    return state.lists[view.tensor].sizes[len(view.indices) :]


def _level(state: State, pairs: Sequence[tuple[View, View]], indices: tuple[Expression, ...], loc: Location) -> None:
    target = pairs[0][0]
    if len(indices) == target.rank:
        values = [_now(state, source, indices, loc) for _, source in pairs]
        for (place, _), item in zip(pairs, values, strict=True):
            dtype = value_dtype(place.tensor.type.dtype)
            value = cast(item.expression, dtype, loc)
            whole = (*place.indices, *indices)
            state.emit(Store(tensor=place.tensor, indices=whole, value=value, access=state.access(), loc=loc))
        return
    size = size_of(target, len(indices), loc).expression
    emit_loop(state, size, lambda turn: _level(state, pairs, (*indices, turn), loc), loc)


def _now(state: State, source: View, indices: tuple[Expression, ...], loc: Location) -> Value:
    found = element(state, source, (*source.indices, *indices), loc)
    symbol = state.symbol("item", found.dtype)
    state.emit(Assign(symbol=symbol, value=found.expression, loc=loc))
    return Value(read(symbol, loc), found.weak)


def settle_names(state: State, found: Operand) -> None:
    """Note that something stands for the lists in an operand from now on."""
    if isinstance(found, View):
        state.fresh.discard(found.tensor)
    for item in parts_of(found):
        settle_names(state, item)


# ---------------------------------------------------------------- lists that grow


def grown_of(frame: Frame, node: ast.expr) -> Grown | None:
    """Return the list that grows of which a name stands."""
    found = frame.bindings.get(node.id) if isinstance(node, ast.Name) else None
    return found if isinstance(found, Grown) else None


def moves_grown(state: State, frame: Frame, name: str, found: Operand, loc: Location) -> bool:
    """Give a name that stands for a list, in a loop or a branch, the items of another one; return whether it is so."""
    before = bound_before(state, frame, name)
    before = before.latest if isinstance(before, Together) else before
    if not isinstance(before, Grown | Items | View) or before == found:
        return False
    if not frame.branches and not _is_outer(state, frame, name):
        return False
    if isinstance(before, Grown) != isinstance(found, Grown):
        for each in (before, found):
            let_grow(state, each)
    if not isinstance(before, Grown) or not isinstance(found, Grown):
        return False
    holders = [(each, key) for each in state.frames for key, item in each.bindings.items() if item == found]
    others = [key for each in state.frames for key, item in each.bindings.items() if item == before and key != name]
    if others or any(each is not frame for each, _ in holders):
        raise unsupported(f"`{name}` gets a list that has other names", loc, "copy the items: `a = b[:]`")
    copy_items(state, before, found, loc)
    for each, key in holders:
        each.bindings.pop(key)
        state.moved[key] = loc
    state.moved.pop(name, None)
    frame.bindings[name] = before
    return True
