"""Tuples of known length, indexed by a number that is known only when the loop runs.

Few items are chosen among by comparing; more are a constant table in memory if they are literals or captured numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative, meet
from brickwork.frontend.complex_values import as_complex, is_complex, of_parts
from brickwork.frontend.indexing import element, index, scalar
from brickwork.frontend.lowering_state import State, describe
from brickwork.frontend.rules import error
from brickwork.frontend.typing import Items, Operand, Record, Value, View, form_of, parts_of
from brickwork.ir.build import add, apply, cast, constant, integer, select
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Constant, Expression, FailureKind, Local, Tensor, TensorType

CHAIN = 64
"""The most items that are chosen among by comparing."""
FEW = 8
"""Numbers that are known are compared up to so many, and more are a table."""


def pick(state: State, items: Sequence[Operand], at: Value, loc: Location, name: str = "tuple") -> Operand:
    """Return the item at an index that is checked; a negative one counts from the end."""
    if not at.dtype.is_integer and at.dtype is not BOOL:
        raise error("BW103", f"an index is {at.type}, not an integer", loc, "write int(...) around it")
    position, count = cast(at.expression, INT64, loc), len(items)
    if isinstance(position, Constant):
        if -count <= position.value < count:
            return items[int(position.value)]
        message = f"index {position.value} is out of range for {count} item{'' if count == 1 else 's'}"
        raise error("BW102", message, loc, "items count from 0" if count else "there are none")
    found = looked_up(state, items, (at,), loc, name)
    if found is not None:
        return found
    position = state.fix(position, "index")
    first, last = state.limits.get(position, (None, None))
    message = f"index {{0}} is out of range for {count} items"
    if last is None or last >= count:
        inside = apply("lt", position, integer(count, loc), loc=loc)
        state.check(inside, FailureKind.INDEX, message, (position,), loc)
    if not is_nonnegative(state, position) and (first is None or first < 0):
        inside = apply("ge", position, integer(-count, loc), loc=loc)
        state.check(inside, FailureKind.INDEX, message, (position,), loc)
        negative = apply("lt", position, integer(0, loc), loc=loc)
        position = select(negative, add(position, integer(count, loc), loc), position, loc)
    return choose(state, items, position, loc)


def looked_up(
    state: State, items: Sequence[Operand], indices: Sequence[Value], loc: Location, name: str
) -> Value | Record | None:
    """Return an item of a table of known numbers, with an index for each level of it; None where it is none.

    The index is checked, and counted from the end, as one of a list is.
    """
    if _has_complex(items):
        return _looked_up_parts(state, items, indices, loc, name)
    sizes = _form(items, len(indices))
    in_kernel = any(not isinstance(level.iteration, Constant) for level in state.loops)
    if sizes is None or prod(sizes) <= FEW or not in_kernel:
        return None
    flat = [*_flat(items)]
    kind, values = flat[0].type, [item.expression for item in flat]
    if not all(isinstance(item, Constant) for item in values):
        return None
    for item in flat[1:]:
        kind = meet(Value(constant(0, kind.dtype, loc), kind.weak), item, loc)
    casts = [cast(item, kind.dtype, loc) for item in values]
    state.numbers += 1
    layout = TensorType(kind.dtype, len(sizes), contiguous=True, unit_axis=len(sizes) - 1)
    table = Tensor(name, state.numbers, layout, sizes)
    numbers = tuple(item.value for item in casts if isinstance(item, Constant))
    view = index(state, View(table), indices, loc)
    state.emit(Local(tensor=table, values=numbers, loc=loc))
    return Value(state.pin(element(state, view, view.indices, loc).expression), kind.weak)


def _has_complex(items: Sequence[Operand]) -> bool:
    return any(_has_complex(item.items) if isinstance(item, Items) else is_complex(item) for item in items)


def _looked_up_parts(
    state: State, items: Sequence[Operand], indices: Sequence[Value], loc: Location, name: str
) -> Record | None:
    """Return an item of a table of known complex numbers: of one table for each part."""
    indices = [replace(item, expression=state.fix(item.expression, "index")) for item in indices]
    real, imag = (looked_up(state, _parts(items, part, loc), indices, loc, name) for part in range(2))
    return of_parts(real, imag, loc) if isinstance(real, Value) and isinstance(imag, Value) else None


def _parts(items: Sequence[Operand], part: int, loc: Location) -> tuple[Operand, ...]:
    """Return the real or the imaginary parts of items."""
    found: list[Operand] = []
    for item in items:
        inner = as_complex(item, loc)
        found.append(Items(_parts(item.items, part, loc)) if isinstance(item, Items) else parts_of(inner)[part])
    return tuple(found)


def _form(items: Sequence[Operand], depth: int) -> tuple[int, ...] | None:
    """Return the lengths of tuples of numbers inside each other, which must be regular."""
    if not items:
        return None
    if depth == 1:
        return (len(items),) if all(isinstance(item, Value) for item in items) else None
    parts = {_form(item.items, depth - 1) if isinstance(item, Items) else None for item in items}
    part = parts.pop()
    return None if parts or part is None else (len(items), *part)


def _flat(items: Sequence[Operand]) -> Iterator[Value]:
    for item in items:
        if isinstance(item, Items):
            yield from _flat(item.items)
        elif isinstance(item, Value):
            yield item


def choose(state: State, items: Sequence[Operand], position: Expression, loc: Location) -> Operand:
    """Return the item at a position that is in range."""
    if isinstance(position, Constant):
        return items[int(position.value)]
    if not items:
        raise error("BW103", "there are no items", loc, "test the length first")
    first = items[0]
    if all(isinstance(item, Items) for item in items) and isinstance(first, Items):
        lists = [item.items for item in items if isinstance(item, Items)]
        if any(len(part) != len(first.items) for part in lists):
            advice = "make them of one length, or pass a tensor"
            raise error("BW103", "the items indexed by a variable differ in length", loc, advice)
        return Items(tuple(choose(state, column, position, loc) for column in zip(*lists, strict=True)))
    if any(map(is_complex, items)):
        items = [as_complex(item, loc) for item in items]
        first = items[0]
    if isinstance(first, Record) and all(form_of(item) == form_of(first) for item in items):
        columns = zip(*(parts_of(item) for item in items), strict=True)
        return replace(first, parts=tuple(choose(state, column, position, loc) for column in columns))
    if not all(isinstance(item, Value) for item in items):
        found = next(item for item in items if not isinstance(item, Value))
        advice = "index it by a literal integer, or run over it with `for`"
        raise error("BW103", f"{describe(found)} cannot be chosen by a variable", loc, advice)
    if len(items) > CHAIN:
        message = f"{len(items)} items are too many to be indexed by a variable"
        raise error("BW103", message, loc, "pass them as a tensor")
    return _chain(state, [scalar(state, item, loc) for item in items], position, loc)


def _chain(state: State, items: Sequence[Value], position: Expression, loc: Location) -> Value:
    kind = items[0].type
    for item in items[1:]:
        kind = meet(Value(cast(items[0].expression, kind.dtype, loc), kind.weak), item, loc)
    parts = [cast(item.expression, kind.dtype, loc) for item in items]
    result = parts[-1]
    for place, part in reversed(list(enumerate(parts[:-1]))):
        result = select(apply("eq", position, integer(place, loc), loc=loc), part, result, loc)
    if all(is_nonnegative(state, part) for part in parts):
        state.nonnegative.add(result)
    return Value(result, kind.weak)
