"""`for` to IR loops that go up by one, with the user's items computed from the loop's own index.

`ndrange` and `indices` become nests; over a tuple the iterations are written out. The name in the head stands for the
index itself unless the body assigns it. What there is to run over is in `iterables.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeAlias

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.environment import intrinsic, resolve
from brickwork.frontend.expressions import operands, value
from brickwork.frontend.indexing import load
from brickwork.frontend.iterables import (
    Elements,
    Enumerated,
    Iterable,
    Range,
    Zipped,
    is_listed,
    item,
    iterable,
    lists_of,
    range_of,
    trips,
    unpacked,
)
from brickwork.frontend.loop_heads import jumps
from brickwork.frontend.lowering_state import Binding, Frame, Key, LoopLevel, State, Variable, describe
from brickwork.frontend.rules import error, unsupported
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.tensor_rebinding import restore
from brickwork.frontend.typing import Items, Operand, Value, View, numbers_of, with_numbers
from brickwork.ir.build import cast, constant, integer, logical_not, read, sub
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Assign, Break, Constant, Expression, For, If, Size, Statement, Symbol
from brickwork.records import dataclass

AssignTarget: TypeAlias = Callable[[State, Frame, ast.expr, Operand, Location], None]
LowerBody: TypeAlias = Callable[[State, Frame, Sequence[ast.stmt]], None]

UNROLLED = 64
"""The most iterations over a tuple that are written out."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop without its body: the names in its head, its axes, and how it is left.

    `regular` is what the text says of its length; `claimed` is the user's word that iterations are independent;
    `tuples`: the loop yields a tuple of its axes' items. `jumps` says that a `break` or `continue` of the body belongs
    to it, `continues` that a `continue` does; a `break` sets `flag`, if there is one.
    """

    target: ast.expr
    axes: tuple[Iterable, ...]
    loc: Location
    regular: bool
    claimed: bool = False
    tuples: bool = False
    jumps: bool = False
    flag: Symbol | None = None
    continues: bool = False


def lower_for(state: State, frame: Frame, node: ast.For, *, assign: AssignTarget, body: LowerBody) -> None:
    """Lower a `for` with its `else`."""
    loc = frame.loc(node)
    head = head_of(state, frame, node.iter)
    broken = breaks(node.body)
    several = len(head.axes) > 1 or _is_unrolled(head.axes, loc)
    flag = new_flag(state, loc) if broken and (several or node.orelse) else None
    for axis in head.axes:
        _refuse_rows_as_indices(frame, node, axis)
    continues = _continues(node.body)
    loop = Loop(
        node.target,
        head.axes,
        loc,
        frame.is_regular(node.iter),
        head.claimed,
        head.tuples,
        broken or continues,
        flag,
        continues,
    )
    position = len(state.block)
    exits = lower_loop(state, frame, loop, lambda: body(state, frame, node.body), assign)
    if node.orelse:
        lower_else(state, frame, Else(node.orelse, flag, exits, position, loc), body)


def new_flag(state: State, loc: Location) -> Symbol:
    """Return a variable that a `break` sets; it is cleared here."""
    flag = state.symbol("stopped", BOOL)
    state.emit(Assign(symbol=flag, value=constant(False, BOOL, loc), loc=loc))
    return flag


def _refuse_rows_as_indices(frame: Frame, node: ast.For, axis: Iterable) -> None:
    """Refuse names for the parts of rows that index a tensor together: they are no indices."""
    if not isinstance(axis, Elements) or not isinstance(node.target, ast.Tuple):
        return
    names, found = ast.dump(ast.Tuple(node.target.elts, ast.Load())).replace("Store()", "Load()"), axis.view
    taken = (item.slice for part in node.body for item in all_nodes(part) if isinstance(item, ast.Subscript))
    whole = found.rank == 2 and found.tensor.type.dtype.is_integer  # rows of such a tensor may hold indices
    if len(node.target.elts) == found.rank and not whole and any(ast.dump(item) == names for item in taken):
        over = ast.unparse(node.iter)
        advice = f"for the indices of all elements write `bw.indices({over})`; for rows, one name"
        raise error("BW008", f"a `for` over `{over}` yields its rows, not indices", frame.loc(node.target), advice)


# ---------------------------------------------------------------- the head


@dataclass(frozen=True, slots=True)
class Head:
    """What a `for` runs over; `claimed` and `tuples` as in `Loop`."""

    axes: tuple[Iterable, ...]
    claimed: bool = False
    tuples: bool = False


def head_of(state: State, frame: Frame, node: ast.expr) -> Head:
    """Return what the head of a `for` runs over."""
    loc = frame.loc(node)
    name = None
    if isinstance(node, ast.Call):
        name = intrinsic(resolve(node.func, frame.source.captured, frame.local))
    if not isinstance(node, ast.Call) or name not in {"brickwork.prange", "brickwork.ndrange", "brickwork.indices"}:
        return Head((iterable(state, frame, node),))
    arguments = operands(state, frame, node.args)
    if node.keywords and name != "brickwork.ndrange":
        raise error("BW008", f"`{ast.unparse(node.func)}` takes no keywords", loc, "leave them out")
    if name == "brickwork.prange":
        return Head((range_of(state, arguments, loc, 2),), claimed=True)
    if name == "brickwork.ndrange":
        axes = tuple(_axis(state, part, loc) for part in arguments)
        return Head(axes, _parallel(state, frame, node), len(axes) > 1)
    if len(arguments) != 1 or not isinstance(arguments[0], View):
        raise error("BW008", "`indices` takes a tensor", loc, "write `bw.indices(x)`")
    view = arguments[0]
    sizes = (Size(tensor=view.tensor, axis=axis, loc=loc) for axis in range(len(view.indices), view.tensor.type.axes))
    return Head(tuple(Range(integer(0), size, integer(1)) for size in sizes), tuples=True)


def _parallel(state: State, frame: Frame, call: ast.Call) -> bool:
    claimed = False
    for keyword in call.keywords:
        found = value(state, frame, keyword.value).expression
        if keyword.arg != "parallel" or not isinstance(found, Constant):
            raise error("BW008", "`ndrange` takes no other keyword than `parallel`", frame.loc(call), "leave it out")
        claimed = bool(found.value)
    return claimed


def _axis(state: State, found: Operand, loc: Location) -> Range:
    if isinstance(found, Items):
        return range_of(state, found.items, loc, 2)
    return range_of(state, [found], loc, 1)


# ---------------------------------------------------------------- loops


Saved: TypeAlias = tuple[set[Key], dict[str, Binding]]


def enter(state: State, frame: Frame, level: LoopLevel) -> Saved:
    """Begin a loop; return what `leave` restores."""
    state.loops.append(level)
    level.branches, state.present = frame.branches, set()
    return set(state.assigned), dict(frame.bindings)


def leave(state: State, frame: Frame, saved: Saved) -> None:
    """End a loop: it may not have run, so that at first only what was assigned before is assigned."""
    state.loops.pop()
    for name in saved[1].keys() - frame.bindings.keys():
        if name in state.moved:
            message = f"`{name}` stands for no list in the next iteration, as its list got another name"
            raise unsupported(message, state.moved[name], f"copy the items: `... = {name}[:]`")
    state.assigned, frame.bindings = saved
    state.present = set()


def lower_loop(
    state: State, frame: Frame, loop: Loop, body: Callable[[], None], assign: AssignTarget
) -> list[set[Key]]:
    """Lower a loop as one IR loop for each axis; return what is assigned at each of its `break`s."""
    if _is_unrolled(loop.axes, loop.loc):
        return _unrolled(state, frame, loop, body, assign)
    loc = loop.loc
    axes = loop.axes or (Range(integer(0, loc), integer(1, loc), integer(1, loc)),)
    saved: list[Saved] = []
    heads: list[tuple[For, Callable[[], Operand]]] = []
    level = LoopLevel(None, None, True, {}, ())
    for place, axis in enumerate(axes):
        head, make, level = _one_loop(state, frame, loop, axis, place)
        level.flag, level.claimed, level.over = loop.flag, loop.claimed, lists_of(axis)
        saved.append(enter(state, frame, level))
        heads.append((head, make))
    block: list[Statement] = []
    with state.into(block):
        items = tuple(make() for _, make in heads)
        turn = Items(items if loop.axes else ()) if loop.tuples else items[0]
        bind_target(state, frame, loop.target, turn, assign)
        body()
        found = [*level.exits, *(() if state.ended else (set(state.assigned),))]
        restore(state, frame, level.outer, loop.loc)
    for depth, (head, _) in reversed(list(enumerate(heads))):
        leave(state, frame, saved.pop())
        made = For(index=head.index, start=head.start, stop=head.stop, body=tuple(block), claimed=loop.claimed, loc=loc)
        block = [made]
        if loop.flag is not None and depth > 0:
            block.append(If(condition=read(loop.flag, loc), then=(Break(loc=loc),), loc=loc))
    if found and not loop.continues and all(_surely_turns(axis, loc) for axis in axes):
        given = set[Key].intersection(*found) - state.assigned
        state.given |= given
        keep_assigned(state, frame, given & state.kept, len(state.block), loc)
    state.block.extend(block if not state.ended else ())
    return level.exits


def _surely_turns(axis: Iterable, loc: Location) -> bool:
    count = trips(axis, loc)
    return isinstance(count, Constant) and count.value > 0


def _one_loop(
    state: State, frame: Frame, loop: Loop, axis: Iterable, place: int
) -> tuple[For, Callable[[], Operand], LoopLevel]:
    """Return the IR loop without its body, what makes the user's item inside it, and the level."""
    loc = loop.loc
    index = state.symbol(_target_name(loop.target, axis, place), INT64)
    state.invariant.add(index)
    counter = read(index, loc)
    if isinstance(axis, Range) and isinstance(axis.step, Constant) and axis.step.value == 1:
        if is_nonnegative(state, axis.start):
            state.nonnegative.add(counter)
        count = sub(axis.stop, axis.start, loc)
        level = LoopLevel(sub(counter, axis.start, loc), count, loop.regular, dict(frame.bindings), frame.path)
        state.ranges[counter] = axis.start, axis.stop
        if isinstance(axis.start, Constant) and isinstance(axis.stop, Constant):
            state.limits[counter] = int(axis.start.value), int(axis.stop.value) - 1
        head = For(index=index, start=axis.start, stop=axis.stop, body=(), loc=loc)
        return head, lambda: Value(counter, weak=True), level
    count = state.fix(trips(axis, loc), "turns")
    state.nonnegative.add(counter)
    state.ranges[counter] = integer(0, loc), count
    level = LoopLevel(counter, count, loop.regular, dict(frame.bindings), frame.path)
    head = For(index=index, start=integer(0, loc), stop=count, body=(), loc=loc)
    return head, lambda: item(state, axis, counter, loc), level


def _is_unrolled(axes: Sequence[Iterable], loc: Location) -> bool:
    """Return whether the iterations of a loop are written out: over a tuple of not too many items."""
    if len(axes) != 1 or not is_listed(axes[0]):
        return False
    count = trips(axes[0], loc)
    return isinstance(count, Constant) and count.value <= UNROLLED


def _unrolled(state: State, frame: Frame, loop: Loop, body: Callable[[], None], assign: AssignTarget) -> list[set[Key]]:
    """Write out the iterations of a loop; where a jump may leave an iteration, it is a loop of one iteration."""
    loc, axis = loop.loc, loop.axes[0]
    count = trips(axis, loc)
    exits: list[set[Key]] = []
    for turn in range(int(count.value) if isinstance(count, Constant) else 0):
        level = LoopLevel(integer(turn, loc), count, loop.regular, dict(frame.bindings), frame.path, flag=loop.flag)
        level.written_out, level.over = not loop.jumps, lists_of(axis)
        saved = enter(state, frame, level)
        block: list[Statement] = []
        with state.into(block):
            bind_target(state, frame, loop.target, item(state, axis, integer(turn, loc), loc), assign)
            body()
            if loop.jumps:
                restore(state, frame, level.outer, loc)
        if loop.jumps:
            leave(state, frame, saved)
            index = state.symbol("turn", INT64)
            made: Statement = For(index=index, start=integer(0, loc), stop=integer(1, loc), body=tuple(block), loc=loc)
            if loop.flag is not None and turn > 0:
                made = If(condition=logical_not(read(loop.flag, loc), loc), then=(made,), loc=loc)
            block = [made]
        else:
            state.loops.pop()
        state.block.extend(block if not state.ended else ())
        exits += level.exits
    return exits


def _target_name(target: ast.expr, axis: Iterable, place: int) -> str:
    """Return what to call an IR loop's index: the user's name for the number that it is."""
    if isinstance(target, ast.Tuple | ast.List) and place < len(target.elts):
        if isinstance(axis, Zipped):
            found = next((at for at, part in enumerate(axis.parts) if isinstance(part, Range)), place)
            place = min(found, len(target.elts) - 1)
        elif isinstance(axis, Enumerated):
            place = 0
        target = target.elts[place]
    return target.id if isinstance(target, ast.Name) else f"index{place}"


def bind_target(state: State, frame: Frame, target: ast.expr, found: Operand, assign: AssignTarget) -> None:
    """Let the names in the head of a loop stand for its item; an element is read."""
    loc = frame.loc(target)
    if isinstance(found, View) and found.is_element:
        element = load(state, found, loc)
        name = target.id if isinstance(target, ast.Name) else "element"
        pinned = (Value(state.pin(each.expression, name), each.weak) for each in numbers_of(element))
        found = with_numbers(element, pinned)
    if isinstance(target, ast.Name):
        if target.id in frame.rebound:
            assign(state, frame, target, found, loc)
        else:
            frame.bindings[target.id] = found
        return
    if not isinstance(target, ast.Tuple | ast.List):
        assign(state, frame, target, found, loc)
        return
    found = unpacked(state, frame, found, target)
    if not isinstance(found, Items):
        raise error("BW008", f"the loop yields {describe(found)}", loc, _for_one(found))
    if len(target.elts) != len(found.items):
        message = f"the loop has {len(found.items)} indices, but {len(target.elts)} names"
        raise error("BW008", message, loc, "write one name for each index")
    for part, one in zip(target.elts, found.items, strict=True):
        bind_target(state, frame, part, one, assign)


def _for_one(found: Operand) -> str:
    """Return what to write where a loop gives one thing and its head has several names."""
    if isinstance(found, Value):
        return "write one name, or `bw.ndrange(...)` with a size for each name"
    return "write one name"


# ---------------------------------------------------------------- leaving a loop


@dataclass(frozen=True, slots=True)
class Else:
    """What follows a loop that no `break` has left; `position` is where the loop begins in its block."""

    statements: Sequence[ast.stmt]
    flag: Symbol | None
    exits: Sequence[set[Key]]
    position: int
    loc: Location


def lower_else(state: State, frame: Frame, after: Else, body: LowerBody) -> None:
    """Lower the `else` of a loop; afterwards is assigned what it and every `break` have assigned."""
    if after.flag is None:
        body(state, frame, after.statements)
        return
    assigned, bindings, present = set(state.assigned), dict(frame.bindings), set(state.present)
    block: list[Statement] = []
    frame.branches += 1
    state.branch_places.append(((frame.path, len(state.loops)), state.block, len(state.block)))
    with state.into(block):
        body(state, frame, after.statements)
        ended = state.ended
    frame.branches -= 1
    state.branch_places.pop()
    state.present &= present
    found = [*after.exits, *(() if ended else (state.assigned,))]
    names = frame.bindings
    state.assigned = assigned
    frame.bindings = bindings if ended else {name: old for name, old in bindings.items() if names.get(name) == old}
    if found:
        keep_assigned(state, frame, set[Key].intersection(*found), after.position, after.loc)
    condition: Expression = logical_not(read(after.flag, after.loc), after.loc)
    state.emit(If(condition=condition, then=tuple(block), loc=after.loc))


def keep_assigned(state: State, frame: Frame, keys: set[Key], position: int, loc: Location) -> None:
    """Let what every way out of a loop finds assigned be so after it; in the IR it is set before, too."""
    new = [key for key in keys - state.assigned if key[0] == frame.path and key[1] not in frame.bindings]
    for key in sorted(new, key=lambda key: key[1]):
        symbol = state.variable(key)
        if not state.ended:
            state.block.insert(position, Assign(symbol=symbol, value=cast(integer(0, loc), symbol.dtype, loc), loc=loc))
        state.assigned.add(key)
        frame.bindings[key[1]] = Variable(key)


def breaks(body: Sequence[ast.stmt]) -> bool:
    """Return whether a `break` in the body leaves this loop."""
    return any(isinstance(jump, ast.Break | ast.Return) for jump in jumps(body))


def _continues(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(jump, ast.Continue) for jump in jumps(body))
