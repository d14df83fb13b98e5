"""What a `for` may run over: ranges, tensors, tuples, and `enumerate`, `zip` and `reversed` of them.

Each has a number of iterations and an item for each, counted from 0. An element is read when its iteration begins, as
Python reads that of a list; a row is a view. `ndrange` and `indices` are several ranges, and are not in here.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeAlias

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.environment import intrinsic, resolve
from brickwork.frontend.evaluation_order import settle
from brickwork.frontend.expressions import operand, operands
from brickwork.frontend.grown_lists import item_at, length
from brickwork.frontend.indexing import advice_for, scalar, size_of
from brickwork.frontend.lowering_state import Frame, State, describe
from brickwork.frontend.parts import items_of
from brickwork.frontend.rows import item_of_row
from brickwork.frontend.rules import error
from brickwork.frontend.tuple_indexing import choose
from brickwork.frontend.typing import Grown, Items, Operand, Row, Value, View
from brickwork.ir.build import add, apply, cast, integer, mul, select, sub
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Constant, Expression, FailureKind
from brickwork.records import dataclass

ITERABLE = "write `range`, a tensor, a tuple, or `enumerate`, `zip` or `reversed` of them"
"""Advice where a loop runs over something else."""


@dataclass(frozen=True, slots=True)
class Range:
    """`range(start, stop, step)`."""

    start: Expression
    stop: Expression
    step: Expression


@dataclass(frozen=True, slots=True)
class Elements:
    """A tensor along its first axis: elements of one of rank 1, else rows."""

    view: View


@dataclass(frozen=True, slots=True)
class GrownItems:
    """A list that grows, as long as it is when the loop begins."""

    items: Grown
    count: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A slice of a tensor, or what is computed of such, along its first axis."""

    row: Row


@dataclass(frozen=True, slots=True)
class Listed:
    """A tuple or list of known length."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Enumerated:
    """Pairs of a count and an item."""

    inner: Iterable
    start: Expression


@dataclass(frozen=True, slots=True)
class Zipped:
    """Tuples of items, as many as the shortest has."""

    parts: tuple[Iterable, ...]


@dataclass(frozen=True, slots=True)
class Backward:
    """The items from the last to the first."""

    inner: Iterable


Iterable: TypeAlias = Range | Elements | Rows | GrownItems | Listed | Enumerated | Zipped | Backward


def iterable(state: State, frame: Frame, node: ast.expr) -> Iterable:
    """Return what an expression in the head of a `for` runs over."""
    loc = frame.loc(node)
    name = None
    if isinstance(node, ast.Call):
        name = intrinsic(resolve(node.func, frame.source.captured, frame.local))
    if isinstance(node, ast.Call) and name is not None:
        match name:
            case "builtins.range":
                _no_keywords(node, loc)
                return range_of(state, operands(state, frame, node.args), loc)
            case "builtins.enumerate":
                return _enumerated(state, frame, node, loc)
            case "builtins.zip":
                is_strict = _is_strict(node)
                parts = tuple(iterable(state, frame, item) for item in (node.args if is_strict else _plain(node, loc)))
                if not parts:
                    raise error("BW008", "`zip` of nothing has no items", loc, "give it ranges or tensors")
                counts = [state.fix(trips(part, loc), "turns") for part in parts] if is_strict else []
                for place, count in enumerate(counts[1:], 2):
                    message = f"zip() argument {place} has {{0}} items, and argument 1 has {{1}}"
                    same = apply("eq", count, counts[0], loc=loc)
                    state.check(same, FailureKind.VALUE, message, (count, counts[0]), loc)
                return Zipped(parts)
            case "builtins.reversed":
                if len(_plain(node, loc)) != 1:
                    raise error("BW008", "`reversed` takes one thing to run over", loc, "write `reversed(range(n))`")
                return _backward(iterable(state, frame, node.args[0]), loc)
            case "builtins.tuple" | "builtins.list" if len(node.args) == 1:
                return iterable(state, frame, node.args[0])
            case "brickwork.prange" | "brickwork.ndrange" | "brickwork.indices":
                message = f"`{name.removeprefix('brickwork.')}` stands alone in the head of a `for`"
                raise error("BW008", message, loc, "write `range` here")
            case _:
                pass
    found = items_of(state, frame, operand(state, frame, node), node)
    found = found if isinstance(found, Row | Grown) else settle(state, found, loc)
    if (source := over(state, found, loc)) is not None:
        return source
    number = isinstance(found, Value) or (isinstance(found, View) and found.is_element)
    advice = f"write `range({ast.unparse(node)})`" if number else advice_for(found, ITERABLE)
    raise error("BW008", f"a `for` cannot run over {describe(found)}", loc, advice)


def over(state: State, found: Operand, loc: Location) -> Iterable | None:
    """Return what runs over the items of something, if it has some."""
    match found:
        case Row():
            return Rows(found)
        case Grown():
            return GrownItems(found, state.pin(length(state, found, loc), "length"))
        case Items():
            return Listed(found.items)
        case View() if found.rank and not found.is_element:
            return Elements(found)
        case _:
            return None


def unpacked(state: State, frame: Frame, found: Operand, target: ast.Tuple | ast.List) -> Operand:
    """Return the items that names in a tuple get; a row or a list has to have one for each."""
    loc = frame.loc(target)
    found = items_of(state, frame, found, target)
    source = None if isinstance(found, Items) else over(state, found, loc)
    if source is None:
        return found
    count, names = trips(source, loc), len(target.elts)
    if any(isinstance(part, ast.Starred) for part in target.elts):
        if not isinstance(count, Constant):
            return found
        names = int(count.value)
    wanted, message = integer(names, loc), "{0} names are assigned, but there are {1} values"
    state.check(apply("eq", count, wanted, loc=loc), FailureKind.VALUE, message, (wanted, count), loc)
    return Items(tuple(item(state, source, integer(place, loc), loc) for place in range(names)))


def _no_keywords(node: ast.Call, loc: Location) -> None:
    if node.keywords:
        raise error("BW008", f"`{ast.unparse(node.func)}` takes no keywords here", loc, "leave them out")


def _is_strict(node: ast.Call) -> bool:
    words = [(word.arg, word.value) for word in node.keywords]
    return (
        [name for name, _ in words] == ["strict"] and isinstance(words[0][1], ast.Constant) and bool(words[0][1].value)
    )


def _plain(node: ast.Call, loc: Location) -> list[ast.expr]:
    """Return the arguments of `zip` or `reversed`, which has no keywords but `strict=False`."""
    loose = [word for word in node.keywords if word.arg == "strict" and _is_false(word.value)]
    if len(loose) < len(node.keywords):
        advice = "assert that the sizes are equal before the loop"
        raise error("BW008", f"`{ast.unparse(node.func)}` takes no keywords here", loc, advice)
    return node.args


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _enumerated(state: State, frame: Frame, node: ast.Call, loc: Location) -> Iterable:
    start = [*node.args[1:], *(item.value for item in node.keywords if item.arg == "start")]
    if not node.args or len(start) != len(node.args) - 1 + len(node.keywords) or len(start) > 1:
        raise error(
            "BW008", "`enumerate` takes one thing to run over, and perhaps a start", loc, "write `enumerate(x, 1)`"
        )
    inner = iterable(state, frame, node.args[0])
    return Enumerated(inner, _bound(state, operand(state, frame, start[0]), loc) if start else integer(0, loc))


def _backward(inner: Iterable, loc: Location) -> Iterable:
    match inner:
        case Range():
            one = inner.step if isinstance(inner.step, Constant) else None
            if one is not None and one.value == 1:
                last = sub(inner.stop, one, loc)
            else:
                last = add(inner.start, mul(inner.step, sub(range_trips(inner, loc), integer(1, loc), loc), loc), loc)
            return Range(last, sub(inner.start, inner.step, loc), apply("neg", inner.step, loc=loc))
        case Listed():
            return Listed(inner.items[::-1])
        case Backward():
            return inner.inner
        case Enumerated() | Zipped():
            raise error("BW008", "`reversed` takes a range, a tensor or a tuple", loc, "reverse what is inside")
        case Elements() | Rows() | GrownItems():
            return Backward(inner)


def _bound(state: State, found: Operand, loc: Location) -> Expression:
    if isinstance(found, View) and found.rank and found.tensor not in state.lists:
        name = found.tensor.name
        advice = f"write `{name}.shape[0]`, or run over its items: `for v in {name}`"
        raise error("BW101", f"the bounds of a loop are integers, and `{name}` is a tensor here", loc, advice)
    number = scalar(state, found, loc)
    if not number.dtype.is_integer and number.dtype is not BOOL:
        raise error("BW101", f"the bounds of a loop are integers, not {number.type}", loc, "write int(...) around it")
    return state.fix(cast(number.expression, INT64, loc), "bound")


def range_of(state: State, arguments: Sequence[Operand], loc: Location, most: int = 3) -> Range:
    """Return the range with one to `most` bounds."""
    if not 1 <= len(arguments) <= most:
        raise error("BW008", f"a range takes 1 to {most} bounds, not {len(arguments)}", loc, "write `start, stop`")
    bounds = [_bound(state, item, loc) for item in arguments]
    if len(bounds) == 1:
        return Range(integer(0, loc), bounds[0], integer(1, loc))
    step = bounds[2] if len(bounds) == 3 else integer(1, loc)
    nonzero = apply("ne", step, integer(0, loc), loc=loc)
    state.check(nonzero, FailureKind.VALUE, "range() arg 3 must not be zero", (), loc)
    return Range(bounds[0], bounds[1], step)


def range_trips(axis: Range, loc: Location) -> Expression:
    """Return how often a range runs; 0 or less where it does not."""
    one = integer(1, loc)
    match axis:
        case Range(start=Constant(value=start), stop=Constant(value=stop), step=Constant(value=step)) if step:
            # They may be further apart than the largest number of 64 bits.
            turns = (int(stop) - int(start) - (1 if step > 0 else -1)) // int(step) + 1
            return integer(min(max(turns, 0), 2**63 - 1), loc)
        case _:
            pass

    def count(low: Expression, high: Expression, step: Expression) -> Expression:
        distance = sub(high, low, loc)
        if step == one:
            return distance
        return add(apply("floordiv", sub(distance, one, loc), step, loc=loc), one, loc)

    # The least integer has no negative; the one above it goes as often.
    backward = apply("neg", apply("maximum", axis.step, integer(-(2**63) + 1, loc), loc=loc), loc=loc)
    if isinstance(axis.step, Constant):
        ascending = axis.step.value > 0
        return count(axis.start, axis.stop, axis.step) if ascending else count(axis.stop, axis.start, backward)
    positive = apply("gt", axis.step, integer(0, loc), loc=loc)
    up, down = count(axis.start, axis.stop, axis.step), count(axis.stop, axis.start, backward)
    return select(positive, up, down, loc)


def trips(found: Iterable, loc: Location) -> Expression:
    """Return how many items there are; 0 or less for none."""
    match found:
        case Range():
            return range_trips(found, loc)
        case Elements():
            return size_of(found.view, 0, loc).expression
        case Rows():
            return found.row.sizes[0]
        case GrownItems():
            return found.count
        case Listed():
            return integer(len(found.items), loc)
        case Enumerated() | Backward():
            return trips(found.inner, loc)
        case Zipped():
            counts = [trips(part, loc) for part in found.parts]
            known = [item.value for item in counts if isinstance(item, Constant)]
            counts = [item for item in dict.fromkeys(counts) if not isinstance(item, Constant)]
            counts += [integer(int(min(known)), loc)] if known else []
            result = counts[0]
            for count in counts[1:]:
                result = apply("minimum", result, count, loc=loc)
            return result


def item(state: State, found: Iterable, position: Expression, loc: Location) -> Operand:
    """Return the item at an iteration, which is known to be in range."""
    match found:
        case Range():
            value = add(found.start, mul(found.step, position, loc), loc)
            if index_is_natural(state, found):
                state.nonnegative.add(value)
            return Value(value, weak=True)
        case Elements():
            return View(found.view.tensor, (*found.view.indices, position), indexed=True)
        case GrownItems():
            return item_at(state, found.items, position, loc)
        case Rows():
            return item_of_row(state, found.row, position)
        case Listed():
            return choose(state, found.items, position, loc)
        case Enumerated():
            count = add(found.start, position, loc)
            if is_nonnegative(state, found.start):
                state.nonnegative.add(count)
            return Items((Value(count, weak=True), item(state, found.inner, position, loc)))
        case Zipped():
            return Items(tuple(item(state, part, position, loc) for part in found.parts))
        case Backward():
            last = sub(trips(found.inner, loc), integer(1, loc), loc)
            mirrored = sub(last, position, loc)
            state.nonnegative.add(mirrored)
            return item(state, found.inner, mirrored, loc)


def index_is_natural(state: State, axis: Range) -> bool:
    """Return whether the numbers of a range are seen to be at least 0."""
    if not isinstance(axis.step, Constant):
        return False
    if axis.step.value > 0:
        return is_nonnegative(state, axis.start)
    return (isinstance(axis.stop, Constant) and axis.stop.value >= -1) or is_nonnegative(state, axis.stop)


def is_listed(found: Iterable) -> bool:
    """Return whether a tuple is among what is run over, so that the iterations are written out."""
    match found:
        case Listed():
            return True
        case Enumerated() | Backward():
            return is_listed(found.inner)
        case Zipped():
            return any(map(is_listed, found.parts))
        case _:
            return False


def lists_of(found: Iterable) -> tuple[Grown, ...]:
    """Return the lists that grow among what is run over."""
    match found:
        case GrownItems():
            return (found.items,)
        case Enumerated() | Backward():
            return lists_of(found.inner)
        case Zipped():
            return tuple(item for part in found.parts for item in lists_of(part))
        case _:
            return ()
