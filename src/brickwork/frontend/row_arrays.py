"""Rows that are kept in arrays: those that change from iteration to iteration, and those that are dear to compute.

    h = a * h + x[t]                  `h` is an array, and each item of it is stored
    s = torch.softmax(w @ x[i], 0)    what `w @ x[i]` gives is stored once, and read three times

A row is a formula for its items. In an array it has the values that it had when Python would compute them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeGuard

from brickwork.diagnostics.location import Location
from brickwork.frontend.indexing import element, load, numeric
from brickwork.frontend.lowering_state import (
    ITEM_BYTES,
    LARGEST,
    Copied,
    Frame,
    Key,
    ListDemanded,
    LoopLevel,
    RowArray,
    State,
    describe,
)
from brickwork.frontend.plain_loops import emit_loop
from brickwork.frontend.rules import unsupported
from brickwork.frontend.typing import Along, Items, Operand, Record, Row, Slab, Value, View, parts_of
from brickwork.ir.build import apply, cast, integer, size, sub
from brickwork.ir.nodes import Constant, Expression, FailureKind, For, Local, Statement, Store, Tensor, TensorType
from brickwork.records import dataclass


def array_of(
    state: State, key: Key, name: str, sizes: Sequence[Expression], place: tuple[list[Statement], int], loc: Location
) -> Tensor | None:
    """Declare an array of the type that is known for `key`; None where the host does not know how long it is.

    In a loop one of known sizes is a `Local`, which stands at `place`; any other is scratch memory of the host's.
    """
    rank = len(sizes)
    kind = TensorType(state.types[key].dtype, rank, contiguous=True, unit_axis=rank - 1)
    known = tuple(int(size.value) for size in sizes if isinstance(size, Constant))
    if len(known) == rank and (state.loops or state.allocate is None):
        state.numbers += 1
        tensor = Tensor(name, state.numbers, kind, known)
        if prod(known) * ITEM_BYTES > LARGEST:
            message = f"a list of {prod(known)} items in a loop takes more than {LARGEST // 1024} KiB an iteration"
            raise unsupported(message, loc, "make it before the loop, or use a tensor")
        if not state.ended:
            block, position = place
            block.insert(position, Local(tensor=tensor, loc=loc))
        return tensor
    if state.allocate is None or not all(map(state.is_host, sizes)):
        return None
    if any(level.claimed for level in state.loops):
        message = "a list whose length is known only at run time, inside `prange`"
        raise unsupported(message, loc, "use a tensor with a row for each iteration")
    return state.allocate(name, kind, tuple(sizes), loc)


def is_part(found: object, state: State) -> TypeGuard[Row | View]:
    """Return whether an operand is a row, or a tensor with axes left."""
    return isinstance(found, Row) or (isinstance(found, View) and found.rank > 0 and found.tensor not in state.lists)


def is_row_array(state: State, tensor: Tensor) -> bool:
    """Return whether a tensor holds the rows of a name."""
    return any(array.tensor == tensor for array in state.row_arrays.values())


def sizes_of(found: Row | View) -> tuple[Expression, ...]:
    """Return how many items a row has along each axis."""
    if isinstance(found, Row):
        return found.sizes
    return tuple(size(found.tensor, axis) for axis in range(len(found.indices), found.tensor.type.axes))


def item_at(state: State, found: Row | View, indices: tuple[Expression, ...], loc: Location) -> Value | Record:
    """Return an item of a row."""
    if isinstance(found, Row):
        return found.item(indices)
    return numeric(state, load(state, View(found.tensor, (*found.indices, *indices), indexed=True), loc), loc)


@dataclass(slots=True)
class Filling:
    """An array that is made when its first item is stored: its type is known then. A `Local` stands at `place`."""

    state: State
    key: Key
    name: str
    place: tuple[list[Statement], int]
    loc: Location
    tensor: Tensor | None = None
    roomy: bool = False
    """Whether the array may be longer than the row: as long as what it is a part of."""

    @property
    def made(self) -> Tensor:
        """The array."""
        if self.tensor is None:
            raise RuntimeError("an array without items")
        return self.tensor

    def store(self, sizes: Sequence[Expression], indices: tuple[Expression, ...], item: Value | Record) -> None:
        """Store an item of an array of these sizes."""
        state, loc = self.state, self.loc
        if not isinstance(item, Value):
            raise unsupported(f"a row of {describe(item)}s that is kept", loc, "write a loop over its items")
        state.widen(self.key, item.type, self.name, loc)
        if self.tensor is None:
            rooms = [state.at_most.get(each, each) for each in sizes] if self.roomy else sizes
            self.tensor = array_of(state, self.key, self.name, rooms, self.place, loc)
            if self.tensor is None:
                message = "a part of a tensor is kept, and its length depends on what the loops compute"
                raise unsupported(message, loc, "make a list of it, `[v for v in ...]`, or store into another tensor")
            state.kept_arrays.add(self.tensor)
            state.weak |= {self.tensor} if state.types[self.key].weak else set()
        value = cast(item.expression, self.tensor.type.dtype, loc)
        state.emit(Store(tensor=self.tensor, indices=indices, value=value, access=state.access(), loc=loc))


def kept_row(
    state: State,
    found: Row | View,
    key: Key,
    name: str,
    loc: Location,
    place: tuple[list[Statement], int] | None = None,
    *,
    named: bool = False,
    roomy: bool = False,
) -> View:
    """Return a row in an array of its own, computed now.

    `named`: a name stands for it, so Python would share items; `roomy`: who reads it knows how long the row is.
    """
    sizes = [state.fix(each, "length") for each in sizes_of(found)]
    array = Filling(state, key, name, place or (state.block, len(state.block)), loc, roomy=roomy)
    nest(state, sizes, lambda indices: array.store(sizes, indices, item_at(state, found, indices, loc)), loc)
    note_copy(state, array.made, found if named else None, loc)
    return View(array.made)


def note_copy(state: State, array: Tensor, found: Row | View | None, loc: Location, *, adds: bool = False) -> None:
    """Note with what the loop that has just been written fills an array."""
    row = whole_row(found) if isinstance(found, View) else found
    source = row if row is not None and row.view else None
    if not state.ended and isinstance(loop := state.block[-1], For):
        state.copied[loop.index] = Copied(array, source, loc, adds)


def nest(
    state: State,
    sizes: Sequence[Expression],
    body: Callable[[tuple[Expression, ...]], None],
    loc: Location,
    *,
    indices: tuple[Expression, ...] = (),
    backward: bool = False,
) -> None:
    """Emit loops over all places of an array; `backward`: from the last ones on."""
    if len(indices) == len(sizes):
        body(indices)
        return
    extent = sizes[len(indices)]

    def inner(turn: Expression) -> None:
        place = sub(sub(extent, integer(1, loc), loc), turn, loc) if backward else turn
        state.nonnegative.add(place)
        nest(state, sizes, body, loc, indices=(*indices, place), backward=backward)

    emit_loop(state, extent, inner, loc)


# ---------------------------------------------------------------- names


def demand_array(state: State, key: Key) -> None:
    """Begin again with a name, or a place, whose rows are kept in an array, if they are not yet."""
    if key not in state.rows:
        state.rows.add(key)
        raise ListDemanded


def bind_array(state: State, frame: Frame, name: str, found: Row | View, loc: Location) -> None:
    """Let a name whose rows are kept stand for another row: its items are stored."""
    key, levels = (frame.path, name), [*state.loops]
    with state.in_kernel():
        sizes, known = tuple(state.fix(each, "length") for each in sizes_of(found)), state.row_arrays.get(key)
        is_same = known is not None and (sizes == known.sizes or frame.branches > 0)
        if known is None or not _is_within(levels, known.levels) or (len(levels) == len(known.levels) and not is_same):
            place = _place(state, frame)
            tensor = _first(state, key, name, found, place, loc)
            state.row_arrays[key] = known = RowArray(tensor, sizes, levels)
        else:
            tensor = known.tensor
            _overwrite(state, key, known, found, sizes, loc)
    frame.bindings.pop(name, None)
    _note_source(state, known, found)
    frame.bindings[name] = View(tensor)


def _place(state: State, frame: Frame) -> tuple[list[Statement], int]:
    """Return where an array is made that branches may share: before them."""
    places = (each[1:] for each in state.branch_places if each[0] == (frame.path, len(state.loops)))
    return next(places, (state.block, len(state.block))) if frame.branches else (state.block, len(state.block))


def _is_within(levels: Sequence[LoopLevel], outer: Sequence[LoopLevel]) -> bool:
    return len(levels) >= len(outer) and all(one is other for one, other in zip(levels, outer, strict=False))


def _first(
    state: State, key: Key, name: str, found: Row | View, place: tuple[list[Statement], int], loc: Location
) -> Tensor:
    """Return the array that a name begins with: a tensor that the host has just made for it, else a new one."""
    if isinstance(found, View) and not found.indices and found.tensor in state.made:
        state.made.discard(found.tensor)
        kind = element(state, found, (integer(0),) * found.rank, loc).type
        state.widen(key, kind, name, loc)
        if state.types[key].dtype is found.tensor.type.dtype and not found.tensor.type.pairs:
            state.kept_arrays.add(found.tensor)
            return found.tensor
    return kept_row(state, found, key, name, loc, place, named=True).tensor


def _overwrite(
    state: State, key: Key, known: RowArray, found: Row | View, sizes: Sequence[Expression], loc: Location
) -> None:
    """Store the items of a row into an array; they are computed before, where they are made of others of its items."""
    tensor, name = known.tensor, key[1]
    if len(sizes) != tensor.type.axes:
        message = f"`{name}` is {describe(View(tensor))}, and gets {describe(found)}"
        raise unsupported(message, loc, "use another name")
    for axis, (given, own) in enumerate(zip(sizes, known.sizes, strict=True)):
        extent = size(tensor, axis, loc)
        if given not in (own, extent):
            same = apply("eq", extent, given, loc=loc)
            state.check(same, FailureKind.RUNTIME, f"'{name}' of {{0}} items gets {{1}}", (extent, given), loc)
    reads = found.reads if isinstance(found, Row) else ()
    if any(slab.tensor == tensor and (slab.anywhere or not is_all(slab)) for slab in reads):
        found = kept_row(state, found, key, name, loc, named=True)

    array = Filling(state, key, name, (state.block, len(state.block)), loc, tensor)
    extents = [size(tensor, axis, loc) for axis in range(len(sizes))]
    nest(state, extents, lambda indices: array.store(extents, indices, item_at(state, found, indices, loc)), loc)
    note_copy(state, tensor, found, loc)


def is_all(slab: Slab) -> bool:
    """Return whether a part of a tensor is all of it, in order."""
    zero = integer(0)
    return all(
        isinstance(axis, Along) and axis.start == zero and axis.step == 1 and axis.size == size(slab.tensor, number)
        for number, axis in enumerate(slab.axes)
    )


def owners(state: State, row: Row) -> frozenset[Tensor]:
    """Return the tensor of which a row is a part, as Python has it; none of one that was computed."""
    while not row.view and row in state.part_of:
        row = state.part_of[row]
    return frozenset({row.reads[0].tensor}) if row.view else frozenset()


def _note_source(state: State, array: RowArray, found: Row | View) -> None:
    """Note whose elements the name would share in Python: items of the one may not change in place then.

    `copied_rows.py` tells of tensors that are stored into while the array is a copy of them.
    """
    row = whole_row(found) if isinstance(found, View) else found
    if is_array_there(state, row):
        return
    if row.view or row in state.part_of or _names(state, row):
        others = owners(state, row) - {array.tensor}
        state.shared |= {array.tensor, *others} if others or not row.view else others


def is_array_there(state: State, row: Row) -> bool:
    """Return whether a row is all of an array: `copied_rows.py` follows which names stand for it."""
    return row.view and row.reads[0].tensor in state.kept_arrays and is_all(row.reads[0]) and not row.reads[0].anywhere


def part_of(state: State, view: View, sizes: tuple[Expression, ...], loc: Location) -> Row:
    """Return the row that an array of these sizes, or with room for more, holds."""
    reads = whole_row(view).reads
    if any(each in state.at_most for each in sizes):
        reads = (Slab(view.tensor, tuple(Along(integer(0), each) for each in sizes)),)
    return Row(sizes, lambda indices: item_at(state, view, indices, loc), reads, view=True)


def whole_row(view: View) -> Row:
    """Return what of a tensor is left, as what is read."""
    extents = range(len(view.indices), view.tensor.type.axes)
    slab = Slab(view.tensor, (*view.indices, *(Along(integer(0), size(view.tensor, axis)) for axis in extents)))
    return Row(sizes_of(view), lambda _: Value(integer(0)), (slab,), view=True)


def note_change(state: State, tensor: Tensor, loc: Location) -> None:
    """Note that items of an array are stored into."""
    if tensor in state.kept_arrays:
        state.changed_in_place.setdefault(tensor, loc)


def is_seen(state: State, row: Row, loc: Location) -> bool:
    """Return whether parts of a computed row have been taken, or a list has it, which see it change in place."""
    if row in state.part_of:
        advice = "change the row itself, `d[1:] += ...`, or make a new one: `d = d + ...`"
        raise unsupported("a part of a row that was computed is changed in place", loc, advice)
    bound = [each for frame in state.frames for each in frame.bindings.values() if isinstance(each, Items)]
    return any(row is each for each in state.part_of.values()) or any(_holds(each, row) for each in bound)


def refuse_turned(part: View | Row, loc: Location) -> None:
    """Refuse to store into a part of a tensor under other indices than the tensor's."""
    if isinstance(part, Row) and part.reads[0].anywhere:
        advice = "store into the tensor that it is made of"
        message = "a part of a tensor that has its items under other indices, as `.T` gives, is changed in place"
        raise unsupported(message, loc, advice)


def refuse_two_names(state: State, row: Operand, loc: Location) -> None:
    """Refuse to change a row in place that has two names: both would change."""
    if isinstance(row, Row) and _names(state, row) > 1:
        raise unsupported("a row with two names is changed in place", loc, "make a new one: `d = d + ...`")


def _names(state: State, row: Row) -> int:
    return sum(each is row for frame in state.frames for each in frame.bindings.values())


def _holds(found: Operand, row: Row) -> bool:
    return found is row or any(_holds(each, row) for each in parts_of(found))
