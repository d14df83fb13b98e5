"""What is None at some times: `best = None` before a loop that finds one, and helpers that may return None.

It is a flag beside numbers. A use where Python needs the number is a failed check while the flag is not set, but where
a test such as `best is not None` says that it is: such flags are in `State.present`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.lowering_state import Binding, Frame, Key, ListDemanded, State, Together, Variable, describe
from brickwork.frontend.rules import error
from brickwork.frontend.typing import (
    Items,
    Maybe,
    Operand,
    Record,
    Value,
    count_of,
    form_of,
    is_none,
    numbers_of,
    with_numbers,
)
from brickwork.ir.build import cast, constant, integer, read
from brickwork.ir.dtypes import BOOL
from brickwork.ir.nodes import Assign, Constant, Expression, FailureKind


def as_maybe(found: Operand | None, form: Operand, loc: Location) -> Maybe:
    """Return an operand, or None, as what may be None, of the form that it has when it is there."""
    if isinstance(found, Maybe):
        return found
    if found is None or is_none(found):
        zero = Value(constant(False, BOOL, loc))
        return Maybe(zero, with_numbers(form, iter([zero] * count_of(form))), forgotten=found is None)
    return Maybe(Value(constant(True, BOOL, loc)), found)


def form_inside(*found: Operand | None) -> Operand | None:
    """Return the form that the first operand has which is there."""
    for item in found:
        if isinstance(item, Maybe):
            return form_of(item.inner)
        if isinstance(item, Value | Items | Record):
            return form_of(item)
    return None


def demand(state: State, key: Key, found: Operand) -> None:
    """Begin again with a name that may be None, if that is new."""
    form = form_inside(found)
    if form is not None and key not in state.maybe:
        state.maybe[key] = form
        inner = found.inner if isinstance(found, Maybe) else found
        for number, item in enumerate(numbers_of(inner), 1):
            state.widen((key[0], f"{key[1]}[{number}]"), item.type, key[1], item.expression.loc)
        raise ListDemanded


def required(state: State, found: Operand, loc: Location) -> Operand:
    """Return what is there; what may be None is checked, where no test around says that it is there."""
    if not isinstance(found, Maybe):
        return found
    there = found.there.expression if isinstance(found.there, Value) else constant(True, BOOL, loc)
    if there in state.present:
        return found.inner
    if found.forgotten:
        message = f"one branch returns {describe(found.inner)}, the other nothing"
        advice = "return a value on every path: end the function with a `return` that has one"
        raise error("BW101", message, loc, advice)
    if isinstance(there, Constant) and not there.value:
        raise error("BW101", "a number is needed here, not None", loc, "give it a value before, or test for None")
    state.check(there, FailureKind.TYPE, "a number is needed here, not None", (), loc)
    return found.inner


# ---------------------------------------------------------------- what tests say


def present_if(state: State, frame: Frame, test: ast.expr, *, holds: bool) -> set[Expression]:
    """Return the flags that are set where a test holds, or does not hold."""
    names = {*_names(test, holds=holds)}
    if not names or any(isinstance(item, ast.NamedExpr) for item in ast.walk(test)):
        return set()
    flags: set[Expression] = set()
    for found in map(frame.bindings.get, names):
        if isinstance(found, Together) and isinstance(found.latest, Maybe):
            flags.add(read(state.variable(found.keys[0])))
        elif isinstance(found, Maybe) and isinstance(found.there, Value):
            flags.add(found.there.expression)
    return flags


def note_met(state: State, frame: Frame, test: ast.expr, *, holds: bool) -> None:
    """Note what is there, and what `:=` has named, where a test holds, or does not hold."""
    state.present |= present_if(state, frame, test, holds=holds)
    state.assigned |= named_if(frame, test, holds=holds)


def give_zeros(state: State, keys: set[Key], position: int, loc: Location) -> None:
    """Give names that only some operands of `and` and `or` name a value before, which nobody reads."""
    for key in sorted(keys & state.types.keys(), key=str):
        symbol = state.variable(key)
        zero = Assign(symbol=symbol, value=cast(integer(0, loc), symbol.dtype, loc), loc=loc)
        state.block.insert(position, zero)


def named_if(frame: Frame, test: ast.expr, *, holds: bool) -> set[Key]:
    """Return the names that have got a value by `:=` where a test holds, or does not hold."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return named_if(frame, inner, holds=not holds)
        case ast.BoolOp(op=operator, values=values):
            met = values if isinstance(operator, ast.And) is holds else values[:1]
            return {name for item in met for name in named_if(frame, item, holds=holds)}
        case ast.NamedExpr(target=target, value=inner):
            return {(frame.path, target.id)} | named_if(frame, inner, holds=holds)
        case ast.Compare(left=left, comparators=[right, *_]):
            return named_if(frame, left, holds=holds) | named_if(frame, right, holds=holds)
        case _:
            return set()


def _names(test: ast.expr, *, holds: bool) -> Iterator[str]:
    """Yield the names that are not None where a test holds, or does not."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[operator], comparators=[ast.Constant(value=None)]):
            if isinstance(operator, ast.IsNot | ast.NotEq if holds else ast.Is | ast.Eq):
                yield name
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from _names(inner, holds=not holds)
        case ast.BoolOp(op=operator, values=values) if isinstance(operator, ast.And) is holds:
            for item in values:
                yield from _names(item, holds=holds)
        case ast.Name(id=name) if holds:
            yield name
        case _:
            return


def note_flag(state: State, flag: Expression, found: Operand) -> None:
    """Note what is known of a flag that was assigned just now."""
    known = isinstance(found, Value) and (found.expression in state.present or found.expression == constant(True, BOOL))
    state.present = state.present | {flag} if known else state.present - {flag}


def demand_where_branches_meet(state: State, frame: Frame, after: Sequence[dict[str, Binding]]) -> None:
    """Begin again where a name is None after one branch and a number after another."""
    for name in {name for each in after for name, found in each.items() if _is_plain_none(found)}:
        for found in (each.get(name) for each in after):
            if isinstance(found, Variable):
                demand(state, (frame.path, name), Value(read(state.variable(found.key))))
            elif isinstance(found, Together):
                demand(state, (frame.path, name), found.latest)


def _is_plain_none(found: Binding) -> bool:
    return not isinstance(found, Variable | Together) and is_none(found)
