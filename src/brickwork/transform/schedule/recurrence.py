"""How long an iteration of a loop in order waits for the one before: the chain of operators through what it carries.

    for n in range(x.shape[1]):
        s = 0.9 * s + 0.1 * x[i, n]      one multiply-add: 4 cycles
        y[i, n] = s

A processor runs the rest of an iteration beside the chain. So the chain is what lanes of a loop around can hide.
"""

from __future__ import annotations

from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Cast,
    Constant,
    Expression,
    If,
    Load,
    Node,
    Read,
    Select,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols
from brickwork.target.cycles import ARITHMETIC, DIVISION, READ, SIMPLE

_DIVISIONS = frozenset({"truediv", "floordiv", "mod", "fmod", "sqrt"})
_SUMS = frozenset({"add", "sub"})
_Carried = Symbol | Tensor
_Times = dict[_Carried, float]


def chain(body: Block, through: frozenset[Tensor] = frozenset()) -> float:
    """Return the cycles from what an iteration carries in to what it carries out; 0 where it carries nothing.

    It carries variables, and elements of the tensors `through` which it does.
    """
    carried: frozenset[_Carried] = (live_before(body, NONE) & assigned_symbols(body)) | through
    ready = dict.fromkeys(carried, 0.0)
    _block(body, ready)
    return max((ready.get(item, 0.0) for item in carried), default=0.0)


def _block(block: Block, ready: _Times) -> None:
    """Note when what is carried is ready after a block; what nothing carried leads to is in time."""
    for statement in block:
        match statement:
            case Assign(symbol=symbol, value=value):
                _note(symbol, _ready(value, ready), ready)
            case Store(tensor=tensor, value=value) if tensor in ready:
                ready[tensor] = max(_ready(value, ready) or 0.0, ready[tensor])
            case If(condition=condition, then=then, otherwise=otherwise):
                chosen = _ready(condition, ready)
                for branch in (then, otherwise):
                    after = dict(ready)
                    _block(branch, after)
                    stored = effects(branch).stores & ready.keys()
                    for item in (*assigned_symbols(branch), *stored):
                        times = (after.get(item), ready.get(item), chosen)
                        _note(item, max((time for time in times if time is not None), default=None), ready)
            case _:
                pass


def _note(item: _Carried, time: float | None, ready: _Times) -> None:
    ready.pop(item, None)
    if time is not None:
        ready[item] = time


def _ready(expression: Expression, ready: _Times) -> float | None:
    """Return when a value is ready; None if nothing carried leads to it."""
    match expression:
        case Read(symbol=symbol):
            return ready.get(symbol)
        case Load(tensor=tensor, indices=indices):
            # An element that was just stored is in a register.
            times = (ready.get(tensor), _after(READ, indices, ready))
            return max((time for time in times if time is not None), default=None)
        case Cast(operand=operand):
            return _after(SIMPLE, (operand,), ready)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return _after(SIMPLE, (condition, then, otherwise), ready)
        case Apply(operator=operator, operands=operands) if operator.name in _SUMS and expression.dtype.is_float:
            # A product in a sum is one instruction with it.
            return _after(ARITHMETIC, [part for item in operands for part in _factors(item)], ready)
        case Apply(operands=operands):
            return _after(_cycles(expression), operands, ready)
        case _:
            return None


def _after(cycles: float, operands: tuple[Expression, ...] | list[Expression], ready: _Times) -> float | None:
    times = [time for item in operands if (time := _ready(item, ready)) is not None]
    return max(times) + cycles if times else None


def _factors(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Apply(operator=operator, operands=operands) if operator.name == "mul":
            return operands
        case _:
            return (expression,)


def _cycles(expression: Apply) -> float:
    if is_division(expression):
        return DIVISION
    return ARITHMETIC if expression.dtype.is_float and expression.operator.name == "mul" else SIMPLE


def is_division(node: Node) -> bool:
    """Whether a node is a division, a remainder or a root; that of integers by a literal is a product and a shift."""
    if not isinstance(node, Apply) or node.operator.name not in _DIVISIONS:
        return False
    by = node.operands[-1]
    return not (isinstance(by, Constant) and by.dtype.is_integer and by.value > 0)
