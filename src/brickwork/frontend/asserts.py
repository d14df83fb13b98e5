"""`assert` to IR: a check whose message has the values of an f-string in it."""

from __future__ import annotations

import ast

from brickwork.frontend.expressions import condition, value
from brickwork.frontend.lowering_state import Frame, State
from brickwork.frontend.rules import error
from brickwork.ir.build import logical_not
from brickwork.ir.nodes import Check, Constant, Expression, Failure, FailureKind, If, Statement


def lower_assert(state: State, frame: Frame, node: ast.Assert) -> None:
    """Lower an assert; an f-string's values are evaluated only if it is about to fail."""
    loc = frame.loc(node)
    test = condition(state, frame, node.test)
    if isinstance(test, Constant) and test.value:
        return
    message, values = f"assert {_escape(ast.unparse(node.test))}", ()
    block: list[Statement] = []
    with state.into(block):
        if node.msg is not None:
            message, values = _message(state, frame, node.msg)
    failure = Failure(FailureKind.ASSERTION, message)
    if block:
        test = state.pin(test, "holds")
        check = Check(condition=test, failure=failure, values=values, loc=loc)
        state.emit(If(condition=logical_not(test), then=(*block, check), loc=loc))
    else:
        state.emit(Check(condition=test, failure=failure, values=values, loc=loc))


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _message(state: State, frame: Frame, node: ast.expr) -> tuple[str, tuple[Expression, ...]]:
    """Return an assert's message as a template and the values in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _escape(node.value), ()
    if not isinstance(node, ast.JoinedStr):
        raise error("BW002", "the message of an assert is a text", frame.loc(node), "write a string or an f-string")
    parts: list[str] = []
    values: list[Expression] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(_escape(str(part.value)))
        elif isinstance(part, ast.FormattedValue):
            form = ast.unparse(part.format_spec)[2:-1] if part.format_spec is not None else ""
            parts.append(f"{{{len(values)}{':' + form if form else ''}}}")
            number = value(state, frame, part.value).expression
            values.append(state.pin(number) if not state.is_fixed(number) else number)
    if len(values) > 8:
        raise error("BW013", "more than eight values in a message", frame.loc(node), "leave some out")
    return "".join(parts), tuple(values)
