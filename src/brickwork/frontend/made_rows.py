"""Rows that loops make, lowered: of one number, of rows behind one another, and with other axes.

    torch.zeros(n)          each item is 0
    d[:, None]              the same items under other indices
    torch.cat([x[i], y])    an array, which each part is stored into; where no host knows how long that is, a choice

What is rewritten to these names is in `made_row_forms.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.evaluation_order import array_key
from brickwork.frontend.indexing import numeric, scalar
from brickwork.frontend.lowering_state import State, describe
from brickwork.frontend.merging import merge
from brickwork.frontend.row_arrays import Filling, nest, note_copy, part_of
from brickwork.frontend.rows import as_row
from brickwork.frontend.rules import error, unsupported
from brickwork.frontend.typing import ElementType, Items, Operand, Record, Row, Value, View
from brickwork.ir.build import add, apply, cast, integer, mul, sub
from brickwork.ir.dtypes import BFLOAT16, FLOAT16, INT64, PARTS, DType, value_dtype
from brickwork.ir.nodes import Constant, Expression, FailureKind, Statement


def made_row(state: State, name: str, arguments: Sequence[Operand], loc: Location) -> Operand:
    """Return the row that a function of `language/made_rows.py` makes."""
    match name, [*arguments]:
        case "filled", [value, sizes, *kind]:
            return _filled(state, scalar(state, value, loc), _extents(state, sizes, loc), _kind(kind, loc), loc)
        case "filled_like", [value, like, *kind]:
            return _filled_like(state, scalar(state, value, loc), like, _kind(kind, loc), loc)
        case "counted_up", [start, stop, step, *kind]:
            return _counted_up(state, [start, stop, step], _kind(kind, loc), loc)
        case "joined_rows", [rows, *axis]:
            return _joined(state, _rows(state, rows, loc), _axis(axis, 0), loc)
        case "stacked_rows", [rows, *more]:
            return _stacked(state, rows, _axis(more, 0), _kind(more[1:], loc), loc)
        case "widened", [row, axis]:
            return _widened(state, row, _axis([axis], 0), loc)
        case "turned", [row]:
            return _transposed(state, row, loc)
        case "turned", [row, *axes]:
            return _turned(state, row, (_axis(axes, -2), _axis(axes[1:], -1)), loc)
        case "converted", [row, ElementType(dtype=kind)]:
            return _converted(state, row, kind, loc)
        case _:
            raise error("BW004", f"`{name}` cannot be called so", loc, "write a loop over the items")


def _axis(given: Sequence[Operand], otherwise: int) -> int:
    match given:
        case [Value(expression=Constant(value=int(axis))), *_]:
            return axis
        case _:
            return otherwise


def _kind(given: Sequence[Operand], loc: Location) -> DType | None:
    """Return the type that items are of by the source; None where it names none."""
    if not given or not isinstance(given[0], ElementType):
        return None
    dtype = given[0].dtype
    if dtype in PARTS or (dtype.is_integer and dtype.bits < 64):
        message = f"a row of {dtype} is made in a loop, and its items are computed in another type"
        raise unsupported(message, loc, "make it before the loops, or of int64, float32 or float64")
    return dtype


def _typed(state: State, value: Value, kind: DType | None, loc: Location) -> Value:
    """Return a number in the type that torch gives a new tensor of it."""
    if kind is None:
        return Value(cast(value.expression, state.default_dtype if value.dtype.is_float else value.dtype, loc))
    number = cast(value.expression, value_dtype(kind), loc)
    return Value(apply(f"to_{kind}", number, loc=loc) if kind in {FLOAT16, BFLOAT16} else number)


def _extents(state: State, sizes: Operand, loc: Location) -> tuple[Expression, ...]:
    """Return the sizes that are given, as numbers or as a tuple of them."""
    found: list[Expression] = []
    for item in sizes.items if isinstance(sizes, Items) else (sizes,):
        number = scalar(state, item, loc)
        if not number.dtype.is_integer:
            raise error("BW103", f"a size is {number.type}, not an integer", loc, "write int(...) around it")
        extent = state.fix(cast(number.expression, INT64, loc), "length")
        if not is_nonnegative(state, extent):
            message = "Trying to create tensor with negative dimension {0}"
            state.check(apply("ge", extent, integer(0, loc), loc=loc), FailureKind.RUNTIME, message, (extent,), loc)
            state.nonnegative.add(extent)
        found.append(extent)
    return tuple(found)


def _filled(state: State, value: Value, sizes: tuple[Expression, ...], kind: DType | None, loc: Location) -> Operand:
    item = _typed(state, value, kind, loc)
    item = Value(state.fix(item.expression), item.weak)
    return Row(sizes, lambda _: item, ()) if sizes else item


def _filled_like(state: State, value: Value, like: Operand, kind: DType | None, loc: Location) -> Operand:
    row = as_row(state, like, loc)
    if row is None:
        number = scalar(state, like, loc)
        return _filled(state, value, (), kind or number.dtype, loc)
    sizes = tuple(state.fix(extent, "length") for extent in row.sizes)
    if kind is None and isinstance(like, View):
        kind = _kind([ElementType(like.tensor.type.element)], loc)
    return _filled(state, value, sizes, kind or _type_of(state, row, loc), loc)


def _type_of(state: State, row: Row, loc: Location) -> DType:
    """Return the type of the items of a row, which are not computed here."""
    with state.into(list[Statement]()):
        item = row.item(tuple(integer(0, loc) for _ in row.sizes))
    if not isinstance(item, Value):
        raise unsupported("a row of complex numbers is made in a loop", loc, "make it before the loops")
    return state.default_dtype if item.weak and item.dtype.is_float else item.dtype


def _counted_up(state: State, bounds: Sequence[Operand], kind: DType | None, loc: Location) -> Operand:
    numbers = [scalar(state, item, loc) for item in bounds]
    if not all(item.dtype.is_integer for item in numbers) or not isinstance(numbers[2].expression, Constant):
        message = "`torch.arange` of floats, or with a step that is no literal, in a loop"
        raise unsupported(message, loc, "make it before the loops")
    start, stop = (state.fix(cast(item.expression, INT64, loc), "bound") for item in numbers[:2])
    step = int(numbers[2].expression.value)
    if step == 0:
        raise error("BW103", "the step of `torch.arange` is 0", loc, "give it another step")
    ends = apply("ge" if step > 0 else "le", stop, start, loc=loc)
    state.check(ends, FailureKind.RUNTIME, "upper bound and lower bound inconsistent with step sign", (), loc)
    beyond = integer(step - 1 if step > 0 else step + 1, loc)
    count = apply("floordiv", add(sub(stop, start, loc), beyond, loc), integer(step, loc), loc=loc)
    extent = state.fix(apply("maximum", count, integer(0, loc), loc=loc), "length")
    state.nonnegative.add(extent)

    def item(indices: tuple[Expression, ...]) -> Value:
        number = Value(add(start, mul(indices[0], integer(step, loc), loc), loc))
        return number if kind is None else _typed(state, number, kind, loc)

    return Row((extent,), item, ())


def _converted(state: State, found: Operand, kind: DType, loc: Location) -> Operand:
    """Return a row, or a number, in another type: where it has that type it is the same tensor."""
    if kind in PARTS:
        raise unsupported(f"a conversion to {kind} in a loop", loc, "convert the whole tensor before the loops")
    if kind.is_integer and kind.bits < 64:
        raise unsupported(f"a conversion to {kind} in a loop", loc, "write `.long()`: a store makes it that type")
    if isinstance(found, View) and found.tensor.type.element is kind:
        return found if found.rank else numeric(state, found, loc)
    row = as_row(state, found, loc)
    if row is None:
        return _typed(state, scalar(state, found, loc), kind, loc)
    if (row.reads[0].tensor.type.element if row.view else _type_of(state, row, loc)) is kind:
        return row

    def item(indices: tuple[Expression, ...]) -> Value:
        return _typed(state, scalar(state, row.item(indices), loc), kind, loc)

    return Row(row.sizes, item, row.reads, dear=row.dear)


# ---------------------------------------------------------------- other axes


def _row(state: State, found: Operand, loc: Location) -> Row:
    row = as_row(state, found, loc)
    if row is None:
        number = numeric(state, found, loc)
        row = Row((), lambda _: number, ())
    return row


def _within(axis: int, rank: int, row: Operand, loc: Location) -> int:
    if not -rank <= axis < rank:
        message = f"{describe(row)}, has no axis {axis}"
        raise error("BW102", message, loc, f"write an axis from {-rank} to {rank - 1}")
    return axis % rank


def _elsewhere(state: State, row: Row, sizes: tuple[Expression, ...], found: Row) -> Row:
    """Return a row that has the items of another one under other indices: in Python it is a view, too."""
    reads = tuple(replace(slab, anywhere=True) for slab in row.reads)
    made = Row(sizes, found.item, reads, view=row.view, dear=row.dear)
    state.part_of[made] = row
    return made


def _widened(state: State, found: Operand, axis: int, loc: Location) -> Row:
    row = _row(state, found, loc)
    at = _within(axis, row.rank + 1, found, loc)
    sizes = (*row.sizes[:at], integer(1, loc), *row.sizes[at:])
    made = Row(sizes, lambda indices: row.item((*indices[:at], *indices[at + 1 :])), ())
    return _elsewhere(state, row, sizes, made)


def _transposed(state: State, found: Operand, loc: Location) -> Row:
    row = _row(state, found, loc)
    if row.rank > 2:
        advice = "write which axes change places, `.transpose(0, 1)`, or `.mT` for the last two"
        raise error("BW102", f"`.T` of {row.rank} dimensions in a loop", loc, advice)
    return row if row.rank < 2 else _turned(state, found, (-2, -1), loc)


def _turned(state: State, found: Operand, axes: tuple[int, int], loc: Location) -> Row:
    row = _row(state, found, loc)
    one, other = (_within(axis, row.rank, found, loc) for axis in axes)
    order = [*range(row.rank)]
    order[one], order[other] = other, one
    sizes = tuple(row.sizes[axis] for axis in order)
    made = Row(sizes, lambda indices: row.item(tuple(indices[axis] for axis in order)), ())
    return _elsewhere(state, row, sizes, made)


# ---------------------------------------------------------------- several rows


def _rows(state: State, found: Operand, loc: Location) -> list[Row]:
    if not isinstance(found, Items) or not found.items:
        message = f"{describe(found)} of rows is joined in a loop"
        raise unsupported(message, loc, "write the rows there, `torch.cat([a, b])`")
    return [_row(state, item, loc) for item in found.items]


def _joined(state: State, rows: Sequence[Row], axis: int, loc: Location) -> Row:
    """Return rows one behind the other along an axis."""
    rank = rows[0].rank
    if any(row.rank != rank for row in rows) or not rank:
        ranks = " and ".join(str(row.rank) for row in rows)
        raise error("BW102", f"rows with {ranks} dimensions are joined", loc, "give them as many dimensions")
    at = _within(axis, rank, rows[0], loc)
    for row in rows[1:]:
        for number, (one, other) in enumerate(zip(rows[0].sizes, row.sizes, strict=True)):
            if number != at and one != other:
                message = (
                    f"Sizes of tensors must match except in dimension {at}. Expected size {{0}} but got size {{1}}"
                )
                state.check(apply("eq", one, other, loc=loc), FailureKind.RUNTIME, message, (one, other), loc)
    starts: list[Expression] = [integer(0, loc)]
    for row in rows:
        starts.append(state.fix(add(starts[-1], row.sizes[at], loc), "length"))
    state.nonnegative |= {*starts}
    sizes = tuple(state.fix(item, "length") for item in (*rows[0].sizes[:at], starts[-1], *rows[0].sizes[at + 1 :]))
    rooms = [state.at_most.get(row.sizes[at], row.sizes[at]) for row in rows]
    if sizes[at] not in rooms and any(row.sizes[at] in state.at_most for row in rows):
        state.at_most[sizes[at]] = _total(rooms, loc)
    known = [state.at_most.get(each, each) for each in sizes]
    if all(isinstance(each, Constant) or state.is_host(each) for each in known):
        return _in_array(state, rows, starts, (at, sizes), loc)

    def item(indices: tuple[Expression, ...]) -> Value | Record:
        return _chosen(state, [*zip(rows, starts, strict=False)], at, indices, loc)

    reads = tuple(replace(slab, anywhere=True) for row in rows for slab in row.reads)
    return Row(sizes, item, reads, dear=any(row.dear for row in rows))


def _total(sizes: Sequence[Expression], loc: Location) -> Expression:
    found: Expression = integer(0, loc)
    for each in sizes:
        found = add(found, each, loc)
    return found


def _in_array(
    state: State,
    rows: Sequence[Row],
    starts: Sequence[Expression],
    form: tuple[int, tuple[Expression, ...]],
    loc: Location,
) -> Row:
    """Return rows in an array, which each of them is stored into."""
    at, sizes = form
    array = Filling(state, array_key(state, loc), "row", (state.block, len(state.block)), loc, roomy=True)
    for row, start in zip(rows, starts, strict=False):

        def store(indices: tuple[Expression, ...], row: Row = row, start: Expression = start) -> None:
            place = add(start, indices[at], loc)
            state.nonnegative.add(place)
            array.store(sizes, (*indices[:at], place, *indices[at + 1 :]), row.item(indices))

        nest(state, row.sizes, store, loc)
        if row is rows[0]:
            note_copy(state, array.made, None, loc)
    return part_of(state, View(array.made), sizes, loc)


def _chosen(
    state: State, parts: Sequence[tuple[Row, Expression]], at: int, indices: tuple[Expression, ...], loc: Location
) -> Value | Record:
    """Return an item of the row that has one at these indices."""
    (row, start), *rest = parts
    place = indices[at] if start == integer(0, loc) else state.fix(sub(indices[at], start, loc), "index")
    state.nonnegative.add(place)
    own = (*indices[:at], place, *indices[at + 1 :])
    if not rest:
        return row.item(own)
    blocks: tuple[list[Statement], list[Statement]] = ([], [])
    with state.perhaps(blocks[0]):
        one = scalar(state, row.item(own), loc)
    with state.perhaps(blocks[1]):
        other = scalar(state, _chosen(state, rest, at, indices, loc), loc)
    test = state.fix(apply("lt", indices[at], rest[0][1], loc=loc))
    return merge(state, test, (blocks[0], one), (blocks[1], other), loc)


def _stacked(state: State, given: Operand, axis: int, kind: DType | None, loc: Location) -> Row:
    """Return rows or numbers behind one another along a new axis."""
    rows = _rows(state, given, loc)
    at = _within(axis, rows[0].rank + 1, given, loc)
    if rows[0].rank == 0 and all(row.rank == 0 for row in rows):
        found = [scalar(state, row.item(()), loc) for row in rows]
        own = [kind if kind is not None or item.weak else item.dtype for item in found]
        numbers = [_typed(state, item, each, loc) for item, each in zip(found, own, strict=True)]
        rows = [Row((), lambda _, number=number: number, row.reads) for number, row in zip(numbers, rows, strict=True)]
    return _joined(state, [_widened(state, row, at, loc) for row in rows], at, loc)
