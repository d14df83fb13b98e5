"""Tuples of known length, indexed by a number that is known only when the loop runs."""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative, meet
from brickwork.frontend.indexing import scalar
from brickwork.frontend.rules import error
from brickwork.frontend.state import State, describe
from brickwork.frontend.typing import Items, Operand, Value
from brickwork.ir.build import add, apply, cast, integer, select
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Constant, Expression, FailureKind

CHAIN = 64
"""The most items that are chosen among by comparing."""


def pick(state: State, items: Sequence[Operand], at: Value, loc: Location) -> Operand:
    """Return the item at an index that is checked; a negative one counts from the end."""
    if not at.dtype.is_integer and at.dtype is not BOOL:
        raise error("BW103", f"an index is {at.type}, not an integer", loc, "write int(...) around it")
    index, count = cast(at.expression, INT64, loc), len(items)
    if isinstance(index, Constant):
        if -count <= index.value < count:
            return items[int(index.value)]
        raise error("BW102", f"index {index.value} is out of range for {count} items", loc, "items count from 0")
    index = state.fix(index, "index")
    first, last = state.limits.get(index, (None, None))
    message = f"index {{0}} is out of range for {count} items"
    if last is None or last >= count:
        inside = apply("lt", index, integer(count, loc), loc=loc)
        state.check(inside, FailureKind.INDEX, message, (index,), loc)
    if not is_nonnegative(state, index) and (first is None or first < 0):
        inside = apply("ge", index, integer(-count, loc), loc=loc)
        state.check(inside, FailureKind.INDEX, message, (index,), loc)
        negative = apply("lt", index, integer(0, loc), loc=loc)
        index = select(negative, add(index, integer(count, loc), loc), index, loc)
    return choose(state, items, index, loc)


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
