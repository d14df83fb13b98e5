"""Where lists that grow are made: displays and comprehensions that are added to, `bw.bounded(n)`, filtered items."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.expressions import condition, operand, operands, value
from brickwork.frontend.grown_lists import append, copy_items, new_list, pop, refuse_running
from brickwork.frontend.grown_sorting import place_among, sort
from brickwork.frontend.iterables import Iterable, Range, iterable
from brickwork.frontend.list_forms import (
    copied,
    is_bounded,
    is_deque,
    is_filtered,
    is_made_to_grow,
    is_sorted,
    repeated,
)
from brickwork.frontend.loops import AssignTarget, Loop, lower_loop
from brickwork.frontend.lowering_state import Frame, Key, State
from brickwork.frontend.rules import error, unsupported
from brickwork.frontend.stores import grown_in
from brickwork.frontend.typing import Grown, Items, Operand, Value
from brickwork.ir.build import cast, constant, integer
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import If, Statement


def grows(state: State, frame: Frame, node: ast.expr, name: str, key: Key) -> bool:
    """Return whether a list that is made here grows, under the name that it gets or another one."""
    captured, local = frame.source.captured, frame.local
    if key in state.growth or is_filtered(node) or is_made_to_grow(node, captured, local):
        return True
    if frame.growing is None:
        frame.growing = grown_in(frame.source, state.helpers)
    return name in frame.growing


def listed(
    state: State, frame: Frame, node: ast.ListComp, name: str, key: Key, assign: AssignTarget, over: Iterable
) -> Grown:
    """Return the list of a comprehension over what is evaluated already."""
    made = new_list(state, name, key, frame.loc(node))
    _comprehension(state, frame, node, made, assign, 0, over)
    return made


def make_grown(state: State, frame: Frame, node: ast.expr, name: str, key: Key, assign: AssignTarget) -> Grown:
    """Return a new list with its first items."""
    loc = frame.loc(node)
    if isinstance(node, ast.Call) and is_bounded(node, frame.source.captured, frame.local):
        if len(node.args) != 1 or node.keywords:
            raise error("BW004", "`bounded` takes the number of items", loc, "write `bw.bounded(64)`")
        most = cast(value(state, frame, node.args[0]).expression, INT64, loc)
        return new_list(state, name, key, loc, most)
    if isinstance(node, ast.Call) and is_sorted(node, frame.source.captured, frame.local):
        if len(node.args) != 1:
            raise error("BW004", "`sorted` takes one list", loc, "write `sorted(x)`")
        made = new_list(state, name, key, loc)
        extend(state, frame, made, node.args[0], assign)
        sort_in_place(state, frame, made, node)
        return made
    if isinstance(node, ast.Call) and is_deque(node, frame.source.captured, frame.local):
        made = new_list(state, name, key, loc)
        if len(node.args) > 1 or node.keywords:
            raise error("BW004", "`deque` takes what it begins with", loc, "write `deque([v])`")
        for item in node.args:
            extend(state, frame, made, item, assign)
        return made
    if isinstance(node, ast.List):
        items = operands(state, frame, node.elts)
        made = new_list(state, name, key, loc)
        for item in items:
            append(state, made, item, loc)
        return made
    if isinstance(node, ast.ListComp):
        made = new_list(state, name, key, loc)
        _comprehension(state, frame, node, made, assign, 0)
        return made
    if (parts := repeated(node)) is not None and isinstance(parts[0], ast.List):
        items, count = operands(state, frame, parts[0].elts), cast(value(state, frame, parts[1]).expression, INT64, loc)
        made = new_list(state, name, key, loc)
        _repeat(state, frame, made, items, Range(integer(0), state.fix(count), integer(1)), assign, loc)
        return made
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        made = new_list(state, name, key, loc)
        for side in (node.left, node.right):
            extend(state, frame, made, side, assign)
        return made
    source = copied(node, frame.source.captured, frame.local)
    found = None if source is None else operand(state, frame, source)
    if isinstance(found, Grown):
        made = new_list(state, name, key, loc)
        copy_items(state, made, found, loc)
        return made
    if isinstance(found, Items):
        made = new_list(state, name, key, loc)
        for item in found.items:
            append(state, made, item, loc)
        return made
    advice = f"begin with `{name} = []` or a comprehension, and add the items"
    raise unsupported(f"`{name}` grows, and is made so", loc, advice)


def _repeat(
    state: State, frame: Frame, made: Grown, items: Sequence[Operand], turns: Range, assign: AssignTarget, loc: Location
) -> None:
    """Add some items again and again."""
    bindings = dict(frame.bindings)

    def inside() -> None:
        for item in items:
            append(state, made, item, loc)

    lower_loop(state, frame, Loop(ast.Name("item", ast.Store()), (turns,), loc, regular=True), inside, assign)
    frame.bindings = bindings


def _comprehension(
    state: State,
    frame: Frame,
    node: ast.ListComp,
    made: Grown,
    assign: AssignTarget,
    level: int,
    over: Iterable | None = None,
) -> None:
    """Add the items of a comprehension; `over` is what its outermost loop runs over, where that is evaluated."""
    if level == len(node.generators):
        append(state, made, operand(state, frame, node.elt), frame.loc(node))
        return
    clause, loc = node.generators[level], frame.loc(node)
    bindings, local = dict(frame.bindings), frame.local
    frame.local |= {item.id for item in ast.walk(clause.target) if isinstance(item, ast.Name)}

    def inside() -> None:
        _filtered(state, frame, node, made, assign, level, loc, [*clause.ifs])

    over = over or iterable(state, frame, clause.iter)
    loop = Loop(clause.target, (over,), loc, frame.is_regular(clause.iter))
    lower_loop(state, frame, loop, inside, assign)
    frame.bindings, frame.local = bindings, local


def _filtered(
    state: State,
    frame: Frame,
    node: ast.ListComp,
    made: Grown,
    assign: AssignTarget,
    level: int,
    loc: Location,
    tests: list[ast.expr],
) -> None:
    if not tests:
        _comprehension(state, frame, node, made, assign, level + 1)
        return
    test = condition(state, frame, tests[0])
    block: list[Statement] = []
    with state.perhaps(block):
        _filtered(state, frame, node, made, assign, level, loc, tests[1:])
    state.emit(If(condition=test, then=tuple(block), loc=loc))


def extend(state: State, frame: Frame, found: Grown, node: ast.expr, assign: AssignTarget) -> None:
    """Add the items of what a loop can run over."""
    loc = frame.loc(node)
    refuse_running(state, found, loc)
    if isinstance(node, ast.ListComp):
        _comprehension(state, frame, node, found, assign, 0)
        return
    if isinstance(node, ast.List | ast.Tuple):
        for item in operands(state, frame, node.elts):
            append(state, found, item, loc)
        return
    name = ast.copy_location(ast.Name("item", ast.Store()), node)
    read = ast.copy_location(ast.Name("item", ast.Load()), node)
    clause = ast.comprehension(name, node, [], 0)
    _comprehension(state, frame, ast.copy_location(ast.ListComp(read, [clause]), node), found, assign, 0)


def sort_in_place(state: State, frame: Frame, found: Grown, node: ast.Call) -> None:
    """Sort a list, as `sorted` and its method `sort` do."""
    loc = frame.loc(node)
    backward = [condition(state, frame, item.value) for item in node.keywords if item.arg == "reverse"]
    if len(backward) < len(node.keywords):
        advice = "write `sorted(h, key=lambda v: ..., reverse=flag)`, with a function of one item"
        raise error("BW004", "sorting does not take these arguments here", loc, advice)
    sort(state, frame, found, node, backward[0] if backward else constant(False, BOOL, loc))


def call_comparing(state: State, frame: Frame, found: Grown, name: str, node: ast.Call) -> Operand | None:
    """Return the call of a method of a list that compares its items."""
    loc = frame.loc(node)
    if name != "index":
        refuse_running(state, found, loc)
    if name == "sort" and not node.args:
        sort_in_place(state, frame, found, node)
        return None
    if name == "sort" or len(node.args) != 1 or node.keywords:
        raise error("BW004", f"`{found.name}.{name}` does not take these arguments", loc, "pass them as Python's does")
    place = place_among(state, frame, found, operand(state, frame, node.args[0]), node)
    if name == "index":
        return Value(place, weak=True)
    pop(state, found, Value(place, weak=True), loc)
    return None
