"""Slices of lists: new lists with some of the items, as long as the bounds say."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from brickwork.frontend.expressions import slice_operands
from brickwork.frontend.grown_lists import append, append_items, most_items, new_list, take_items
from brickwork.frontend.indexing import load
from brickwork.frontend.iterables import item, over, trips
from brickwork.frontend.lowering_state import Frame, State
from brickwork.frontend.random_sites import place
from brickwork.frontend.rows import Bounds, along
from brickwork.frontend.rules import error, unsupported
from brickwork.frontend.typing import Grown, Items, Operand, Value, View
from brickwork.ir.build import add, integer, mul, sub
from brickwork.ir.nodes import Constant, Expression


def slice_list(state: State, frame: Frame, owner: Grown | View | Items, node: ast.Subscript) -> Operand:
    """Return `h[a:b]` of a list or a tuple; of a tuple the bounds are known."""
    loc, key = frame.loc(node), ((*frame.path, place(node)), "list")
    if not isinstance(node.slice, ast.Slice):
        raise error("BW103", "a list takes one index", loc, "write `w[i][j]`")
    if isinstance(owner, View) and owner.rank > 1:
        raise unsupported("a slice of a nested list", loc, "run over the rows by their indices")
    backward = ast.unparse(node.slice) == "::-1"
    bounds = (None, None, 1) if backward else slice_operands(state, frame, node)[0]
    assert isinstance(bounds, tuple)  # noqa: S101  # it is what a slice gives
    if isinstance(owner, Items) and (known := _known(bounds)) is not None:
        items = owner.items[::-1] if backward else owner.items[known]
        if key not in state.growth and key not in state.arrays:
            return Items(items, None if owner.site is None else key)
        made = new_list(state, "list", key, loc)
        for one in items:
            append(state, made, one, loc)
        return made
    with state.in_kernel():
        source = over(state, owner, loc)
        assert source is not None  # noqa: S101  # a list has items
        part = along(state, trips(source, loc), bounds, loc)

        def taken(turn: Expression) -> Operand:
            turn = sub(sub(part.size, integer(1, loc), loc), turn, loc) if backward else turn
            position = add(part.start, mul(turn, integer(part.step, loc), loc), loc)
            state.nonnegative.add(position)
            found = item(state, source, position, loc)
            return load(state, found, loc) if isinstance(found, View) and found.is_element else found

        made = new_list(state, "list", key, loc)
        most = most_items(owner, loc) if isinstance(owner, Grown) else trips(source, loc)
        take_items(state, made, part.size, most, taken, loc)
        return made


def join_lists(state: State, frame: Frame, sides: Sequence[Grown | Items], node: ast.BinOp) -> Operand:
    """Return `a + b` of lists or of tuples."""
    loc, key = frame.loc(node), ((*frame.path, place(node)), "list")
    known = [side for side in sides if isinstance(side, Items)]
    if len(known) == len(sides) and key not in state.growth and key not in state.arrays:
        is_list = any(side.site is not None for side in known)
        return Items(tuple(item for side in known for item in side.items), key if is_list else None)
    with state.in_kernel():
        made = new_list(state, "list", key, loc)
        for side in sides:
            if isinstance(side, Grown):
                append_items(state, made, side, loc)
                continue
            for one in side.items:
                append(state, made, one, loc)
        return made


def _known(bounds: Bounds) -> slice | None:
    """Return a slice whose bounds are numbers of the source; None of any other."""
    ends: list[int | None] = []
    for bound in bounds[:2]:
        if isinstance(bound, Value) and isinstance(bound.expression, Constant):
            ends.append(int(bound.expression.value))
        elif bound is None:
            ends.append(None)
        else:
            return None
    return slice(ends[0], ends[1], bounds[2])
