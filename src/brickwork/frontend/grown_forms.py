"""Where lists that grow are made: displays and comprehensions that are added to, `bw.bounded(n)`, filtered items."""

from __future__ import annotations

import ast

from brickwork.diagnostics.location import Location
from brickwork.frontend.expressions import condition, operand, operands, value
from brickwork.frontend.grown_lists import append, copy_items, new_list
from brickwork.frontend.iterables import iterable
from brickwork.frontend.list_forms import copied, grown_names, is_bounded, is_filtered
from brickwork.frontend.loops import AssignTarget, Loop, lower_loop
from brickwork.frontend.lowering_state import Frame, Key, State
from brickwork.frontend.rules import error, unsupported
from brickwork.frontend.typing import Grown, Items
from brickwork.ir.build import cast
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import If, Statement


def grows(state: State, frame: Frame, node: ast.expr, name: str, key: Key) -> bool:
    """Return whether a list that is made here grows, under the name that it gets or another one."""
    if key in state.growth or is_filtered(node) or is_bounded(node, frame.source.captured, frame.local):
        return True
    if frame.growing is None:
        frame.growing = grown_names(frame.source.node)
    return name in frame.growing


def make_grown(state: State, frame: Frame, node: ast.expr, name: str, key: Key, assign: AssignTarget) -> Grown:
    """Return a new list with its first items."""
    loc = frame.loc(node)
    if isinstance(node, ast.Call) and is_bounded(node, frame.source.captured, frame.local):
        if len(node.args) != 1 or node.keywords:
            raise error("BW004", "`bounded` takes the number of items", loc, "write `bw.bounded(64)`")
        most = cast(value(state, frame, node.args[0]).expression, INT64, loc)
        return new_list(state, name, key, loc, most)
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


def _comprehension(
    state: State, frame: Frame, node: ast.ListComp, made: Grown, assign: AssignTarget, level: int
) -> None:
    """Add the items of a comprehension."""
    if level == len(node.generators):
        append(state, made, operand(state, frame, node.elt), frame.loc(node))
        return
    clause, loc = node.generators[level], frame.loc(node)
    bindings, local = dict(frame.bindings), frame.local
    frame.local |= {item.id for item in ast.walk(clause.target) if isinstance(item, ast.Name)}

    def inside() -> None:
        _filtered(state, frame, node, made, assign, level, loc, [*clause.ifs])

    loop = Loop(clause.target, (iterable(state, frame, clause.iter),), loc, frame.is_regular(clause.iter))
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
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        made = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
        _comprehension(state, frame, made, found, assign, 0)
        return
    if isinstance(node, ast.List | ast.Tuple):
        for item in operands(state, frame, node.elts):
            append(state, found, item, loc)
        return
    name = ast.copy_location(ast.Name("item", ast.Store()), node)
    read = ast.copy_location(ast.Name("item", ast.Load()), node)
    clause = ast.comprehension(name, node, [], 0)
    _comprehension(state, frame, ast.copy_location(ast.ListComp(read, [clause]), node), found, assign, 0)
