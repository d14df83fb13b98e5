"""Rows of tensors while loops are lowered: slices, and parts of higher rank, computed with item by item.

A `Row` is a formula for the items, not a value: it is written where it is stored or reduced, as a loop. The right side
counts as evaluated before the store. Where it reads the tensor that is stored into, at places that have moved, the
loop runs in the direction in which it reads each item before that is stored; otherwise it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.evaluation_order import array_key, in_array, settled_number
from brickwork.frontend.grown_lists import item_at, length
from brickwork.frontend.indexing import index, load, numeric, scalar
from brickwork.frontend.lowering_state import State, describe, dimensions
from brickwork.frontend.row_arrays import Filling, nest
from brickwork.frontend.rules import error
from brickwork.frontend.tuple_indexing import choose
from brickwork.frontend.typing import Along, Grown, Items, Operand, Record, Row, Slab, Value, View
from brickwork.ir.build import add, apply, cast, integer, is_constant, select, size, sub
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Apply, Constant, Expression, FailureKind

Number: TypeAlias = Value | Record
StoreElement: TypeAlias = Callable[[State, View, Number, Location], None]
Bounds: TypeAlias = tuple[Operand | None, Operand | None, int]
"""What stands before and behind the colon of a slice, and its step."""


def is_rows(found: Operand) -> bool:
    """Return whether an operand is a tensor with axes left, or a slice."""
    return isinstance(found, Row | Grown) or (isinstance(found, View) and found.rank > 0)


def is_of_rows(state: State, sides: Sequence[Operand]) -> bool:
    """Return whether an operator has a slice among its operands, or a tensor with axes left."""
    return any(
        isinstance(side, Row) or (isinstance(side, View) and side.rank > 0 and side.tensor not in state.lists)
        for side in sides
    )


def as_row(state: State, found: Operand, loc: Location) -> Row | None:
    """Return an operand as a row: one already, or a tensor with axes left; None of a number or a list."""
    if isinstance(found, Row):
        return found
    if isinstance(found, View) and found.rank and found.tensor not in state.lists:
        return row_of(state, slab_of(state, found, (), loc), loc)
    return None


def slab_of(state: State, view: View, parts: Sequence[Operand | Bounds], loc: Location) -> Slab:
    """Return the part of a tensor that some indices and slices leave."""
    tensor, axes = view.tensor, list[Expression | Along](view.indices)
    if len(parts) > view.rank:
        message = f"`{tensor.name}` has {tensor.type.axes} dimensions, but is sliced with {len(parts)} indices"
        raise error("BW102", message, loc, "write at most one for each dimension")
    for part in parts:
        if isinstance(part, tuple):
            axes.append(along(state, size(tensor, len(axes), loc), part, loc))
        else:
            # The index is resolved as that of the axis it stands at; the axes before it do not matter.
            before = tuple(integer(0, loc) for _ in axes)
            axes.append(index(state, View(tensor, before), [part], loc).indices[-1])
    for axis in range(len(axes), tensor.type.axes):
        axes.append(Along(integer(0, loc), size(tensor, axis, loc), 0))
    fixed = (item if isinstance(item, Along) else state.fix(item, "index") for item in axes)
    return Slab(tensor, tuple(fixed))


def along(state: State, extent: Expression, bounds: Bounds, loc: Location) -> Along:
    """Return how a slice runs along an axis: bounds beyond its ends are those ends, as in Python."""
    lower, upper = (None if item is None else _bound(state, item, loc) for item in bounds[:2])
    start = integer(0, loc) if lower is None else _clamped(state, lower, extent, loc)
    stop = extent if upper is None else _clamped(state, upper, extent, loc)
    literal = 0 if lower is None else int(lower.value) if isinstance(lower, Constant) else None
    length = sub(stop, start, loc)
    if lower is not None and upper is not None:
        length = apply("maximum", length, integer(0, loc), loc=loc)
    step = bounds[2]
    if step > 1:
        last = apply("floordiv", sub(length, integer(1, loc), loc), integer(step, loc), loc=loc)
        length = add(last, integer(1, loc), loc)
    length = state.fix(length, "length")
    state.nonnegative |= {start, length}
    if length != extent:
        state.at_most[length] = state.at_most.get(extent, extent)
    return Along(start, length, literal, step)


def _bound(state: State, found: Operand, loc: Location) -> Expression:
    number = scalar(state, found, loc)
    if not number.dtype.is_integer and number.dtype is not BOOL:
        raise error("BW103", f"a bound of a slice is {number.type}, not an integer", loc, "write int(...) around it")
    return state.fix(cast(number.expression, INT64, loc), "bound")


def _clamped(state: State, bound: Expression, extent: Expression, loc: Location) -> Expression:
    zero = integer(0, loc)
    if isinstance(bound, Constant) and bound.value < 0:
        found = apply("maximum", add(extent, bound, loc), zero, loc=loc)
    elif is_nonnegative(state, bound):
        found = bound if bound == zero else apply("minimum", bound, extent, loc=loc)
    else:
        counted = select(apply("lt", bound, zero, loc=loc), add(bound, extent, loc), bound, loc)
        found = apply("minimum", apply("maximum", counted, zero, loc=loc), extent, loc=loc)
    return state.fix(found, "bound")


def _at(state: State, slab: Slab, indices: Sequence[Expression], loc: Location) -> View:
    """Return the element of a part at some indices."""
    return View(slab.tensor, _places(state, slab.axes, indices, loc), indexed=True)


def _places(
    state: State, axes: Sequence[Expression | Along], indices: Sequence[Expression], loc: Location
) -> tuple[Expression, ...]:
    """Return the places along axes that a part runs along, and those that are fixed."""
    waiting = iter(indices)
    places: list[Expression] = []
    for axis in axes:
        place = axis.place(next(waiting), loc) if isinstance(axis, Along) else axis
        places.append(place)
        if isinstance(axis, Along):
            state.nonnegative.add(place)
    return tuple(places)


def row_of(state: State, slab: Slab, loc: Location) -> Row:
    """Return the row of a part of a tensor."""
    sizes = tuple(axis.size for axis in slab.along)
    return Row(sizes, lambda indices: load(state, _at(state, slab, indices, loc), loc), (slab,), view=True)


def row_of_list(state: State, found: Operand, loc: Location) -> Row:
    """Return the row of the items of a list."""
    match found:
        case Grown():
            count, arrays = state.pin(length(state, found, loc), "length"), found.tensors
        case View():
            count, arrays = size(found.tensor, 0, loc), (found.tensor,)
        case Items():
            count, arrays = integer(len(found.items), loc), ()
        case _:
            raise error("BW101", f"{describe(found)} is no list of numbers", loc, "make a list of the items")

    def item(at: tuple[Expression, ...]) -> Number:
        if isinstance(found, View):
            return load(state, View(found.tensor, at, indexed=True), loc)
        one = item_at(state, found, at[0], loc) if isinstance(found, Grown) else choose(state, found.items, at[0], loc)
        return numeric(state, one, loc)

    along = Along(integer(0, loc), count, 0)
    return Row((count,), item, tuple(Slab(array, (along,)) for array in arrays))


def item_of_row(state: State, row: Row, position: Expression) -> Operand:
    """Return the item at a position along the first axis: a number, or a row of one axis less."""
    if len(row.sizes) == 1:
        return row.item((position,))
    return _part(state, row, row.sizes[1:], lambda indices: row.item((position, *indices)))


def _part(
    state: State, row: Row, sizes: tuple[Expression, ...], item: Callable[[tuple[Expression, ...]], Number]
) -> Row:
    """Return a part of a row, which is one of a tensor where the row is."""
    found = Row(sizes, item, _anywhere(row.reads), view=row.view, dear=row.dear)
    state.part_of[found] = row
    return found


def _anywhere(reads: Sequence[Slab]) -> tuple[Slab, ...]:
    """Return what is read, at places that nobody follows."""
    return tuple(replace(slab, anywhere=True) for slab in reads)


def part_of_slab(state: State, slab: Slab, parts: Sequence[Operand | Bounds], loc: Location) -> View | Slab:
    """Return the element, or the part, that indices and slices leave of a part of a tensor: what is stored into."""
    row, chosen, axes = row_of(state, slab, loc), iter(parts), list[Expression | Along]()
    for axis in slab.axes:
        part = next(chosen, None) if isinstance(axis, Along) else None
        if not isinstance(axis, Along) or part is None:
            axes.append(axis)
            continue
        if isinstance(part, tuple):
            inner = along(state, axis.size, part, loc)
            start = axis.place(inner.start, loc)
            axes.append(Along(start, inner.size, None, axis.step * inner.step))
        else:
            number = [each for each in slab.axes if isinstance(each, Along)].index(axis)
            place = _place(state, part, number, row, loc)
            at = axis.place(place, loc)
            state.nonnegative.add(at)
            axes.append(at)
    found = Slab(slab.tensor, tuple(axes))
    if found.along:
        return found
    return View(slab.tensor, tuple(axis for axis in axes if not isinstance(axis, Along)), indexed=True)


def part_of_row(state: State, row: Row, parts: Sequence[Operand | Bounds], loc: Location) -> Operand:
    """Return an item of a row, or the part that some indices and slices leave."""
    if len(parts) > len(row.sizes):
        message = f"{dimensions(len(row.sizes))} are indexed with {len(parts)} indices"
        raise error("BW102", message, loc, "write one index for each dimension")
    if row.view and not row.reads[0].anywhere and row.reads[0].tensor not in state.kept_arrays:
        part = part_of_slab(state, row.reads[0], parts, loc)
        return row_of(state, part, loc) if isinstance(part, Slab) else load(state, part, loc)
    axes = list[Expression | Along]()
    for axis, extent in enumerate(row.sizes):
        part = parts[axis] if axis < len(parts) else (None, None, 1)
        axes.append(along(state, extent, part, loc) if isinstance(part, tuple) else _place(state, part, axis, row, loc))
    sizes = tuple(axis.size for axis in axes if isinstance(axis, Along))

    def item(indices: tuple[Expression, ...]) -> Number:
        return row.item(_places(state, axes, indices, loc))

    return _part(state, row, sizes, item) if sizes else item(())


def _place(state: State, part: Operand, axis: int, row: Row, loc: Location) -> Expression:
    """Return an index into a row, counted from the start, and checked."""
    found, extent = scalar(state, part, loc), row.sizes[axis]
    if not found.dtype.is_integer:
        raise error("BW103", f"an index is {found.type}, not an integer", loc, "write int(...) around it")
    given = state.fix(cast(found.expression, INT64, loc), "index")
    message = f"index {{0}} is out of bounds for dimension {axis} with size {{1}}"
    inside = apply("lt", given, extent, loc=loc)
    if is_nonnegative(state, given):
        state.check(inside, FailureKind.INDEX, message, (given, extent), loc)
        return given
    counted = state.fix(add(given, extent, loc), "index")
    inside = apply("logical_and", inside, apply("ge", counted, integer(0, loc), loc=loc), loc=loc)
    state.check(inside, FailureKind.INDEX, message, (given, extent), loc)
    result = state.fix(select(apply("lt", given, integer(0, loc), loc=loc), counted, given, loc), "index")
    state.nonnegative.add(result)
    return result


def at_places(state: State, row: Row, axis: int, places: Operand, loc: Location) -> Row:
    """Return the part of a row that has some places along an axis."""
    chosen = as_row(state, places, loc) or row

    def item(indices: tuple[Expression, ...]) -> Number:
        place = scalar(state, chosen.item((indices[axis],)), loc).expression
        state.nonnegative.add(place)
        return row.item((*indices[:axis], place, *indices[axis + 1 :]))

    return _part(state, row, (*row.sizes[:axis], *chosen.sizes, *row.sizes[axis + 1 :]), item)


# ---------------------------------------------------------------- arithmetic


def combined(
    state: State, operands: Sequence[Operand], combine: Callable[[Sequence[Number]], Number], loc: Location
) -> Row:
    """Return what an operator makes of rows, and of numbers, which count for each item."""
    found = [as_row(state, item, loc) or settled_number(state, item, loc) for item in operands]
    rows = [item for item in found if isinstance(item, Row)]
    longest = max(rows, key=lambda row: len(row.sizes))
    sizes = tuple(_shared_size(rows, axis - len(longest.sizes)) for axis in range(len(longest.sizes)))
    for row in rows:
        _same_sizes(state, sizes, row.sizes, loc)
    found = [
        in_array(state, item, loc)
        if isinstance(item, Row) and item.dear and (len(item.sizes) < len(sizes) or any(map(_is_one, item.sizes)))
        else item
        for item in found
    ]

    def item(indices: tuple[Expression, ...]) -> Number:
        return combine([_item(one, indices) for one in found])

    reads = tuple(slab for row in found if isinstance(row, Row) for slab in row.reads)
    return Row(sizes, item, reads, dear=any(isinstance(row, Row) and row.dear for row in found))


def _is_one(extent: Expression) -> bool:
    return is_constant(extent, 1)


def _shared_size(rows: Sequence[Row], axis: int) -> Expression:
    """Return how long rows are along an axis, counted from the last one: an axis of one item is repeated."""
    found = [row.sizes[axis] for row in rows if len(row.sizes) >= -axis]
    return next((extent for extent in found if not _is_one(extent)), found[0])


def _item(found: Row | Number, indices: tuple[Expression, ...]) -> Number:
    if not isinstance(found, Row):
        return found
    own = zip(found.sizes, indices[len(indices) - len(found.sizes) :], strict=True)
    return found.item(tuple(integer(0) if _is_one(extent) else index for extent, index in own))


def _same_sizes(state: State, wanted: Sequence[Expression], given: Sequence[Expression], loc: Location) -> None:
    """Check that sizes agree, the last ones with the last ones; one item goes with any number of them."""
    for axis, (size_of, other) in enumerate(zip(wanted[len(wanted) - len(given) :], given, strict=True)):
        if size_of != other and not _is_one(other):
            message = (
                "The expanded size of the tensor ({0}) must match the existing size ({1}) at non-singleton"
                f" dimension {axis}; index a size of 1, `s[0]`, where only the call shows that it is 1"
            )
            same = apply("eq", size_of, other, loc=loc)
            state.check(same, FailureKind.RUNTIME, message, (size_of, other), loc)


# ---------------------------------------------------------------- sums along axes


def along_axis(row: Row, axis: int, reduce: Callable[[Row], Number], *, keeps: bool = False) -> Row | Number:
    """Return what is left of a row along all axes but one, which is reduced; `keeps`: to one item."""
    before, after = row.sizes[:axis], row.sizes[axis + 1 :]
    sizes = (*before, *((integer(1),) if keeps else ()), *after)

    def item(indices: tuple[Expression, ...]) -> Number:
        first, last = indices[:axis], indices[axis + keeps :]
        part = Row((row.sizes[axis],), lambda at: row.item((*first, *at, *last)), row.reads, dear=row.dear)
        return reduce(part)

    return Row(sizes, item, _anywhere(row.reads), dear=True) if sizes else item(())


def for_each_row(
    state: State, row: Row, axis: int, function: Callable[[Row], Operand | None], loc: Location, *, same: bool
) -> Operand:
    """Return what a function gives for each row along an axis, in arrays: numbers, or rows, and two of them as a pair.

    `same`: such rows are as long as those that it is given.
    """
    row = row if row.view else in_array(state, row, loc)
    outer, arrays = (*row.sizes[:axis], *row.sizes[axis + 1 :]), list[Filling]()
    pairs, place = list[bool](), (state.block, len(state.block))

    def at(indices: tuple[Expression, ...]) -> None:
        first, last = indices[:axis], indices[axis:]
        found = function(Row((row.sizes[axis],), lambda one: row.item((*first, *one, *last)), _anywhere(row.reads)))
        results = found.items if isinstance(found, Items) else (found,)
        pairs.append(isinstance(found, Items))
        for number, each in enumerate(results):
            if number == len(arrays):
                arrays.append(Filling(state, array_key(state, loc), "row", place, loc))
            inner = as_row(state, each, loc) if each is not None else None
            ends = () if inner is None else (row.sizes[axis],) if same else inner.sizes

            whole = (*outer[:axis], *ends, *outer[axis:])

            def store(
                more: tuple[Expression, ...],
                whole: tuple[Expression, ...],
                each: Operand | None,
                inner: Row | None,
                array: Filling,
            ) -> None:
                item = numeric(state, each, loc) if inner is None else inner.item(more)
                array.store(whole, (*first, *more, *last), item)

            nest(state, ends, partial(store, whole=whole, each=each, inner=inner, array=arrays[number]), loc)

    nest(state, outer, at, loc)
    views = tuple(View(array.made) for array in arrays)
    return Items(views) if any(pairs) else views[0]


def product(
    state: State,
    sides: Sequence[Operand],
    multiply: Callable[[Sequence[Number]], Number],
    add_up: Callable[[Row], Number],
    loc: Location,
) -> Row | Number | None:
    """Return `a @ b` of rows and matrices; None of anything else."""
    rows = [as_row(state, side, loc) for side in sides]
    if not all(row is not None and len(row.sizes) in {1, 2} for row in rows):
        return None
    # What the other side reads again and again is computed once.
    pairs = zip(rows, reversed(rows), strict=True)
    left, right = (
        row if row.view or other.rank == 1 else in_array(state, row, loc) for row, other in pairs if row and other
    )
    common, rank = left.sizes[-1], len(left.sizes) - 1
    if common != right.sizes[0]:
        message = "size mismatch of a product: {0} and {1}"
        same = apply("eq", common, right.sizes[0], loc=loc)
        state.check(same, FailureKind.RUNTIME, message, (common, right.sizes[0]), loc)

    def item(indices: tuple[Expression, ...]) -> Number:
        before, after = indices[:rank], indices[rank:]
        return add_up(
            Row((common,), lambda at: multiply([left.item((*before, *at)), right.item((*at, *after))]), reads)
        )

    reads = _anywhere((*left.reads, *right.reads))
    sizes = (*left.sizes[:-1], *right.sizes[1:])
    return Row(sizes, item, reads, dear=True) if sizes else item(())


# ---------------------------------------------------------------- stores


def store_row(state: State, target: Slab, found: Operand, store: StoreElement, loc: Location) -> None:
    """Store a row, or a number, into each item of a part of a tensor."""
    row = as_row(state, found, loc) or settled_number(state, found, loc)
    sizes = tuple(axis.size for axis in target.along)
    backward = False
    if isinstance(row, Row):
        if len(row.sizes) > len(sizes):
            message = f"{len(row.sizes)} dimensions are stored into {len(sizes)}"
            raise error("BW102", message, loc, "index the right side, or slice fewer dimensions")
        _same_sizes(state, sizes, row.sizes, loc)
        order = _order(target, row)
        backward = order < 0 if order is not None else False
        row = row if order is not None else in_array(state, row, loc)

    def store_one(indices: tuple[Expression, ...]) -> None:
        store(state, _at(state, target, indices, loc), _item(row, indices), loc)

    nest(state, sizes, store_one, loc, backward=backward)


def _order(target: Slab, row: Row) -> int | None:
    """Return in which direction each item is read before it is stored, -1 from the last to the first; None of none."""
    same = [slab for slab in row.reads if slab.tensor == target.tensor and not _are_apart(target, slab)]
    moves = {None if slab.anywhere else _moved(target, slab) for slab in same}
    if moves <= {0} or (moves <= {0, 1} and len(target.along) == 1):
        return 1
    return -1 if moves <= {0, -1} and len(target.along) == 1 else None


def _are_apart(target: Slab, source: Slab) -> bool:
    """Return whether two parts of a tensor have indices on one axis that differ by a constant."""
    for one, other in zip(target.axes, source.axes, strict=True):
        if isinstance(one, Along) or isinstance(other, Along):
            continue
        (base, offset), (same, shift) = _with_offset(one), _with_offset(other)
        if base == same and offset != shift and (base is not None or (offset < 0) is (shift < 0)):
            return True
    return False


def _with_offset(index: Expression) -> tuple[Expression | None, int]:
    """Return what an index is without the constant that is added to it, and that constant."""
    if isinstance(index, Constant):
        return None, int(index.value)
    if isinstance(index, Apply) and index.operator.name in {"add", "sub"}:
        one, other = index.operands
        if isinstance(other, Constant):
            return one, int(other.value) if index.operator.name == "add" else -int(other.value)
        if isinstance(one, Constant) and index.operator.name == "add":
            return other, int(one.value)
    return index, 0


def _moved(target: Slab, source: Slab) -> int | None:
    """Return whether what is read lies at (0), behind (1) or before (-1) what is stored; None if that is not known."""
    found: set[int] = set()
    for one, other in zip(target.axes, source.axes, strict=True):
        if isinstance(one, Along) is not isinstance(other, Along):
            return None
        if not isinstance(one, Along) or not isinstance(other, Along) or one == other:
            continue
        if not one.step == other.step == 1:
            return None
        if one.start == other.start:
            continue
        if one.literal is None or other.literal is None or (one.literal < 0) is not (other.literal < 0):
            return None
        found.add(1 if other.literal > one.literal else -1)
    return (found or {0}).pop() if len(found) < 2 else None
