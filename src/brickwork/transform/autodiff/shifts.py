"""Variables that results do not depend on, though expressions name them: what exponentials are shifted by.

    m = max(x[i, j] for j in range(n))
    for j in range(n):
        t += exp(x[i, j] - m)
    for j in range(n):
        out[i, j] = exp(x[i, j] - m) / t

Here the derivative by m of each exponential, and so of t, is -1 times the value: that of their quotient is 0. So m has
an adjoint of 0, and where it was found does not matter. The derivatives are followed that are a number (`sum`) or a
multiple of the value (`product`). A shift is one for as long as it is not assigned again: what depends on an earlier
one counts as unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from enum import Enum

from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Cast,
    Constant,
    Expression,
    For,
    If,
    Read,
    Select,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import read_symbols, walk
from brickwork.records import dataclass

_EXPONENTIALS = frozenset({"exp", "expm1"})


def shifts(block: Block, active: Collection[Symbol | Tensor]) -> frozenset[Symbol]:
    """Return the active variables by which no element that is stored has a derivative."""
    shifted = (
        node.operands[0] for node in walk(block) if isinstance(node, Apply) and node.operator.name in _EXPONENTIALS
    )
    candidates = {symbol for operand in shifted for symbol in read_symbols(operand)} & {*active}
    return frozenset(symbol for symbol in candidates if _is_shift(block, symbol))


class _Kind(Enum):
    """How a derivative is told."""

    PRODUCT = "a multiple of the value"
    SUM = "a number"
    NULL = "0, as the value"
    UNKNOWN = "not at all"


@dataclass(frozen=True, slots=True)
class _Derivative:
    """The derivative of a value by the shift."""

    kind: _Kind
    factor: float = 0.0

    @property
    def is_zero(self) -> bool:
        """Whether the value does not change with the shift."""
        return self.kind is not _Kind.UNKNOWN and self.factor == 0.0


_ZERO, _NULL, _UNKNOWN = _Derivative(_Kind.PRODUCT), _Derivative(_Kind.NULL), _Derivative(_Kind.UNKNOWN)


def _product(factor: float) -> _Derivative:
    return _Derivative(_Kind.PRODUCT, factor)


def _sum(factor: float) -> _Derivative:
    return _Derivative(_Kind.SUM, factor) if factor else _ZERO


def _either(one: _Derivative, other: _Derivative) -> _Derivative:
    """Return the derivative of what is one of two values."""
    if one == other:
        return one
    if one.kind is _Kind.NULL and other.kind is _Kind.PRODUCT:
        return other
    if other.kind is _Kind.NULL and one.kind is _Kind.PRODUCT:
        return one
    return _UNKNOWN


def _added(one: _Derivative, other: _Derivative, sign: int) -> _Derivative:
    """Return the derivative of a sum, or of a difference."""
    if _Kind.UNKNOWN in {one.kind, other.kind}:
        return _UNKNOWN
    numbers = all(item.is_zero or item.kind is _Kind.SUM for item in (one, other))
    return _sum(one.factor + sign * other.factor) if numbers else _either(one, other)


def _multiplied(one: _Derivative, other: _Derivative, sign: int) -> _Derivative:
    """Return the derivative of a product, or of a quotient."""
    if any(item.kind in {_Kind.UNKNOWN, _Kind.SUM} for item in (one, other)):
        return _UNKNOWN
    return _NULL if one.kind is _Kind.NULL else _product(one.factor + sign * other.factor)


class _DependentError(Exception):
    """A stored element depends on the shift, or nothing is known of it."""


@dataclass(slots=True)
class _Derivatives:
    """The derivatives of variables at a place; those that are not named are 0."""

    shift: Symbol
    found: dict[Symbol, _Derivative] = field(default_factory=dict[Symbol, _Derivative])

    def of(self, node: Expression) -> _Derivative:
        """Return the derivative of an expression."""
        if not node.dtype.is_float:
            return _ZERO
        match node:
            case Read(symbol=symbol):
                return _sum(1.0) if symbol == self.shift else self.found.get(symbol, _ZERO)
            case Constant(value=value):
                return _ZERO if value else _NULL
            case Cast(operand=operand):
                return self.of(operand)
            case Select(then=then, otherwise=otherwise):
                return _either(self.of(then), self.of(otherwise))
            case Apply(operator=operator, operands=operands):
                return _applied(operator.name, operands, [self.of(operand) for operand in operands])
            case _:
                return _ZERO

    def block(self, block: Block) -> None:
        """Go through a block."""
        for statement in block:
            self.statement(statement)

    def statement(self, node: Statement) -> None:
        """Go through a statement."""
        match node:
            case Assign(symbol=symbol) if symbol == self.shift:
                earlier = [item for item, derivative in self.found.items() if not derivative.is_zero]
                self.found |= dict.fromkeys(earlier, _UNKNOWN)
            case Assign(symbol=symbol, value=value):
                self.found[symbol] = self.of(value)
            case Store(value=value):
                if not self.of(value).is_zero:
                    raise _DependentError
            case If(then=then, otherwise=otherwise):
                other = _Derivatives(self.shift, dict(self.found))
                self.block(then)
                other.block(otherwise)
                self.join(other)
            case For(body=body) | While(body=body):
                while True:
                    before = dict(self.found)
                    self.block(body)
                    self.join(_Derivatives(self.shift, before))
                    if self.found == before:
                        break
            case _:
                pass

    def join(self, other: _Derivatives) -> None:
        """Go on with what holds here or there; a variable that only one has was not set before."""
        for symbol, derivative in other.found.items():
            self.found[symbol] = _either(self.found.get(symbol, derivative), derivative)


def _applied(name: str, operands: Sequence[Expression], given: Sequence[_Derivative]) -> _Derivative:
    """Return the derivative of an operator's result."""
    match name, *given:
        case "add" | "sub", one, other:
            return _added(one, other, 1 if name == "add" else -1)
        case "mul", one, other:
            scaled = _scaled(operands, given)
            return scaled or (_NULL if other.kind is _Kind.NULL else _multiplied(one, other, 1))
        case "truediv", one, other:
            return _multiplied(one, other, -1)
        case "neg", one:
            return _sum(-one.factor) if one.kind is _Kind.SUM else one
        case "maximum" | "minimum", one, other:
            return _either(one, other)
        case "exp", one if one.kind is _Kind.SUM:
            return _product(one.factor)
        case "log", one if one.kind is _Kind.PRODUCT:
            return _sum(one.factor)
        case "sqrt", one if one.kind is _Kind.PRODUCT:
            return _product(one.factor / 2)
        case "abs", one if one.kind is _Kind.PRODUCT:
            return one
        case _:
            return _ZERO if all(item.is_zero for item in given) else _UNKNOWN


def _scaled(operands: Sequence[Expression], given: Sequence[_Derivative]) -> _Derivative | None:
    """Return the derivative of a literal times what moves with the shift; None for another product."""
    for place, item in enumerate(given):
        match operands[1 - place]:
            case Constant(value=value) if item.kind is _Kind.SUM:
                return _sum(item.factor * float(value))
            case _:
                pass
    return None


def _is_shift(block: Block, symbol: Symbol) -> bool:
    """Whether no element that a block stores has a derivative by a variable."""
    try:
        _Derivatives(symbol).block(block)
    except _DependentError:
        return False
    return True
