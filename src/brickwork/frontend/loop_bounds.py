"""How often the loops around a statement can run it at most, by what the host part knows: shapes and arguments."""

from __future__ import annotations

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.lowering_state import State
from brickwork.ir.build import add, apply, integer, mul, sub
from brickwork.ir.nodes import Apply, Constant, Expression

DEPTH = 8
"""How deep an expression may be, and how many loops' indices may lead to one another in it; deeper ones are not known.

It bounds the work, which doubles with each level. A loop takes one level and an operator in its bounds another one:
this is enough for four loops in one another such as `for j in range(i + 1)`.
"""


def most_turns(state: State, depth: int, loc: Location) -> Expression | None:
    """Return the most times that the loops from a depth on run what is in them; None where that is not known."""
    result: Expression = integer(1, loc)
    for level in state.loops[depth:]:
        if isinstance(level.iteration, Constant):
            continue  # Iterations that are written out are lowered one by one.
        turns = None if level.trips is None else _extreme(state, level.trips, DEPTH, most=True)
        if turns is None:
            return None
        natural = turns if is_nonnegative(state, turns) else apply("maximum", turns, integer(0, loc), loc=loc)
        result = mul(result, natural, loc)
    return result


def _extreme(state: State, found: Expression, depth: int, *, most: bool) -> Expression | None:
    """Return an expression of the host's that is at least (at most) as large as another one."""
    if isinstance(found, Constant) or state.is_host(found):
        return found
    if depth == 0:
        return None
    if (bounds := state.ranges.get(found)) is not None:
        start, stop = bounds
        if not most:
            return _extreme(state, start, depth - 1, most=False)
        end = _extreme(state, stop, depth - 1, most=True)
        return None if end is None else sub(end, integer(1, found.loc), found.loc)
    if not isinstance(found, Apply):
        return None
    name, operands = found.operator.name, found.operands
    signs = {"add": (most, most), "sub": (most, not most), "neg": (not most,), "minimum": (most, most)}
    signs["maximum"] = (most, most)
    if name == "mul" and any(isinstance(item, Constant) and item.value >= 0 for item in operands):
        signs["mul"] = (most, most)
    if name == "floordiv" and isinstance(operands[1], Constant) and operands[1].value > 0:
        signs["floordiv"] = (most, most)
    if name not in signs:
        return None
    parts = [_extreme(state, item, depth - 1, most=which) for item, which in zip(operands, signs[name], strict=True)]
    known = [item for item in parts if item is not None]
    if name == "minimum" and most and known:
        return known[0] if len(known) == 1 else apply(name, *known, loc=found.loc)
    if len(known) < len(parts):
        return None
    if name == "add":
        return add(known[0], known[1], found.loc)
    if name == "sub":
        return sub(known[0], known[1], found.loc)
    return apply(name, *known, loc=found.loc)
