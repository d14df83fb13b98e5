"""`assert` and `raise` to IR: a check whose message has the values of an f-string in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from brickwork.diagnostics.location import Location
from brickwork.frontend.environment import resolve
from brickwork.frontend.expressions import condition, operand, value
from brickwork.frontend.lowering_state import Frame, State
from brickwork.frontend.raised import not_raised, raised_kind, text_of
from brickwork.frontend.rules import error
from brickwork.frontend.typing import ElementType, Items, Opaque, numbers_of
from brickwork.ir.build import constant, logical_not
from brickwork.ir.dtypes import BOOL
from brickwork.ir.nodes import Check, Constant, Expression, Failure, FailureKind, If, Statement
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class _Told:
    """What a failure says: the exception, the text or the expression that makes it, and where."""

    kind: FailureKind
    otherwise: str
    text: ast.expr | None
    loc: Location


def lower_assert(state: State, frame: Frame, node: ast.Assert) -> None:
    """Lower an assert; an f-string's values are evaluated only if it is about to fail."""
    otherwise = f"assert {_escape(ast.unparse(node.test))}"
    told = _Told(FailureKind.ASSERTION, otherwise, node.msg, frame.loc(node))
    _require(state, frame, condition(state, frame, node.test), told)


def lower_raise(state: State, frame: Frame, node: ast.Raise) -> None:
    """Lower a raise: nothing is written after it."""
    _require(state, frame, constant(False, BOOL, frame.loc(node)), _told(frame, node))
    state.ended = True


def lower_guard(state: State, frame: Frame, node: ast.If, raised: ast.Raise) -> bool:
    """Lower `if test: raise ...` as a check, without its `else`; return whether the test can be false."""
    test = condition(state, frame, node.test)
    if isinstance(test, Constant) and test.value:
        lower_raise(state, frame, raised)
        return False
    _require(state, frame, logical_not(test, frame.loc(node)), _told(frame, raised))
    return True


def _require(state: State, frame: Frame, test: Expression, told: _Told) -> None:
    """Emit the check that `test` holds."""
    if isinstance(test, Constant) and test.value:
        return
    message, values = told.otherwise, ()
    block: list[Statement] = []
    with state.into(block):
        if told.text is not None:
            message, values = text_and_values(state, frame, told.text)
    failure = Failure(told.kind, message)
    if block and not isinstance(test, Constant):
        test = state.pin(test, "holds")
        check = Check(condition=test, failure=failure, values=values, loc=told.loc)
        state.emit(If(condition=logical_not(test), then=(*block, check), loc=told.loc))
        return
    for item in (*block, Check(condition=test, failure=failure, values=values, loc=told.loc)):
        state.emit(item)


def _told(frame: Frame, node: ast.Raise) -> _Told:
    kind, texts = raised_kind(node, frame.source.captured, frame.local), text_of(node)
    if kind is None or texts is None:
        message, advice = not_raised(node)
        raise error("BW002", message, frame.loc(node), advice)
    return _Told(kind, "", texts[0] if texts else None, frame.loc(node))


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def text_and_values(state: State, frame: Frame, node: ast.expr) -> tuple[str, tuple[Expression, ...]]:
    """Return a message as a template and the values in it."""
    parts: list[str] = []
    values: list[Expression] = []
    for part in _parts(frame, node):
        if isinstance(part, str):
            parts.append(_escape(part))
            continue
        form = ast.unparse(part.format_spec)[2:-1] if part.format_spec is not None else ""
        text = operand(state, frame, part.value) if isinstance(part.value, ast.Name | ast.Attribute) else None
        if isinstance(text, Opaque) and text.what == "a text":
            parts.append(_escape(format(repr(text.text) if part.conversion == ord("r") else text.text, form)))
            continue
        if isinstance(text, ElementType):
            parts.append(f"torch.{text.dtype.name}")
            continue
        if isinstance(text, Items) and not form:
            numbers = [each.expression for each in numbers_of(text)]
            places = ", ".join(f"{{{len(values) + place}}}" for place in range(len(numbers)))
            is_shape = isinstance(part.value, ast.Attribute) and part.value.attr == "shape"
            parts.append(f"torch.Size([{places}])" if is_shape else f"({places}{',' * (len(numbers) == 1)})")
            values += [each if state.is_fixed(each) else state.pin(each) for each in numbers]
            continue
        parts.append(f"{{{len(values)}{':' + form if form else ''}}}")
        number = value(state, frame, part.value).expression
        values.append(state.pin(number) if not state.is_fixed(number) else number)
    if len(values) > 8:
        raise error("BW013", "more than eight values in a message", frame.loc(node), "leave some out")
    return "".join(parts), tuple(values)


def _parts(frame: Frame, node: ast.expr) -> Iterator[str | ast.FormattedValue]:
    """Yield the texts and the values that a message is made of."""
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr():
            for part in node.values:
                yield part if isinstance(part, ast.FormattedValue) else str(getattr(part, "value", ""))
        case ast.BinOp(op=ast.Add()):
            yield from _parts(frame, node.left)
            yield from _parts(frame, node.right)
        case ast.Call(args=[item], keywords=[]) if _is_str(frame, node.func):
            yield ast.copy_location(ast.FormattedValue(value=item, conversion=-1), node)
        case _:
            raise error("BW002", "a message is a text", frame.loc(node), "write a string or an f-string")


def _is_str(frame: Frame, node: ast.expr) -> bool:
    return resolve(node, frame.source.captured, frame.local) is str
