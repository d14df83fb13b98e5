"""What a loop does to the variables that count in it, and the limits that conditions set them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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


@dataclass(frozen=True, slots=True)
class Step:
    """What each iteration of a loop does to a variable, once, and at which place of the body.

    `operator` is add, mul, floordiv or a shift; the variable is its first operand, and `by` the second.
    """

    symbol: Symbol
    operator: str
    by: Expression
    place: int


@legality
def step_of(loop: For | While, symbol: Symbol, operators: Collection[str] = ADDING) -> Step | None:
    """Return the step of a variable by one of these operators; None where iterations do not do the same to it."""
    body = loop.body
    places = [place for place, item in enumerate(body) if isinstance(item, Assign) and item.symbol == symbol]
    writes = [node for node in statements(loop) if _sets(node, symbol)]
    if not places or len(writes) != 1 or effects(body[: places[0]]).continues:
        return None
    match body[places[0]]:
        case Assign(value=Apply(operator=operator, operands=(Read(symbol=left), by))) if left == symbol:
            name = operator.name
        case Assign(value=Apply(operator=operator, operands=(by, Read(symbol=right)))) if right == symbol:
            name = operator.name if operator.name in {"add", "mul"} else ""
        case _:
            return None
    if name not in operators or not is_fixed(by, loop):
        return None
    if name == "sub":
        return Step(symbol, "add", build.apply("neg", by), places[0])
    return Step(symbol, name, by, places[0])


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
