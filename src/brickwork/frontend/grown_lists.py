"""Lists that grow while loops run: an array with room for the most items that there can be, and a length.

How much room there is `list_rooms` settles, once the whole function has been lowered. Adding to a full list is a failed
check. In a loop a list of known room is a `Local`, up to 64 KiB; any other is scratch memory that the host allocates.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.complex_values import as_complex, is_complex
from brickwork.frontend.indexing import element, load, scalar
from brickwork.frontend.loop_bounds import most_turns
from brickwork.frontend.lowering_state import (
    ITEM_BYTES,
    LARGEST,
    Growth,
    Key,
    ListArray,
    ListDemanded,
    State,
    describe,
)
from brickwork.frontend.plain_loops import emit_loop
from brickwork.frontend.row_arrays import is_part, nest, note_copy, sizes_of
from brickwork.frontend.row_arrays import item_at as item_of_row
from brickwork.frontend.rules import SharedRowError, error, unsupported
from brickwork.frontend.typing import (
    PART,
    Grown,
    Items,
    Operand,
    Record,
    Row,
    Site,
    Value,
    View,
    count_of,
    form_of,
    numbers_of,
    with_numbers,
    with_parts,
)
from brickwork.ir.build import add, apply, cast, integer, read, select, size, sub
from brickwork.ir.dtypes import BOOL, FLOAT32, INT64
from brickwork.ir.nodes import (
    Constant,
    Expression,
    FailureKind,
    Local,
    Size,
    Store,
    Tensor,
    TensorType,
)


def new_list(state: State, name: str, site: Site, loc: Location, room: Expression | None = None) -> Grown:
    """Return an empty list; `room` is what the source says."""
    known = state.growth.get(site)
    if known is None:
        known = state.growth[site] = Growth()
        state.changed = True
    state.bounds.setdefault(site, [])
    if state.loops:
        state.inner.add(site)
    if room is not None:
        _say_room(state, site, room, loc)
    count = 0 if known.form is None else count_of(known.form)
    most = known.most if state.loops and 0 < (known.most or 0) * count * ITEM_BYTES <= LARGEST else None
    keys = [(site[0], f"{site[1]}[{number}]") for number in range(count)]
    if known.axes:
        tensors = [_array_of_rows(state, name, keys[0], known.axes, loc)]
    else:
        tensors = [_array(state, name, key, site, most, loc) for key in keys]
    state.assign(_length_key(site, name), Value(integer(0, loc), weak=True), loc)
    return Grown(name, site, tuple(tensors), known.form, len(state.loops), known.axes)


def let_grow(state: State, found: Operand) -> None:
    """Begin anew where a list has turned out to change its length."""
    site = found.site if isinstance(found, Items) else None
    if isinstance(found, View) and not found.indices and found.tensor in state.lists:
        site = state.lists[found.tensor].key
    if site is not None:
        state.growth.setdefault(site, Growth())
        raise ListDemanded


def _say_room(state: State, site: Site, most: Expression, loc: Location) -> None:
    if not isinstance(most, Constant) and not state.is_host(most):
        message = "the room of a list depends on what the loops compute"
        raise unsupported(message, loc, "say it by shapes and arguments")
    state.bounds[site] = [most if is_nonnegative(state, most) else apply("maximum", most, integer(0, loc), loc=loc)]
    state.bounded.add(site)


def _array(state: State, name: str, key: Key, site: Site, most: int | None, loc: Location) -> Tensor:
    """Make the array for one number of an item; with room for `most` in each iteration, or one for all iterations."""
    kind = state.types[key]
    layout = TensorType(kind.dtype, 1, contiguous=True, unit_axis=0)
    if most is not None:
        state.numbers += 1
        tensor = Tensor(name, state.numbers, layout, (most,))
        state.emit(Local(tensor=tensor, loc=loc))
    else:
        if any(level.claimed for level in state.loops):
            message = f"a list of more than {LARGEST // 1024} KiB, or of a room known only at run time, inside `prange`"
            raise unsupported(message, loc, "bound it by `bw.bounded(n)`, or use a tensor with a row for each turn")
        tensor = state.tensor(name, layout)
        state.pending.append((tensor, site, loc, ()))
    state.lists[tensor] = ListArray(key, kind, (size(tensor, 0, loc),))
    return tensor


# ---------------------------------------------------------------- the length


def _length_key(site: Site, name: str) -> Key:
    return site[0], f"len({name})"


def length(state: State, found: Grown, loc: Location) -> Expression:
    """Return how many items there are now."""
    result = read(state.variable(_length_key(found.site, found.name)), loc)
    state.nonnegative.add(result)
    if found.tensors:
        state.ranges[result] = integer(0, loc), add(most_items(found, loc), integer(1, loc), loc)
    return result


def most_items(found: Grown, loc: Location) -> Expression:
    """Return the room of a list as an expression that says whose it is; `allocate_grown` knows how much it is."""
    if not found.tensors:
        return integer(0, loc)
    return Size(tensor=found.tensors[0], axis=0, loc=loc)


def _set_length(state: State, found: Grown, value: Expression, loc: Location) -> None:
    state.assign(_length_key(found.site, found.name), Value(value, weak=True), loc)


def is_filled(state: State, found: Grown, loc: Location) -> Expression:
    """Return whether there are items."""
    return apply("gt", length(state, found, loc), integer(0, loc), loc=loc)


# ---------------------------------------------------------------- items


def item_at(state: State, found: Grown, position: Expression, loc: Location) -> Operand:
    """Return the item at a position that is in range."""
    if found.form is None:
        return Value(integer(0, loc), weak=True)  # Nothing has been added yet, as far as this pass has come.
    loads = [element(state, View(tensor), (position,), loc) for tensor in found.tensors]
    return with_numbers(found.form, iter(loads), keep_sites=False)


def place_of(state: State, found: Grown, at: Operand, loc: Location) -> Expression:
    """Return an index that is checked, counted from the start."""
    value = scalar(state, at, loc)
    if not value.dtype.is_integer and value.dtype is not BOOL:
        raise error("BW103", f"an index of `{found.name}` is {value.type}", loc, "write int(...) around it")
    position, count = state.fix(cast(value.expression, INT64, loc), "index"), length(state, found, loc)
    natural = is_nonnegative(state, position)
    inside = apply("lt", position, count, loc=loc)
    if not natural:
        least = apply("ge", position, apply("neg", count, loc=loc), loc=loc)
        inside = apply("logical_and", least, inside, loc=loc)
    message = f"index {{0}} is out of range for list '{found.name}' of length {{1}}"
    state.check(inside, FailureKind.INDEX, message, (position, count), loc)
    if natural:
        return position
    negative = apply("lt", position, integer(0, loc), loc=loc)
    result = state.pin(select(negative, add(position, count, loc), position, loc), "index")
    state.nonnegative.add(result)
    return result


def store_at(state: State, found: Grown, position: Expression, stored: Operand, loc: Location) -> None:
    """Store an item at a position that is in range."""
    stored = _item(state, stored, loc, found.form)
    _note_form(state, found, stored, loc)
    for tensor, value in zip(found.tensors, numbers_of(stored), strict=True):
        key = state.lists[tensor].key
        state.widen(key, value.type, found.name, loc)
        expression = cast(value.expression, tensor.type.dtype, loc)
        state.emit(Store(tensor=tensor, indices=(position,), value=expression, access=state.access(), loc=loc))


def _item(state: State, found: Operand, loc: Location, form: Operand | None = None) -> Operand:
    """Return an item with its elements read and its numbers fixed."""
    if isinstance(found, View) and found.is_element:
        found = load(state, found, loc)
    found = as_complex(found, loc) if is_complex(form) else found
    if isinstance(found, Value):
        return replace(found, expression=state.fix(found.expression))
    if not isinstance(found, Items | Record):
        advice = "add numbers, tuples of them or values with parts"
        raise unsupported(f"{describe(found)} as an item of a list that grows", loc, advice)
    return with_parts(found, lambda part: _item(state, part, loc), keep_sites=False)


def _note_form(state: State, found: Grown, stored: Operand, loc: Location) -> None:
    """Take the form of the first item for that of all; begin again where the list was made without it."""
    form, growth = form_of(stored), state.growth[found.site]
    if growth.form is None or (growth.form == PART and is_complex(stored)):
        growth.form = form
        for number, value in enumerate(numbers_of(stored)):
            state.widen((found.site[0], f"{found.site[1]}[{number}]"), value.type, found.name, loc)
        raise ListDemanded
    if growth.form != form:
        what = "numbers" if growth.form == PART else "items of another form"
        advice = "add items of one form"
        raise error("BW101", f"`{found.name}` holds {what}, and gets {describe(stored)}", loc, advice)


# ---------------------------------------------------------------- rows as items


def _array_of_rows(state: State, name: str, key: Key, axes: int, loc: Location) -> Tensor:
    """Make the array for the rows of a list: the host allocates it, when it is known how long they are."""
    kind = state.types[key]
    if state.reduced and kind.dtype is FLOAT32:
        advice = "make a tensor before the loop, as `out = torch.empty_like(x)`, and store into it, `out[i] = ...`"
        refused = unsupported(f"`{name}` is a list of parts of tensors of half precision", loc, advice)
        raise SharedRowError(refused.diagnostics)
    tensor = state.tensor(name, TensorType(kind.dtype, 1 + axes, contiguous=True, unit_axis=axes))
    state.kept_arrays.add(tensor)
    state.shared.add(tensor)
    state.weak |= {tensor} if kind.weak else set()
    return tensor


def _note_rows(state: State, found: Grown, row: Row | View, loc: Location) -> None:
    """Take a row for what the items of a list are; begin again where the list was made without it."""
    growth = state.growth[found.site]
    if growth.form is None:
        growth.axes = row.rank
        _note_form(state, found, item_of_row(state, row, (integer(0, loc),) * row.rank, loc), loc)
    if growth.form != PART or growth.axes != row.rank:
        raise error("BW101", f"`{found.name}` gets {describe(row)}, and holds others", loc, "add items of one form")
    if found.depth:
        raise unsupported(f"{describe(row)} as an item of a list that a loop makes", loc, "make the list before")


def _store_row(state: State, found: Grown, position: Expression, row: Row | View, loc: Location) -> None:
    """Store a row, as it is now, at a position that is in range: Python would share its items."""
    (tensor,), key = found.tensors, (found.site[0], f"{found.site[1]}[0]")
    sizes = [state.fix(each, "length") for each in sizes_of(row)]
    if any(tensor == each for each, *_ in state.pending):
        for axis, given in enumerate(sizes):
            own = size(tensor, axis + 1, loc)
            message = f"the rows in '{found.name}' have {{0}} items, and it gets one of {{1}}"
            state.check(apply("eq", own, given, loc=loc), FailureKind.RUNTIME, message, (own, given), loc)
    elif not all(map(state.is_host, sizes)):
        message = "a part of a tensor is kept, and its length depends on what the loops compute"
        raise unsupported(message, loc, "store into a tensor")
    else:
        state.pending.append((tensor, found.site, loc, tuple(sizes)))

    def put(indices: tuple[Expression, ...]) -> None:
        item = item_of_row(state, row, indices, loc)
        if not isinstance(item, Value):
            raise unsupported(f"a row of {describe(item)}s that is kept", loc, "write a loop over its items")
        state.widen(key, item.type, found.name, loc)
        value = cast(item.expression, tensor.type.dtype, loc)
        state.emit(Store(tensor=tensor, indices=(position, *indices), value=value, access=state.access(), loc=loc))

    nest(state, sizes, put, loc)
    note_copy(state, tensor, row, loc, adds=True)


# ---------------------------------------------------------------- methods


def refuse_running(state: State, found: Grown, loc: Location) -> None:
    """Refuse to change a list while a loop runs over it, by whatever name."""
    if any(item.site == found.site for level in state.loops for item in level.over):
        message = f"`{found.name}` changes while a loop runs over it"
        raise unsupported(message, loc, f"write `while {found.name}:` and take items out with `pop`")


def append(state: State, found: Grown, added: Operand, loc: Location) -> None:
    """Add an item."""
    row = added if is_part(added, state) else None
    if row is None:
        added = _item(state, added, loc, found.form)
        _note_form(state, found, added, loc)
    else:
        _note_rows(state, found, row, loc)
    if found.site not in state.bounded:
        state.bounds[found.site].append(most_turns(state, found.depth, loc))
    count = state.pin(length(state, found, loc), "place")
    _check_room(state, found, "lt", "is full: it has room for {0} items", count, loc)
    if row is None:
        store_at(state, found, count, added, loc)
    else:
        _store_row(state, found, count, row, loc)
    _set_length(state, found, add(count, integer(1, loc), loc), loc)


def _check_room(state: State, found: Grown, test: str, message: str, count: Expression, loc: Location) -> None:
    if not found.tensors:
        return
    room = size(found.tensors[0], 0, loc)
    advice = "" if found.site in state.bounded else f"; `{found.name} = bw.bounded(n)` makes room for n"
    message = f"list '{found.name}' {message}{advice}"
    values = (room, count) if "{1}" in message else (room,)
    state.check(apply(test, count, room, loc=loc), FailureKind.INDEX, message, values, loc)


def pop(state: State, found: Grown, at: Operand | None, loc: Location) -> Operand:
    """Take an item out, the last one or the one at an index."""
    filled = is_filled(state, found, loc)
    state.check(filled, FailureKind.INDEX, f"pop from empty list '{found.name}'", (), loc)
    last = state.pin(sub(length(state, found, loc), integer(1, loc), loc), "last")
    state.nonnegative.add(last)
    place = last if at is None else place_of(state, found, at, loc)
    item = pinned(state, item_at(state, found, place, loc))
    if at is not None:
        _close(state, found, place, last, loc)
    _set_length(state, found, last, loc)
    return item


def pinned(state: State, found: Operand) -> Operand:
    """Return an item with its numbers as they are now."""
    if isinstance(found, Value):
        return Value(state.pin(found.expression, "item"), found.weak)
    return with_parts(found, lambda part: pinned(state, part), keep_sites=False)


def _close(state: State, found: Grown, place: Expression, last: Expression, loc: Location) -> None:
    """Move the items behind a place one to the front."""

    def body(turn: Expression) -> None:
        here = add(place, turn, loc)
        state.nonnegative.add(here)
        store_at(state, found, here, item_at(state, found, add(here, integer(1, loc), loc), loc), loc)

    if found.tensors:
        emit_loop(state, sub(last, place, loc), body, loc)


def insert(state: State, found: Grown, at: Operand, added: Operand, loc: Location) -> None:
    """Put an item before the one at an index; beyond the ends counts as the ends."""
    added = _item(state, added, loc)
    count = state.pin(length(state, found, loc), "length")
    state.nonnegative.add(count)
    wanted = state.fix(cast(scalar(state, at, loc).expression, INT64, loc), "index")
    zero = integer(0, loc)
    from_end = apply("maximum", add(wanted, count, loc), zero, loc=loc)
    place = select(apply("lt", wanted, zero, loc=loc), from_end, apply("minimum", wanted, count, loc=loc), loc)
    place = state.pin(place, "place")
    state.nonnegative.add(place)
    append(state, found, added, loc)

    def body(turn: Expression) -> None:
        here = sub(sub(count, integer(1, loc), loc), turn, loc)
        state.nonnegative.add(here)
        store_at(state, found, add(here, integer(1, loc), loc), item_at(state, found, here, loc), loc)

    emit_loop(state, sub(count, place, loc), body, loc)
    store_at(state, found, place, added, loc)


def clear(state: State, found: Grown, loc: Location) -> None:
    """Take all items out."""
    _set_length(state, found, integer(0, loc), loc)


def copy_items(state: State, target: Grown, source: Grown, loc: Location) -> None:
    """Let a list have the items of another one."""
    refuse_running(state, target, loc)
    count = state.pin(length(state, source, loc), "length")
    state.nonnegative.add(count)
    if source.form is None:
        _set_length(state, target, count, loc)
        return
    take_items(state, target, count, most_items(source, loc), lambda turn: item_at(state, source, turn, loc), loc)


def take_items(
    state: State,
    target: Grown,
    count: Expression,
    most: Expression,
    item: Callable[[Expression], Operand],
    loc: Location,
    start: Expression | None = None,
) -> None:
    """Let a list have `count` items, and at most `most` of them, behind the first `start`; `item` gives each."""
    start = integer(0, loc) if start is None else start
    _note_form(state, target, item(integer(0, loc)), loc)
    if target.site not in state.bounded:
        state.bounds[target.site].append(most)
    total = add(start, count, loc)
    _check_room(state, target, "le", "has room for {0} items, and gets {1}", total, loc)

    def put(turn: Expression) -> None:
        place = add(start, turn, loc)
        state.nonnegative.add(place)
        store_at(state, target, place, item(turn), loc)

    emit_loop(state, count, put, loc)
    _set_length(state, target, total, loc)


def append_items(state: State, target: Grown, source: Grown, loc: Location) -> None:
    """Add the items of another list."""
    if source.form is None:
        return
    start, count = (state.pin(length(state, each, loc), "length") for each in (target, source))
    state.nonnegative |= {start, count}
    most = most_items(source, loc)
    take_items(state, target, count, most, lambda turn: item_at(state, source, turn, loc), loc, start)


def reverse(state: State, found: Grown, loc: Location) -> None:
    """Turn the order of the items round."""
    count = state.pin(length(state, found, loc), "length")

    def body(turn: Expression) -> None:
        other = sub(sub(count, integer(1, loc), loc), turn, loc)
        state.nonnegative.add(other)
        first, last = (pinned(state, item_at(state, found, place, loc)) for place in (turn, other))
        store_at(state, found, turn, last, loc)
        store_at(state, found, other, first, loc)

    emit_loop(state, apply("floordiv", count, integer(2, loc), loc=loc), body, loc)


ARGUMENT_COUNTS = {"append": 1, "appendleft": 1, "insert": 2, "clear": 0, "reverse": 0, "popleft": 0}
"""How many arguments methods take."""


def call_grown(
    state: State, found: Grown, name: str, arguments: Sequence[Operand], node: ast.Call, loc: Location
) -> Operand | None:
    """Return the call of a method of a list that grows."""
    refuse_running(state, found, loc)
    wrong = len(arguments) > 1 if name == "pop" else len(arguments) != ARGUMENT_COUNTS.get(name, len(arguments))
    if node.keywords or wrong:
        raise error("BW004", f"`{found.name}.{name}` does not take these arguments", loc, "pass them as Python's does")
    if found.axes and name not in {"append", "clear"}:
        raise unsupported(f"`{found.name}.{name}` of a list of parts of tensors", loc, "use a tensor and a count")
    match name:
        case "append":
            append(state, found, arguments[0], loc)
        case "appendleft":
            insert(state, found, Value(integer(0, loc), weak=True), arguments[0], loc)
        case "popleft":
            return pop(state, found, Value(integer(0, loc), weak=True), loc)
        case "insert":
            insert(state, found, arguments[0], arguments[1], loc)
        case "clear":
            clear(state, found, loc)
        case "reverse":
            reverse(state, found, loc)
        case "pop":
            return pop(state, found, arguments[0] if arguments else None, loc)
        case _:
            message = f"`{found.name}.{name}` of a list is not part of the language"
            raise error("BW011", message, loc, "write the loop that does it")
    return None
