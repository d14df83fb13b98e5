"""What a loop does to the variables that count in it, and the limits that conditions set them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from brickwork.analysis.searches import MIRRORED
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Expression, For, Read, Symbol, While
from brickwork.ir.walk import statements
from brickwork.legality import legality
from brickwork.records import dataclass

ADDING = frozenset({"add", "sub"})
SCALING = frozenset({"mul", "floordiv"})
SHIFTING = frozenset({"shift_left", "shift_right"})
TURN = "turn"


@dataclass(frozen=True, slots=True)
class Step:
    """What each iteration of a loop does to a variable, once, and at which place of the body.

    `operator` is add, mul, floordiv or a shift; the variable is its first operand, and `by` the second. Or it is
    TURN: the variable becomes `by`, and in the iteration after that what it was.
    """

    symbol: Symbol
    operator: str
    by: Expression
    place: int

    def value(self, turns: Expression) -> Expression:
        """Return what the variable is after so many iterations, of what it is before the loop."""
        known = build.read(self.symbol)
        if self.operator == TURN:
            turns = build.apply("mod", turns, build.integer(2))
            return build.add(known, build.mul(turns, build.sub(self.by, known)))
        return build.add(known, build.mul(turns, self.by))


@legality
def step_of(loop: For | While, symbol: Symbol, operators: Collection[str] = ADDING) -> Step | None:
    """Return the step of a variable by one of these operators; None where iterations do not do the same to it."""
    place = _place_of(loop, symbol)
    if place is None:
        return None
    match _given(loop, place)[0]:
        case Apply(operator=operator, operands=(Read(symbol=left), by)) if left == symbol:
            name = operator.name
        case Apply(operator=operator, operands=(by, Read(symbol=right))) if right == symbol:
            name = operator.name if operator.name in {"add", "mul"} else ""
        case _:
            return None
    if name not in operators or not is_fixed(by, loop):
        return None
    if name == "sub":
        return Step(symbol, "add", build.apply("neg", by), place)
    return Step(symbol, name, by, place)


@legality
def turns_of(loop: For | While, symbol: Symbol) -> Sequence[Step]:
    """Return the step of a variable with two values in turn, and that of the one that it is swapped with, if any."""
    place = _place_of(loop, symbol)
    if place is None:
        return ()
    value, read_at = _given(loop, place)
    match value:
        case Apply(operator=operator, operands=(by, Read(symbol=right))) if right == symbol and is_fixed(by, loop):
            return (Step(symbol, TURN, value, place),) if operator.name in {"sub", "bit_xor"} else ()
        case Apply(operator=operator, operands=(Read(symbol=left), by)) if left == symbol and is_fixed(by, loop):
            return (Step(symbol, TURN, value, place),) if operator.name == "bit_xor" else ()
        case Read(symbol=other) if (there := _place_of(loop, other)) is not None and read_at < there:
            found, found_at = _given(loop, there)
            if found == build.read(symbol) and found_at < place:
                return Step(symbol, TURN, value, place), Step(other, TURN, found, there)
        case _:
            pass
    return ()


@legality
def _place_of(loop: For | While, symbol: Symbol) -> int | None:
    """Return where the body of a loop assigns a variable in each iteration, once; None if it does not."""
    places = [place for place, item in enumerate(loop.body) if isinstance(item, Assign) and item.symbol == symbol]
    writes = [node for node in statements(loop) if _sets(node, symbol)]
    return places[0] if places and len(writes) == 1 and not effects(loop.body[: places[0]]).continues else None


@legality
def _given(loop: For | While, place: int) -> tuple[Expression, int]:
    """Return what the assignment at a place gives its variable, and the place where that is read."""
    value = cast("Assign", loop.body[place]).value
    before = _place_of(loop, value.symbol) if isinstance(value, Read) else None
    return (value, place) if before is None or before > place else (cast("Assign", loop.body[before]).value, before)


def _sets(statement: object, symbol: Symbol) -> bool:
    match statement:
        case Assign(symbol=other) | For(index=other):
            return other == symbol
        case _:
            return False


@legality
def is_fixed(value: Expression, loop: For | While) -> bool:
    """Whether an integer is the same in every iteration of a loop, and no element that might be out of range."""
    return not effects(value).reads & effects(loop).assigns and not effects(value).loads


def limits(condition: Expression) -> Sequence[tuple[Symbol, str, Expression]]:
    """Return what a condition says as a variable, a comparison, and a limit."""
    match condition:
        case Apply(operator=operator, operands=(left, right)) if operator.name in MIRRORED and left.dtype is INT64:
            sides = ((left, operator.name, right), (right, MIRRORED[operator.name], left))
            return [(side.symbol, name, limit) for side, name, limit in sides if isinstance(side, Read)]
        case _:
            return ()
