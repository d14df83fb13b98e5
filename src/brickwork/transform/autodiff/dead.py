"""Takes out what no result depends on: reverse mode writes generously, and this leaves what is needed.

A statement stays if the variable it assigns may be read later, or the tensor it stores into loaded; a tensor counts as
one variable. Loops and branches stay if something in them does besides leaving them. A `while` is taken to end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Check,
    Constant,
    Continue,
    For,
    If,
    Launch,
    Load,
    Local,
    Node,
    Read,
    Rebind,
    Return,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import walk

_DIVISIONS = frozenset({"floordiv", "mod"})


@dataclass(frozen=True, slots=True)
class _Division:
    """Stands for the integer divisions that follow, which the checks before them are for."""


_Name: TypeAlias = Symbol | Tensor | _Division
Live: TypeAlias = frozenset[_Name]


def without_dead(block: Block, results: Collection[Tensor]) -> Block:
    """Return what the elements of `results` after the block depend on."""
    return _block(block, frozenset[_Name](results), None)[0]


def without_unused(host: Block) -> Block:
    """Return the statements of a host part without tensors that nothing later names, and launches of nothing."""
    needed: set[Tensor] = set()
    kept: list[Statement] = []
    for statement in reversed(host):
        match statement:
            case Allocate(tensor=tensor, like=like):
                if tensor not in needed:
                    continue
                needed |= {like} if like is not None else set()
            case Rebind(targets=targets, sources=sources):
                if not needed & {*targets}:
                    continue
                needed |= {*sources}
            case Launch(kernel=kernel):
                if not kernel.body:
                    continue
                needed |= {*kernel.tensors}
            case Return(tensors=tensors):
                needed |= {*tensors}
            case _:
                pass
        needed |= {node.tensor for node in walk(statement) if isinstance(node, Size)}
        kept.append(statement)
    return tuple(reversed(kept))


@dataclass(frozen=True, slots=True)
class _Jumps:
    """What is live where a `break` and where a `continue` lead to."""

    left: Live
    again: Live


def _reads(*roots: Node) -> Live:
    found: set[_Name] = set()
    for node in walk(roots):
        match node:
            case Read(symbol=symbol):
                found.add(symbol)
            case Load(tensor=tensor):
                found.add(tensor)
            case Apply(operator=operator, operands=(_, divisor)) if operator.name in _DIVISIONS:
                if divisor.dtype.is_integer and not isinstance(divisor, Constant):
                    found.add(_Division())
            case _:
                pass
    return frozenset(found)


def _block(block: Block, after: Live, jumps: _Jumps | None) -> tuple[Block, Live]:
    """Return what stays of a block, and what is live before it; without `jumps`, no jump stays."""
    kept: list[Statement] = []
    live = after
    for statement in reversed(block):
        stays, live = _statement(statement, live, jumps)
        if stays is not None:
            kept.append(stays)
    return tuple(reversed(kept)), live


def _statement(statement: Statement, live: Live, jumps: _Jumps | None) -> tuple[Statement | None, Live]:
    match statement:
        case Assign(symbol=symbol, value=value):
            return (statement, (live - {symbol}) | _reads(value)) if symbol in live else (None, live)
        case Store(tensor=tensor, indices=indices, value=value):
            return (statement, live | _reads(*indices, value)) if tensor in live else (None, live)
        case Local(tensor=tensor):
            return (statement, live - {tensor}) if tensor in live else (None, live)
        case Check(condition=condition, values=values):
            return (statement, live | _reads(condition, *values)) if _Division() in live else (None, live)
        case Rebind(targets=targets, sources=sources):
            if not live & {*targets}:
                return None, live
            return statement, (live - {*targets}) | {*sources}
        case If():
            return _if(statement, live, jumps)
        case For():
            return _for(statement, live)
        case While():
            return _while(statement, live)
        case Break():
            return (None, live) if jumps is None else (statement, jumps.left)
        case Continue():
            return (None, live) if jumps is None else (statement, jumps.again)
        case Allocate() | Launch() | Return():
            raise TypeError(type(statement).__name__)


def _if(statement: If, live: Live, jumps: _Jumps | None) -> tuple[Statement | None, Live]:
    then, first = _block(statement.then, live, jumps)
    otherwise, second = _block(statement.otherwise, live, jumps)
    if not then and not otherwise:
        return None, live
    before = first | second | _reads(statement.condition)
    return replace(statement, then=then, otherwise=otherwise), before


def _for(statement: For, after: Live) -> tuple[Statement | None, Live]:
    """Return a loop if it does something besides finding out when it is left."""

    def turn(around: Live, jumps: _Jumps | None) -> tuple[Block, Live]:
        return _block(statement.body, around, jumps)

    body, before = _repeated(turn, after, jumps=False)
    if not body:
        return None, after
    if _jumps(statement):
        body, before = _repeated(turn, after, jumps=True)
    return replace(statement, body=body), (before - {statement.index}) | _reads(statement.start, statement.stop)


def _while(statement: While, after: Live) -> tuple[Statement | None, Live]:
    """Return a `while` if it does something besides finding out when it ends."""

    def turn(around: Live, jumps: _Jumps | None) -> tuple[tuple[Block, Block], Live]:
        body, head = _block(statement.body, around, jumps)
        tested = after | head if jumps is None else after | head | _reads(statement.condition)
        prelude, before = _block(statement.prelude, tested, jumps)
        return (prelude, body), before

    if not any(_repeated(turn, after, jumps=False)[0]):
        return None, after
    (prelude, body), before = _repeated(turn, after, jumps=True)
    return replace(statement, prelude=prelude, body=body), before


def _jumps(statement: Statement) -> bool:
    return any(isinstance(node, Break | Continue) for node in walk(statement))


_Kept = TypeVar("_Kept")


def _repeated(
    turn: Callable[[Live, _Jumps | None], tuple[_Kept, Live]], after: Live, *, jumps: bool
) -> tuple[_Kept, Live]:
    """Return what stays of a turn, which may come again, and what is live before the loop."""
    around = after
    while True:
        kept, before = turn(around, _Jumps(after, around) if jumps else None)
        if before <= around:
            return kept, around
        around = around | before
