"""Loops that no user's name stands for, such as those over the items of a list or of a row."""

from __future__ import annotations

from collections.abc import Callable

from brickwork.diagnostics.location import Location
from brickwork.frontend.lowering_state import State
from brickwork.ir.build import integer, read
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Expression, For, Statement


def emit_loop(state: State, count: Expression, body: Callable[[Expression], None], loc: Location) -> None:
    """Emit a loop of `count` iterations that no user's name stands for."""
    index = state.symbol("item", INT64)
    state.invariant.add(index)
    turn = read(index, loc)
    state.nonnegative.add(turn)
    block: list[Statement] = []
    stop = state.fix(count, "length")
    with state.into(block):
        body(turn)
    state.emit(For(index=index, start=integer(0, loc), stop=stop, body=tuple(block), loc=loc))
