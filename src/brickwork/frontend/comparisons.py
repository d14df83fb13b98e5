"""Comparisons of operands that are lowered: numbers, tuples, values with parts, element types, texts and None."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from brickwork.frontend.arithmetic import COMPARE, compare
from brickwork.frontend.captured_operands import NOT_IMPLEMENTED
from brickwork.frontend.complex_values import is_complex
from brickwork.frontend.evaluation_order import settle
from brickwork.frontend.grown_lists import item_at, length
from brickwork.frontend.indexing import is_complex_element, load, numeric, scalar
from brickwork.frontend.lowering_state import Frame, State, describe, truth
from brickwork.frontend.parts import items_of, special
from brickwork.frontend.plain_loops import emit_loop
from brickwork.frontend.rules import error
from brickwork.frontend.typing import ElementType, Grown, Items, Maybe, Opaque, Operand, Record, Value, View, is_none
from brickwork.frontend.value_classes import MIRRORED, is_compared_by_parts, is_ordered_by_parts
from brickwork.ir.build import apply, constant, logical_not, read, select
from brickwork.ir.dtypes import BOOL
from brickwork.ir.nodes import Assign, Expression


def link(state: State, frame: Frame, node: ast.expr, operator: ast.cmpop, sides: tuple[Operand, Operand]) -> Value:
    """Return one comparison."""
    loc = frame.loc(node)
    left, right = (numeric(state, side, loc) if is_complex_element(side) else side for side in sides)
    sides = left, right
    if isinstance(operator, ast.In | ast.NotIn):
        return _contained(state, frame, node, sides, present=isinstance(operator, ast.In))
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        equal = isinstance(operator, ast.Eq | ast.Is)
        optional = left if isinstance(left, Maybe) else right if isinstance(right, Maybe) else None
        if optional is not None and isinstance(optional.there, Value) and (is_none(left) or is_none(right)):
            there = optional.there.expression
            return Value(logical_not(there, loc) if equal else there)
        if is_none(left) or is_none(right):
            return Value(constant((is_none(left) and is_none(right)) is equal, BOOL, loc))
        if isinstance(left, ElementType | Opaque) and isinstance(right, ElementType | Opaque):
            return Value(constant((left == right) is equal, BOOL, loc))
    if isinstance(operator, ast.Eq | ast.NotEq) and (isinstance(left, Maybe) or isinstance(right, Maybe)):
        same = _of_optional(state, frame, node, sides)
        return Value(same if isinstance(operator, ast.Eq) else logical_not(same, loc))
    name = COMPARE.get(type(operator))
    if isinstance(operator, ast.Is | ast.IsNot) and isinstance(left, Items) and isinstance(right, Items):
        name = "eq" if isinstance(operator, ast.Is) else "ne"
    if name is not None and (isinstance(left, Record) or isinstance(right, Record)):
        return Value(_of_records(state, frame, node, name, sides))
    if isinstance(left, Items) and isinstance(right, Items) and name is not None:
        return Value(_of_items(state, frame, node, name, (left.items, right.items)))
    if name is None:
        raise error("BW003", "`is` is not part of the language", loc, "compare with ==")
    one, other = scalar(state, left, loc), scalar(state, right, loc)
    return compare(name, one, other, loc)


def _of_optional(state: State, frame: Frame, node: ast.expr, sides: tuple[Operand, Operand]) -> Expression:
    """Return whether two operands are equal of which one at least may be None."""
    loc = frame.loc(node)
    flags = [scalar(state, item.there, loc).expression for item in sides if isinstance(item, Maybe)]
    left, right = (item.inner if isinstance(item, Maybe) else item for item in sides)
    result = link(state, frame, node, ast.Eq(), (left, right)).expression
    for there in flags:
        result = apply("logical_and", there, result, loc=loc)
    if len(flags) < 2:
        return result
    neither = logical_not(apply("logical_or", flags[0], flags[1], loc=loc), loc)
    return apply("logical_or", neither, result, loc=loc)


def _contained(state: State, frame: Frame, node: ast.expr, sides: tuple[Operand, Operand], *, present: bool) -> Value:
    """Return whether a number, text or value with parts is one of a tuple's."""
    item, items = sides
    loc = frame.loc(node)
    own = special(state, frame, items, "__contains__", node, item)
    if own is not None:
        found = truth(scalar(state, own, loc), loc)
        return Value(found if present else logical_not(found, loc))
    items = items_of(state, frame, items, node)
    if isinstance(items, Grown):
        among = _among(state, frame, node, item, items)
        return Value(among if present else logical_not(among, loc))
    if not isinstance(items, Items):
        raise error("BW003", f"`in` takes a tuple, not {describe(items)}", loc, "compare with ==, or write a loop")
    wanted = load(state, item, loc) if isinstance(item, View) and item.is_element else item
    found = constant(False, BOOL, loc)
    for one in items.items:
        equal = link(state, frame, node, ast.Eq(), (wanted, one)).expression
        found = apply("logical_or", found, equal, loc=loc)
    return Value(found if present else logical_not(found, loc))


def _among(state: State, frame: Frame, node: ast.expr, wanted: Operand, items: Grown) -> Expression:
    """Return whether something is an item of a list that grows."""
    loc = frame.loc(node)
    wanted = settle(state, wanted, loc)
    found = state.symbol("found", BOOL)
    state.emit(Assign(symbol=found, value=constant(False, BOOL, loc), loc=loc))

    def body(turn: Expression) -> None:
        equal = link(state, frame, node, ast.Eq(), (wanted, item_at(state, items, turn, loc))).expression
        either = apply("logical_or", read(found, loc), equal, loc=loc)
        state.emit(Assign(symbol=found, value=either, loc=loc))

    emit_loop(state, length(state, items, loc), body, loc)
    return state.pin(read(found, loc), "found")


def _of_records(state: State, frame: Frame, node: ast.expr, name: str, sides: tuple[Operand, Operand]) -> Expression:
    """Return how values with parts compare: by their methods, or attribute by attribute."""
    loc = frame.loc(node)
    left, right = sides
    for owner, called, other in ((left, name, right), (right, MIRRORED[name], left)):
        found = special(state, frame, owner, f"__{called}__", node, other)
        if found is not None and found != NOT_IMPLEMENTED:
            return state.fix(truth(scalar(state, found, loc), loc))
    own = isinstance(left, Record) and special(state, frame, left, "__eq__", node, right) if name == "ne" else None
    if isinstance(own, Value):
        return state.fix(logical_not(truth(own, loc), loc))
    pair = [
        item.parts if isinstance(item, Record) else item.items if isinstance(item, Items) else None for item in sides
    ]
    kinds = {item.kind for item in sides if isinstance(item, Record)}
    by_parts = is_compared_by_parts if name in {"eq", "ne"} else is_ordered_by_parts
    alike = all(issubclass(kind, tuple) for kind in kinds) or {type(item) for item in sides} == {Record}
    if pair[0] is not None and pair[1] is not None and alike and len(kinds) == 1 and all(map(by_parts, kinds)):
        return _of_items(state, frame, node, name, (pair[0], pair[1]))
    if is_complex(left) or is_complex(right):
        raise error("BW101", "complex numbers are not ordered", loc, "compare `abs(...)` of them, or their parts")
    message = f"{describe(left)} and {describe(right)} do not compare"
    kind = next(iter(kinds)).__name__
    raise error("BW101", message, loc, f"define `__{name}__` in `{kind}`, or compare the attributes")


def _of_items(
    state: State,
    frame: Frame,
    node: ast.expr,
    name: str,
    sides: tuple[Sequence[Operand], Sequence[Operand]],
) -> Expression:
    """Return how two tuples compare: as their first items that differ do."""
    loc = frame.loc(node)
    if name in {"eq", "ne"}:
        result: Expression = constant(len(sides[0]) == len(sides[1]), BOOL, loc)
        for pair in zip(*sides, strict=False):
            equal = link(state, frame, node, ast.Eq(), pair).expression
            result = apply("logical_and", result, equal, loc=loc)
        return result if name == "eq" else logical_not(result, loc)
    left, right = sides
    if not left or not right:
        lengths = {"lt": len(left) < len(right), "le": len(left) <= len(right)}
        lengths |= {"gt": len(left) > len(right), "ge": len(left) >= len(right)}
        return constant(lengths[name], BOOL, loc)
    first = (left[0], right[0])
    rest = _of_items(state, frame, node, name, (left[1:], right[1:]))
    equal = link(state, frame, node, ast.Eq(), first).expression
    operator = next(kind for kind, text in COMPARE.items() if text == name)()
    return select(equal, rest, link(state, frame, node, operator, first).expression, loc)
