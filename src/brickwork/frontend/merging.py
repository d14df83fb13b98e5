"""Where branches meet: the operand of the one that a condition chooses, be it a number, a tuple or a value."""

from __future__ import annotations

import ast
from typing import TypeAlias

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import meet
from brickwork.frontend.complex_values import alike
from brickwork.frontend.evaluation_order import array_key
from brickwork.frontend.indexing import load
from brickwork.frontend.lowering_state import State, describe
from brickwork.frontend.optional_numbers import as_maybe, form_inside
from brickwork.frontend.row_arrays import (
    Filling,
    is_part,
    item_at,
    nest,
    note_copy,
    owners,
    part_of,
    sizes_of,
    whole_row,
)
from brickwork.frontend.rules import error
from brickwork.frontend.typing import (
    Maybe,
    Opaque,
    Operand,
    Row,
    Value,
    View,
    form_of,
    is_none,
    join,
    numbers_of,
    parts_of,
    with_numbers,
    with_parts,
)
from brickwork.ir.build import apply, cast, integer, read, select
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Constant, Expression, FailureKind, If, Statement
from brickwork.ir.walk import walk

Branch: TypeAlias = tuple[list[Statement], Value]
Alternative: TypeAlias = tuple[list[Statement], Operand | None]


RAISES = Opaque("what raises an exception")
"""What a branch of a helper gives that raises."""
_SHORT, _LONG = 8, 24
"""Nodes of an expression that is evaluated twice, and of one that is evaluated in vain: less work than a branch."""


def is_speculative(branch: Branch) -> bool:
    """Return whether a branch can be evaluated where Python would not: no statement, no access, no long work."""
    block, result = branch
    return not block and _is_little(result, _LONG)


def may_repeat(item: Operand, *nodes: ast.expr) -> bool:
    """Return whether an operand can be evaluated again after some expressions: none of them rebinds a name."""
    if not isinstance(item, Value) or not _is_little(item, _SHORT):
        return False
    return not any(isinstance(part, ast.NamedExpr) for node in nodes for part in ast.walk(node))


def _is_little(value: Value, most: int) -> bool:
    return len([*walk(value.expression)]) <= most and effects(value.expression).plain


def merge(state: State, test: Expression, then: Branch, otherwise: Branch, loc: Location) -> Value:
    """Return the value of the branch that `test` chooses."""
    kind = meet(then[1], otherwise[1], loc)
    values = [cast(branch[1].expression, kind.dtype, loc) for branch in (then, otherwise)]
    if is_speculative(then) and is_speculative(otherwise):
        result = select(test, values[0], values[1], loc)
        if all(item in state.nonnegative or _is_natural(item) for item in values):
            state.nonnegative.add(result)
        return Value(result, kind.weak)
    symbol = state.symbol("choice", kind.dtype)
    blocks = [
        (*branch[0], Assign(symbol=symbol, value=item, loc=loc))
        for branch, item in zip((then, otherwise), values, strict=True)
    ]
    state.emit(If(condition=test, then=blocks[0], otherwise=blocks[1], loc=loc))
    state.invariant.add(symbol)
    return Value(read(symbol, loc), kind.weak)


def merge_operands(
    state: State, test: Expression, then: Alternative, otherwise: Alternative, loc: Location
) -> Operand | None:
    """Return the operand of the branch that `test` chooses; both must be of one kind."""
    left, right = (None if found is None else _loaded(state, found, loc) for found in (then[1], otherwise[1]))
    if RAISES in {left, right}:
        left, right = _without_raising(left, right), _without_raising(right, left)
    if _may_be_none(left, right):
        form = form_inside(left, right)
        if form is not None:
            left, right = as_maybe(left, form, loc), as_maybe(right, form, loc)
            left, right = _alike(left, right), _alike(right, left)
    left, right = alike(left, right, loc)
    if isinstance(left, Value) and isinstance(right, Value):
        return merge(state, test, (then[0], left), (otherwise[0], right), loc)
    if left is not None and right is not None and parts_of(left) and form_of(left) == form_of(right):
        return _merge_parts(state, test, (then[0], left), (otherwise[0], right), loc)
    if left == right:
        state.emit(If(condition=test, then=tuple(then[0]), otherwise=tuple(otherwise[0]), loc=loc))
        return left
    if is_part(left, state) and is_part(right, state):
        return _merge_rows(state, test, (then[0], left), (otherwise[0], right), loc)
    message = f"one branch returns {describe(left)}, the other {describe(right)}"
    advice = "return the same kind of value from each branch"
    if left is None or right is None:
        advice = "return a value on every path: end the function with a `return` that has one"
    elif is_none(left) or is_none(right):
        advice = "use a number in place of None, and a flag that says whether it counts"
    raise error("BW101", message, loc, advice)


def _may_be_none(left: Operand | None, right: Operand | None) -> bool:
    return any(item is None or is_none(item) or isinstance(item, Maybe) for item in (left, right))


def _alike(found: Maybe, other: Maybe) -> Maybe:
    return Maybe(found.there, found.inner, found.forgotten or other.forgotten)


def _without_raising(found: Operand | None, other: Operand | None) -> Operand | None:
    """Return an operand; in place of what raises, another one of the other branch's form."""
    if found != RAISES or other is None:
        return None if found == RAISES else found
    zeros = (Value(cast(integer(0), item.dtype), item.weak) for item in numbers_of(other))
    return with_numbers(other, zeros, keep_sites=False)


def _loaded(state: State, found: Operand, loc: Location) -> Operand:
    """Return an operand with the elements in it read."""
    if isinstance(found, View) and found.is_element:
        return load(state, found, loc)
    return with_parts(found, lambda part: _loaded(state, part, loc))


def _merge_parts(
    state: State,
    test: Expression,
    then: tuple[list[Statement], Operand],
    otherwise: tuple[list[Statement], Operand],
    loc: Location,
) -> Operand:
    """Return a tuple or a value with parts, with each number from the branch that `test` chooses."""
    results: list[Value] = []
    for one, other in zip(numbers_of(then[1]), numbers_of(otherwise[1]), strict=True):
        kind = join(one.type, other.type)
        if kind is None:
            raise error("BW101", f"{one.type} and {other.type} do not mix", loc, "write int(...) around the uint64 one")
        symbol = state.symbol("choice", kind.dtype)
        for block, item in ((then[0], one), (otherwise[0], other)):
            block.append(Assign(symbol=symbol, value=cast(item.expression, kind.dtype, loc), loc=loc))
        state.invariant.add(symbol)
        results.append(Value(read(symbol, loc), kind.weak))
    state.emit(If(condition=test, then=tuple(then[0]), otherwise=tuple(otherwise[0]), loc=loc))
    return with_numbers(then[1], iter(results), keep_sites=False)


def _merge_rows(
    state: State,
    test: Expression,
    then: tuple[list[Statement], Row | View],
    otherwise: tuple[list[Statement], Row | View],
    loc: Location,
) -> Row:
    """Return the row of the branch that `test` chooses, in an array."""
    sizes, others = sizes_of(then[1]), sizes_of(otherwise[1])
    if len(sizes) != len(others) or not all(isinstance(each, Constant) or state.is_host(each) for each in sizes):
        message = f"one branch gives {describe(then[1])}, the other {describe(otherwise[1])}"
        advice = "give both as many dimensions, and lengths that shapes and arguments say; or store them in branches"
        raise error("BW101", message, loc, advice)
    array = Filling(state, array_key(state, loc), "row", (state.block, len(state.block)), loc)
    for block, row in (then, otherwise):
        with state.into(block):
            for one, other in zip(sizes, sizes_of(row), strict=True):
                same = apply("eq", one, other, loc=loc)
                message = "one branch gives a row of {0} items, the other one of {1}"
                if one != other:
                    state.check(same, FailureKind.RUNTIME, message, (one, other), loc)

            def store(indices: tuple[Expression, ...], row: Row | View = row) -> None:
                array.store(sizes, indices, item_at(state, row, indices, loc))

            nest(state, sizes, store, loc)
            note_copy(state, array.made, row, loc)
            state.shared |= owners(state, whole_row(row) if isinstance(row, View) else row)
    state.emit(If(condition=test, then=tuple(then[0]), otherwise=tuple(otherwise[0]), loc=loc))
    state.shared.add(array.made)
    return part_of(state, View(array.made), sizes, loc)


def _is_natural(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value >= 0
