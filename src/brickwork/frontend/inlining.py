"""Helpers inline: the arguments, the body up to its `return`s, and what they give.

An `if` that returns takes what follows it into its branches; a loop that returns sets a flag, which what follows asks.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from brickwork.frontend.captured_operands import captured_operand
from brickwork.frontend.complex_values import as_complex
from brickwork.frontend.evaluation_order import keep_stale, settle
from brickwork.frontend.expressions import condition, operand
from brickwork.frontend.indexing import load
from brickwork.frontend.list_rebinding import settle_names
from brickwork.frontend.loop_heads import jumps, returns
from brickwork.frontend.loops import new_flag
from brickwork.frontend.lowering_state import (
    Arguments,
    Frame,
    Returning,
    State,
    Variable,
    helper_frame,
)
from brickwork.frontend.merging import RAISES, merge_operands
from brickwork.frontend.name_binding import bound_together, is_together
from brickwork.frontend.optional_numbers import as_maybe, present_if
from brickwork.frontend.random_sites import place
from brickwork.frontend.row_arrays import bind_array, is_part
from brickwork.frontend.rules import error
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.statements import lower_statement, returned_key
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.typing import Items, Operand, Record, Value, View, numbers_of, with_numbers
from brickwork.ir.build import cast, integer, read
from brickwork.ir.nodes import (
    Assign,
    Constant,
    Expression,
    Statement,
)


def inline(state: State, source: SourceFunction, arguments: Arguments, caller: Frame) -> Operand | None:
    """Lower the body of a helper in place of its call."""
    frame = helper_frame(source, (*caller.path, place(arguments.call)), caller.loc(arguments.call))
    held = len(state.held)
    _bind_parameters(state, frame, arguments, caller)
    state.calls.append(source)
    state.frames.append(frame)
    result = _helper_body(state, frame, source.node.body)
    state.frames.pop()
    state.calls.pop()
    keep_stale(state, held)
    return result


def _bind_parameters(state: State, frame: Frame, arguments: Arguments, caller: Frame) -> None:
    node, loc = frame.source.node, caller.loc(arguments.call)
    positional = [item.arg for item in (*node.args.posonlyargs, *node.args.args)]
    if node.args.kwarg is not None:
        raise error("BW004", f"`{frame.source.name}` takes **kwargs", loc, "give it plain parameters")
    if node.args.vararg is not None:
        rest = Items(arguments.positional[len(positional) :])
        frame.bindings[node.args.vararg.arg] = settle(state, rest, loc)
        settle_names(state, rest)
    elif len(arguments.positional) > len(positional):
        raise error("BW004", f"`{frame.source.name}` takes {len(positional)} arguments", loc, "leave out the others")
    given = dict(zip(positional, arguments.positional, strict=False)) | dict(arguments.keywords)
    names = [*positional, *(item.arg for item in node.args.kwonlyargs)]
    for name in given:
        if name not in names:
            raise error("BW004", f"`{frame.source.name}` has no parameter `{name}`", loc, f"it has {', '.join(names)}")
    defaults = default_values(frame.source)
    for name in names:
        if name in given:
            found = given[name]
        elif name in defaults:
            found = captured_operand(defaults[name], name, loc)
        else:
            raise error(
                "BW004",
                f"`{frame.source.name}` needs the argument `{name}`",
                loc,
                f"pass `{name}`",
            )
        if isinstance(found, View) and found.is_element:
            found = load(state, found, loc)
        if (frame.path, name) in state.maybe:
            optional = as_maybe(found, state.maybe[frame.path, name], loc)
            frame.bindings[name] = bound_together(state, frame, name, optional, loc)
        elif isinstance(found, Value | Record) and (frame.path, name) in state.complex:
            frame.bindings[name] = bound_together(state, frame, name, as_complex(found, loc), loc)
        elif (frame.path, name) in state.rows and is_part(found, state):
            bind_array(state, frame, name, found, loc)
        elif isinstance(found, Value) and name in frame.rebound:
            state.assign((frame.path, name), found, loc)
            frame.bindings[name] = Variable((frame.path, name))
        elif is_together(frame, name, found):
            frame.bindings[name] = bound_together(state, frame, name, found, loc)
        elif isinstance(found, Value) and _is_read_at_once(frame.source.node, name):
            frame.bindings[name] = found
        else:
            frame.bindings[name] = settle(state, found, loc)
            settle_names(state, found)


def _is_read_at_once(node: ast.FunctionDef, name: str) -> bool:
    """Return whether a helper's one statement reads a parameter once and calls nothing: it can be written there."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if len(body) != 1 or not isinstance(body[0], ast.Assign | ast.Return):
        return False
    nodes = all_nodes(body[0])
    reads = [item for item in nodes if isinstance(item, ast.Name) and item.id == name]
    return len(reads) == 1 and not any(isinstance(item, _ELSEWHERE) for item in nodes)


_ELSEWHERE = (ast.Call, ast.NamedExpr, ast.IfExp, ast.BoolOp, ast.ListComp, ast.GeneratorExp, ast.Compare)
"""What may run something else first, or may not read the parameter at all."""


def default_values(source: SourceFunction) -> dict[str, object]:
    """Return the default values of a function's parameters."""
    positional = [item.arg for item in (*source.node.args.posonlyargs, *source.node.args.args)]
    values: dict[str, object] = dict(source.keyword_defaults)
    defaults = source.function.__defaults__ or ()
    return values | dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))


def _returning_loop(state: State, frame: Frame, node: ast.For | ast.While, rest: Sequence[ast.stmt]) -> Operand | None:
    """Lower a loop that returns, and what follows it if it has not."""
    loc = frame.loc(node)
    before, frame.returning = frame.returning, Returning(new_flag(state, loc))
    returning, position = frame.returning, len(state.block)
    lower_statement(state, frame, node)
    frame.returning = before
    values: list[Value] = []
    form = Items(()) if returning.form is None else returning.form
    for number, _ in enumerate(numbers_of(form)):
        symbol = state.variable(returned_key(frame, number))
        state.block.insert(position, Assign(symbol=symbol, value=cast(integer(0, loc), symbol.dtype, loc), loc=loc))
        values.append(Value(read(symbol, loc), state.types[returned_key(frame, number)].weak))
    result = None if form == Items(()) else with_numbers(form, iter(values), keep_sites=False)
    endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
    if endless and not any(isinstance(jump, ast.Break) for jump in jumps(node.body)):
        return result
    block: list[Statement] = []
    with state.perhaps(block):
        following = _helper_body(state, frame, rest)
    return merge_operands(state, read(returning.flag, loc), ([], result), (block, following), loc)


def _helper_body(state: State, frame: Frame, statements: Sequence[ast.stmt]) -> Operand | None:
    """Lower a helper's statements up to its `return`; an `if` that returns takes what follows into its branches."""
    for position, node in enumerate(statements):
        if isinstance(node, ast.Return):
            if node.value is None:
                return None
            result = operand(state, frame, node.value)
            if isinstance(result, View) and result.is_element:
                return load(state, result, frame.loc(node.value))
            return result
        if isinstance(node, ast.For | ast.While) and returns(node):
            return _returning_loop(state, frame, node, statements[position + 1 :])
        if isinstance(node, ast.If) and returns(node):
            rest = statements[position + 1 :]
            test = condition(state, frame, node.test)
            if isinstance(test, Constant):
                return _helper_body(state, frame, [*(node.body if test.value else node.orelse), *rest])
            return _returning_if(state, frame, node, test, rest)
        lower_statement(state, frame, node)
    return RAISES if state.ended and isinstance(statements[-1] if statements else None, ast.Raise) else None


def _returning_if(
    state: State, frame: Frame, node: ast.If, test: Expression, rest: Sequence[ast.stmt]
) -> Operand | None:
    loc = frame.loc(node)
    assigned, bindings = set(state.assigned), dict(frame.bindings)
    found: list[tuple[list[Statement], Operand | None]] = []
    frame.branches += 1
    present = set(state.present)
    for body, holds in ((node.body, True), (node.orelse, False)):
        state.assigned, frame.bindings = set(assigned), dict(bindings)
        state.present = present | present_if(state, frame, node.test, holds=holds)
        block: list[Statement] = []
        with state.into(block):
            result = _helper_body(state, frame, [*body, *rest])
            if isinstance(result, View) and result.is_element:
                result = load(state, result, loc)
        found.append((block, result))
    frame.branches -= 1
    state.assigned, frame.bindings, state.present = assigned, bindings, set()
    return merge_operands(state, test, found[0], found[1], loc)
