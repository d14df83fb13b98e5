"""Functions of elements that are called with rows: `torch.exp(x[i])` is a row, computed item by item."""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.frontend.calls import call
from brickwork.frontend.complex_values import of_complex
from brickwork.frontend.environment import helper, intrinsic
from brickwork.frontend.indexing import numeric
from brickwork.frontend.lowering_state import Arguments, Frame, State
from brickwork.frontend.random_sites import place
from brickwork.frontend.rows import combined
from brickwork.frontend.typing import Operand, Record, Value


def of_rows(state: State, frame: Frame, function: object, given: Arguments) -> Operand:
    """Return a function of elements, item by item."""
    name, node, formula = intrinsic(function) or "", given.call, helper(function)
    loc, count = frame.loc(node), len(given.positional)

    def of_items(items: Sequence[Value | Record]) -> Value | Record:
        own = of_complex(name, items)
        if own is not None:
            found = state.inline(state, state.helpers[own], Arguments(tuple(items), {}, node), frame)
        elif formula is None:
            found = call(state, name, items, (*frame.path, place(node)), loc)
        else:
            named = dict(zip(given.keywords, items[count:], strict=True))
            found = state.inline(state, state.helpers[formula], Arguments(tuple(items[:count]), named, node), frame)
        return numeric(state, found, loc)

    return combined(state, [*given.positional, *given.keywords.values()], of_items, loc)
