"""Short lists sorted: by insertion, which keeps the order of equal items."""

from __future__ import annotations

import ast

from brickwork.frontend.comparisons import link
from brickwork.frontend.evaluation_order import settle
from brickwork.frontend.grown_lists import item_at, length, pinned, store_at
from brickwork.frontend.lowering_state import Frame, State
from brickwork.frontend.plain_loops import emit_loop
from brickwork.frontend.typing import Grown, Operand
from brickwork.ir.build import add, apply, integer, logical_not, read, select, sub
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Assign, Break, Expression, FailureKind, If


def sort(state: State, frame: Frame, found: Grown, node: ast.expr, backward: Expression) -> None:
    """Sort a list in place: each item moves to the front as far as it is less, or for `backward` greater."""
    loc = frame.loc(node)
    count, one = state.pin(length(state, found, loc), "length"), integer(1, loc)
    backward = state.fix(backward, "backward")

    def before(item: Operand, other: Operand) -> Expression:
        less = link(state, frame, node, ast.Lt(), (item, other)).expression
        more = link(state, frame, node, ast.Lt(), (other, item)).expression
        return select(backward, more, less, loc)

    def insert(turn: Expression) -> None:
        start = add(turn, one, loc)
        state.nonnegative.add(start)
        item = pinned(state, item_at(state, found, start, loc))
        place = state.symbol("place", INT64)
        state.emit(Assign(symbol=place, value=start, loc=loc))

        def move(step: Expression) -> None:
            here = sub(start, step, loc)
            last = sub(here, one, loc)
            state.nonnegative |= {here, last}
            other = item_at(state, found, last, loc)
            stays = state.pin(logical_not(before(item, other), loc), "stays")
            state.emit(If(condition=stays, then=(Break(loc=loc),), loc=loc))
            store_at(state, found, here, other, loc)
            state.emit(Assign(symbol=place, value=last, loc=loc))

        emit_loop(state, start, move, loc)
        store_at(state, found, read(place, loc), item, loc)

    if found.tensors:
        emit_loop(state, sub(count, one, loc), insert, loc)


def place_among(state: State, frame: Frame, found: Grown, wanted: Operand, node: ast.expr) -> Expression:
    """Return the place of the first item that equals something; that there is one is checked."""
    loc = frame.loc(node)
    wanted, count = settle(state, wanted, loc), state.pin(length(state, found, loc), "length")
    place = state.symbol("place", INT64)
    state.emit(Assign(symbol=place, value=count, loc=loc))

    def body(turn: Expression) -> None:
        equal = link(state, frame, node, ast.Eq(), (wanted, item_at(state, found, turn, loc))).expression
        first = apply("eq", read(place, loc), count, loc=loc)
        test = apply("logical_and", first, equal, loc=loc)
        state.emit(If(condition=test, then=(Assign(symbol=place, value=turn, loc=loc),), loc=loc))

    emit_loop(state, count, body, loc)
    result = state.pin(read(place, loc), "place")
    state.nonnegative.add(result)
    message = f"what is looked for is not in list '{found.name}'"
    state.check(apply("lt", result, count, loc=loc), FailureKind.VALUE, message, (), loc)
    return result
