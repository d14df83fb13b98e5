"""`for` over ranges to IR loops that go up by one, with the user's index computed from the loop's own.

`ndrange` and `indices` become nests. The name in the head stands for the index itself unless the body assigns it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.environment import LOOPS, intrinsic, resolve
from brickwork.frontend.expressions import operand, value
from brickwork.frontend.indexing import scalar
from brickwork.frontend.rules import error
from brickwork.frontend.state import Binding, Frame, Key, LoopLevel, State, describe
from brickwork.frontend.typing import Items, Operand, Value, View
from brickwork.ir.build import add, apply, cast, constant, integer, mul, read, select, sub
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Assign, Break, Constant, Expression, FailureKind, For, If, Size, Statement

AssignTarget: TypeAlias = Callable[[State, Frame, ast.expr, Operand, Location], None]
LowerBody: TypeAlias = Callable[[State, Frame, Sequence[ast.stmt]], None]


@dataclass(frozen=True, slots=True)
class Range:
    """One axis of iteration."""

    start: Expression
    stop: Expression
    step: Expression


@dataclass(frozen=True, slots=True)
class Ranges:
    """What a `for` runs over: its axes, whether the user calls it parallel, and whether it yields tuples."""

    axes: tuple[Range, ...]
    claimed: bool
    tuples: bool


def loop_ranges(state: State, frame: Frame, node: ast.For) -> Ranges:
    """Return what a `for` runs over; refuse everything but ranges."""
    loc = frame.loc(node.iter)
    name = None
    if isinstance(node.iter, ast.Call):
        name = intrinsic(resolve(node.iter.func, frame.source.captured, frame.local))
    if not isinstance(node.iter, ast.Call) or name not in LOOPS:
        message = f"a `for` cannot run over `{ast.unparse(node.iter)}`"
        raise error("BW008", message, loc, "write `for i in range(n)`, `bw.ndrange(...)` or `bw.indices(x)`")
    arguments = [operand(state, frame, item) for item in node.iter.args]
    if node.iter.keywords and name != "brickwork.ndrange":
        raise error("BW008", f"`{ast.unparse(node.iter.func)}` takes no keywords", loc)
    match name:
        case "brickwork.ndrange":
            axes = tuple(_axis(state, item, loc) for item in arguments)
            return Ranges(axes, _parallel(state, frame, node.iter), tuples=len(axes) > 1)
        case "brickwork.indices":
            if len(arguments) != 1 or not isinstance(arguments[0], View):
                raise error("BW008", "`indices` takes a tensor", loc, "write `bw.indices(x)`")
            view = arguments[0]
            sizes = (
                Size(tensor=view.tensor, axis=axis, loc=loc) for axis in range(len(view.indices), view.tensor.type.rank)
            )
            return Ranges(tuple(Range(integer(0), size, integer(1)) for size in sizes), claimed=False, tuples=True)
        case _:
            parallel = name == "brickwork.prange"
            return Ranges((_range(state, arguments, loc, 2 if parallel else 3),), claimed=parallel, tuples=False)


def _parallel(state: State, frame: Frame, call: ast.Call) -> bool:
    claimed = False
    for keyword in call.keywords:
        found = value(state, frame, keyword.value).expression
        if keyword.arg != "parallel" or not isinstance(found, Constant):
            raise error("BW008", "`ndrange` takes `parallel=True` or `parallel=False`", frame.loc(call))
        claimed = bool(found.value)
    return claimed


def _bound(state: State, found: Operand, loc: Location) -> Expression:
    number = scalar(state, found, loc)
    if not number.dtype.is_integer and number.dtype is not BOOL:
        raise error("BW101", f"the bounds of a loop are integers, not {number.type}", loc, "write int(...) around it")
    return state.fix(cast(number.expression, INT64, loc), "bound")


def _axis(state: State, found: Operand, loc: Location) -> Range:
    if isinstance(found, Items):
        return _range(state, found.items, loc, 2)
    return _range(state, [found], loc, 1)


def _range(state: State, arguments: Sequence[Operand], loc: Location, most: int) -> Range:
    if not 1 <= len(arguments) <= most:
        raise error("BW008", f"a range takes 1 to {most} bounds, not {len(arguments)}", loc)
    bounds = [_bound(state, item, loc) for item in arguments]
    if len(bounds) == 1:
        return Range(integer(0, loc), bounds[0], integer(1, loc))
    step = bounds[2] if len(bounds) == 3 else integer(1, loc)
    nonzero = apply("ne", step, integer(0, loc), loc=loc)
    state.check(nonzero, FailureKind.VALUE, "range() arg 3 must not be zero", (), loc)
    return Range(bounds[0], bounds[1], step)


def _trips(axis: Range, loc: Location) -> Expression:
    """Return how often a range with a step other than 1 runs; 0 or less where it does not."""
    one = integer(1, loc)

    def count(low: Expression, high: Expression, step: Expression) -> Expression:
        distance = add(sub(high, low, loc), sub(step, one, loc), loc)
        return apply("floordiv", distance, step, loc=loc)

    backward = apply("neg", axis.step, loc=loc)
    if isinstance(axis.step, Constant):
        ascending = axis.step.value > 0
        return count(axis.start, axis.stop, axis.step) if ascending else count(axis.stop, axis.start, backward)
    positive = apply("gt", axis.step, integer(0, loc), loc=loc)
    up, down = count(axis.start, axis.stop, axis.step), count(axis.stop, axis.start, backward)
    return select(positive, up, down, loc)


Saved: TypeAlias = tuple[set[Key], dict[str, Binding]]


def enter(state: State, frame: Frame, level: LoopLevel) -> Saved:
    """Begin a loop; return what `leave` restores."""
    state.loops.append(level)
    return set(state.assigned), dict(frame.bindings)


def leave(state: State, frame: Frame, saved: Saved) -> None:
    """End a loop: it may not have run, so that only what was assigned before is assigned."""
    state.loops.pop()
    state.assigned, frame.bindings = saved


def lower_nest(
    state: State, frame: Frame, node: ast.For, ranges: Ranges, *, assign: AssignTarget, body: LowerBody
) -> None:
    """Lower a `for` as one loop for each axis."""
    loc = frame.loc(node)
    axes = ranges.axes or (Range(integer(0, loc), integer(1, loc), integer(1, loc)),)
    flag = None
    if len(axes) > 1 and _breaks(node.body):
        flag = state.symbol("stopped", BOOL)
        state.emit(Assign(symbol=flag, value=constant(False, BOOL, loc), loc=loc))
    saved: list[Saved] = []
    values: list[Value] = []
    loops: list[For] = []
    for position, axis in enumerate(axes):
        found, loop, level = _one_loop(state, frame, node, axis, position)
        level.flag = flag
        saved.append(enter(state, frame, level))
        values.append(found)
        loops.append(loop)
    block: list[Statement] = []
    with state.into(block):
        items = tuple(values) if ranges.axes else ()
        _bind_target(state, frame, node, Items(items) if ranges.tuples else values[0], assign)
        body(state, frame, node.body)
    for depth, loop in reversed(list(enumerate(loops))):
        leave(state, frame, saved.pop())
        made = For(
            index=loop.index, start=loop.start, stop=loop.stop, body=tuple(block), claimed=ranges.claimed, loc=loc
        )
        block = [made]
        if flag is not None and depth > 0:
            block.append(If(condition=read(flag, loc), then=(Break(loc=loc),), loc=loc))
    state.block.extend(block if not state.ended else ())


def _one_loop(state: State, frame: Frame, node: ast.For, axis: Range, position: int) -> tuple[Value, For, LoopLevel]:
    """Return the user's index, the IR loop without its body, and the level."""
    loc = frame.loc(node)
    name = _target_name(node.target, position)
    index = state.symbol(name, INT64)
    state.invariant.add(index)
    counter = read(index, loc)
    if isinstance(axis.step, Constant) and axis.step.value == 1:
        if is_nonnegative(state, axis.start):
            state.nonnegative.add(counter)
        trips = sub(axis.stop, axis.start, loc)
        level = LoopLevel(sub(counter, axis.start, loc), trips, dict(frame.bindings), frame.path)
        loop = For(index=index, start=axis.start, stop=axis.stop, body=(), loc=loc)
        return Value(counter, weak=True), loop, level
    trips = _trips(axis, loc)
    state.nonnegative.add(counter)
    found = add(axis.start, mul(axis.step, counter, loc), loc)
    if _index_is_natural(state, axis):
        state.nonnegative.add(found)
    level = LoopLevel(counter, trips, dict(frame.bindings), frame.path)
    return Value(found, weak=True), For(index=index, start=integer(0, loc), stop=trips, body=(), loc=loc), level


def _index_is_natural(state: State, axis: Range) -> bool:
    if not isinstance(axis.step, Constant):
        return False
    if axis.step.value > 0:
        return is_nonnegative(state, axis.start)
    return (isinstance(axis.stop, Constant) and axis.stop.value >= -1) or is_nonnegative(state, axis.stop)


def _target_name(target: ast.expr, position: int) -> str:
    if isinstance(target, ast.Tuple | ast.List) and position < len(target.elts):
        target = target.elts[position]
        return target.id if isinstance(target, ast.Name) else f"index{position}"
    return target.id if isinstance(target, ast.Name) else f"index{position}"


def _bind_target(state: State, frame: Frame, node: ast.For, found: Operand, assign: AssignTarget) -> None:
    target, loc = node.target, frame.loc(node.target)
    if isinstance(target, ast.Name):
        if target.id in frame.rebound and isinstance(found, Value):
            assign(state, frame, target, found, loc)
        else:
            frame.bindings[target.id] = found
        return
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(found, Items):
        raise error("BW008", f"the loop yields {describe(found)}", loc, "write one name for each index")
    if len(target.elts) != len(found.items):
        message = f"the loop has {len(found.items)} indices, but {len(target.elts)} names"
        raise error("BW008", message, loc, "write one name for each index")
    for part, item in zip(target.elts, found.items, strict=True):
        if isinstance(part, ast.Name) and part.id not in frame.rebound:
            frame.bindings[part.id] = item
        else:
            assign(state, frame, part, item, loc)


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Return whether a `break` in the body leaves this loop."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, ast.If) and (_breaks(statement.body) or _breaks(statement.orelse)):
            return True
    return False
